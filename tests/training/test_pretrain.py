import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from ov_autoplace.errors import OptionError, TrainingError
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.checkpoint import load_network
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.training.evaluation import evaluate, greedy
from ov_autoplace.training.examples import by_family, example_batches, make_example, validation_set
from ov_autoplace.training.imitation import imitation_loss
from ov_autoplace.training.learner import learning_rate
from ov_autoplace.training.logs import read_log
from ov_autoplace.training.pretrain import pretrain
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.targets import RandomTargets

pytestmark = pytest.mark.torch

TINY = replace(CONFIGS["autoplace-base"], hidden=16, rounds=2, looks=1, layers=1)
SETTINGS = PretrainSettings(
    imitation_steps=40,
    policy_steps=4,
    graphs_per_step=8,
    warm_up_steps=5,
    samples=4,
    evaluate_every=20,
    validation_problems=12,
    threads=1,
)
TARGETS = RandomTargets(estimate=0.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of a dozen small random graphs."""
    folder = tmp_path_factory.mktemp("workloads")
    for i in range(12):
        workload = random_workload(RANDOM_FAMILIES[i % len(RANDOM_FAMILIES)], 12 + i, i)
        workload.save(folder / f"{i}.npz")
    return folder


@pytest.fixture(scope="module")
def trained(data, tmp_path_factory):
    """A whole tiny run, as the fixture of the tests that look at what it leaves."""
    out, held_out = tmp_path_factory.mktemp("run"), tmp_path_factory.mktemp("held-out")
    for i, workload in enumerate(_workloads()):
        workload.save(held_out / f"{i}.npz")
    arguments = {"config": TINY, "targets": TARGETS, "held_out": held_out, "command": "the command"}
    return out, pretrain(data, out, SETTINGS, **arguments)


def test_training_lowers_the_loss_on_its_own_problems_and_on_new_ones(trained):
    out, result = trained
    records = read_log(out / "log.jsonl")
    assert [record["step"] for record in records] == list(range(1, 45))
    losses = [record["loss"] for record in records[:40]]
    assert np.mean(losses[-10:]) < 0.7 * np.mean(losses[:10])
    problems = validation_set(by_family(_workloads()), TARGETS, 24, 2, seed=7)
    trained_loss = _loss(result.network, problems)
    assert trained_loss < 0.8 * _loss(make_network(TINY, seed=SETTINGS.seed).eval(), problems)


def test_the_policy_gradient_takes_part(trained):
    out, _ = trained
    last = read_log(out / "log.jsonl")[-1]
    assert {"policy_loss", "mean_reward", "sampled_gap", "mean_gap"} <= set(last)


def test_the_checkpoint_says_how_it_was_made_and_runs_without_torch(trained):
    out, result = trained
    card = json.loads((out / "card.json").read_text())
    assert card["training"]["command"] == "the command"
    assert card["training"]["settings"] == asdict(SETTINGS)
    assert card["metrics"]["validation"]["mean_gap"] == pytest.approx(result.evaluation.summary()["mean_gap"])
    assert {"commit", "date", "torch"} <= set(card["training"])
    assert len(card["training"]["data"]["sha256"]) == 64
    held_out = card["metrics"]["held_out_3_devices"]
    low, high = held_out["mean_gap_95_percent_interval"]
    assert low <= held_out["mean_gap"] <= high
    assert set(held_out["by_family"]) == set(RANDOM_FAMILIES)
    assert held_out["losing_cases"][0]["gap"] == held_out["largest_gap"]
    problem = make_example(by_family(_workloads()), np.random.default_rng(0), TARGETS, 3)
    answer = PolicyRunner(out).greedy(problem.graph)
    assert answer.tolist() == greedy(result.network)(problem.graph).tolist()
    assert answer.tolist() == greedy(load_network(out).eval())(problem.graph).tolist()


@pytest.mark.parametrize("stop", [17, 42])
def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_weights(data, trained, tmp_path, stop):
    _, whole = trained
    arguments = {"config": TINY, "targets": TARGETS}
    half = pretrain(data, tmp_path, SETTINGS, stop_after=stop, **arguments)
    assert half.steps == stop
    assert not (tmp_path / "card.json").exists()
    again = pretrain(data, tmp_path, SETTINGS, resume=True, **arguments)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name]), name
    assert [record["step"] for record in read_log(tmp_path / "log.jsonl")] == list(range(1, 45))


def test_a_run_does_not_resume_with_other_settings(data, tmp_path):
    short = replace(SETTINGS, imitation_steps=2, policy_steps=0)
    pretrain(data, tmp_path, short, config=TINY, targets=TARGETS, stop_after=1)
    with pytest.raises(TrainingError, match=r"learning_rate = 0\.002, not 0\.1"):
        pretrain(data, tmp_path, replace(short, learning_rate=0.1), config=TINY, targets=TARGETS, resume=True)


def test_the_stream_does_not_depend_on_the_number_of_processes_or_on_where_it_starts(data):
    def labels(first, workers, count=3):
        stream = example_batches(data, TARGETS, 5, first, 4, 1000, workers)
        batches = [[problem.label.tolist() for problem in next(stream)] for _ in range(count)]
        stream.close()
        return batches

    one = labels(0, 1)
    assert labels(0, 2) == one
    assert labels(1, 1, 2) == one[1:]


def test_a_batch_ends_at_its_number_of_graphs_or_units(data):
    stream = example_batches(data, TARGETS, 5, 0, 100, 60, 1)
    for _ in range(4):
        sizes = [len(problem.graph) for problem in next(stream)]
        assert sum(sizes[:-1]) < 60 <= sum(sizes)
    stream.close()


def test_the_teacher_is_as_good_as_its_label_says():
    problem = make_example(by_family(_workloads()), np.random.default_rng(3), TARGETS, 2, thorough=True)
    gap = evaluate(lambda graph: problem.label.astype(np.int32), [problem]).gaps[0]
    assert gap == pytest.approx(0.0, abs=1e-9)


def test_the_learning_rate_warms_up_and_decays_twice():
    rates = [learning_rate(step, SETTINGS) for step in range(SETTINGS.steps)]
    assert rates[0] < rates[4]
    assert rates[4] == pytest.approx(SETTINGS.learning_rate, rel=0.05)
    assert rates[39] < 0.05 * SETTINGS.learning_rate
    assert rates[40] == pytest.approx(SETTINGS.policy_learning_rate)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"samples": 1}, "samples is 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be above 0"),
        ({"average": 1.0}, "average is 1.0"),
        ({"imitation_steps": -1}, "imitation_steps is -1"),
    ],
)
def test_settings_that_cannot_work_are_refused(change, problem):
    with pytest.raises(OptionError, match=problem):
        replace(SETTINGS, **change)


def test_an_empty_folder_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(TrainingError, match="holds no workloads"):
        pretrain(tmp_path / "none", tmp_path / "out", SETTINGS, config=TINY)
    assert not (tmp_path / "out").exists()


def _workloads():
    return [random_workload(family, 15, 100 + i) for i, family in enumerate(RANDOM_FAMILIES)]


def _loss(network, problems):
    """How far a network's answers are from the teacher's."""
    batch = collate([problem.graph for problem in problems])
    label = torch.from_numpy(np.concatenate([problem.label for problem in problems]))
    with torch.no_grad():
        return imitation_loss(network.answers(batch), batch, label, 1.0, 0.3)[0].item()
