"""A session measures a model at static shapes, with which more of it may be folded than of the caller's."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from lane_models import by_name, towers, typed
from ov_autoplace import _core
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan


def flattening() -> ov.Model:
    """Two branches behind a Reshape to a shape that is computed, and known once that of the input is."""
    entry = ops.parameter([-1, 4, 8], np.float32, name="entry")
    rows = ops.gather(ops.shape_of(entry, name="shape"), ops.constant([0]), ops.constant(0), name="rows")
    wanted = ops.concat([rows, ops.constant(np.array([32]))], 0, name="wanted")
    flat = ops.reshape(entry, wanted, False, name="flat")
    joined = ops.add(ops.tanh(flat, name="left"), ops.sigmoid(flat, name="right"), name="joined")
    return ov.Model([joined], [entry], "flattening")


def test_a_schedule_of_a_dynamic_model_is_timed_at_static_shapes() -> None:
    model = flattening()
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    submodel_of = {name: int(name == "right") for name in names if name != "joined"} | {"joined": 2}
    plan = LanePlan((Lane("CPU"), Lane("CPU")), submodel_of, lane_of=(0, 1, 0), rank=(0, 1, 2))

    with ProfilingSession(None, model, ["CPU"], shapes={"entry": [2, 4, 8]}, isolation=False) as session:
        assert "rows" not in {op.get_friendly_name() for op in session.model.get_ops()}
        seconds = session.compile_lanes(plan).run(3, 3)

    assert (np.asarray(seconds) > 0).all()


def bytes_on_disk(folder: Path, processes: Iterable[int]) -> int:
    """What a folder takes of its disk, with the files that are gone from it and still mapped."""
    there = {status.st_ino: 512 * status.st_blocks for status in map(os.stat, folder.rglob("*"))}
    gone: Counter[int] = Counter()
    for process in processes:
        for line in Path(f"/proc/{process}/maps").read_text().splitlines():
            if str(folder) in line and line.endswith("(deleted)"):
                begin, end = (int(address, 16) for address in line.split()[0].split("-"))
                gone[int(line.split()[4])] += end - begin
    return sum({**gone, **there}.values())


def test_schedules_share_the_weights_on_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many are compiled; each is there again after a crash, and gone when nobody uses it."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = towers(layers=4, width=256)  # 2 MiB of weights
    weights = 8 * 256 * 256 * 4
    plan = by_name(model, (0, 1, 0))
    swapped, alone = (
        LanePlan(plan.lanes, plan.submodel_of, lanes, plan.rank) for lanes in ((1, 0, 1), (0, 0, 0))
    )

    with ProfilingSession(None, model, ["CPU"]) as session:
        assert isinstance(session.profiler, IsolatedProfiler)
        executables, most = [], 0
        for each in (plan, swapped, alone, plan, swapped, alone):
            executables.append(session.compile_lanes(each))
            executables[-1].run(1)
            most = max(most, bytes_on_disk(tmp_path, (os.getpid(), session.profiler.pid)))
        assert weights < most < 1.25 * weights
        session.profiler.restart()
        for executable in executables:
            assert len(executable.run(2)) == 2
        session.compile_device("CPU").run(1)  # reads the file that has grown
        left = len(list(tmp_path.rglob("*.xml")))
        del executable, executables
        assert len(list(tmp_path.rglob("*.xml"))) < left == 1 + 2 * 6
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("isolation", [True, False])
def test_a_schedule_without_weights_is_timed(isolation: bool) -> None:
    model = typed(ov.Type.f32)
    with ProfilingSession(None, model, ["CPU"], isolation=isolation) as session:
        assert len(session.compile_lanes(by_name(model, (0, 1))).run(2)) == 2


def test_transposed_copies_of_weights_are_added_to_the_file(tmp_path: Path, monkeypatch) -> None:
    """A model with such copies, and its schedules, read the same file and compute what the model does."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    width = 128
    weight = np.random.default_rng(3).standard_normal((width, width)).astype(np.float32) / width
    x, y = (ops.parameter([1, width], np.float32, name=name) for name in "xy")
    left = ops.matmul(x, ops.constant(weight), False, False, name="0/left")
    right = ops.matmul(y, ops.constant(weight), False, True, name="1/right")
    model = ov.Model([ops.add(left, right, name="2/sum")], [x, y], "tied")
    properties = {"CPU": {"INFERENCE_PRECISION_HINT": "f32"}}
    with ProfilingSession(None, model, ["CPU"], properties) as session:
        untied = session.mended()
        assert untied is not None
        size = bytes_on_disk(tmp_path, (os.getpid(),))
        assert 2 * weight.nbytes <= size < 2.5 * weight.nbytes
        whole, schedule = (
            untied.compile_device("CPU"),
            untied.compile_lanes(by_name(untied.model, (0, 1, 0))),
        )
        for name, executable in (("whole", whole), ("schedule", schedule)):
            executable.save_outputs(str(tmp_path / name))
        (difference,) = _core.output_differences(str(tmp_path / "whole"), str(tmp_path / "schedule"), 1e-6)
        assert difference < 1e-4
