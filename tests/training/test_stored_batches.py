from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import examples
from ov_autoplace.errors import TrainingError
from ov_autoplace.training import teaching
from ov_autoplace.training.labelled import load_labelled, shard_bytes
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.stored import StoredExamples
from ov_autoplace.training.teaching import Teaching, teach_folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("data")
    (root / "workloads").mkdir()
    for i, family in enumerate(RANDOM_FAMILIES):
        random_workload(family, 8 + i, i).save(root / "workloads" / f"{i}.npz")
    examples.write_examples(root / "train", root / "workloads", 64, seed=5)
    return root


def test_labels_take_as_long_as_they_say(folder):
    read = StoredExamples.load(folder / "train")
    assert len(read) == 64
    assert {example.objective for example in read} == {"hetero", "overlap", "rate"}
    for example in read:
        evaluator = example.true_problem.evaluator
        assert evaluator.latencies([example.label.astype(np.int32)])[0] == example.best_seconds
        assert example.bound_seconds <= example.best_seconds
        assert example.problem.objective == example.objective


def test_a_batch_depends_on_the_seed_and_its_number_alone(folder):
    def batches(seed, first, count):
        stored = StoredExamples.load(folder / "train")  # which has drawn nothing before
        return [stored.batch(seed, first + i, 6, 1000) for i in range(count)]

    whole = batches(3, 0, 5)
    assert batches(3, 2, 3) == whole[2:]
    assert batches(4, 0, 5) != whole


def test_a_batch_has_one_number_of_devices_and_ends_at_its_sizes(folder):
    stored = StoredExamples.load(folder / "train")
    for number in range(12):
        batch = [stored[i] for i in stored.batch(0, number, 8, 40)]
        assert len({example.graph.num_devices for example in batch}) == 1
        assert len(batch) <= 8
        assert sum(len(example.graph) for example in batch[:-1]) < 40
        batch = stored.batch(0, number, 8, 40, num_devices=3)
        assert {stored[i].graph.num_devices for i in batch} == {3}


@pytest.fixture
def short(monkeypatch):
    """Shards of few examples, which are made in this process, as another would not know of that."""
    monkeypatch.setattr(teaching, "SHARD", 12)
    monkeypatch.setattr(examples, "SHARD", 12)
    monkeypatch.setattr(examples, "ProcessPoolExecutor", lambda workers, _: ThreadPoolExecutor(workers))


def test_pretraining_makes_the_same_examples_as_the_tool_and_keeps_what_is_there(folder, tmp_path, short):
    whole = load_labelled(folder / "train" / "00000.npz")
    (tmp_path / "00001.npz").write_bytes(b"kept")
    teach_folder(tmp_path, 24, Teaching.of(folder / "workloads", 5))
    assert (tmp_path / "00000.npz").read_bytes() == shard_bytes(whole[:12])
    assert (tmp_path / "00001.npz").read_bytes() == b"kept"


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"tools/examples\.py"):
        StoredExamples.load(tmp_path)


def test_examples_of_one_kind_are_added_to_those_that_are_there(folder, tmp_path, short):
    (tmp_path / "00000.npz").write_bytes((folder / "train" / "00000.npz").read_bytes())
    examples.write_examples(tmp_path, folder / "workloads", 24, seed=6, kind=("hetero", 3))
    assert (tmp_path / "00000.npz").read_bytes() == (folder / "train" / "00000.npz").read_bytes()
    added = StoredExamples.load(tmp_path)[64:]
    assert len(added) == 12
    assert {(example.objective, example.graph.num_devices) for example in added} == {("hetero", 3)}
