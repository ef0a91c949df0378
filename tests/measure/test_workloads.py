"""Several compiled models at once, run here and in the child process.

Nothing is asserted about speed: what is counted is who ran how often, in which order, and from when latencies
count.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from contextlib import ExitStack

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace import _core
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.isolation.interface import Executable
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.workload import Callers, Outcome, Workload
from ov_autoplace.plan.plan import WholePlan

PATIENT = 30.0  # seconds in which whatever arrives is run, on however busy a machine
CALLER = WholePlan("CPU", Width(1, in_caller=True))


def small(size: int = 8) -> ov.Model:
    x = ops.parameter([1, size], np.float32, name="x")
    return ov.Model([ops.result(ops.relu(x))], [x])


def failing() -> ov.Model:
    """An index that lies outside for every input that is made up."""
    data, index = ops.parameter([4], np.float32, name="data"), ops.parameter([1, 1], np.int64, name="index")
    moved = ops.add(index, ops.constant(np.array([[1 << 40]])))
    return ov.Model(
        [ops.result(ops.scatter_nd_update(data, moved, ops.constant(np.ones(1, np.float32))))], [data, index]
    )


class Compiled:
    """A few compiled models of one profiler, and workloads of them."""

    def __init__(self, isolation: bool, resources: ExitStack) -> None:
        self.session = resources.enter_context(ProfilingSession(None, small(), ["CPU"], isolation=isolation))
        other = ProfilingSession(None, failing(), ["CPU"], isolation=isolation, beside=self.session)
        self.failing = resources.enter_context(other).compile_whole(CALLER)
        self.models: list[Executable] = [self.session.compile_whole(CALLER) for _ in range(2)]

    def workload(
        self,
        count: int,
        links: Sequence[tuple[int, int, float]] = (),
        *,
        in_turn: bool = False,
        copies: int = 1,
    ) -> Workload:
        """So many models, of so many copies each."""
        return Workload(self.session.profiler, (tuple(self.models[:copies]),) * count, tuple(links), in_turn)


@pytest.fixture(scope="module", params=[False, True], ids=["here", "in the child"])
def compiled(request: pytest.FixtureRequest) -> Iterator[Compiled]:
    with ExitStack() as resources:
        yield Compiled(request.param, resources)


def arrivals(*seconds: float) -> np.ndarray:
    return np.array(seconds, dtype=np.float64)


def at_once(count: int) -> np.ndarray:
    return np.zeros(count)


def check(outcome: Outcome) -> Outcome:
    """What is true of every outcome."""
    assert all((latencies > 0).all() for latencies in outcome.latencies)
    assert (outcome.rates >= 0).all()
    assert (outcome.busy_seconds[outcome.inferences > 0] > 0).all()
    assert outcome.cores > 0
    for span in outcome.spans:
        assert 0 <= span.begin <= span.end
    return outcome


@pytest.mark.parametrize(
    ("times", "each"),
    [
        (1.0, [1] * 12),
        (3.0, [3] * 12),
        (2.5, [2, 3] * 6),
        (0.25, [0, 0, 0, 1] * 3),
        (1.75, [1, 2, 2, 2] * 3),
    ],
)
def test_a_chain_is_followed_so_often_and_fractions_are_spread_evenly(
    compiled: Compiled, times: float, each: list[int]
) -> None:
    workload = compiled.workload(2, [(0, 1, times)])
    outcome = check(workload.run([Callers(0, 1, at_once(12))], PATIENT, spans=True))
    assert outcome.inferences.tolist() == [12, sum(each)]
    order = [span.model for span in sorted(outcome.spans, key=lambda span: span.begin)]
    assert order == [model for count in each for model in (0, *[1] * count)]


def test_chains_lead_on_and_meet_again(compiled: Compiled) -> None:
    # 0 -> 1 twice -> 3 once, 0 -> 2 half the time -> 3 four times.
    links = [(0, 1, 2.0), (0, 2, 0.5), (1, 3, 1.0), (2, 3, 4.0)]
    outcome = check(compiled.workload(4, links).run([Callers(0, 1, at_once(6))], PATIENT))
    assert outcome.inferences.tolist() == [6, 12, 3, 12 + 12]


def test_inferences_of_a_request_are_within_it_and_it_takes_as_long_as_all_of_them(
    compiled: Compiled,
) -> None:
    workload = compiled.workload(3, [(0, 1, 2.0), (1, 2, 1.0)])
    outcome = check(workload.run([Callers(0, 1, at_once(1))], PATIENT, spans=True))
    spans = sorted(outcome.spans, key=lambda span: span.begin)
    assert [span.model for span in spans] == [0, 1, 2, 1, 2]
    assert all(before.end <= after.begin for before, after in itertools.pairwise(spans))
    (latency,) = outcome.latencies[0].tolist()
    assert latency >= spans[-1].end  # from 0, when it should have begun
    assert outcome.busy_seconds.sum() <= latency
    assert outcome.busy_seconds.sum() == pytest.approx(sum(span.end - span.begin for span in spans))


@pytest.mark.parametrize("callers", [1, 3])
def test_every_request_that_arrives_runs_once_and_not_before_it_should(
    compiled: Compiled, callers: int
) -> None:
    begins = arrivals(0.0, 0.0, 0.002, 0.004, 0.03)
    workload = compiled.workload(2, copies=2)
    outcome = check(workload.run([Callers(1, callers, begins)], PATIENT, spans=True))
    assert outcome.inferences.tolist() == [0, 5]
    assert [len(latencies) for latencies in outcome.latencies] == [5]
    began = sorted(span.begin for span in outcome.spans)
    assert all(begin >= intended for begin, intended in zip(began, begins.tolist(), strict=True))
    assert {span.caller for span in outcome.spans} <= set(range(callers))


def test_latency_counts_from_when_a_request_should_have_begun(compiled: Compiled) -> None:
    """All are due at once and one caller runs them: each has waited for all that went before it."""
    workload = compiled.workload(2, [(0, 1, 10.0)])
    outcome = check(workload.run([Callers(0, 1, at_once(20))], PATIENT, spans=True))
    ends = [0.0] * 20
    request = -1
    for span in sorted(outcome.spans, key=lambda span: span.begin):
        request += span.model == 0
        ends[request] = span.end
    latencies = outcome.latencies[0]
    assert (latencies >= ends).all()
    assert (np.diff(latencies) > 0).all()
    # What a clock that starts with the request itself would say is shorter than the wait before it.
    assert latencies[-1] >= sum(span.end - span.begin for span in outcome.spans)


def test_what_could_not_begin_in_time_has_an_infinite_latency_and_no_inference(compiled: Compiled) -> None:
    """Requests that are due within a moment, each of a thousand inferences."""
    workload = compiled.workload(2, [(0, 1, 1000.0)])
    outcome = check(workload.run([Callers(0, 1, at_once(2000))], 1e-3))
    (latencies,) = outcome.latencies
    finite = np.isfinite(latencies)
    assert len(latencies) == 2000
    assert not finite[-1]
    assert outcome.inferences[0] == finite.sum()


@pytest.mark.parametrize(("callers", "copies"), [(1, 1), (3, 1), (3, 2), (2, 2)])
def test_every_caller_of_a_closed_loop_takes_part(compiled: Compiled, callers: int, copies: int) -> None:
    workload = compiled.workload(2, [(0, 1, 1.0)], copies=copies)
    outcome = check(workload.run([Callers(0, callers)], 0.01, spans=True))
    finished = len(outcome.latencies[0])
    assert finished >= 2 * callers
    assert outcome.inferences.tolist() == [finished, finished]
    assert {span.caller for span in outcome.spans} == set(range(callers))
    assert 0 < outcome.rates[0] <= callers / outcome.latencies[0].min()


def test_sources_of_both_kinds_run_beside_each_other(compiled: Compiled) -> None:
    workload = compiled.workload(3)
    sources = [Callers(0, 2), Callers(1), Callers(2, 1, arrivals(0.0, 0.01, 0.02))]
    outcome = check(workload.run(sources, 0.03))
    began = [np.isfinite(latencies).sum() for latencies in outcome.latencies]
    assert began == outcome.inferences.tolist()
    assert len(outcome.latencies[2]) == 3
    assert (outcome.inferences[:2] >= [4, 2]).all()


def test_in_turn_nothing_runs_beside_anything_and_everybody_has_a_turn(compiled: Compiled) -> None:
    workload = compiled.workload(4, [(0, 3, 1.5)], in_turn=True)
    sources = [Callers(0, 3), Callers(1), Callers(2, 2, arrivals(0.0, 0.002, 0.004))]
    outcome = check(workload.run(sources, 0.02, spans=True))
    spans = sorted(outcome.spans, key=lambda span: span.begin)
    assert {span.caller for span in spans} == {0}
    assert all(before.end <= after.begin for before, after in itertools.pairwise(spans))
    assert {span.model for span in spans} >= {0, 1, 3}
    assert len(outcome.latencies[2]) == 3
    # Closed loops have turns: no one has two requests more than another.
    assert abs(len(outcome.latencies[0]) - len(outcome.latencies[1])) <= 1


def test_spans_are_there_where_they_are_asked_for(compiled: Compiled) -> None:
    workload = compiled.workload(1)
    for spans, count in ((False, 0), (True, 3)):
        assert len(workload.run([Callers(0, 1, at_once(3))], PATIENT, spans=spans).spans) == count


@pytest.mark.parametrize("links", [(), [(0, 1, 1.0)]], ids=["at once", "behind another one"])
@pytest.mark.parametrize("in_turn", [False, True])
def test_a_model_that_fails_ends_the_run_and_later_ones_work(
    compiled: Compiled, links: Sequence[tuple[int, int, float]], in_turn: bool
) -> None:
    good = compiled.models[0]
    workload = Workload(compiled.session.profiler, ((good,), (compiled.failing,)), tuple(links), in_turn)
    sources = [Callers(0, 2)] if links else [Callers(0, 2), Callers(1)]
    with pytest.raises(ProfilingError, match="the models cannot be run at once") as failure:
        workload.run(sources, 0.05)
    assert "\n" not in str(failure.value)
    assert check(compiled.workload(1).run([Callers(0, 1, at_once(2))], PATIENT)).inferences.tolist() == [2]


NAN = float("nan")
ONE = [(0, 1, False, [])]


@pytest.mark.parametrize(
    ("sources", "links", "seconds"),
    [
        ([], [], 0.01),
        ([(5, 1, False, [])], [], 0.01),
        ([(0, 0, False, [])], [], 0.01),
        ([(0, 1001, False, [])], [], 0.01),
        ([(0, 501, False, []), (1, 500, False, [])], [], 0.01),
        ([(0, 1, True, [NAN])], [], 0.01),
        ([(0, 1, True, [0.1, 0.0])], [], 0.01),
        ([(0, 1, True, [-1.0])], [], 0.01),
        ([(0, 1, True, [61.0])], [], 0.01),
        (ONE, [(0, 7, 1.0)], 0.01),
        (ONE, [(7, 0, 1.0)], 0.01),
        (ONE, [(0, 0, 1.0)], 0.01),
        (ONE, [(0, 1, 1.0), (1, 2, 1.0), (2, 0, PATIENT)], 0.01),
        (ONE, [(0, 1, 0.0)], 0.01),
        (ONE, [(0, 1, -1.0)], 0.01),
        (ONE, [(0, 1, NAN)], 0.01),
        (ONE, [(0, 1, math.inf)], 0.01),
        (ONE, [(0, 1, 1000.0), (1, 2, 1000.0)], 0.01),
        (ONE, [], 0.0),
        (ONE, [], NAN),
        (ONE, [], math.inf),
        (ONE, [], 61.0),
    ],
)
def test_what_cannot_be_is_refused(
    sources: list[tuple[int, int, bool, list[float]]],
    links: list[tuple[int, int, float]],
    seconds: float,
) -> None:
    with ProfilingSession(None, small(), ["CPU"], isolation=False) as session:
        model = session.compile_whole(CALLER)
        assert isinstance(model, _core.Executable)
        with pytest.raises(ValueError, match="a workload"):
            _core.run_workload([[model]] * 3, sources, links, seconds)
        _core.run_workload([[model]], ONE, [], 1e-4)


@pytest.mark.parametrize("models", [[], [[]], [[None]]], ids=["no model", "no copy", "None"])
def test_models_that_are_none_are_refused(models: list[list[None]]) -> None:
    with pytest.raises(ValueError, match="a workload"):
        _core.run_workload(models, ONE, [], 0.01)  # type: ignore[arg-type]


def test_a_chain_of_very_many_models_is_refused_before_it_is_followed() -> None:
    with ProfilingSession(None, small(), ["CPU"], isolation=False) as session:
        model = session.compile_whole(CALLER)
        assert isinstance(model, _core.Executable)
        count = 100_000
        with pytest.raises(ValueError, match="1000 models"):
            _core.run_workload([[model]] * count, ONE, [(i, i + 1, 1.0) for i in range(count - 1)], 0.01)


def test_the_child_refuses_what_cannot_be_in_one_sentence(compiled: Compiled) -> None:
    with pytest.raises((ValueError, ProfilingError)) as refusal:
        compiled.workload(2, [(0, 1, 1.0), (1, 0, 1.0)]).run([Callers(0)], 0.01)
    assert "cycle" in str(refusal.value)
    assert "\n" not in str(refusal.value)
