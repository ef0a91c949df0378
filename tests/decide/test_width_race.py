"""Widths in a decision: who is compiled at all, who wins, and what happens where one cannot be compiled."""

from __future__ import annotations

import os
from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
import zoo
from candidates import FOUND, detail, kinds, numbers, on_groups, race_of, result_of
from command_line import gated_unit
from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.target_json import load_target, save_target
from ov_autoplace.decide import widths
from ov_autoplace.decide.context import Context
from ov_autoplace.decide.costs import CostSource
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.outlook import Outlook
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.stages import widths as stage
from ov_autoplace.decide.stages.widths import Widths
from ov_autoplace.decide.verdict import Verdict, predicted
from ov_autoplace.decide.widths import width_candidate, widths_for
from ov_autoplace.devices import conditions
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.counting import CountedDevices
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Kind
from ov_autoplace.plan.plan import WholePlan
from random_tables import random_table
from scripted_session import NOISE, ScriptedSession

NARROW = Width(1)


def challenged(
    session: ScriptedSession, *, seconds: float = 1e6, disturbed: bool = False, **options: object
) -> Verdict:
    """A verdict for the first device, challenged by one thread of it."""
    table = replace(random_table(np.random.default_rng(1), 5, 2), wiring=None)
    everywhere = np.zeros(len(table), dtype=np.int32)
    device, *_ = table.devices
    alone = on_groups(device, everywhere, 1e-4, session.seconds * NOISE, table.devices)
    narrow = Candidate("narrow", WholePlan(device, NARROW), 1e-4, assignment=everywhere)
    verdict = Verdict(alone, FOUND, [alone], disturbed)
    settings = PlacerOptions.from_arguments(options)
    return race_of(session, table, settings, seconds).challenge(verdict, [narrow])


def names() -> tuple[str, str]:
    device = random_table(np.random.default_rng(1), 5, 2).devices[0]
    return device, WholePlan(device, NARROW).name


@pytest.mark.parametrize(
    ("steady", "anew", "paused", "options", "wins"),
    [
        (1.0, 1.0, 0.9, {}, True),
        (1.0, 1.0, 0.9, {"arrivals": "STEADY"}, False),
        (1.0, 1.0, 0.97, {}, False),
        (1.03, 1.0, 0.5, {}, False),
        (1.0, 1.03, 0.5, {}, False),
    ],
    ids=["after pauses", "none come", "by little", "slower", "slower as compiled anew"],
)
def test_a_width_that_is_as_fast_wins_by_what_it_gains_after_pauses(steady, anew, paused, options, wins):
    device, narrow = names()
    compiled = ({device: 1.0, narrow: steady}, {device: 1.0, narrow: anew})
    session = ScriptedSession(*compiled, paused={device: 1.5, narrow: 1.5 * paused})
    verdict = challenged(session, **options)
    if wins:
        assert verdict.winner.plan.width == NARROW
        assert kinds(verdict) == [Kind.AS_FAST, Kind.AFTER_PAUSES]
        assert numbers(verdict, Kind.AFTER_PAUSES)["ratio"] == pytest.approx(paused)
    else:
        assert verdict.winner.name == device
        assert kinds(verdict)[-1] is Kind.OTHERS_NOT_FASTER
        assert verdict.winner.samples.tolist() == (session.seconds * NOISE).tolist()


def test_a_width_that_is_faster_each_time_it_is_compiled_wins():
    device, narrow = names()
    session = ScriptedSession({device: 1.0, narrow: 0.7})
    verdict = challenged(session)
    assert verdict.winner.plan.width == NARROW
    assert numbers(verdict, Kind.FASTER)["gain"] == pytest.approx(30.0)
    assert len(session.races) > 1  # what chose it does not count


def test_a_width_that_was_fast_once_does_not_win():
    device, narrow = names()
    verdict = challenged(ScriptedSession({device: 1.0, narrow: 0.7}, {device: 1.0, narrow: 1.01}))
    assert verdict.winner.plan.width is None
    assert kinds(verdict)[-1] is Kind.NOT_FASTER


@pytest.mark.parametrize("factor", [1.0, 1.4])
def test_a_width_that_is_no_faster_leaves_the_answer_as_it_was(factor):
    device, narrow = names()
    verdict = challenged(ScriptedSession({device: 1.0, narrow: factor}))
    assert verdict.winner.plan.width is None
    assert [candidate.plan.width for candidate in verdict.candidates] == [None, NARROW]


def test_without_time_to_confirm_it_a_width_does_not_win():
    device, narrow = names()
    verdict = challenged(ScriptedSession({device: 1.0, narrow: 0.7}, seconds=1.0), seconds=3.0)
    assert verdict.winner.plan.width is None
    assert kinds(verdict)[-1] is Kind.UNCONFIRMED


def test_a_width_that_cannot_be_compiled_leaves_the_answer_as_it_was():
    device, _ = names()
    verdict = challenged(ScriptedSession({device: 1.0}))
    assert verdict.winner.plan.width is None
    assert verdict.findings == FOUND
    assert "cannot be compiled" in verdict.candidates[-1].dropped


def fails(names: list[str]) -> SimpleNamespace:
    raise ProfilingError("the process was ended by SIGKILL")


def narrow_fails(names: list[str]) -> SimpleNamespace:
    """At its first inference, so that its rival runs the fewest rounds alone."""
    found = [1e-4 * NOISE[:6] for _ in names]
    return result_of([*found[:-1], np.empty(0)], [*[""] * (len(names) - 1), "failed: out of resources"])


def has_no_time(names: list[str]) -> SimpleNamespace:
    return result_of([1e-4 * (1 - 0.1 * i) * NOISE[:1] for i, _ in enumerate(names)])


@pytest.mark.parametrize("goes_wrong", [fails, narrow_fails, has_no_time])
@pytest.mark.parametrize("race", [1, 2, 3])
def test_a_challenge_that_proves_nothing_leaves_what_proved_the_answer(goes_wrong, race, monkeypatch):
    """Whichever of its races goes wrong: the first, or one of those with what was compiled anew."""
    device, narrow = names()
    # What is faster for once only comes to the second race, and loses the verdict.
    session = ScriptedSession({device: 1.0, narrow: 0.7}, {device: 1.0, narrow: 1.0})
    run = session.race

    def raced(executables: list[SimpleNamespace], budget: float, **how: object) -> SimpleNamespace:
        found = run(executables, budget, **how)
        return goes_wrong([e.name for e in executables]) if len(session.races) == race else found

    monkeypatch.setattr(session, "race", raced)
    verdict = challenged(session)
    assert verdict.winner.name == device
    assert verdict.winner.samples.tolist() == (session.seconds * NOISE).tolist()
    assert verdict.winner.dropped == ""
    assert verdict.findings[: len(FOUND)] == FOUND


@pytest.mark.parametrize(("takes", "races"), [(0.7, 2), (0.9, 4)])
def test_who_is_faster_than_luck_explains_is_compiled_anew_once(takes, races):
    """And three times where a model's place in memory may be why."""
    device, narrow = names()
    session = ScriptedSession({device: 1.0, narrow: takes})
    assert challenged(session).winner.plan.width == NARROW
    assert len(session.races) == races


def test_a_width_whose_copies_fail_has_not_won_by_the_others(monkeypatch):
    device, narrow = names()
    session = ScriptedSession({device: 1.0, narrow: 0.9})
    run = session.race

    def raced(executables: list[SimpleNamespace], budget: float, **how: object) -> SimpleNamespace:
        found = run(executables, budget, **how)
        return fails([]) if len(session.races) == 3 and len(executables) > 1 else found

    monkeypatch.setattr(session, "race", raced)
    verdict = challenged(session)
    assert verdict.winner.name == device
    assert "SIGKILL" in detail(verdict, Kind.UNCONFIRMED)


def test_an_answer_from_a_busy_machine_stays_one_when_it_is_challenged():
    device, narrow = names()
    session = ScriptedSession({device: 1.0, narrow: 1.4})
    assert not challenged(session).disturbed
    assert challenged(session, disturbed=True).disturbed
    confirmed = ScriptedSession({device: 1.0, narrow: 0.7}, {device: 1.0, narrow: 1.01})
    assert challenged(confirmed, disturbed=True).disturbed
    session.noise = np.where(np.arange(len(NOISE)) == 0, 100.0, NOISE)
    assert challenged(session).disturbed


def small() -> ov.Model:
    return zoo.build("mobilenet_v2", "small")


@pytest.fixture
def unsure(two_cores: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two cores, of which estimates leave something to measure."""
    monkeypatch.setattr(Outlook, "of", lambda *_: Outlook(may_win=True))


def large() -> ov.Model:
    """Half a Tflop: no CPU of two cores does that in a hundredth of a second."""
    x = ops.parameter([4096, 4096], np.float32, name="x")
    weights = ops.constant(np.zeros((4096, 4096), np.float32))
    node = x
    for _ in range(4):
        node = ops.relu(ops.matmul(node, weights, False, False))
    return ov.Model([ops.result(node)], [x], "large")


def machine(core: ov.Core | None = None, **options: object) -> Machine:
    return Machine(core or ov.Core(), ("CPU",), PlacerOptions(**options))


def test_only_a_model_that_could_be_faster_is_measured(two_cores):
    assert Outlook.of(machine(), "CPU", prepare(small()).model).may_win
    assert not Outlook.of(machine(), "CPU", prepare(large()).model).may_win


def test_a_large_model_is_not_compiled_to_be_measured(two_cores, monkeypatch):
    monkeypatch.setattr(ProfilingSession, "__init__", lambda *_, **__: pytest.fail("it was measured"))
    compiled = ov.Core().compile_model(large(), "AUTOPLACE:CPU")
    assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]


def test_an_answer_from_a_disturbed_profile_is_marked_whatever_came_of_it(unsure, monkeypatch):
    monkeypatch.setattr(CountedDevices, "was_disturbed", True)
    assert ov_autoplace.place(small(), "CPU", executor="HETERO").decision.disturbed


def test_a_model_that_takes_long_on_all_threads_is_not_compiled_for_fewer(two_cores, monkeypatch):
    monkeypatch.setattr(WholePlan, "all_properties", property(lambda _: pytest.fail("it was compiled")))
    x = ops.parameter([512, 512], np.float32, name="x")
    node = x
    for _ in range(60):
        node = ops.relu(ops.matmul(node, ops.constant(np.zeros((512, 512), np.float32)), False, False))
    placement = ov_autoplace.place(ov.Model([ops.result(node)], [x]), "CPU")
    assert placement.plan.width is None


@pytest.mark.parametrize(
    "properties",
    [
        {"INFERENCE_NUM_THREADS": 2},
        {"NUM_STREAMS": 1},
        {"PERFORMANCE_HINT": "THROUGHPUT"},
        {"DEVICE_PROPERTIES": {"CPU": {"ENABLE_CPU_PINNING": True}}},
    ],
)
def test_what_the_user_sets_is_obeyed(two_cores, properties):
    assert machine().widths("CPU") == (Width(1),)
    assert machine(properties=properties).widths("CPU") == ()


def test_what_the_user_set_on_the_core_is_obeyed(two_cores):
    core = ov.Core()
    core.set_property("CPU", {"INFERENCE_NUM_THREADS": 2})
    assert machine(core).widths("CPU") == ()


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="the system has no affinity masks")
def test_a_process_on_one_core_has_nothing_to_choose():
    before = os.sched_getaffinity(0)
    try:
        os.sched_setaffinity(0, {min(before)})
        assert machine().widths("CPU") == ()
        assert ov_autoplace.place(small(), "CPU").plan.width is None
    finally:
        os.sched_setaffinity(0, before)


def test_models_that_can_fail_run_in_the_calling_thread(two_cores):
    assert widths_for(machine(), "CPU", prepare(small()).model) == (Width(1),)
    selecting = prepare(zoo.build("ssdlite", "small")).model
    assert widths_for(machine(), "CPU", selecting) == (Width(1, in_caller=True),)


def test_models_that_nobody_compiled_run_there_where_they_could_crash(two_cores):
    attention = prepare(zoo.build("bert_base", "small")).model
    assert widths_for(machine(), "CPU", attention) == (Width(1),)
    assert widths_for(machine(), "CPU", attention, is_compiled_apart=False) == (Width(1, in_caller=True),)
    convolutions = prepare(zoo.build("resnet50", "small")).model
    assert widths_for(machine(), "CPU", convolutions, is_compiled_apart=False) == (Width(1),)


def test_no_gated_unit_is_compiled_for_one_thread_where_matrices_have_tiles(two_cores, monkeypatch):
    """On a processor with AMX it would end the process, unless the model computes in f32."""
    gated = gated_unit()
    plain = prepare(zoo.build("resnet50", "small")).model
    bf16, f32 = ({"INFERENCE_PRECISION_HINT": precision} for precision in ("bf16", "f32"))
    monkeypatch.setattr(conditions, "has_tiles", lambda: False)
    assert widths_for(machine(properties=bf16), "CPU", gated) == (Width(1),)
    monkeypatch.setattr(conditions, "has_tiles", lambda: True)
    assert widths_for(machine(properties=bf16), "CPU", gated) == ()
    assert widths_for(machine(properties=f32), "CPU", gated) == (Width(1),)
    assert widths_for(machine(properties=bf16), "CPU", plain) == (Width(1),)


def test_shapes_that_are_not_known_decide_no_width(two_cores):
    x = ops.parameter([-1, 16], np.float32, name="x")
    model = ov.Model([ops.result(ops.tanh(x))], [x])
    assert widths_for(machine(), "CPU", model) == ()
    assert widths_for(machine(shapes={"x": [1, 16]}), "CPU", model) == (Width(1, in_caller=True),)


def test_estimates_weigh_waiting_against_work(two_cores):
    """Small convolutions wait for each other's threads more than they work."""
    tiny = ov_autoplace.place(zoo.build("mobilenet_v2", "small"), "CPU", mode="ZERO_SHOT")
    assert tiny.plan.width == Width(1)
    assert tiny.decision.kind is Kind.NARROW_PREDICTED
    assert ov_autoplace.place(large(), "CPU", mode="ZERO_SHOT").plan.width is None


@pytest.mark.parametrize(("saved", "wins"), [(0.05, False), (0.2, True)])
def test_a_width_that_estimates_cannot_tell_apart_is_named(two_cores, monkeypatch, saved, wins):
    model, here = small(), machine(mode="ZERO_SHOT")
    prepared = prepare(model)
    table = CostSource(here, Budget(10.0)).estimate(prepared)
    verdict = predicted(propose(here.problem(table), ProposalSource(())))
    seconds = verdict.winner.expected_seconds
    monkeypatch.setattr(
        stage,
        "width_candidate",
        lambda alone, device, width, _: width_candidate(alone, device, width, (1 - saved) * seconds),
    )

    context = Context(here, prepared, Budget(10.0), ProposalSource(()), lambda _: nullcontext())
    context.problem, context.verdict = here.problem(table), verdict
    found = Widths().estimate(context)

    assert (found.winner.plan.width is not None) == wins
    kind = Kind.NARROW_PREDICTED if wins else Kind.NARROWER_BY_LITTLE
    assert numbers(found, kind)["gain"] == pytest.approx(100 * saved)


def test_estimates_for_another_machine_know_its_threads(tmp_path):
    here = ov_autoplace.generic_target(ov.Core(), ("CPU",))
    profile = replace(
        here.devices[0],
        threads=16,
        op_overhead_seconds=12e-6,
        synchronisation_seconds=30e-6,
        sources={**here.devices[0].sources, "synchronisation_seconds": "test"},
    )
    save_target(replace(here, devices=(profile,)), tmp_path / "large.json")
    assert load_target(tmp_path / "large.json").device("CPU").synchronisation_seconds == 30e-6
    placement = ov_autoplace.place(
        small(), "CPU", mode="ZERO_SHOT", target=str(tmp_path / "large.json"), isolation=False
    )
    widths_tried = [c.plan.width.threads for c in placement.decision.candidates if c.plan.width is not None]
    assert widths_tried == [1, 2, 4, 8]
    assert placement.plan.width is not None


def test_a_narrow_candidate_that_kills_its_process_gives_way_to_the_calling_thread(unsure, monkeypatch):
    compile_whole = ProfilingSession.compile_whole

    def crash(session: ProfilingSession, plan: WholePlan, **how: bool) -> object:
        if plan.width == Width(1):
            raise ProfilingError("the process that compiled it on CPU was ended by SIGSEGV")
        return compile_whole(session, plan, **how)

    monkeypatch.setattr(ProfilingSession, "compile_whole", crash)
    candidates = ov_autoplace.place(small(), "CPU").decision.candidates
    by_width = {str(c.plan.width): c for c in candidates if c.plan.width is not None}
    assert "SIGSEGV" in by_width["1"].dropped
    assert len(by_width["1+caller"].samples)


def test_the_bound_never_excludes_what_the_prediction_calls_faster():
    random = np.random.default_rng(3)
    for _ in range(500):
        seconds, nodes = 10 ** random.uniform(-5, -1), int(random.integers(1, 300))
        share = float(2 ** random.integers(1, 7))
        guess = widths.narrow_seconds(seconds, nodes, share, 2.6e-6, 0.0, 0.7, 0.6)
        if guess < 0.98 * seconds:
            assert widths.could_win(seconds, nodes, share, seconds)
