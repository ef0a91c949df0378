import json
from dataclasses import asdict, replace

import numpy as np
import pytest
import torch

from ov_autoplace.errors import OptionError, TrainingError
from ov_autoplace.policy.card import load_card
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.checkpoint import load_network
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.training.evaluation import Evaluation, greedy, seconds_of
from ov_autoplace.training.examples import Example, by_family, label_task, make_labelled
from ov_autoplace.training.imitation import imitation_loss
from ov_autoplace.training.labelled import save_labelled
from ov_autoplace.training.learner import Learner, learning_rate
from ov_autoplace.training.logs import read_log
from ov_autoplace.training.pretrain import pretrain
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.stored import StoredExamples
from ov_autoplace.training.targets import EVERY_OBJECTIVE, RandomTargets, random_task

pytestmark = pytest.mark.torch

TINY = replace(CONFIGS["autoplace-base"], hidden=16, layers=1)
SETTINGS = PretrainSettings(
    steps=40,
    graphs_per_step=8,
    warm_up_steps=5,
    evaluate_every=20,
    validation_problems=12,
    threads=1,
)
TARGETS = RandomTargets(estimate=0.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """A folder of small examples of all objectives."""
    return _written(tmp_path_factory.mktemp("examples"), 60, 0)


@pytest.fixture(scope="module")
def validation(tmp_path_factory):
    """Other ones."""
    return _written(tmp_path_factory.mktemp("validation"), 12, 1)


@pytest.fixture(scope="module")
def trained(data, validation, tmp_path_factory):
    """A whole tiny run, as the fixture of the tests that look at what it leaves."""
    out, held_out = tmp_path_factory.mktemp("run"), _written(tmp_path_factory.mktemp("held-out"), 16, 2)
    arguments = {"config": TINY, "held_out": held_out, "command": "the command"}
    return out, pretrain(data, out, SETTINGS, validation=validation, **arguments)


def test_training_lowers_the_loss_on_its_own_problems_and_on_new_ones(data, trained, tmp_path):
    out, result = trained
    records = read_log(out / "log.jsonl")
    assert [record["step"] for record in records] == list(range(1, 41))
    fresh = make_network(TINY, seed=SETTINGS.seed).eval()
    own = StoredExamples.load(data)
    assert _loss(result.network, own) < 0.95 * _loss(fresh, own)
    for objective in ("hetero", "overlap", "rate"):
        problems = [
            e for e in StoredExamples.load(_written(tmp_path / objective, 40, 7)) if e.objective == objective
        ]
        assert _loss(result.network, problems) < 0.95 * _loss(fresh, problems), objective


def test_the_checkpoint_says_how_it_was_made_and_runs_without_torch(trained):
    out, result = trained
    card = json.loads((out / "card.json").read_text())
    assert card["training"]["command"] == "the command"
    assert card["training"]["settings"] == asdict(SETTINGS)
    assert card["metrics"]["validation"]["mean_gap"] == pytest.approx(result.evaluation.summary()["mean_gap"])
    assert {"commit", "date", "torch"} <= set(card["training"])
    assert len(card["training"]["data"]["sha256"]) == 64
    held_out = {name: report for name, report in card["metrics"].items() if name.startswith("held_out")}
    assert {name.split("_")[2] for name in held_out} == {"hetero", "overlap", "rate"}
    for report in held_out.values():
        low, high = report["mean_gap_95_percent_interval"]
        assert low <= report["mean_gap"] <= high
        assert report["losing_cases"][0]["gap"] == report["largest_gap"]
    problem = Example.of(make_labelled(by_family(_workloads()), np.random.default_rng(0), TARGETS, 3))
    answer = PolicyRunner(out).greedy(problem.graph)
    assert answer.tolist() == greedy(result.network)(problem.graph).tolist()
    assert answer.tolist() == greedy(load_network(out).eval())(problem.graph).tolist()


@pytest.mark.parametrize("stop", [17, 38])
def test_a_run_that_was_stopped_and_resumed_ends_with_the_same_weights(
    data, validation, trained, tmp_path, stop
):
    _, whole = trained
    arguments = {"config": TINY, "validation": validation}
    half = pretrain(data, tmp_path, SETTINGS, stop_after=stop, **arguments)
    assert half.steps == stop
    assert not (tmp_path / "card.json").exists()
    again = pretrain(data, tmp_path, SETTINGS, resume=True, **arguments)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, again.network.state_dict()[name]), name
    assert [record["step"] for record in read_log(tmp_path / "log.jsonl")] == list(range(1, 41))


def test_a_run_starts_from_the_weights_of_a_checkpoint(data, validation, trained, tmp_path):
    parent, whole = trained
    none = replace(SETTINGS, steps=0)
    result = pretrain(data, tmp_path / "out", none, validation=validation, config=TINY, checkpoint=parent)
    for name, value in whole.network.state_dict().items():
        assert torch.equal(value, result.network.state_dict()[name]), name
    card = json.loads((tmp_path / "out" / "card.json").read_text())
    assert card["training"]["started_from"] == load_card(parent).digest


def test_the_best_weights_of_a_run_are_what_it_ends_with(data):
    learner, examples = Learner(TINY, SETTINGS), StoredExamples.load(data)
    kept = {}
    for step, gap in enumerate((0.5, 0.2, 0.3)):
        learner.learn([examples[i] for i in examples.batch(0, step, 8, 1500)])
        learner.keep_if_best(gap)
        with learner.averaged():
            kept[gap] = {name: value.clone() for name, value in learner.network.state_dict().items()}
    learner.finish()
    assert learner.best_step == 2
    ended = learner.network.state_dict()
    assert all(torch.equal(value, ended[name]) for name, value in kept[0.2].items())
    assert not all(torch.equal(value, ended[name]) for name, value in kept[0.3].items())


def test_a_run_does_not_resume_with_other_settings(data, validation, tmp_path):
    short = replace(SETTINGS, steps=2)
    arguments = {"config": TINY, "validation": validation}
    pretrain(data, tmp_path, short, stop_after=1, **arguments)
    with pytest.raises(TrainingError, match=r"learning_rate = 0\.002, not 0\.1"):
        pretrain(data, tmp_path, replace(short, learning_rate=0.1), resume=True, **arguments)


def test_a_network_for_other_devices_than_the_examples_is_refused(data, validation, tmp_path):
    paper = replace(CONFIGS["gdp"], num_devices=9)
    with pytest.raises(TrainingError, match="has no example that gdp can place"):
        pretrain(data, tmp_path / "out", SETTINGS, config=paper, validation=validation)


def test_the_teacher_is_as_good_as_its_label_says():
    task = random_task(_workloads()[0], np.random.default_rng(3), TARGETS, 2)
    problem = Example.of(label_task(task, thorough=True))
    seconds = seconds_of(lambda graph: problem.label.astype(np.int32), problem)
    gap = Evaluation.of([seconds], [problem]).gaps[0]
    assert gap == pytest.approx(0.0, abs=1e-9)


def test_the_learning_rate_warms_up_and_decays():
    rates = [learning_rate(step, SETTINGS) for step in range(SETTINGS.steps)]
    assert rates[0] < rates[4]
    assert rates[4] == pytest.approx(SETTINGS.learning_rate, rel=0.05)
    assert rates[39] < 0.05 * SETTINGS.learning_rate


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"learning_rate": 0.0}, "learning_rate is 0.0; it must be above 0"),
        ({"average": 1.0}, "average is 1.0"),
        ({"steps": -1}, "steps is -1"),
    ],
)
def test_settings_that_cannot_work_are_refused(change, problem):
    with pytest.raises(OptionError, match=problem):
        replace(SETTINGS, **change)


def test_an_empty_folder_is_refused_before_anything_is_written(validation, tmp_path):
    for data, judged in ((tmp_path / "none", validation), (validation, tmp_path / "none")):
        with pytest.raises(TrainingError, match="holds no examples"):
            pretrain(data, tmp_path / "out", SETTINGS, config=TINY, validation=judged)
        assert not (tmp_path / "out").exists()


def _written(folder, count, seed):
    """A folder of small examples of all objectives, as tools/examples.py writes them."""
    families = by_family(_workloads())
    problems = [
        make_labelled(families, np.random.default_rng((seed, i)), EVERY_OBJECTIVE) for i in range(count)
    ]
    folder.mkdir(exist_ok=True)
    save_labelled(folder / "00000.npz", problems)
    return folder


def _workloads():
    return [random_workload(family, 15, 100 + i) for i, family in enumerate(RANDOM_FAMILIES)]


def _loss(network, problems):
    """How far a network's answers are from the teacher's, in the mean over the problems."""
    losses = []
    for problem in problems:
        batch, label = collate([problem.graph]), torch.from_numpy(problem.label)
        with torch.no_grad():
            losses.append(imitation_loss(network(batch).unit_scores, batch, label, 1.0)[0].item())
    return float(np.mean(losses))
