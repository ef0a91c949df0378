"""What an installation brings, and what importing it costs in modules."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import ov_autoplace
from ov_autoplace.cli import main

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


def test_the_openvino_that_is_required_to_run_is_the_one_required_to_build() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    pins = set(re.findall(r'"openvino==([\d.]+)"', text))
    assert len(pins) == 1
    assert text.count('"openvino==') == 2


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
        "print(*sorted({name.split('.')[0] for name in set(sys.modules) - before}))"
    )
    assert done.returncode == 0, done.stderr
    loaded = set(done.stdout.split())
    assert "ov_autoplace" in loaded
    assert not loaded & {"scipy", "rich", "typer", "torch", "dgl", "onnx", "pydantic"}


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


def test_another_openvino_is_refused_at_import_with_the_command_that_rebuilds() -> None:
    done = python("import openvino; openvino.__version__ = '2020.1.0-1-abc'; import ov_autoplace")
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "VersionMismatchError" in last
    assert "2020.1.0" in last
    assert "pip install" in last
