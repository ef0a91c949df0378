"""Many requests in flight, measured here and in the child process."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace import _core
from ov_autoplace._base.native import native_libraries
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.isolation.interface import Pool
from ov_autoplace.measure.loads import run_in_turns
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Load
from ov_autoplace.plan.plan import WholePlan

pytestmark = pytest.mark.alone

CALLER = WholePlan("CPU", Width(1, in_caller=True))


def chain(layers: int, width: int = 64) -> ov.Model:
    x = y = ops.parameter([1, width], np.float32, name="x")
    weights = ops.constant(np.eye(width, dtype=np.float32))
    for _ in range(layers):
        y = ops.relu(ops.matmul(y, weights, False, False))
    return ov.Model([ops.result(y)], [x])


def failing() -> ov.Model:
    """An index that lies outside for every input that is made up."""
    data, index = ops.parameter([4], np.float32, name="data"), ops.parameter([1, 1], np.int64, name="index")
    moved = ops.add(index, ops.constant(np.array([[1 << 40]])))
    return ov.Model(
        [ops.result(ops.scatter_nd_update(data, moved, ops.constant(np.ones(1, np.float32))))], [data, index]
    )


@pytest.mark.parametrize("isolation", [True, False])
def test_a_longer_model_and_more_requests_are_told_apart(isolation: bool) -> None:
    with ProfilingSession(None, chain(400, 256), ["CPU"], isolation=isolation) as session:
        model = session.compile_whole(CALLER)
        assert model.optimal_requests == 1
        short = {"min_rounds": 4, "max_rounds": 4, "sample_seconds": 0.01, "names": ["a"]}
        pools = [Pool((model,), (0,), 1)]
        found = [run_in_turns(session, pools, load, 30.0, **short) for load in (Load.WAITING, Load.QUEUED)]
        once = float(np.median(model.run(20)))
    for (timing,) in (turns.timings for turns in found):
        assert len(timing.samples) == 4
        # One request after the other, in either way, in the calling thread: about its latency.
        assert 0.2 * once < np.median(timing.samples) < 5 * once


@pytest.mark.parametrize("asynchronous", [True, False])
def test_every_member_takes_part_and_may_occur_twice(asynchronous: bool) -> None:
    profiler = _core.Profiler(native_libraries(), [], {})
    with ProfilingSession(None, chain(2), ["CPU"], isolation=False) as session:
        session.profiler = profiler
        first, second = (session.compile_whole(CALLER) for _ in range(2))
        seconds = _core.load_seconds([first, second, first], 7, asynchronous, 0.01)
    assert 0 < seconds < 1


def test_streams_say_how_many_requests_they_want() -> None:
    with ProfilingSession(None, chain(2), ["CPU"]) as session:
        hinted = session.compile_whole(WholePlan("CPU", properties={"PERFORMANCE_HINT": "THROUGHPUT"}))
        wanted = ov.Core().compile_model(chain(2), "CPU", {"PERFORMANCE_HINT": "THROUGHPUT"})
        assert hinted.optimal_requests == wanted.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")


@pytest.mark.parametrize("isolation", [True, False])
@pytest.mark.parametrize(("load", "other"), [(Load.WAITING, Load.QUEUED), (Load.QUEUED, Load.WAITING)])
def test_a_request_that_fails_ends_its_load_alone(isolation: bool, load: Load, other: Load) -> None:
    with ProfilingSession(None, failing(), ["CPU"], isolation=isolation) as session:
        model = session.compile_whole(CALLER)
        pool = Pool((model,), (0,), 3)
        with pytest.raises(ProfilingError, match="no candidate can be run"):
            run_in_turns(session, [pool], load, 0.2, min_rounds=1, max_rounds=2)
        # The requests can be used again.
        with pytest.raises(ProfilingError):
            run_in_turns(session, [pool], other, 0.2, min_rounds=1, max_rounds=2)


def test_bad_loads_are_refused() -> None:
    with ProfilingSession(None, chain(2), ["CPU"], isolation=False) as session:
        model = session.compile_whole(CALLER)
    for members, requests, seconds in (
        ([], 1, 0.1),
        ([model], 0, 0.1),
        ([model], 1001, 0.1),
        ([model], 1, 0.0),
    ):
        with pytest.raises(ValueError, match="load"):
            _core.load_seconds(members, requests, False, seconds)
    with pytest.raises(ValueError, match="None"):
        _core.load_seconds([None], 1, False, 0.1)
    with pytest.raises(ValueError, match="60 seconds"):
        _core.load_seconds([model], 1, False, float("nan"))
