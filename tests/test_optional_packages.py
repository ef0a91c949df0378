"""What is collected where only the extra ``test`` is installed, and what is said of the rest."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from optional_packages import NEEDS, USES
from places import ROOT

BARE = """
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in {absent}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
sys.path.insert(0, "tests")
import pytest
sys.exit(pytest.main({arguments}))
"""
PACKAGES = sorted({package for packages in NEEDS.values() for package in packages})


def pytest_in_a_bare_environment(*arguments: str, absent: list[str]) -> subprocess.CompletedProcess[str]:
    program = BARE.format(absent=absent, arguments=["-p", "no:cacheprovider", "-q", *arguments])
    return subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )


# Where they are not, as in the environment of `make test`, the run that this test is in shows it.
@pytest.mark.torch
def test_every_module_can_be_collected_without_the_packages_that_are_optional() -> None:
    result = pytest_in_a_bare_environment("--collect-only", absent=PACKAGES)

    assert result.returncode == 0, result.stdout[-2000:]
    collected = {line.split("::")[0] for line in result.stdout.splitlines() if "::" in line}
    assert {"tests/decide/test_placer_options.py", "tests/policy/test_checkpoint.py"} <= collected
    assert "tests/policy/test_network.py" not in collected
    assert "tests/training/test_tuning_task.py" not in collected


def test_one_line_says_what_is_left_out_which_is_what_only_optional_chooses(tmp_path: Path) -> None:
    test = "    assert True\n"
    module = tmp_path / "test_sample.py"
    module.write_text(
        "import pytest\n"
        f"def test_plain():\n{test}"
        + "".join(f"@pytest.mark.{name}\ndef test_{name}():\n{test}" for name in (*NEEDS, USES))
    )

    (tmp_path / "test_whole.py").write_text("import pytest\nimport bokeh\npytestmark = pytest.mark.bokeh\n")

    def collected(*arguments: str, absent: list[str]) -> set[str]:
        options = [str(tmp_path), f"--rootdir={ROOT}", "-c", str(ROOT / "pyproject.toml"), *arguments]
        options += ["-p", "optional_packages", "--collect-only"]
        result = pytest_in_a_bare_environment(*options, absent=absent)
        assert result.returncode == 0, result.stdout + result.stderr
        (left_out,) = [line for line in result.stdout.splitlines() if line.startswith("left out:")]
        assert "1 module without bokeh" in left_out
        assert "make test-all" in left_out
        return {line.split("::")[1] for line in result.stdout.splitlines() if "::" in line}

    left = collected(absent=PACKAGES)
    assert left == {"test_plain", f"test_{USES}"}
    assert collected("--only-optional", absent=PACKAGES) == {f"test_{USES}"}


@pytest.mark.parametrize(("marker", "words"), [("torch", "torch (--require torch)"), ("trch", "there are")])
def test_what_has_to_be_there_and_is_not_ends_the_run(marker: str, words: str) -> None:
    result = pytest_in_a_bare_environment("--collect-only", "--require", marker, absent=["torch"])

    assert result.returncode == pytest.ExitCode.USAGE_ERROR
    assert words in result.stderr
