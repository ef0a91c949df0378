"""Lanes in a decision: which models are divided at all, who wins, and what the user may ask for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from candidates import FOUND, kinds, numbers, on_groups, race_of
from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.decide.context import Context
from ov_autoplace.decide.divisions import Division, is_worth_dividing, lanes_for
from ov_autoplace.decide.lane_costs import LaneCosts
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.stages.lanes import _Search
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.devices.widths import Cores, Lanes, Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Kind
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.planning import lane_plan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from random_tables import random_table
from scripted_session import NOISE, ScriptedSession


def stack(x: ov.Node, layers: int, width: int, random: np.random.Generator) -> ov.Node:
    for _ in range(layers):
        weights = random.standard_normal((width, width), np.float32) / np.float32(width**0.5)
        x = ops.relu(ops.matmul(x, ops.constant(weights), False, False))
    return x


def towers(count: int, layers: int = 6, width: int = 512) -> ov.Model:
    random = np.random.default_rng(0)
    inputs = [ops.parameter([4, width], np.float32, name=f"x{n}") for n in range(count)]
    ends = [stack(x, layers, width, random) for x in inputs]
    return ov.Model([ops.result(ops.concat(ends, 1) if count > 1 else ends[0])], inputs, "towers")


def machine(**options: object) -> Machine:
    return Machine(ov.Core(), ("CPU",), PlacerOptions.from_arguments(options))


# ---- how a CPU is divided ---------------------------------------------------------------------------------


def test_cores_are_divided_into_equal_lanes(monkeypatch):
    for usable, expected in ((1, []), (2, ["2x1"]), (4, ["4x1", "2x2"]), (6, ["6x1", "3x2"])):
        monkeypatch.setattr(Cores, "all", usable)
        monkeypatch.setattr(Cores, "of_kind", {})
        monkeypatch.setattr(Cores, "usable", usable)
        found = [f"{lanes.count}x{lanes.width.threads}" for lanes in Cores.of_this_process().lanes]
        assert found == expected


def test_a_large_machine_has_at_most_eight_lanes(monkeypatch):
    monkeypatch.setattr(Cores, "all", 64)
    monkeypatch.setattr(Cores, "of_kind", {})
    monkeypatch.setattr(Cores, "usable", 64)
    lanes = Cores.of_this_process().lanes
    assert max(found.count for found in lanes) == 8
    assert Lanes(2, Width(32)) in lanes


def test_lanes_that_the_user_asks_for_are_the_only_ones(two_cores):
    model = towers(2)
    assert [found.count for found in lanes_for(machine(), "CPU", model)] == [2]
    assert [found.count for found in lanes_for(machine(lanes="3x1"), "CPU", model)] == [3]
    assert lanes_for(machine(lanes="2x8"), "CPU", model) == ()


def test_a_cpu_whose_threads_the_user_chose_is_not_divided(two_cores):
    assert lanes_for(machine(properties={"INFERENCE_NUM_THREADS": 2}), "CPU", towers(2)) == ()


def test_only_a_model_with_branches_is_worth_dividing(two_cores):
    assert is_worth_dividing(machine(), "CPU", towers(2))
    assert not is_worth_dividing(machine(), "CPU", towers(1, layers=12))
    assert not is_worth_dividing(machine(executor="HETERO"), "CPU", towers(2))
    assert is_worth_dividing(machine(executor="OVERLAP"), "CPU", towers(1))


def test_what_fewer_threads_gain_is_no_gain_of_lanes(two_cores):
    on_one_thread = {1: 0.5}
    assert is_worth_dividing(machine(), "CPU", towers(2), on_one_thread)
    assert not is_worth_dividing(machine(), "CPU", towers(1), on_one_thread)


# ---- who wins ---------------------------------------------------------------------------------------------


def session_of(steady: dict[str, float], paused: dict[str, float] | None = None) -> ScriptedSession:
    """A device, and lanes of it."""
    named = {0: "device"}
    return ScriptedSession(steady, paused=paused, name_of=lambda plan: named.get(plan.lane_count, "lanes"))


def is_paused(session: ScriptedSession) -> bool:
    return any("pause_seconds" in load for load in session.loads)


def decided(session: ScriptedSession, call: str = "challenge", **options: object) -> Verdict:
    """The verdict for a device after a race with a schedule on two lanes of it."""
    table = random_table(np.random.default_rng(5), 6, 1)
    table = replace(table, wiring=None, memory_capacity=np.array([np.inf]))
    lanes = with_lanes(table, table.devices[0], 2)
    assignment = np.arange(len(lanes), dtype=np.int32) % 2
    plan = lane_plan(lanes, assignment, [Lane.of(table.devices[0], {})] * 2)
    everywhere = np.zeros(len(table), dtype=np.int32)
    alone = on_groups("device", everywhere, 1e-4, 1e-4 * NOISE, table.devices)
    schedule = Candidate("lanes", plan, 5e-5, len(plan.lane_of), assignment=everywhere)
    settings = PlacerOptions.from_arguments(options)
    race = race_of(session, table, settings)
    verdict = Verdict(alone, FOUND, [alone])
    return getattr(race, call)(verdict, [schedule])


def test_lanes_that_win_back_to_back_and_after_pauses_win():
    session = session_of({"device": 1.0, "lanes": 0.6}, {"device": 1.5, "lanes": 1.2})
    verdict = decided(session)
    assert verdict.winner.name == "lanes"
    assert kinds(verdict) == [Kind.FASTER, Kind.AFTER_PAUSES]
    assert numbers(verdict, Kind.FASTER)["gain"] == pytest.approx(40.0)
    assert numbers(verdict, Kind.AFTER_PAUSES)["ratio"] == pytest.approx(0.8)
    assert is_paused(session)


def test_lanes_that_lose_after_pauses_lose():
    verdict = decided(session_of({"device": 1.0, "lanes": 0.6}, {"device": 1.0, "lanes": 1.1}))
    assert verdict.winner.name == "device"
    assert kinds(verdict) == [*(f.kind for f in FOUND), Kind.STEADY_ONLY, Kind.AFTER_PAUSES]
    assert verdict.candidates[-1].on(Load.PAUSED).size


def test_steady_arrivals_take_what_wins_back_to_back():
    session = session_of({"device": 1.0, "lanes": 0.6}, {"device": 1.0, "lanes": 1.1})
    assert decided(session, arrivals="STEADY").winner.name == "lanes"
    assert not is_paused(session)


def test_lanes_that_lose_back_to_back_are_not_tried_with_pauses():
    session = session_of({"device": 1.0, "lanes": 1.3}, {"device": 1.0, "lanes": 0.5})
    verdict = decided(session)
    assert verdict.winner.name == "device"
    assert kinds(verdict)[-1] is Kind.OTHERS_NOT_FASTER
    assert not is_paused(session)


def test_lanes_that_are_demanded_are_taken_and_the_decision_says_what_they_cost():
    session = session_of({"device": 1.0, "lanes": 1.3}, {})
    verdict = decided(session, "require", executor="OVERLAP")
    assert verdict.winner.name == "lanes"
    assert kinds(verdict) == [Kind.REQUIRED, Kind.BESIDE]
    assert numbers(verdict, Kind.BESIDE)["ratio"] == pytest.approx(1.3)


def test_a_cost_of_demanded_lanes_that_a_few_runs_tell_is_said_to_prove_nothing(monkeypatch):
    session = session_of({"device": 1.0, "lanes": 1.3}, {})
    session.noise = NOISE[:3]
    verdict = decided(session, "require", executor="OVERLAP")
    assert numbers(verdict, Kind.BESIDE_TOO_FEW)["rounds"] == 3


def test_demanded_lanes_that_cannot_be_compiled_leave_the_answer_and_say_so():
    verdict = decided(session_of({"device": 1.0}, {}), "require", executor="OVERLAP")
    assert verdict.winner.name == "device"
    assert kinds(verdict)[-1] is Kind.NO_SCHEDULE
    assert "cannot be compiled" in verdict.candidates[-1].dropped


@pytest.mark.parametrize("lanes", [{}, {"lanes": 1.3}], ids=["cannot be compiled", "cannot be run"])
def test_lanes_that_are_demanded_and_do_not_run_leave_what_proved_the_answer(lanes, monkeypatch):
    session = session_of({"device": 1.0, **lanes}, {})

    def fails(*_: object, **__: object) -> SimpleNamespace:
        raise ProfilingError("the process was ended by SIGKILL")

    monkeypatch.setattr(session, "race", fails)
    verdict = decided(session, "require", executor="OVERLAP")
    assert verdict.winner.samples.tolist() == (1e-4 * NOISE).tolist()
    assert verdict.winner.dropped == ""
    assert verdict.findings[: len(FOUND)] == FOUND


# ---- TUNE -------------------------------------------------------------------------------------------------


def test_schedules_are_tuned_until_nothing_else_is_proposed():
    told = {"first": 1.0, "second": 0.9, "third": 0.7, "fourth": 0.8}
    table = replace(random_table(np.random.default_rng(5), 6, 1), wiring=None)
    table = replace(table, memory_capacity=np.array([np.inf]))
    lanes = with_lanes(table, table.devices[0], 2)
    schedules: dict[str, Candidate] = {}
    for number, name in enumerate(told):
        assignment = (np.arange(len(lanes)) >> number) % 2
        plan = lane_plan(lanes, assignment.astype(np.int32), [Lane.of(table.devices[0], {})] * 2)
        schedules[name] = Candidate(name, plan, 5e-5, assignment=np.zeros(len(table), dtype=np.int32))
    names = {id(c.plan): name for name, c in schedules.items()}
    session = ScriptedSession(told, name_of=lambda plan: names[id(plan)])
    waiting = [["second", "third"], ["fourth"], []]
    seen: list[list[str]] = []

    def more(tried: Sequence[Candidate]) -> list[Candidate]:
        seen.append([candidate.name for candidate in tried])
        return [schedules[name] for name in waiting[len(seen) - 1]]

    settings = PlacerOptions.from_arguments({"mode": "TUNE"})
    found = race_of(session, table, settings).tune_schedules([schedules["first"]], more)
    assert [candidate.name for candidate in found] == ["third", "first", "second", "fourth"]
    assert [len(names) for names in seen] == [1, 3, 4]
    assert all(len(candidate.samples) for candidate in found)


def test_tune_proposes_schedules_that_are_new_and_promised_by_the_measured_costs(two_cores):
    random = np.random.default_rng(20261124)
    device = replace(random_table(random, 20, 1), wiring=None, memory_capacity=np.array([np.inf]))
    lanes = Lanes(2, Width(1))
    division = Division(device.devices[0], lanes)
    table = with_lanes(device, device.devices[0], 2)
    costs = LaneCosts(table, tuple([Lane.of(device.devices[0], {})] * 2), {})
    asked = machine(mode="TUNE")
    context = Context(asked, prepare(towers(2)), Budget(1e6), ProposalSource(()), lambda _: nullcontext())
    alone = on_groups("CPU", [0] * len(device), 1.0, NOISE, ("CPU",))
    context.known, context.problem = SimpleNamespace(), Problem.of(device)
    context.verdict = Verdict(alone, FOUND, [alone])
    search = _Search(context)
    search._divided.append((division, costs))
    tried = [search._scheduled(division, costs, search._solved(table))]
    for _ in range(2):
        fresh = search.more(tried)
        assert len(fresh) <= 2
        assert [c.expected_seconds for c in fresh] == sorted(c.expected_seconds for c in fresh)
        for candidate in fresh:
            simulated = simulate(table, candidate.scheduled.assignment, "overlap")
            assert candidate.expected_seconds == simulated.latency_seconds
        tried += fresh
    assert len(tried) > 1
    assert len({candidate.plan.key for candidate in tried}) == len({c.name for c in tried}) == len(tried)


# ---- from end to end --------------------------------------------------------------------------------------


def test_a_demanded_schedule_computes_what_the_device_computes(two_cores):
    model = towers(2)
    config = {"AUTOPLACE_EXECUTOR": "OVERLAP"}
    compiled = ov.Core().compile_model(model, "AUTOPLACE:CPU", config)
    inputs = [np.random.default_rng(n).standard_normal((4, 512), np.float32) for n in range(2)]
    expected = ov.Core().compile_model(model, "CPU")(inputs)[0]
    np.testing.assert_allclose(compiled(inputs)[0], expected, rtol=1e-4, atol=1e-5)


def test_a_chain_on_lanes_is_answered_with_the_device_and_a_reason(two_cores):
    decision = ov_autoplace.place(towers(1), "CPU", executor="OVERLAP").decision
    assert decision.scheduled is None
    assert kinds(decision)[-1] is Kind.NO_EXECUTOR


def test_without_the_executor_nothing_is_divided(two_cores):
    decision = ov_autoplace.place(towers(2), "CPU", executor="HETERO").decision
    assert not any(candidate.plan.lane_count for candidate in decision.candidates)


def test_lanes_that_are_demanded_of_estimates_are_refused_in_the_reason():
    asked = ov_autoplace.place(towers(4), "CPU", mode="ZERO_SHOT", executor="OVERLAP")
    assert not asked.plan.lane_count
    assert Kind.LANES_NOT_ESTIMATED in kinds(asked.decision)
    unasked = ov_autoplace.place(towers(4), "CPU", mode="ZERO_SHOT").decision
    assert Kind.LANES_NOT_ESTIMATED not in kinds(unasked)
