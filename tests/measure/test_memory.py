"""The memory that a model takes once it is compiled and has run: heap and files, and no code."""

from __future__ import annotations

import mmap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from lane_models import F32
from ov_autoplace import _core
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.widths import Width
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.plan import Plan, PoolPlan, WholePlan

SIZE, NOISE = 32 << 20, 2 << 20
CALLER = WholePlan("CPU", Width(1, in_caller=True))


def in_the_heap(_: Path) -> Any:
    return np.ones(SIZE, np.uint8)


def in_a_file(folder: Path) -> Any:
    path = folder / "weights.bin"
    path.write_bytes(bytes(SIZE))
    found = np.memmap(path, np.uint8, "r")
    assert found.sum() == 0  # reads all of it
    return found


def as_code(_: Path) -> Any:
    found = mmap.mmap(-1, SIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    found.write(b"\x01" * SIZE)
    return found


@pytest.mark.parametrize(("hold", "grows"), [(in_the_heap, SIZE), (in_a_file, SIZE), (as_code, 0)])
def test_a_process_holds_its_heap_and_what_it_reads_of_files(
    hold: Callable[[Path], Any], grows: int, tmp_path: Path
) -> None:
    before = _core.Profiler.resident_bytes()
    held = hold(tmp_path)
    assert _core.Profiler.resident_bytes() - before == pytest.approx(grows, abs=NOISE)
    del held
    assert _core.Profiler.resident_bytes() == pytest.approx(before, abs=NOISE)


@pytest.mark.parametrize("isolation", [True, False])
def test_what_a_candidate_takes_is_noted_for_each_also_after_one_that_fails(isolation: bool) -> None:
    weights = np.random.default_rng(0).standard_normal((2048, SIZE // 2048 // 4)).astype(np.float32)
    x = ops.parameter([1, 2048], np.float32, name="x")
    model = ov.Model([ops.result(ops.matmul(x, ops.constant(weights), False, False))], [x])
    plans: dict[str, Plan] = {
        "all threads": WholePlan("CPU"),
        "refused": WholePlan("CPU", properties={"NO_SUCH_PROPERTY": "1"}),
        "one thread": CALLER,
        "two copies": PoolPlan("two copies", CALLER, (CALLER, CALLER), 2),
    }
    candidates = [Candidate(name, plan) for name, plan in plans.items()]
    with ProfilingSession(None, model, ["CPU"], {"CPU": F32}, isolation=isolation) as session:
        bench = Workbench(session, None, Budget(60))
        for candidate in candidates:
            bench.note_memory(candidate)
    sizes = {candidate.name: candidate.memory_bytes for candidate in candidates}
    assert sizes.pop("refused") is None
    for name, size in sizes.items():
        weights_of_all = SIZE * len(plans[name].models)
        assert size is not None
        # A device may keep them as they are in the file beside those that it has brought into order.
        assert weights_of_all - NOISE < size < 2 * weights_of_all + 4 * NOISE, name
