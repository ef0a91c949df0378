"""Pretraining on a cluster: the checkpoint is the same whoever computes, joins, dies or goes on."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from command_line import Command
from fleet_cluster import LocalCluster
from ov_autoplace.errors import FleetError, TrainingError
from ov_autoplace.fleet import learning
from ov_autoplace.fleet.learning import workers_at
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.checkpoint import load_network
from ov_autoplace.training.examples import by_family, make_labelled
from ov_autoplace.training.execution import Executors, in_this_process
from ov_autoplace.training.labelled import save_labelled
from ov_autoplace.training.logs import read_log
from ov_autoplace.training.pretrain import PretrainResult, pretrain
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.state_file import load_state
from ov_autoplace.training.targets import RandomTargets
from ov_autoplace.training.teaching import Teaching, teach_folder

pytestmark = [pytest.mark.fleet, pytest.mark.torch]

TINY = replace(CONFIGS["autoplace-base"], hidden=8, layers=1)
SETTINGS = PretrainSettings(
    imitation_steps=5,
    policy_steps=2,
    graphs_per_step=6,
    microbatches=4,
    warm_up_steps=2,
    samples=3,
    evaluate_every=3,
    validation_problems=12,
    threads=1,
)
LAST = SETTINGS.steps - 1  # a finished run exports its network, which takes longer than all of this


@pytest.fixture(scope="module")
def workloads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workloads")
    for i, family in enumerate(RANDOM_FAMILIES):
        random_workload(family, 8 + i, i).save(folder / f"{i}.npz")
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("examples")
    families = by_family([random_workload(family, 8, 50 + i) for i, family in enumerate(RANDOM_FAMILIES)])
    for shard in range(2):
        problems = [
            make_labelled(families, np.random.default_rng((shard, i)), RandomTargets()) for i in range(10)
        ]
        save_labelled(folder / f"{shard:05d}.npz", problems)
    return folder


@pytest.fixture(scope="module")
def alone(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PretrainResult]:
    """What a run in this process leaves."""
    folder = tmp_path_factory.mktemp("alone")
    return folder, run(data, folder, in_this_process)


def run(data: Path, out: Path, executors: Executors, **given: Any) -> PretrainResult:
    given = {"stop_after": LAST, **given}
    return pretrain(data, out, SETTINGS, validation=data, config=TINY, executors=executors, **given)


def assert_same(data: tuple[Path, PretrainResult], out: Path, result: PretrainResult) -> None:
    folder, expected = data
    ours, theirs = (load_state(where / "state.safetensors")[0] for where in (out, folder))
    assert ours.keys() == theirs.keys()
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())
    for name, value in expected.network.state_dict().items():
        assert torch.equal(value, result.network.state_dict()[name]), name
    assert read_log(out / "log.jsonl") == read_log(folder / "log.jsonl")
    assert result.evaluation.gaps.tolist() == expected.evaluation.gaps.tolist()


@contextmanager
def disturbed(executors: Executors, before: dict[int, Callable[[], object]]) -> Iterator[Executors]:
    """Executors that do something before the rounds of these numbers."""
    left = dict(before)

    @contextmanager
    def opened(job: Any) -> Iterator[Any]:
        with executors(job) as executor:
            rounds = 0

            class Counting:
                def run(self, *arguments: Any, **given: Any) -> list[Any]:
                    nonlocal rounds
                    rounds += 1
                    left.pop(rounds, lambda: None)()
                    return executor.run(*arguments, **given)

            yield Counting()

    yield opened
    assert not left, f"there were no {max(left)} rounds"


@pytest.mark.parametrize("workers", [1, 2, 3])
def test_the_checkpoint_is_the_same_whatever_the_number_of_workers(
    workers: int, cluster: LocalCluster, data: Path, alone: tuple[Path, PretrainResult], tmp_path: Path
) -> None:
    with workers_at(cluster.address, 120.0, most=workers) as executors:
        assert_same(alone, tmp_path, run(data, tmp_path, executors))


def test_a_node_that_dies_and_one_that_joins_change_nothing(
    cluster: LocalCluster,
    extra_node: Callable[..., Any],
    data: Path,
    alone: tuple[Path, PretrainResult],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    doomed = extra_node("aaa", num_cpus=1)  # the first in the order of nodes, so it always has work

    removing = threading.Thread(target=cluster.remove, args=(doomed,))  # while units run
    before = {4: removing.start, 6: lambda: extra_node("aab", num_cpus=1)}
    with (
        caplog.at_level(logging.WARNING, "ov_autoplace"),
        workers_at(cluster.address, 120.0) as executors,
        disturbed(executors, before) as shaken,
    ):
        assert_same(alone, tmp_path, run(data, tmp_path, shaken))
    removing.join()
    assert any("aaa" in line and "another worker" in line for line in caplog.messages)


def test_a_run_that_was_stopped_goes_on_with_other_workers_to_the_same_checkpoint(
    cluster: LocalCluster, data: Path, alone: tuple[Path, PretrainResult], tmp_path: Path
) -> None:
    with workers_at(cluster.address, 120.0, most=2) as executors:
        half = run(data, tmp_path, executors, stop_after=3)
    assert half.steps == 3
    assert_same(alone, tmp_path, run(data, tmp_path, in_this_process, resume=True))


def test_teachers_on_nodes_write_the_examples_of_one_process_and_keep_what_is_there(
    cluster: LocalCluster, workloads: Path, tmp_path: Path
) -> None:
    teaching = replace(Teaching.of(workloads, seed=5), objective="hetero", devices=2)
    teach_folder(tmp_path / "alone", 192, teaching, in_this_process)
    there = [(tmp_path / "alone" / f"0000{i}.npz").read_bytes() for i in range(3)]
    ours = tmp_path / "ours"
    ours.mkdir()
    (ours / "00001.npz").write_bytes(b"kept")
    with workers_at(cluster.address, 120.0) as executors:
        teach_folder(ours, 192, teaching, executors)
    assert [(ours / f"0000{i}.npz").read_bytes() for i in range(3)] == [there[0], b"kept", there[2]]


def test_machines_that_round_differently_are_named_once(
    cluster: LocalCluster,
    data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(learning, "_computes", lambda: "another processor")
    with caplog.at_level(logging.WARNING, "ov_autoplace"), workers_at(cluster.address, 120.0, 1) as executors:
        run(data, tmp_path, executors, stop_after=2)
    (said,) = [line for line in caplog.messages if "round differently" in line]
    assert said.startswith("alpha computes with ")
    assert "this process with another processor" in said


def test_a_unit_that_nobody_can_compute_ends_the_run_with_its_reason(
    cluster: LocalCluster, workloads: Path, tmp_path: Path
) -> None:
    teaching = replace(Teaching.of(workloads, seed=5), objective="no such objective")
    with (
        workers_at(cluster.address, 60.0) as executors,
        pytest.raises((FleetError, TrainingError), match="no such objective"),
    ):
        teach_folder(tmp_path, 64, teaching, executors)
    assert not list(tmp_path.glob("*.npz"))


def test_the_command_solves_and_trains_on_a_cluster(
    cluster: LocalCluster, data: Path, workloads: Path, tmp_path: Path, cli: Command
) -> None:
    words = (
        "--config",
        "autoplace-base",
        "--imitation-steps",
        1,
        "--graphs-per-step",
        4,
        "--microbatches",
        2,
    )
    words += ("--validation", data, "--validation-problems", 4, "--workloads", workloads, "--examples", 64)
    local = cli("pretrain", tmp_path / "a", "-o", tmp_path / "local", *words, "--threads", 1, "--json")
    remote = cli(
        "pretrain", tmp_path / "b", "-o", tmp_path / "remote", *words, "--ray", cluster.address, "--json"
    )
    assert local.json()["validation"] == remote.json()["validation"]
    for name in ("a/00000.npz", "b/00000.npz"):
        assert (tmp_path / name).exists()
    ours, theirs = (load_network(tmp_path / name).state_dict() for name in ("local", "remote"))
    assert all(torch.equal(value, theirs[name]) for name, value in ours.items())


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--workers", "2"), "--workers 2 is about a cluster; add --ray ADDRESS"),
        (("--limit", "5"), "--limit 5 is about a cluster"),
        (("--examples", "64"), "--examples 64 needs --workloads"),
        (("--ray", "127.0.0.1:9"), "no Ray cluster answers at 127.0.0.1:9"),
    ],
)
def test_options_that_mean_nothing_alone_are_refused(
    words: tuple[str, ...], sentence: str, data: Path, tmp_path: Path, cli: Command
) -> None:
    outcome = cli("pretrain", data, "-o", tmp_path / "out", "--validation", data, *words)
    assert outcome.code == 2
    assert sentence in " ".join(outcome.err.split())
    assert not (tmp_path / "out").exists()
