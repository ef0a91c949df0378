"""What an installation brings, and what importing it costs in modules."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import ov_autoplace
from ov_autoplace._base import native
from ov_autoplace._version import OPENVINO_RELEASES
from ov_autoplace.cli import main
from ov_autoplace.errors import VersionMismatchError

ROOT = Path(__file__).resolve().parent.parent


def python(program: str) -> subprocess.CompletedProcess[str]:
    """A fresh interpreter."""
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def requirements() -> list[str]:
    """Names of what a plain `pip install` brings."""
    required = metadata.requires("ov-autoplace") or []
    return [re.split(r"[^A-Za-z0-9_.-]", text)[0].lower() for text in required if "extra ==" not in text]


def test_an_installation_brings_no_training_framework() -> None:
    assert set(requirements()) == {"openvino", "numpy", "scipy", "rich", "typer"}


def test_any_openvino_from_the_floor_on_will_do_and_the_installed_one_is_built_for() -> None:
    assert f"openvino>={OPENVINO_RELEASES[0]}" in (metadata.requires("ov-autoplace") or [])
    provider = runpy.run_path(str(ROOT / "tools" / "wheels" / "openvino_requirement.py"))
    (required,) = provider["get_requires_for_dynamic_metadata"]({})
    assert required in {
        f"openvino=={release}" for release in (metadata.version("openvino"), *OPENVINO_RELEASES)
    }


def test_releases_of_openvino_stand_in_one_place() -> None:
    # What CMake and the build's requirements say of them they take from there.
    for name in ("pyproject.toml", "CMakeLists.txt", "csrc/native/CMakeLists.txt", "Makefile"):
        text = (ROOT / name).read_text()
        assert not [release for release in OPENVINO_RELEASES if release in text], name


def test_the_version_is_the_same_everywhere() -> None:
    assert ov_autoplace.__version__ == metadata.version("ov-autoplace")
    assert f"## [{ov_autoplace.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_the_command_is_installed() -> None:
    (entry,) = metadata.entry_points(group="console_scripts", name="ov-autoplace")
    assert entry.load() is main


@pytest.mark.parametrize("arguments", [["--version"], ["--help"]])
def test_the_package_runs_as_a_module(arguments: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ov_autoplace", *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0
    assert "ov-autoplace" in done.stdout


def test_type_information_is_installed() -> None:
    for name in ("py.typed", "_core.pyi"):
        assert Path(ov_autoplace.__file__).with_name(name).is_file()


def test_importing_the_package_loads_nothing_heavy() -> None:
    done = python(
        "import sys, openvino; before = set(sys.modules); import ov_autoplace;"
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}));"
        "print('core' if 'ov_autoplace._core' in sys.modules else '')"
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "ov_autoplace" in loaded
    assert not loaded & {"scipy", "rich", "typer", "torch", "dgl", "onnx", "pydantic", "core"}
    for path in (ROOT / "ov_autoplace").rglob("*.py"):  # this way nothing can load it while it is imported
        assert "from ov_autoplace._core import" not in path.read_text(), path


def test_annotating_never_imports_torch(tmp_path: Path) -> None:
    program = (
        "import sys; sys.modules['torch'] = None;"  # importing it now fails
        "import openvino as ov; from openvino import opset13 as ops; from ov_autoplace.cli import main;"
        "x = ops.parameter([1, 8], name='x');"
        f"path = {str(tmp_path / 'net.xml')!r};"
        "ov.save_model(ov.Model([ops.relu(x)], [x], 'net'), path);"
        "sys.exit(main(['annotate', path, '-d', 'CPU', '--time-budget-ms', '50']))"
    )
    done = python(program)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "net.affinity.json").exists()


def test_the_library_for_other_programs_brings_no_openvino_into_a_process() -> None:
    # A second OpenVINO beside one of another version would crash it; this way the program's own refuses.
    path = ov_autoplace.extension_path()
    done = python(f"import ctypes; ctypes.CDLL({path!r})")
    assert done.returncode == 1
    assert "OSError: libopenvino.so" in done.stderr
    done = python(f"import openvino; openvino.Core().add_extension({path!r})")
    assert done.returncode == 0, done.stderr


# A later OpenVINO beside a wheel for those before it.
LATER = (
    "import sys, openvino as ov; ov.__version__ = '2099.1.0-1-abc';"
    "import ov_autoplace; from openvino import opset13 as ops; x = ops.parameter([1, 8], name='x');"
    "model = ov.Model([ops.relu(ops.tanh(x, name='t'), name='r')], [x], 'net');"
)


def test_beside_a_later_openvino_what_runs_models_names_the_command_that_builds_it() -> None:
    done = python(f"{LATER} ov_autoplace.profile(model, ['CPU'])")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert last.startswith("ov_autoplace.errors.VersionMismatchError: ")
    assert "2099.1.0, which is installed" in last
    assert "`ov-autoplace build-native`" in last


def test_beside_a_later_openvino_the_command_line_says_so_in_one_sentence(tmp_path: Path) -> None:
    done = python(
        f"{LATER} from ov_autoplace.cli import main; path = {str(tmp_path / 'net.xml')!r};"
        "ov.save_model(model, path); sys.exit(main(['bench', path, '-d', 'CPU']))"
    )
    assert done.returncode == 2
    assert "build-native" in done.stderr
    assert "Traceback" not in done.stderr
    assert not list(tmp_path.glob("*.autoplace.xml"))


def test_beside_an_openvino_that_is_too_old_it_says_from_which_one_on(tmp_path: Path) -> None:
    done = python(
        f"{LATER.replace('2099.1.0', '2024.6.0')} from ov_autoplace.cli import main;"
        "sys.exit(main(['extension']))"
    )
    assert done.returncode == 2
    assert f"OpenVINO {OPENVINO_RELEASES[0]} and later, and 2024.6.0 is installed" in done.stderr


def test_beside_a_later_openvino_estimates_need_no_native_part() -> None:
    done = python(
        f"{LATER} placement = ov_autoplace.place(model, mode='ZERO_SHOT', target='core-ultra-7-155h');"
        "print(placement.decision is not None, set(placement.devices) <= {'CPU', 'GPU', 'NPU'})"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True", "True"]


def test_beside_a_later_openvino_models_are_annotated_from_a_file_and_run(tmp_path: Path) -> None:
    done = python(
        f"{LATER} from pathlib import Path; file = Path({str(tmp_path / 'net.affinity.json')!r});"
        "names = [op.get_friendly_name() for op in model.get_ops()]; device = dict.fromkeys(names, 'CPU');"
        "ov_autoplace.Placement.from_dict(device).save(file);"
        "ov_autoplace.annotate(model, ov_autoplace.Placement.load(file));"
        "compiled = ov.Core().compile_model(model, 'AUTOPLACE');"
        "print(*compiled.get_property('EXECUTION_DEVICES')); print(len(ov_autoplace.catalogue()))"
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == "CPU"


def test_a_core_that_was_never_built_says_how_to_build_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ov_autoplace._core", None)
    with pytest.raises(VersionMismatchError, match=r"not built; run `pip install \.`"):
        native.load_core()
