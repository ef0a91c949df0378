"""The programs of ``tools/openvino_faults`` show the faults that docs/openvino-faults.md lists."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from ov_autoplace._base import releases
from places import ROOT

FOLDER = ROOT / "tools" / "openvino_faults"
NAMES = sorted(path.stem for path in FOLDER.glob("*.py"))

# Which programs show nothing with a release, because it does not have their faults. A release that is not
# listed counts as having all of them, so that what it mended is seen.
ABSENT = {
    "2025.4.0": {"attention_bf16"},  # it refuses to compile the model
    "2025.4.1": {"attention_bf16"},
}

# What a processor has on which a fault was seen, as /proc/cpuinfo calls it.
PROCESSORS = {
    "attention_bf16": "avx512_bf16",
    "gated_unit_one_thread": "amx_bf16",
    "one_thread_crash": "avx512f",
}


def test_the_page_has_a_section_for_each_program() -> None:
    page = (ROOT / "docs" / "openvino-faults.md").read_text(encoding="utf-8")

    assert sorted(re.findall(r"tools/openvino_faults/(\w+)\.py\)", page)) == NAMES


@pytest.mark.alone
@pytest.mark.parametrize("name", NAMES)
def test_a_program_shows_its_fault_unless_the_release_is_known_without(name: str, tmp_path: Path) -> None:
    release = releases.installed()
    flags = Path("/proc/cpuinfo").read_text(encoding="utf-8").split()
    if name in PROCESSORS and PROCESSORS[name] not in flags:
        pytest.skip("the fault was seen on other processors only")

    program = [sys.executable, str(FOLDER / f"{name}.py")]
    done = subprocess.run(program, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)

    assert done.returncode == (name in ABSENT.get(release, ())), done.stdout + done.stderr
    assert done.stdout.startswith(f"OpenVINO {release}"), done.stderr
