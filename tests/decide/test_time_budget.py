"""The budget of a decision: what is left out when it is short, and that a proof ends the measuring."""

from __future__ import annotations

import logging
from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

import ov_autoplace
from candidates import detail, kinds, numbers
from lane_models import towers
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide import costs
from ov_autoplace.decide.costs import CostSource
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.placer import Placer
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.stages import singles, splits, widths
from ov_autoplace.measure.counting import count_devices
from ov_autoplace.measure.node_counts import NodeCount
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Kind
from ov_autoplace.problem.problem import Problem
from places import CPU_PLUGIN
from training.scripted_devices import Clock

PAIR = ("XCPU", "CPU")


def matmuls() -> ov.Model:
    x = opset.parameter([64, 64], np.float32, name="x")
    node = x
    for i in range(4):
        weights = np.random.default_rng(i).normal(size=(64, 64)).astype(np.float32)
        node = opset.relu(opset.matmul(node, opset.constant(weights), False, False, name=f"matmul{i}"))
    return ov.Model([opset.result(node, name="y")], [x], "matmuls")


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> list[str]:
    """What is compiled and measured, in order; each step takes a second of the test's clock."""
    done: list[str] = []

    def noted(owner: object, name: str, label: str) -> None:
        function = getattr(owner, name)

        def wrapper(*arguments: object, **options: object) -> object:
            done.append(label)
            clock.now += 1.0
            return function(*arguments, **options)

        monkeypatch.setattr(owner, name, wrapper)

    # What is done again on a busy machine is tested with the profile.
    monkeypatch.setattr(NodeCount, "disturbance", 1.0)
    noted(ProfilingSession, "_compile", "compile")
    noted(ProfilingSession, "race", "race")
    noted(costs, "measure_transfers", "transfers")
    return done


def place(
    core: ov.Core,
    clock: Clock,
    seconds: float | None,
    default: float = 2.0,
    model: ov.Model | None = None,
    **options: object,
) -> ov_autoplace.Placement:
    """A placement within a budget in seconds of the test's clock; ``None`` is a default that may grow."""
    given = None if seconds is None else 1e3 * seconds
    asked = PlacerOptions.from_arguments({"time_budget_ms": given, **options})
    budget = Budget(default if seconds is None else seconds, clock=clock.perf_counter)
    return Placer(Machine(core, PAIR, asked), budget=budget).place(model or matmuls())


@pytest.mark.parametrize("seconds", [0.0, 0.5])
def test_a_budget_that_ends_before_every_device_is_profiled_costs_one_compilation(
    unequal_pair, clock, steps, seconds
):
    decision = place(unequal_pair, clock, seconds).decision
    assert steps == ["compile"]
    assert numbers(decision, Kind.UNPROFILED)["budget"] == pytest.approx(1e3 * seconds)
    assert decision.chosen in PAIR, "no gain of a mix is proven, so one device it is"


def test_without_a_budget_of_the_callers_every_device_is_profiled_however_long_one_takes(
    unequal_pair, clock, steps
):
    decision = place(unequal_pair, clock, None, default=0.5).decision  # over after the first compilation
    assert steps[:2] == ["compile", "compile"]
    assert Kind.UNPROFILED not in kinds(decision)


def test_a_default_budget_grows_with_what_compiling_and_running_take_at_most_to_twice(
    unequal_pair, clock, steps, monkeypatch
):
    counted = []

    def noting(*arguments: object, **options: object) -> object:
        counted.append(count_devices(*arguments, **options))
        return counted[0]

    monkeypatch.setattr(singles, "count_devices", noting)
    monkeypatch.setattr(splits, "unbeatable_device", lambda problem, *_: proposals_of(problem)[1])
    budget = Budget(2.0, clock=clock.perf_counter)
    Placer(Machine(unequal_pair, PAIR, PlacerOptions(executor="HETERO")), budget=budget).place(matmuls())
    compiled = 2.0 + 3 * counted[0].compile_seconds
    assert 2.0 < compiled < budget.seconds <= 2 * compiled


def test_pins_are_kept_where_there_is_no_time_to_measure(unequal_pair, clock, steps):
    placement = place(unequal_pair, clock, 0.0, pins={"matmul0": "XCPU", "matmul3": "CPU"})
    assert (placement.to_dict()["matmul0"], placement.to_dict()["matmul3"]) == ("XCPU", "CPU")


def test_a_device_that_is_proven_best_ends_the_measuring(unequal_pair, clock, steps, monkeypatch):
    """The proof itself is tested with the bounds."""
    monkeypatch.setattr(splits, "unbeatable_device", lambda problem, *_: proposals_of(problem)[1])
    decision = place(unequal_pair, clock, 100.0).decision
    assert steps == ["compile"] * 4 + ["race"], "each device for its nodes' times, and to run it in turns"
    assert decision.chosen == "CPU"
    assert decision.kind in (Kind.BOUND, Kind.NO_MIX_PREDICTED)
    assert len(decision.candidate("CPU").samples) > 0


@pytest.mark.parametrize(
    ("mode", "are_known", "proofs"), [("PROFILE", True, 2), ("PROFILE", False, 1), ("TUNE", True, 1)]
)
def test_what_crossings_cost_proves_something_where_it_is_known_and_not_to_be_corrected(
    unequal_pair, clock, steps, monkeypatch, mode, are_known, proofs
):
    """Without it, crossings that cost nothing are all that a proof may assume."""
    assumed: list[bool] = []

    def unproven(problem: Problem, *_: object) -> None:
        assumed.append(bool(problem.table.transfer_latency.any()))

    monkeypatch.setattr(splits, "unbeatable_device", unproven)
    monkeypatch.setattr(CostSource, "transfers", lambda costs, _: (costs.assumed_transfers(), are_known))
    place(unequal_pair, clock, 6.0, mode=mode)
    assert assumed == [False, True][:proofs]


def proposals_of(problem: Problem) -> list[Candidate]:
    return propose(problem, ProposalSource(solvers=()))


@pytest.mark.parametrize("seconds", [3.0, 8.0])
def test_no_more_than_one_step_begins_after_the_budget_ends(unequal_pair, clock, steps, monkeypatch, seconds):
    monkeypatch.setattr(splits, "unbeatable_device", lambda *_: None)
    place(unequal_pair, clock, seconds)
    # Races are told how long they may take; the clock here counts a second for each.
    assert len([step for step in steps if step != "race"]) <= seconds + 1


def test_measurements_that_other_work_disturbed_prove_nothing_and_are_marked(
    unequal_pair, clock, monkeypatch, caplog
):
    from ov_autoplace.measure.counting import CountedDevices

    asked = []
    monkeypatch.setattr(CountedDevices, "was_disturbed", True)
    monkeypatch.setattr(splits, "unbeatable_device", lambda *_: asked.append(1))
    with caplog.at_level(logging.INFO, "ov_autoplace"):
        assert place(unequal_pair, clock, None, default=0.3).decision.disturbed
    assert not asked


@pytest.fixture
def endless(monkeypatch: pytest.MonkeyPatch, clock: Clock) -> None:
    """Nothing is ever told apart: each race takes all the time that it is given, each compilation 0.1 s."""
    race, compile_it = ProfilingSession.race, ProfilingSession._compile

    def racing(session: ProfilingSession, executables: list[object], seconds: float, **how: object) -> object:
        clock.now += seconds
        return race(session, executables, 0.0, **how)

    def compiling(*arguments: object, **how: object) -> object:
        clock.now += 0.1
        return compile_it(*arguments, **how)

    monkeypatch.setattr(NodeCount, "disturbance", 1.0)
    monkeypatch.setattr(ProfilingSession, "race", racing)
    monkeypatch.setattr(ProfilingSession, "_compile", compiling)
    monkeypatch.setattr(costs, "measure_transfers", lambda *_, **__: SimpleNamespace(samples=[]))
    monkeypatch.setattr(splits, "unbeatable_device", lambda *_: None)
    monkeypatch.setattr(widths, "could_win", lambda *_: True)


@pytest.fixture
def pair() -> ov.Core:
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    return core


@pytest.mark.parametrize("mode", ["PROFILE", "TUNE"])
def test_races_that_tell_nothing_apart_leave_time_for_those_that_come_later(
    pair, two_cores, clock, endless, mode
):
    decision = place(pair, clock, 25.0, model=towers(6, 512), mode=mode, executor="OVERLAP").decision
    ran = [candidate for candidate in decision.candidates if len(candidate.samples)]
    assert any(candidate.plan.width for candidate in ran)
    assert decision.candidate(decision.chosen).scheduled, decision.reason


def test_what_was_demanded_and_had_no_time_is_told(pair, two_cores, clock, endless):
    decision = place(pair, clock, 0.25, model=towers(6, 512), executor="OVERLAP").decision
    assert decision.candidate(decision.chosen).scheduled is None
    assert "the time budget ended" in detail(decision, Kind.NO_SCHEDULE)
