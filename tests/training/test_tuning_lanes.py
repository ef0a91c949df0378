"""Fine-tuning on lanes: trials are schedules, and what they have to beat is the whole model on one width."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest
import torch
from openvino import opset15 as ops

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.lane_costs import LaneCosts
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import OptionError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan, WholePlan, read_plan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.files import LOG, TuningFolder
from ov_autoplace.training.finetuning.lanes import (
    DividedModel,
    LanesTask,
    canonical,
    divided_model,
    lanes_to_tune,
)
from ov_autoplace.training.finetuning.policy_tuner import SEARCHED, PolicyTuner
from ov_autoplace.training.finetuning.request import FinetuneRequest
from ov_autoplace.training.finetuning.run import run
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.task import Event
from ov_autoplace.training.finetuning.trials import ReferenceRaces
from random_tables import make_table, random_table
from training.scripted_devices import Clock, ScriptedSession
from training.tuning_world import ScriptedMachine

pytestmark = pytest.mark.torch

DEEP = 5
ONE_THREAD = Width(1)
# Two branches of five groups of 10 ms, and a group that joins them: 101 ms on one lane, 51 and some on two.
WHOLE = replace(
    make_table(
        [[0.01]] * (2 * DEEP) + [[0.001]],
        [(g, 8.0, [2 * DEEP if g % DEEP == DEEP - 1 else g + 1]) for g in range(2 * DEEP)],
    ),
    devices=("CPU",),
)
LANES = with_lanes(WHOLE, "CPU", 2)
BRANCHES = np.array([0] * DEEP + [1] * DEEP + [0], dtype=np.int32)
# Twelve branches of one group each, of different lengths: many ways to divide them are about as fast.
BRANCHED = with_lanes(
    replace(
        make_table([[0.01 + 0.0007 * g] for g in range(12)] + [[0.001]], [(g, 8.0, [12]) for g in range(12)]),
        devices=("CPU",),
    ),
    "CPU",
    2,
)
SLOWDOWN = 1.3  # of everything on lanes against what its table says


class DividedCpu(ScriptedSession):
    """A CPU whose lanes take `SLOWDOWN` times what their table says."""

    def compile_lanes(self, plan: LanePlan) -> SimpleNamespace:
        lanes = tuple(plan.lane_of[plan.submodel_of[name]] for name in LANES.names)
        self.compiled.append(lanes)
        seconds = SLOWDOWN * simulate(LANES, np.array(lanes), objective="overlap").latency_seconds
        return self._executable(lanes, seconds, len(plan.lane_of))

    def compile_whole(self, plan: WholePlan) -> SimpleNamespace:
        assert plan == WholePlan("CPU", ONE_THREAD)
        return self._executable(("CPU", 1), float(WHOLE.op_seconds.sum()), 1)

    def _executable(self, what, seconds: float, subgraphs: int) -> SimpleNamespace:
        self._clock.now += self._compile_seconds
        return SimpleNamespace(
            devices=what,
            seconds=seconds,
            compile_seconds=self._compile_seconds,
            subgraphs=subgraphs,
            run=lambda runs, warmup: np.full(runs, seconds),
        )


def machine_of() -> ScriptedMachine:
    return ScriptedMachine(None, ("CPU",), PlacerOptions(executor="OVERLAP", lanes=((2, 1),)))


def lanes_task(budget: TuningBudget, clock: Clock, name: str = "net", lanes: CostTable = LANES) -> LanesTask:
    session = DividedCpu(WHOLE, clock=clock, compile_seconds=0.1)
    divided = DividedModel(
        machine=machine_of(),
        prepared=PreparedModel(None),
        digest="digest",
        session=session,
        table=lanes,
        compile_seconds=0.1,
        whole=WHOLE,
        costs=LaneCosts(lanes, (Lane("CPU"), Lane("CPU")), {}),
        width=ONE_THREAD,
    )
    return LanesTask(name, divided, ReferenceRaces(session, WHOLE, budget, 8, 0, 0.1))


@pytest.fixture
def task():
    clock = Clock()
    with TuningBudget(1000.0, clock.now, clock.perf_counter) as budget:
        yield lanes_task(budget, clock)


def test_the_reference_is_the_whole_model_on_its_width(task):
    (single,) = task.singles
    assert single.plan == WholePlan("CPU", ONE_THREAD)
    assert task.single_name(single) == single.name == "CPU (1 thread)"
    assert task.single_seconds == pytest.approx(0.101)


def test_a_trial_is_a_schedule_of_what_the_policy_decided(task):
    trial = task.trial("policy", BRANCHES)
    assert [trial.plan.lane_of[trial.plan.submodel_of[name]] for name in LANES.names] == BRANCHES.tolist()
    assert trial.assignment.tolist() == [0] * len(BRANCHES)
    assert trial.expected_seconds == simulate(LANES, BRANCHES, objective="overlap").latency_seconds
    assert trial.key == BRANCHES.tobytes()
    assert task.placement(trial).plan is trial.plan
    assert task.placement(task.singles[0]).plan.width == ONE_THREAD


def test_exchanged_lanes_are_the_same_placement(task):
    assert task.groups_of(1 - BRANCHES).tolist() == BRANCHES.tolist()
    assert task.groups_of(np.ones_like(BRANCHES)).tolist() == [0] * len(BRANCHES)


def test_measured_schedules_correct_all_predictions_by_one_factor(task):
    task.adopt_singles(task.races.race_singles(task.singles))
    trial = task.trial("policy", BRANCHES)
    other = np.roll(BRANCHES, 1)
    simulated = simulate(LANES, other, objective="overlap").latency_seconds
    task.races.race(task.reference, [trial])
    task.adopt(trial)
    task.correct()
    # The machine is slower in one race than in another, of which ratios to the reference know nothing.
    assert task.score(other) == pytest.approx(SLOWDOWN * simulated / 0.101, rel=0.05)
    units = task.problem.units.from_groups(other)[None]
    assert task.simulated(units)[0] == pytest.approx(task.predicted(other))


def test_what_was_measured_of_schedules_comes_back_from_the_log(task):
    task.adopt_singles(task.races.race_singles(task.singles))
    trial = task.trial("policy", BRANCHES)
    task.races.race(task.reference, [trial])
    task.adopt(trial)

    lines = [
        task.line(Event("measured", t, tuple(t.samples), tuple(t.reference)))
        for t in (task.singles[0], trial)
    ]
    lines = json.loads(json.dumps(lines))
    clock = Clock()
    with TuningBudget(1000.0, clock.now, clock.perf_counter) as budget:
        again = lanes_task(budget, clock)
        again.restore(lines)
    found = again.known(BRANCHES)
    assert found.plan.lane_count == 2
    assert again.relative(found) == task.relative(trial)
    other = np.roll(BRANCHES, 1)
    task.correct()
    assert again.score(other) == task.score(other)


def test_a_schedule_that_is_faster_is_found_and_written_with_its_plan(tmp_path):
    clock, out = Clock(per_look=0.02), tmp_path / "tuned"
    request = FinetuneRequest(
        models=["net.xml"],
        machine=machine_of(),
        checkpoint=None,
        budget_seconds=120.0,
        started=clock.now,
        out=out,
        settings=FinetuneSettings(proposals=16, explored=32, inferences=8, simulated_updates=1, patience=4),
    )
    result = run(
        request, lambda name, _s, _r, budget, _k: lanes_task(budget, clock, name), clock.perf_counter
    )
    (tuned,) = result.models
    lines = [json.loads(line) for line in (out / LOG).read_text().splitlines()]
    assert tuned.best_single == "CPU (1 thread)"
    assert lines[0]["source"] == "CPU (1 thread)"
    # 51 ms and what lanes cost, times 1.3, over 101 ms.
    assert 0.6 < tuned.best < 0.75
    assert min(line["relative"] for line in lines if line["relative"]) == pytest.approx(tuned.best, rel=0.05)
    plan = read_plan(json.loads((out / "best.net.plan.json").read_text()))
    assert {plan.lane_of[plan.submodel_of[name]] for name in LANES.names} == {0, 1}
    assert plan == tuned.placement.plan
    assert set(json.loads(tuned.file.read_text()).values()) == {"CPU"}


def test_the_best_is_written_with_how_it_runs(task, tmp_path):
    task.adopt_singles(task.races.race_singles(task.singles))
    TuningFolder(tmp_path, resume=False).save_best(task)
    assert read_plan(json.loads((tmp_path / "best.net.plan.json").read_text())) == task.singles[0].plan
    assert set(json.loads((tmp_path / "best.net.affinity.json").read_text()).values()) == {"CPU"}


def test_the_policy_learns_from_measured_schedules(task):
    network = make_network(replace(CONFIGS["gdp"], hidden=8), seed=1)
    tuner = PolicyTuner(network, FinetuneSettings(), superposition_only=False, seed=0)
    assert tuner.greedy(task).tolist() != BRANCHES.tolist()
    task.adopt_singles(task.races.race_singles(task.singles))
    trial = task.trial("explored", BRANCHES)
    task.races.race(task.reference, [trial])
    task.adopt(trial)
    task.correct()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    assert "imitation_loss" in tuner.learn_measured(task, [trial])
    assert any(not torch.equal(before[name], value) for name, value in network.state_dict().items())


@pytest.mark.parametrize("devices", [("GPU", "CPU"), ()])
def test_lanes_of_several_devices_are_not_tuned(devices):
    machine = Machine(None, devices, PlacerOptions(executor="OVERLAP", lanes=((2, 1),)))
    with pytest.raises(OptionError, match="name one CPU"):
        lanes_to_tune(machine)


def two_towers() -> ov.Model:
    random = np.random.default_rng(0)
    ends = []
    inputs = [ops.parameter([1, 256], name=side) for side in ("left", "right")]
    for side, x in zip(("left", "right"), inputs, strict=True):
        for layer in range(3):
            weight = random.standard_normal((256, 256)).astype(np.float32)
            x = ops.relu(ops.matmul(x, ops.constant(weight), False, False, name=f"{side}{layer}"))
        ends.append(x)
    return ov.Model([ops.concat(ends, 1, name="joint")], inputs, "towers")


@pytest.mark.alone
def test_a_real_cpu_is_profiled_by_lane_and_runs_a_schedule():
    machine = Machine(
        ov.Core(), ("CPU",), PlacerOptions(executor="OVERLAP", lanes=((2, 1),), isolation=False)
    )
    with TuningBudget(120.0) as budget:
        divided = divided_model(two_towers(), machine, budget)
        try:
            assert divided.table.devices == ("CPU#0", "CPU#1")
            assert divided.whole.devices == ("CPU",)
            assert (divided.table.op_seconds[:, 0] == divided.table.op_seconds[:, 1]).all()
            assert {lane.device for lane in divided.costs.lanes} == {"CPU"}
            task = LanesTask("towers", divided, ReferenceRaces(divided.session, divided.whole, budget, 8, 0))
            of_group = np.array(["right" in name for name in divided.table.names], dtype=np.int32)
            trial = task.trial("by hand", task.groups_of(task.problem.units.from_groups(of_group)))
            task.adopt_singles(task.races.race_singles(task.singles))
            assert task.races.race(task.reference, [trial]) == [trial]
            assert len(trial.samples)
            assert trial.subgraphs >= 2
            assert not trial.dropped
        finally:
            divided.session.close()


def test_the_search_goes_by_wrong_costs_too_and_ends_elsewhere_each_time():
    clock = Clock()
    with TuningBudget(1000.0, clock.now, clock.perf_counter) as budget:
        task = lanes_task(budget, clock, lanes=BRANCHED)
        tuner = PolicyTuner(
            make_network(CONFIGS["gdp"], seed=0),
            FinetuneSettings(),
            superposition_only=False,
            seed=7,
        )
        searched = [
            [
                placement.tobytes()
                for placement, source in zip(a.placements, a.sources, strict=True)
                if source == SEARCHED
            ]
            for a in (tuner.propose(task) for _ in range(4))
        ]
    assert len({by_known_costs for by_known_costs, *_ in searched}) == 1
    assert len({found for _, *by_wrong_costs in searched for found in by_wrong_costs}) >= 6
    assert task.corrected is BRANCHED


def test_equal_placements_do_not_depend_on_which_copy_is_which():
    random = np.random.default_rng(0)
    table = random_table(5, groups=20, devices=2, constrained=False)
    of_kind = [0, 0, 0, 1, 1]
    between = np.ix_(of_kind, of_kind)
    table = replace(
        table,
        devices=tuple(f"DEV{d}" for d in range(5)),
        op_seconds=table.op_seconds[:, of_kind],
        transfer_latency=table.transfer_latency[between],
        transfer_seconds_per_byte=table.transfer_seconds_per_byte[between],
        launch_seconds=table.launch_seconds[of_kind],
        memory_capacity=table.memory_capacity[of_kind],
    )
    problem = Problem.of(table)
    for _ in range(20):
        device = random.integers(5, size=len(problem.units)).astype(np.int32)
        renamed = np.concatenate([random.permutation(3), 3 + random.permutation(2)]).astype(np.int32)
        label = canonical(problem, device)
        assert label.tolist() == canonical(problem, renamed[device]).tolist()
        seconds = problem.evaluator.latencies([device, label])
        assert seconds[0] == pytest.approx(seconds[1], rel=1e-12)
