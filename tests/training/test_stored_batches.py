from __future__ import annotations

from itertools import islice
from pathlib import Path

import numpy as np
import pytest

import examples
from ov_autoplace.errors import TrainingError
from ov_autoplace.training.examples import load_examples, stored_batches
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    root = tmp_path_factory.mktemp("data")
    (root / "workloads").mkdir()
    for i, family in enumerate(RANDOM_FAMILIES):
        random_workload(family, 8 + i, i).save(root / "workloads" / f"{i}.npz")
    examples.write_examples(root / "train", root / "workloads", 64, seed=5)
    return root


def names(batch):
    return [(example.task.name, example.objective, example.label.tolist()) for example in batch]


def test_labels_take_as_long_as_they_say(folder):
    read = load_examples(folder / "train")
    assert len(read) == 64
    assert {example.objective for example in read} == {"hetero", "overlap", "rate"}
    for example in read:
        evaluator = example.true_problem.evaluator
        assert evaluator.latencies([example.label.astype(np.int32)])[0] == example.best_seconds
        assert example.bound_seconds <= example.best_seconds
        assert example.problem.objective == example.objective


def test_a_batch_depends_on_the_seed_and_its_number_alone(folder):
    def batches(seed, first, count):
        return [names(b) for b in islice(stored_batches(folder / "train", seed, first, 6, 1000), count)]

    whole = batches(3, 0, 5)
    assert batches(3, 2, 3) == whole[2:]
    assert batches(4, 0, 5) != whole


def test_a_batch_has_one_number_of_devices_and_ends_at_its_sizes(folder):
    for batch in islice(stored_batches(folder / "train", 0, 0, 8, 40), 12):
        assert len({example.graph.num_devices for example in batch}) == 1
        assert len(batch) <= 8
        assert sum(len(example.graph) for example in batch[:-1]) < 40


def test_a_killed_run_goes_on_with_the_same_examples(folder, tmp_path):
    whole = (folder / "train" / "00000.npz").read_bytes()
    examples.write_examples(tmp_path, folder / "workloads", 64, seed=5)
    assert (tmp_path / "00000.npz").read_bytes() == whole
    (tmp_path / "00000.npz").write_bytes(b"kept")
    examples.write_examples(tmp_path, folder / "workloads", 64, seed=5)
    assert (tmp_path / "00000.npz").read_bytes() == b"kept"


def test_an_empty_folder_is_refused(tmp_path):
    with pytest.raises(TrainingError, match=r"tools/examples\.py"):
        next(stored_batches(tmp_path, 0, 0, 4, 100))
