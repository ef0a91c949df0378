"""Decisions under a quota of processor time, on a machine that only says that it stops threads."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
import zoo
from candidates import FOUND, on_groups, race_of, result_of
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.outlook import Outlook
from ov_autoplace.decide.pools import copies
from ov_autoplace.decide.stages.rates import run_pools
from ov_autoplace.decide.verdict import Verdict, sustained
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.fleet.answers import placement_of, placement_values
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure import loads
from ov_autoplace.measure.isolation.interface import Pool
from ov_autoplace.measure.loads import Timing
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import PoolPlan, WholePlan
from ov_autoplace.plugin.decision_cache import DecisionCache
from random_tables import random_table

NARROW = Width(1)
ONE_CORE = Quota(1.0, 0.1)


@dataclass
class Clock:
    """A group under a quota: so much processor time becomes available with each period."""

    quota: Quota
    now: float = 0.037  # nobody knows when periods begin
    period: int = -1
    left: float = 0.0

    def spend(self, seconds: float, threads: int) -> float:
        """Run something that takes so long on its threads; how long it took with the stops."""
        start = self.now
        while seconds > 1e-12:
            period = math.floor(self.now / self.quota.period_seconds + 1e-9)
            if period > self.period:
                self.period, self.left = period, self.quota.cores * self.quota.period_seconds
            end = (period + 1) * self.quota.period_seconds
            if self.left <= 1e-12:
                self.now = end
                continue
            step = min(seconds, self.left / threads, end - self.now)
            seconds, self.now, self.left = seconds - step, self.now + step, self.left - step * threads
        return self.now - start


@dataclass
class Model:
    """A compiled model that takes so long on so many threads."""

    clock: Clock
    seconds: float
    threads: int
    compile_seconds: float = 0.01
    subgraphs: int = 1

    def run(self, runs: int, warmup: int = 1) -> np.ndarray:
        return np.array([self.clock.spend(self.seconds, self.threads) for _ in range(warmup + runs)])[warmup:]


@dataclass
class Outputs:
    """A comparison of outputs that finds somebody's wrong."""

    wrong: str

    def note(self, *_: object) -> None:
        """Runs nothing."""

    def mark(self, candidates: Sequence[Candidate]) -> None:
        for candidate in candidates:
            candidate.is_wrong = candidate.name == self.wrong


@dataclass
class TwoCores:
    """A session on two cores with a model that takes so long on one and on both."""

    quota: Quota
    wide: float
    narrow: float
    outputs: Outputs | None = None

    def __post_init__(self) -> None:
        self.clock = Clock(self.quota)

    def compile_whole(self, plan: WholePlan) -> Model:
        if plan.width is None:
            return Model(self.clock, self.wide, 2)
        if self.narrow == math.inf:
            raise ProfilingError("it cannot be compiled")
        return Model(self.clock, self.narrow, 1)

    def has_compiled(self, device: str) -> bool:
        return False

    makes: ClassVar[dict[str, str]] = {}


def challenged(session: TwoCores, monkeypatch: pytest.MonkeyPatch, seconds: float = 1e6) -> Verdict:
    """A verdict for all threads, challenged by one."""
    monkeypatch.setattr(Cores, "quota", session.quota)
    table = replace(random_table(np.random.default_rng(1), 5, 2), wiring=None)
    everywhere = np.zeros(len(table), dtype=np.int32)
    samples = np.full(9, session.wide)
    alone = on_groups(table.devices[0], everywhere, session.wide, samples, table.devices)
    narrow = Candidate("narrow", WholePlan(alone.name, NARROW), session.narrow, assignment=everywhere)
    return race_of(session, table, seconds=seconds).challenge(Verdict(alone, FOUND, [alone]), [narrow])


# Milliseconds on two threads and on one, measured of MobileNet-V2, SSDLite and ResNet-50 in their full sizes
# and of a small LSTM.
MOBILENET, SSDLITE, RESNET, LSTM = (2.3, 3.8), (7.5, 13.2), (23.0, 39.0), (0.035, 0.021)


@pytest.mark.parametrize(
    ("milliseconds", "cores", "period", "wins"),
    [
        (MOBILENET, 1.0, 0.1, True),
        (MOBILENET, 0.6, 0.1, True),
        (MOBILENET, 1.5, 0.1, True),  # 0.8 of the rate, but the percentile is several times as good
        (SSDLITE, 1.0, 0.1, True),
        (RESNET, 1.0, 0.1, True),
        (RESNET, 1.5, 0.1, False),  # loses more of the rate than it gains in the percentile
        (LSTM, 1.0, 0.1, True),
        (LSTM, 1.5, 0.1, True),
        (MOBILENET, 1.0, 0.02, True),
        (MOBILENET, 1.99, 0.1, False),  # all threads are hardly ever stopped
        ((0.2, 0.3), 1.0, 0.1, False),  # so rarely that the percentile does not see it, and it would rise
        ((2.0, 4.4), 1.5, 0.005, False),
    ],
)
def test_whole_periods_decide_and_not_the_median(monkeypatch, milliseconds, cores, period, wins):
    wide, narrow = (1e-3 * value for value in milliseconds)
    verdict = challenged(TwoCores(Quota(cores, period), wide, narrow), monkeypatch)
    assert (verdict.winner.plan.width == NARROW) == wins
    all_threads, one_thread = verdict.candidates
    # What the candidates show is what they sustain, and it is told beside the percentiles.
    assert all_threads.seconds == pytest.approx(wide * 2 / cores, rel=0.12)
    assert one_thread.seconds == pytest.approx(max(narrow, narrow / cores), rel=0.12)
    if wins:
        assert one_thread.tail_seconds <= all_threads.tail_seconds


def test_who_stays_because_nobody_else_runs_keeps_what_proved_it():
    """And what replaces an answer from a busy machine is from one, too."""
    winner = Candidate("CPU", WholePlan("CPU"), 1.0, times={Load.STEADY: np.full(9, 1.0)})
    other = Candidate("narrow", WholePlan("CPU", NARROW), 1.0)
    longer, shorter = (Timing(np.full(1, s), latencies=(np.full(9, s),)) for s in (2.0, 1.0))
    before = Verdict(winner, FOUND, [winner], disturbed=True)
    assert sustained(before, {winner: longer}).winner is winner
    assert winner.samples.tolist() == [1.0] * 9
    found = sustained(before, {winner: longer, other: shorter})
    assert found.winner is other
    assert found.disturbed


def test_nobody_who_cannot_be_run_decides(monkeypatch):
    verdict = challenged(TwoCores(ONE_CORE, 0.002, math.inf), monkeypatch)
    assert verdict.winner.plan.width is None
    assert verdict.candidates[1].dropped
    verdict = challenged(TwoCores(ONE_CORE, 0.002, 0.003), monkeypatch, seconds=0.0)
    assert verdict.winner.plan.width is None
    assert not len(verdict.candidates[1].samples)


def test_nobody_who_computes_wrong_outputs_wins(monkeypatch):
    device = challenged(TwoCores(ONE_CORE, 0.002, 0.003), monkeypatch).candidates[0].name
    slower = TwoCores(Quota(1.99, 0.1), 0.002, 0.004, Outputs(device))
    assert challenged(slower, monkeypatch).winner.plan.width == NARROW
    better = TwoCores(ONE_CORE, 0.002, 0.003, Outputs("narrow"))
    assert challenged(better, monkeypatch).winner.plan.width is None


def test_an_answer_that_cannot_be_run_over_periods_keeps_what_proved_it(monkeypatch):
    session = TwoCores(ONE_CORE, 0.002, 0.003)

    def fails(*_: object, **__: object) -> np.ndarray:
        raise ProfilingError("the process was ended by SIGKILL")

    compile_whole = session.compile_whole

    def compiled(plan: WholePlan) -> object:
        broken = SimpleNamespace(run=fails, compile_seconds=0.0, subgraphs=1)
        return broken if plan.is_default else compile_whole(plan)

    monkeypatch.setattr(session, "compile_whole", compiled)
    winner = challenged(session, monkeypatch).winner
    assert winner.plan.width is None
    assert winner.samples.tolist() == [0.002] * 9
    assert winner.dropped == ""


@pytest.mark.parametrize(
    ("first", "second", "wins"),
    [
        ([(1.0, 1.0)] * 3, [(0.9, 1.0)] * 3, True),
        ([(1.0, 1.0)] * 3, [(0.5, 1.01)] * 3, False),  # never a higher percentile
        ([(1.0, 1.0)] * 3, [(0.99, 1.0)] * 3, False),  # less than counts
        ([(1.0, 9.0)] * 3, [(2.0, 4.0)] * 3, True),
        ([(1.0, 9.0)] * 3, [(2.0, 5.0)] * 3, False),
        ([(1.0, 9.0)] * 3, [(0.7, 8.0), (0.7, 8.0), (1.2, 9.0)], False),  # not in every turn
    ],
)
def test_the_rule(first, second, wins):
    """Turns of known means, and of one latency in fifty that is slow: the percentile."""

    def turns(values: list[tuple[float, float]]) -> Timing:
        means = np.array([mean for mean, _ in values])
        return Timing(means, latencies=tuple(np.array([0.1] * 49 + [tail]) for _, tail in values))

    former = Candidate("former", WholePlan("CPU"), 1.0)
    other = Candidate("other", WholePlan("CPU", NARROW), 1.0)
    verdict = Verdict(former, FOUND, [former])
    found = sustained(verdict, {former: turns(first), other: turns(second)})
    assert (found.winner is other) == wins


@pytest.mark.parametrize("cores", [0.6, 1.0, 1.5, 2.0, 3.5])
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("seconds", [1e-4, 3e-3, 0.03, 0.3])
def test_predicted_stops_are_those_of_a_machine_that_stops(cores, threads, seconds):
    quota = Quota(cores, 0.1)
    clock = Clock(quota)
    clock.spend(0.2, threads)
    found = np.array([clock.spend(seconds, threads) for _ in range(int(min(4.0 / seconds, 20_000)))])
    mean, tail = quota.stretched(seconds, threads)
    assert found.mean() == pytest.approx(mean, rel=0.1)
    # An inference that needs a part of a period may be stopped once less than the longest is.
    assert (
        tail * (1 + 1e-6)
        >= np.percentile(found, 99)
        >= tail - (quota.period_seconds if tail > seconds else 0)
    )


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Cores, "all", 2)
    monkeypatch.setattr(Cores, "of_kind", {})
    monkeypatch.setattr(Cores, "quota", ONE_CORE)


def chain(products: int, size: int = 512) -> ov.Model:
    node = x = ops.parameter([size, size], np.float32, name="x")
    for _ in range(products):
        node = ops.relu(ops.matmul(node, ops.constant(np.zeros((size, size), np.float32)), False, False))
    return ov.Model([ops.result(node)], [x], "chain")


def machine(**options: object) -> Machine:
    return Machine(ov.Core(), ("CPU",), PlacerOptions(**options))


def test_a_model_that_waits_little_is_measured_under_a_quota(two_cores, monkeypatch):
    some, many = prepare(chain(60)).model, prepare(chain(8, 4096)).model
    assert Outlook.of(machine(), "CPU", some).may_win
    assert not Outlook.of(machine(), "CPU", many).may_win  # a second and more, stopped in all its periods
    monkeypatch.setattr(Cores, "quota", None)
    assert not Outlook.of(machine(), "CPU", some).may_win


def test_a_decision_names_the_quota(two_cores):
    exact = {"INFERENCE_PRECISION_HINT": "f32"}  # in bf16 some releases compute LSTMs wrongly, which is told
    placement = ov_autoplace.place(zoo.build("lstm_lm", "small"), "CPU", properties=exact)
    assert placement.decision.quota == ONE_CORE
    assert "a quota of 1 core" in str(placement.decision)
    assert all(c.tail_seconds > 0 for c in placement.decision.candidates)
    again = placement_of(json.loads(json.dumps(placement_values(placement))), "a machine")
    assert again.decision.quota == ONE_CORE
    assert again.decision.candidates[0].tail_seconds == placement.decision.candidates[0].tail_seconds


def test_an_estimate_and_a_short_budget_leave_no_more_threads_than_the_quota_pays_for(two_cores, monkeypatch):
    model = zoo.build("mobilenet_v2", "full")
    estimated = ov_autoplace.place(model, "CPU", mode="ZERO_SHOT")
    assert estimated.plan.width == Width(1)
    assert estimated.decision.quota == ONE_CORE
    monkeypatch.setattr(WholePlan, "all_properties", property(lambda _: pytest.fail("it was compiled")))
    short = ov_autoplace.place(model, "CPU", time_budget_ms=1)
    assert short.plan.width == Width(1)


def test_a_decision_of_one_quota_is_not_used_under_another(two_cores, tmp_path: Path, monkeypatch):
    core, options = ov.Core(), PlacerOptions(properties={"CACHE_DIR": str(tmp_path)})
    model, paths = zoo.build("lstm_lm", "small"), set()
    for quota in (ONE_CORE, Quota(1.5, 0.1), Quota(0.6, 0.1), None):
        monkeypatch.setattr(Cores, "quota", quota)
        paths.add(DecisionCache.of(core, model, ("CPU",), options).path)
    assert len(paths) == 4


@pytest.mark.parametrize(("period", "seconds"), [(0.1, 0.1), (0.01, 0.02), (None, 0.015)])
def test_rates_are_those_of_whole_periods(monkeypatch, period, seconds):
    monkeypatch.setattr(Cores, "quota", period and Quota(1.5, period))
    asked = []

    def race(loads: Sequence[object], budget: float, **options: float) -> SimpleNamespace:
        asked.append(options["sample_seconds"])
        return result_of([np.ones(6) for _ in loads])

    monkeypatch.setattr(loads._core, "race_loads", race)
    model = SimpleNamespace(optimal_requests=1, compile_seconds=0.0, subgraphs=1)
    session = SimpleNamespace(profiler=None, outputs=None, compile_pool=lambda _: Pool((model,), (0,), 1))
    one = Candidate("one", PoolPlan("one", WholePlan("CPU")))
    run_pools(Workbench(session, None, Budget(9.0)), [one], 1.0)
    assert asked == pytest.approx([seconds, seconds])  # waiting callers, and a queue


@pytest.mark.parametrize(
    ("cores", "lanes", "counts"),
    [(1.0, [], []), (1.5, [], []), (2.5, [(2, 1)], [2]), (5.9, [(5, 1), (2, 2)], [5, 2]), (8.0, None, None)],
)
def test_lanes_and_copies_together_use_no_more_than_the_quota(monkeypatch, cores, lanes, counts):
    monkeypatch.setattr(Cores, "all", 8)
    monkeypatch.setattr(Cores, "of_kind", {})
    monkeypatch.setattr(Cores, "quota", Quota(cores, 0.1) if cores < 8 else None)
    found = [(lane.count, lane.width.threads) for lane in Cores.of_this_process().lanes]
    assert found == ([(8, 1), (4, 2), (2, 4)] if lanes is None else lanes)
    found = copies(machine(), ["CPU"], prepare(zoo.build("lstm_lm", "small")), {"CPU": 64.0})
    threads = [
        len(c.plan.models) * max(1, int(c.plan.base.all_properties["INFERENCE_NUM_THREADS"])) for c in found
    ]
    assert max(threads, default=0) <= cores
    assert sorted({len(c.plan.models) for c in found}, reverse=True) == (
        [8, 4, 2] if counts is None else counts
    )
