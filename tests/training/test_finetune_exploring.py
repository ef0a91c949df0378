"""Fine-tuning a policy that is sure of one device, on devices where a mix is best."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.checkpoint import load_network, save_checkpoint
from ov_autoplace.policy.networks.distribution import PlacementDistribution
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.finetuning.policy_tuner import EXPLORED, PolicyTuner
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.trials import Trial
from ov_autoplace.training.state import load_state
from training.chains import best_of_chain, chain_seconds
from training.scripted_devices import ScriptedSession, scripted_trial
from training.test_tuning_task import raced, task_of
from training.tuning_world import FAST_ON, GROUPS, SMALL, TRUE, World

pytestmark = pytest.mark.torch

# Crossing looks so dear that no mix seems faster than DEV0, even where it is taken for half as dear, though
# one takes two thirds of its time.
WRONG = replace(TRUE, transfer_seconds_per_byte=np.full((2, 2), 0.095))
SETTINGS = FinetuneSettings(
    inferences=6, patience=2, learning_rate=3e-3, simulated_updates=1, proposals=4, explored=64
)


@pytest.fixture(scope="module")
def sure(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkpoint that puts everything on DEV0 and has no doubt about it."""
    network = make_network(SMALL, 0)
    batch = collate([PolicyGraph.of(Problem.of(WRONG))])
    optimizer = torch.optim.Adam(network.parameters(), lr=3e-2)
    everything_on_0 = torch.zeros(1, GROUPS, dtype=torch.int64)
    for _ in range(200):
        output = network(batch)
        if (output.logits[:, 0] - output.logits[:, 1]).min() > 10:
            break
        loss = -PlacementDistribution(output).log_prob(everything_on_0).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    folder = tmp_path_factory.mktemp("checkpoints") / "sure"
    save_checkpoint(folder, network, {"seed": 0}, {})
    return folder


@pytest.fixture
def world(sure: Path, tmp_path: Path) -> World:
    world = World(sure, tmp_path / "tuned")
    world.believed = WRONG
    return world


def test_the_policy_really_is_sure(sure):
    with torch.no_grad():
        policy = PlacementDistribution(load_network(sure)(collate([PolicyGraph.of(Problem.of(WRONG))])))
    everything_on_0 = torch.zeros(1, GROUPS, dtype=torch.int64)
    assert policy.log_prob(everything_on_0).exp().item() > 0.999


def test_without_heat_nothing_but_the_devices_is_ever_measured(world):
    (model,) = world.tune(settings=replace(SETTINGS, hottest=1.0, entropy=0.0)).models
    assert model.measurements == 2
    assert model.best == 1.0


def test_a_mix_is_found_by_a_policy_that_was_sure_of_one_device(world):
    optimum, seconds = best_of_chain(TRUE)
    assert seconds < 0.75 * chain_seconds(TRUE, (0,) * GROUPS)
    # With half of that, whether the policy learns it in time depends on how a processor rounds.
    result = world.tune(budget=240, settings=SETTINGS)
    (model,) = result.models
    found = [line["measurement"] for line in world.lines("measured") if is_close(line, seconds)]
    assert found, optimum
    assert found[0] <= 40  # of the 4,096 placements that there are
    assert chain_seconds(TRUE, world.best()) <= 1.05 * seconds
    assert model.after == pytest.approx(model.best, rel=0.05)  # the policy learned it too
    check_temperatures(world.lines("measured"))


def check_temperatures(lines: list[dict]) -> None:
    """The log shows how the temperature rose, and that it fell after something promising."""
    rounds = {line["round"]: line["temperature"] for line in lines}
    temperatures = [rounds[number] for number in sorted(rounds)]
    assert temperatures[0] == 1.0
    assert max(temperatures) > 1.0
    explored = [line for line in lines if line["source"] == EXPLORED]
    assert explored
    assert all(line["temperature"] > 1 for line in explored)
    assert any(later < earlier for earlier, later in itertools.pairwise(temperatures))


def is_close(line: dict, seconds: float) -> bool:
    return chain_seconds(TRUE, [int(device) for device in line["placement"]]) <= 1.05 * seconds


def test_the_budget_is_kept_while_exploring(world, monkeypatch):
    compile_devices = ScriptedSession.compile_devices

    def slowly(session, devices):
        world.clock.now += 3.0
        return compile_devices(session, devices)

    monkeypatch.setattr(ScriptedSession, "compile_devices", slowly)
    start = world.clock.now
    result = world.tune(budget=100, settings=replace(SETTINGS, patience=1000))
    assert result.stopped == "budget"
    assert 0.5 * 100 < world.clock.now - start <= 1.05 * 100


def test_patience_ends_a_run_at_the_highest_temperature_where_a_resumed_one_goes_on(world):
    settings = replace(SETTINGS, hottest=4.0, novelty=0.3)
    first = world.tune(budget=1200, settings=settings)
    assert first.stopped == "nothing new"
    values = load_state(world.out / "state.safetensors")[1]["values"]
    assert values["heated"]["net"] == 2  # 1, 2, 4
    known = world.lines("measured")
    result = world.tune(budget=20, settings=replace(settings, novelty=0.0), resume=True)
    everything = world.lines("measured")
    assert everything[: len(known)] == known
    assert len({line["placement"] for line in everything}) == len(everything) > len(known)
    assert everything[len(known)]["temperature"] == 4.0
    assert result.models[0].measurements == len(everything)


class Tuned:
    """The policy that is sure of DEV0, and how likely it finds some placements."""

    def __init__(self, sure: Path) -> None:
        self.task = task_of(WRONG, TRUE)
        self.network = load_network(sure)
        self.tuner = PolicyTuner(self.network, SETTINGS, superposition_only=False, seed=0)

    def log_prob(self, assignment) -> float:
        actions = torch.from_numpy(self.task.problem.units.from_groups(assignment).astype(np.int64))[None]
        with torch.no_grad():
            policy = PlacementDistribution(self.network(collate([self.task.graph])))
        return policy.log_prob(actions).item()


def trial(assignment, source: str) -> Trial:
    return scripted_trial(source, assignment)


def test_an_explored_placement_that_is_slow_makes_the_policy_no_surer(sure):
    tuned = Tuned(sure)
    slow = trial([0, 1] * 6, EXPLORED)
    raced(tuned.task, slow)
    greedy = tuned.tuner.greedy(tuned.task)
    assert tuned.task.known(greedy) in tuned.task.singles
    before = {name: value.clone() for name, value in tuned.network.state_dict().items()}
    assert tuned.task.relative(slow) > tuned.task.score(greedy)
    assert tuned.tuner.learn_measured(tuned.task, [slow]) == {}
    assert all(torch.equal(value, before[name]) for name, value in tuned.network.state_dict().items())


def test_an_explored_placement_that_is_fast_becomes_likelier(sure):
    tuned = Tuned(sure)
    fast = trial(FAST_ON, EXPLORED)
    raced(tuned.task, fast)
    before = tuned.log_prob(np.array(FAST_ON))
    metrics = tuned.tuner.learn_measured(tuned.task, [fast])
    assert metrics.keys() == {"imitation_loss"}
    assert tuned.log_prob(np.array(FAST_ON)) > before


def test_luck_that_was_refuted_is_not_imitated(sure):
    tuned = Tuned(sure)
    lucky = trial(FAST_ON, EXPLORED)
    raced(tuned.task, lucky)
    lucky.refuted = True
    assert tuned.tuner.learn_measured(tuned.task, [lucky]) == {}
    assert tuned.task.score(lucky.assignment) == 1.0
