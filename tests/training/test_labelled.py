from __future__ import annotations

from dataclasses import fields, replace

import numpy as np
import pytest

from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError, TrainingError
from ov_autoplace.training.examples import label_task
from ov_autoplace.training.labelled import load_labelled, save_labelled
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.targets import EVERY_OBJECTIVE, random_task

TARGETS = replace(
    EVERY_OBJECTIVE,
    limits=tuple((o, 0.5) for o in ("hetero", "overlap", "rate")),
    estimate=0.5,
    unsupported=0.0,
)


def problem(seed, objective, devices=3):
    random = np.random.default_rng(seed)
    while True:
        workload = random_workload(RANDOM_FAMILIES[seed % len(RANDOM_FAMILIES)], 14, seed)
        try:
            return label_task(random_task(workload, random, TARGETS, devices, objective))
        except PlacementError:
            continue  # less memory than it takes


def same(left: CostTable, right: CostTable) -> bool:
    for field in fields(CostTable):
        one, other = getattr(left, field.name), getattr(right, field.name)
        if isinstance(one, np.ndarray):
            if not np.array_equal(one, other) or one.dtype != other.dtype:
                return False
        elif one != other:
            return False
    return True


@pytest.fixture(scope="module")
def problems():
    return [problem(seed, objective) for objective in ("hetero", "overlap", "rate") for seed in range(4)]


def test_what_was_written_is_read_bit_for_bit(problems, tmp_path):
    save_labelled(tmp_path / "shard.npz", problems)
    read = load_labelled(tmp_path / "shard.npz")
    assert len(read) == len(problems)
    assert any(p.task.shown is not p.task.true for p in problems)
    assert any(p.task.true.lane_devices for p in problems)
    for one, other in zip(problems, read, strict=True):
        assert (one.task.name, one.task.family, one.task.objective) == (
            other.task.name, other.task.family, other.task.objective,
        )  # fmt: skip
        assert same(one.task.true, other.task.true)
        assert same(one.task.shown, other.task.shown)
        assert (other.task.shown is other.task.true) == (one.task.shown is one.task.true)
        assert one.assignment.tolist() == other.assignment.tolist()
        assert (one.best_seconds, one.bound_seconds, one.single_seconds) == (
            other.best_seconds, other.bound_seconds, other.single_seconds,
        )  # fmt: skip


def test_the_same_problems_make_the_same_file(problems, tmp_path):
    for name in ("first", "second"):
        save_labelled(tmp_path / f"{name}.npz", problems[:4])
    assert (tmp_path / "first.npz").read_bytes() == (tmp_path / "second.npz").read_bytes()


def test_a_damaged_file_is_refused_in_one_sentence(problems, tmp_path):
    path = tmp_path / "shard.npz"
    save_labelled(path, problems[:3])
    with np.load(path) as file:
        arrays = dict(file)
    for change in (
        {"assignment": arrays["assignment"] + 7},
        {"assignment.sizes": arrays["assignment.sizes"] + 1},
        {"schema": np.array(99)},
        {"op_seconds": -arrays["op_seconds"]},
        {"tensor_consumers": arrays["tensor_consumers"].astype(np.float64)},
    ):
        np.savez(path, **(arrays | change))
        with pytest.raises(TrainingError, match="holds no labelled problems"):
            load_labelled(path)


def test_what_a_shard_cannot_hold_is_refused(problems, tmp_path):
    task = problems[0].task
    true = replace(task.true, colocation=np.zeros(len(task.true), dtype=np.int32))
    with pytest.raises(TrainingError, match="colocation"):
        save_labelled(tmp_path / "x.npz", [replace(problems[0], task=replace(task, true=true, shown=true))])
    assert not (tmp_path / "x.npz").exists()
