"""Deciding for a rate of requests: who is considered, who wins, and what is told of it."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from types import SimpleNamespace
from typing import ClassVar

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from candidates import detail, numbers, result_of
from command_line import Command
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide import confirmation
from ov_autoplace.decide.comparison import compared_rates
from ov_autoplace.decide.confirmation import confirm
from ov_autoplace.decide.context import Context
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.pools import copies, hinted, mixed, other_bases, without_hint
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.rate_rule import RATE_LOADS, Pair, best_hint, chosen, finalists, holds, ranked
from ov_autoplace.decide.stages import rates
from ov_autoplace.decide.stages.rates import Rates, enter_pools
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.names import plugin_library
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import OptionError, ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure import loads
from ov_autoplace.measure.isolation.interface import Pool
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Kind
from ov_autoplace.plan.plan import PoolPlan, WholePlan
from ov_autoplace.solvers import solve, solve_mixture
from random_tables import make_table

HINT = {"PERFORMANCE_HINT": "THROUGHPUT"}
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def small(layers: int = 3, width: int = 32) -> ov.Model:
    x = y = ops.parameter([1, width], np.float32, name="x")
    weights = ops.constant(np.eye(width, dtype=np.float32))
    for _ in range(layers):
        y = ops.relu(ops.matmul(y, weights, False, False))
    return ov.Model([ops.result(y)], [x])


def two_devices() -> ov.Core:
    core = ov.Core()
    core.register_plugin(str(plugin_library(core, "CPU")), "XCPU")
    return core


def way(name: str, waiting: float, queued: float, *, hint: bool = False, models: int = 1) -> Candidate:
    """A way to run many requests, with seconds per request of waiting callers and of a queue."""
    hints = HINT if hint else {}
    member = WholePlan("CPU", properties={**hints, "NAME": name})
    members = (member,) * models if models > 1 else ()
    times = {Load.WAITING: np.full(12, waiting), Load.QUEUED: np.full(12, queued)}
    return Candidate(name, PoolPlan(name, member, members), times=times)


def test_copies_win_with_a_base_that_is_as_good_asynchronously() -> None:
    hint = way("hint", 2.0, 4.0, hint=True)
    caller = way("caller", 5.0, 2.0)
    pool = way("copies", 1.0, 2.1, models=2)
    pair = chosen([hint, caller, pool])
    assert (pair.base, pair.pool) == (caller, pool)
    assert pair.waiting == 1.0
    assert pair.queued == 2.0  # of a queue
    assert pair.slowest_queued == 2.1  # of requests that a program starts itself
    assert best_hint([hint, caller, pool]).base is hint


def test_nobody_wins_who_is_worse_in_one_way_of_calling() -> None:
    hint = way("hint", 2.0, 2.0, hint=True)
    # Five times as fast for waiting callers, and 3 % slower for who starts such requests.
    pool = way("copies", 0.4, 2.06, models=2)
    assert chosen([hint, pool]).is_one
    # A queue may have another model than the callers.
    caller = way("caller", 9.0, 1.0)
    pair = chosen([hint, caller, pool])
    assert (pair.base, pair.pool) == (caller, hint)
    almost = way("copies", 0.4, 2.03, models=2)
    pair = chosen([hint, way("caller", 9.0, 1.0), almost])
    assert pair.pool is almost


def test_the_best_of_several_hints_is_the_floor_in_each_way() -> None:
    waiting = way("AUTO", 1.0, 3.0, hint=True)
    queued = way("GPU", 3.0, 1.0, hint=True)
    middling = way("middling", 1.5, 1.5)
    # Better than either in the mean, but worse than the better one in both ways.
    assert chosen([waiting, queued, middling]).base in (waiting, queued)
    pair = chosen([waiting, queued, middling, way("good", 0.9, 0.9)])
    assert pair.base.name == "good"


def test_a_gain_that_does_not_count_leaves_the_hint() -> None:
    hint = way("hint", 1.0, 1.0, hint=True)
    assert chosen([hint, way("other", 0.99, 0.99)]).base is hint
    assert chosen([hint, way("other", 0.97, 0.97)]).base.name == "other"


def test_who_failed_takes_no_part() -> None:
    hint, good = way("hint", 1.0, 1.0, hint=True), way("good", 0.1, 0.1)
    good.dropped = "failed"
    assert chosen([hint, good]).base is hint
    hint.dropped = "failed"
    assert chosen([hint, good]) is None


class ScriptedSession:
    """Compiles everything; callers that wait, or a queue, find what a plan is told to take."""

    outputs = None  # nobody compares them
    makes: ClassVar[dict[str, str]] = {}

    def __init__(self, told: Mapping[str, tuple[float, float]], rounds: int = 12) -> None:
        self.told, self.rounds = told, rounds
        self.raced: list[list[str]] = []
        self.profiler = None

    def compile_pool(self, plan: PoolPlan) -> Pool:
        model = SimpleNamespace(name=plan.base.properties["NAME"], compile_seconds=0.01)
        return Pool((model,) * len(plan.models), plan.order, 3)

    def forget(self) -> None:
        pass

    def race_loads(
        self, loads: Sequence[tuple[list[SimpleNamespace], int, bool]], *_: object, **__: object
    ) -> SimpleNamespace:
        self.raced.append([members[0].name for members, _, _ in loads])
        return result_of(
            [np.full(self.rounds, self.told[members[0].name][queued]) for members, _, queued in loads]
        )


def decided(
    session: ScriptedSession, monkeypatch: pytest.MonkeyPatch, field: Sequence[Candidate]
) -> tuple[Verdict, Rates]:
    monkeypatch.setattr(loads._core, "race_loads", session.race_loads)
    machine = Machine(ov.Core(), ("CPU",), PlacerOptions())
    context = Context(machine, prepare(small()), Budget(1e6), ProposalSource(()), lambda _: nullcontext())
    context.open(session)
    stage = Rates()
    stage._field = list(field)
    enter_pools(context.bench, field)
    return stage.decide(context, field), stage


@pytest.mark.parametrize(
    ("waiting", "queued", "wins"),
    [(0.7, 0.9, True), (0.7, 1.1, False), (0.99, 0.99, False), (1.0, 0.5, True)],
)
def test_the_winner_has_to_win_again(waiting: float, queued: float, wins: bool, monkeypatch) -> None:
    told = {"hint": (1.0, 1.0), "winner": (0.1, 0.1)}
    session = ScriptedSession(told)
    monkeypatch.setattr(session, "forget", lambda: told.update(winner=(waiting, queued)))
    field = [way("hint", 9.0, 9.0, hint=True), way("winner", 9.0, 9.0)]
    verdict, _ = decided(session, monkeypatch, field)
    assert verdict.winner.name == ("winner" if wins else "hint")
    assert len(session.raced) == 4  # two ways, twice
    if wins:
        rates = numbers(verdict, Kind.HIGHEST_RATE)
        assert rates == pytest.approx({"waiting": 1 / waiting, "queued": 1 / queued})
        assert verdict.winner.median(Load.WAITING) == waiting  # what chose it counts no more
    assert verdict.winner.plan.requests == 3


def test_fewer_rounds_than_a_latency_needs_prove_no_rate(monkeypatch) -> None:
    session = ScriptedSession({"hint": (1.0, 1.0), "winner": (0.1, 0.1)}, rounds=5)
    field = [way("hint", 9.0, 9.0, hint=True), way("winner", 9.0, 9.0)]
    verdict, _ = decided(session, monkeypatch, field)
    assert verdict.winner.name == "hint"
    assert "time budget" in detail(verdict, Kind.NO_RATE_BETTER)


def test_who_was_compiled_in_time_takes_part_when_the_time_is_over() -> None:
    field = [way("hint", 1.0, 1.0, hint=True), way("early", 1.0, 1.0), way("late", 1.0, 1.0)]
    bench = Workbench(ScriptedSession({}), None, Budget(1e6))
    enter_pools(bench, field[:2])
    bench.budget.seconds = 0.0
    enter_pools(bench, field)
    assert [bool(candidate.dropped) for candidate in field] == [False, False, True]


def test_an_answer_of_two_shows_what_each_was_measured_for(monkeypatch) -> None:
    told = {"hint": (2.0, 2.0), "copies": (1.0, 2.0)}
    field = [way("hint", 9.0, 9.0, hint=True), way("copies", 9.0, 9.0, models=2)]
    verdict, _ = decided(ScriptedSession(told), monkeypatch, field)
    assert verdict.winner.name == "copies, for queues hint"
    assert verdict.winner.plan.base == field[0].plan.base
    assert verdict.winner.plan.members == field[1].plan.members
    assert [verdict.winner.median(load) for load in RATE_LOADS] == [1.0, 2.0]
    assert [c.name for c in verdict.candidates] == ["hint", "copies", "copies, for queues hint"]


@pytest.mark.parametrize(
    ("waiting", "queued", "expected"),
    [(0.7, 0.9, True), (0.7, 1.1, False), (0.99, 0.99, False), (1.0, 0.5, True)],
)
def test_an_answer_holds_by_the_rule_by_which_it_was_chosen(waiting, queued, expected) -> None:
    hint, answer = way("hint", 1.0, 1.0, hint=True), way("answer", waiting, queued)
    candidates = [hint, answer]
    assert holds(Pair(answer, answer), candidates) is expected
    answer.times[Load.QUEUED] = np.full(5, queued)
    assert holds(Pair(answer, answer), candidates) is None
    answer.times[Load.QUEUED] = np.full(12, queued)
    hint.times[Load.WAITING] = np.array([*np.full(11, 1.0), 90.0])
    assert holds(Pair(answer, answer), candidates) is None  # the machine is busy
    answer.dropped = "failed"
    assert holds(Pair(answer, answer), candidates) is False


def test_a_hint_holds_unless_something_else_is_better() -> None:
    hint = way("hint", 1.0, 1.0, hint=True)
    for seconds, expected in ((1.1, True), (0.99, True), (0.9, False)):
        for is_hint in (True, False):
            other = way("other", seconds, seconds, hint=is_hint)
            assert holds(Pair(hint, hint), [hint, other]) is expected
    assert holds(Pair(hint, hint), [hint, way("one way only", 0.1, 1.1)]) is True


@pytest.mark.alone
@pytest.mark.parametrize("disturb", [1.0, 90.0])
def test_a_rate_that_was_measured_on_a_busy_machine_says_so(disturb, monkeypatch) -> None:
    def measured(bench, candidates, *_: object, **__: object) -> None:
        for c in candidates:
            c.times = {load: np.array([disturb, *np.full(11, 1.0)]) for load in RATE_LOADS}

    monkeypatch.setattr(rates, "run_pools", measured)
    decision = ov_autoplace.place(small(), "CPU", properties=HINT).decision
    assert decision.disturbed is (disturb > 1)


def test_a_rate_is_confirmed_beside_the_hints(monkeypatch) -> None:
    raced = []

    def measured(bench, candidates, *_: object, **how: object) -> None:
        raced.append([(c.plan.is_default, len(c.plan.models)) for c in candidates])
        for c in candidates:
            c.times = {load: np.full(12, 1.0 if c.plan.is_default else 0.5) for load in RATE_LOADS}

    monkeypatch.setattr(confirmation, "run_pools", measured)
    machine = Machine(ov.Core(), ("CPU",), PlacerOptions(properties=HINT))
    caller = WholePlan("CPU", Width(1, in_caller=True))
    assert confirm(machine, small(), PoolPlan("2 x", caller, (caller, caller), 2)).holds is True
    assert raced == [[(True, 1), (False, 1), (False, 2)]]
    hint = PoolPlan("CPU THROUGHPUT", WholePlan("CPU", properties=HINT))
    assert confirm(machine, small(), hint).holds is False
    assert {(True, 1), (False, 1)} <= set(raced[1])  # beside what else could win
    chosen_by_user = Machine(ov.Core(), ("CPU",), PlacerOptions(properties={**HINT, "NUM_STREAMS": "2"}))
    assert confirm(chosen_by_user, small(), hint).holds is True  # there is nothing else
    assert len(raced) == 2
    strange = PoolPlan("CPU", WholePlan("CPU", properties={"NUM_STREAMS": "many"}))
    assert confirm(machine, small(), strange).holds is False


@pytest.mark.parametrize("option", [{"executor": "OVERLAP"}, {"lanes": "2x1"}])
@pytest.mark.parametrize("mode", ["PROFILE", "ZERO_SHOT"])
def test_what_is_about_one_request_is_refused_for_many(option, mode) -> None:
    (name,) = option
    with pytest.raises(OptionError, match=f"AUTOPLACE_{name.upper()}.*PERFORMANCE_HINT"):
        ov_autoplace.place(small(), "CPU", mode, properties=HINT, **option)
    config = HINT | {f"AUTOPLACE_{name.upper()}": option[name], "AUTOPLACE_MODE": mode}
    with pytest.raises(OptionError, match=f"AUTOPLACE_{name.upper()}"):
        ov.Core().compile_model(small(), "AUTOPLACE:CPU", config)


def test_answers_that_are_near_run_again() -> None:
    hint, other = way("hint", 1.0, 2.0, hint=True), way("other hint", 2.0, 1.0, hint=True)
    # Below the floor by what noise can be, and by more.
    near, far = way("near", 0.1, 1.08), way("far", 0.05, 1.5)
    assert finalists([hint, other, near, far]) == [hint, other, near]
    assert [pair.base.name for pair in ranked([hint, other, near, far], 0.98)] == []


def test_devices_side_by_side_are_no_candidate_for_models_with_variables() -> None:
    x = ops.parameter([1, 4], np.float32)
    value = ops.read_value(
        ops.constant(np.zeros((1, 4), np.float32)), "v", ov.Type.f32, ov.PartialShape([1, 4])
    )
    total = ops.add(x, value)
    stateful = prepare(ov.Model([ops.result(total)], [ops.assign(total, "v")], [x]))
    assert [e.name for e in hinted(["GPU", "CPU"], stateful)] == ["GPU THROUGHPUT", "CPU THROUGHPUT"]
    assert hinted(["GPU", "CPU"], prepare(small()))[-1].name == "AUTO CUMULATIVE_THROUGHPUT"


def test_who_is_considered_on_one_cpu() -> None:
    machine = without_hint(Machine(ov.Core(), ("CPU",), PlacerOptions(properties=HINT)))
    assert "PERFORMANCE_HINT" not in machine.options.properties
    prepared = prepare(small())
    assert [e.name for e in hinted(["CPU"], prepared)] == ["CPU THROUGHPUT"]
    assert [e.name for e in other_bases(machine, ["CPU"], prepared)] == [
        "CPU LATENCY",
        "CPU in the calling thread",
    ]
    cores = Cores.of_this_process().usable
    found = copies(machine, ["CPU"], prepared, {"CPU": 1e9})
    if cores > 1:
        assert found[0].name == f"{cores} x CPU (1 thread, the caller's)"
        assert len(found[0].plan.models) == cores
        assert all(
            len(c.plan.models) * int(c.plan.base.all_properties["INFERENCE_NUM_THREADS"]) <= cores
            for c in found
        )
    assert copies(machine, ["CPU"], prepared, {"CPU": 1.5}) == []  # no memory for two
    chosen_by_user = Machine(ov.Core(), ("CPU",), PlacerOptions(properties={"NUM_STREAMS": "2"}))
    assert other_bases(chosen_by_user, ["CPU"], prepared) == []
    assert copies(chosen_by_user, ["CPU"], prepared, {"CPU": 1e9}) == []


def test_a_model_of_unknown_shapes_gets_no_copies() -> None:
    model = small()
    model.reshape([-1, 32])
    machine = Machine(ov.Core(), ("CPU",))
    assert copies(machine, ["CPU"], prepare(model, {"x": [1, 32]}), {"CPU": 1e9}) == []
    known = Machine(ov.Core(), ("CPU",), PlacerOptions(shapes={"x": [1, 32]}))
    assert bool(copies(known, ["CPU"], prepare(model, {"x": [1, 32]}), {"CPU": 1e9})) is (
        Cores.of_this_process().usable > 1
    )


def test_mixtures_and_pipelines_become_compiled_models() -> None:
    table = make_table(
        [[1.0, 8.0], [8.0, 1.0], [1.0, 1.5]], [(0, 0.1, [1]), (1, 0.1, [2])], devices=("XCPU", "CPU"),
        names=("a", "b", "c"), transfer_latency=np.full((2, 2), 0.01),
    )  # fmt: skip
    mixture, whole = solve_mixture(table), solve(table, objective="rate")
    found = mixed(mixture, whole, {"XCPU": {"EXCLUSIVE_ASYNC_REQUESTS": "NO"}, "CPU": {}})
    pipeline = found[0]
    assert pipeline.name == "pipeline"
    assert pipeline.plan.base.devices == ("XCPU", "CPU")
    assert pipeline.plan.base.device_of == {"a": "XCPU", "b": "CPU", "c": whole.to_dict()["c"]}
    text = (
        "{XCPU:{EXCLUSIVE_ASYNC_REQUESTS:NO,PERFORMANCE_HINT:THROUGHPUT},CPU:{PERFORMANCE_HINT:THROUGHPUT}}"
    )
    assert pipeline.plan.base.properties == {"DEVICE_PROPERTIES": text}
    if len(mixture.placements) > 1:
        shares = np.bincount(found[1].plan.turns) / len(found[1].plan.turns)
        assert shares == pytest.approx(mixture.fractions, abs=0.15)


@pytest.mark.alone
def test_an_answer_on_this_machine() -> None:
    placement = ov_autoplace.place(small(), "CPU", properties=HINT, time_budget_ms=1500)
    decision, plan = placement.decision, placement.plan
    assert decision.chosen == plan.name
    assert set(placement.to_dict().values()) == {"CPU"}
    hint = decision.candidate("CPU THROUGHPUT")
    assert all(hint.median(load) < np.inf for load in RATE_LOADS)
    assert isinstance(ov_autoplace.place(small(), "CPU", time_budget_ms=0).plan, WholePlan)  # nobody asked


def test_a_large_model_is_settled_by_its_size(monkeypatch) -> None:
    def never(*_: object, **__: object) -> None:
        raise AssertionError("a race was run")

    monkeypatch.setattr(rates, "run_pools", never)
    placement = ov_autoplace.place(small(20, 2048), "CPU", properties=HINT)
    assert placement.plan == PoolPlan(
        "CPU THROUGHPUT", WholePlan("CPU", properties=HINT), requests=placement.plan.requests
    )
    assert placement.decision.kind is Kind.RATE_SETTLED


@pytest.mark.alone
def test_two_devices_are_profiled_and_run() -> None:
    core = two_devices()
    placement = ov_autoplace.place(
        small(6, 64),
        "XCPU,CPU",
        core=core,
        properties={"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT"},
        time_budget_ms=2500,
    )
    rows = {c.name: c for c in placement.decision.candidates}
    assert {"XCPU THROUGHPUT", "CPU THROUGHPUT", "AUTO CUMULATIVE_THROUGHPUT"} <= set(rows)
    assert placement.decision.rate_bound > 0
    both = sum(1 / rows[f"{device} THROUGHPUT"].predicted_seconds for device in ("XCPU", "CPU"))
    assert 1 / rows["AUTO CUMULATIVE_THROUGHPUT"].predicted_seconds == pytest.approx(both)
    assert placement.decision.rate_bound >= both * (1 - 1e-6)


def test_estimates_of_another_machine_choose_all_its_devices() -> None:
    placement = ov_autoplace.place(
        small(20, 512), "GPU,CPU", "ZERO_SHOT", target="core-ultra-7-155h", properties=HINT
    )
    assert placement.decision.kind is Kind.RATE_PREDICTED
    assert placement.plan.base.device in ("AUTO:GPU,CPU", "GPU", "CPU")
    rows = {c.name: 1 / c.predicted_seconds for c in placement.decision.candidates}
    assert rows["AUTO CUMULATIVE_THROUGHPUT"] == pytest.approx(
        rows["GPU THROUGHPUT"] + rows["CPU THROUGHPUT"]
    )


@pytest.mark.parametrize("pins", [{"first": "GPU"}, {"first": "GPU", "last": "CPU"}, {}])
@pytest.mark.parametrize(("layers", "width"), [(6, 64), (20, 512)])
def test_the_answer_of_an_estimate_is_the_best_that_was_found(
    pins: dict[str, str], layers: int, width: int
) -> None:
    model = small(layers, width)
    multiplied = [op for op in model.get_ordered_ops() if op.get_type_name() == "MatMul"]
    multiplied[0].set_friendly_name("first")
    multiplied[-1].set_friendly_name("last")
    placement = ov_autoplace.place(
        model, "GPU,CPU", "ZERO_SHOT", target="core-ultra-7-155h", properties=HINT, pins=pins
    )
    decision = placement.decision
    best = max(1 / c.predicted_seconds for c in decision.candidates)
    assert 1 / decision.winner.predicted_seconds > best / 1.1 - 1e-9
    assert best <= decision.rate_bound * (1 + 1e-6)
    for member in (placement.plan.base, *placement.plan.members):
        for name, device in pins.items():
            assert member.devices == (device,) or member.device_of[name] == device
    assert pins.items() <= placement.to_dict().items()


@pytest.mark.alone
@pytest.mark.parametrize(
    "settings",
    [{"AUTOPLACE_MODE": "ZERO_SHOT"}, *({"AUTOPLACE_TIME_BUDGET_MS": budget} for budget in (1, 1500))],
    ids=str,
)
def test_pins_to_both_devices_are_obeyed_and_run(settings: dict[str, object]) -> None:
    model = small(4, 16)
    first, *_, last = (op for op in model.get_ordered_ops() if op.get_type_name() == "Relu")
    pins = {first.get_friendly_name(): "XCPU", last.get_friendly_name(): "CPU"}
    compiled = two_devices().compile_model(
        model, "AUTOPLACE:XCPU,CPU", {**HINT, **EXACT, **settings, "AUTOPLACE_PINS": pins}
    )
    assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") >= 2
    requests = [compiled.create_infer_request() for _ in range(3)]
    data = np.linspace(-1, 1, 16, dtype=np.float32)[None]
    for answer in [compiled(data)[0], *(request.infer([data])[0] for request in requests)]:
        np.testing.assert_allclose(answer, np.maximum(data, 0), rtol=1e-6)


def test_a_pipeline_takes_part_where_the_model_is_profiled() -> None:
    model = small(4, 16)
    first, *_, last = (
        op.get_friendly_name() for op in model.get_ordered_ops() if "Relu" in op.get_type_name()
    )
    placement = ov_autoplace.place(
        model, "XCPU,CPU", core=two_devices(), properties=HINT, pins={first: "XCPU", last: "CPU"}
    )
    pipeline = placement.decision.candidate("pipeline")
    assert pipeline.predicted_seconds > 0
    assert not pipeline.dropped


def test_a_model_that_no_device_compiles_is_an_error(monkeypatch) -> None:
    def refuse(session, plan):
        raise ProfilingError("not today")

    monkeypatch.setattr(ProfilingSession, "compile_pool", refuse)
    with pytest.raises(ProfilingError, match="not today"):
        ov_autoplace.place(small(), "CPU", properties=HINT)


@pytest.mark.alone
def test_the_answer_is_run_again_for_bench() -> None:
    machine = Machine(ov.Core(), ("CPU",), PlacerOptions(properties=HINT))
    caller = WholePlan("CPU", Width(1, in_caller=True))
    plan = PoolPlan("2 x", caller, (caller, caller), 2)
    found = compared_rates(machine, prepare(small()), plan, 1.0)
    assert [c.name for c in found] == ["CPU THROUGHPUT", "AUTOPLACE"]
    assert found[-1].plan.members == plan.members
    assert all(c.median(load) < np.inf for c in found for load in RATE_LOADS)


@pytest.mark.alone
def test_commands_show_rates(cli: Command, tmp_path) -> None:
    path = tmp_path / "small.xml"
    ov.save_model(small(), path)
    request = (str(path), "-d", "CPU", "--config", json.dumps(HINT))
    quick = ("--time-budget-ms", "300")
    assert cli("explain", *request, *quick, "--json").json()["candidates"][0]["name"] == "CPU THROUGHPUT"
    quick = (*quick, "--seconds", "0.2")
    shown = cli("bench", *request, *quick)
    assert shown.code == 0, shown.err
    assert "CPU THROUGHPUT" in shown.out
    assert "AUTOPLACE" in shown.out
    rows = cli("bench", *request, *quick, "--json").json()["rows"]
    assert all(row["measured"][load.value]["median_ms"] > 0 for row in rows for load in RATE_LOADS)
