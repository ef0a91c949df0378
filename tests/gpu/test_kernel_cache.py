"""The virtual GPU's own cache: what one process has built is there for the next."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    "VIRTUAL_GPU_DRIVER" not in os.environ, reason="a real GPU's driver has a cache of its own"
)

# On a convolution's variant, too: its work-groups are 1 x 1 x 16.
PROGRAM = """
import sys
import numpy as np
import openvino as ov
from command_line import two_layers
from model_checks import relative_error

core = ov.Core()
for device in ("GPU", "CPU"):
    core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32"})
model = two_layers([1, 3, 16, 16])
image = np.random.default_rng(2).standard_normal((1, 3, 16, 16)).astype(np.float32)
answer, expected = (core.compile_model(model, device)({"image": image})[0] for device in ("GPU", "CPU"))
assert relative_error([answer], [expected]) < 5e-4
sys.stdout.buffer.write(answer.tobytes())
"""

Process = Callable[[], tuple[bytes, int]]


@pytest.fixture
def process(tmp_path: Path) -> Process:
    """Starts a process that runs the network on the GPU; its output and how many programs it had to build."""
    root = Path(__file__).resolve().parents[2]
    variables = {
        **os.environ,
        "VIRTUAL_GPU_CACHE": str(tmp_path),
        "VIRTUAL_GPU_DEBUG": "2",
        "PYTHONPATH": os.pathsep.join((str(root / "tests"), str(root / "tools"))),
    }

    def run() -> tuple[bytes, int]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=variables, capture_output=True, timeout=600, check=False
        )
        errors = done.stderr.decode(errors="replace")
        assert done.returncode == 0, errors[-2000:]
        return done.stdout, errors.count("virtual GPU: built in")

    return run


def test_the_second_process_builds_nothing_and_what_was_cut_off_is_built_anew(
    process: Process, tmp_path: Path
) -> None:
    answer, built = process()
    kept = sorted(tmp_path.iterdir())
    assert built == len(kept) > 0

    assert process() == (answer, 0)

    whole = kept[0].read_bytes()
    kept[0].write_bytes(whole[:-1])
    kept[-1].write_bytes(b"")
    assert process() == (answer, len({kept[0], kept[-1]}))
    assert sorted(tmp_path.iterdir()) == kept
    assert kept[0].read_bytes()[: len(whole) // 2] == whole[: len(whole) // 2]
