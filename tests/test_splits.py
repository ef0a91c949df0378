"""What training sees and what a policy is judged on have different structures, not only different names."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

import workloads
from fingerprints import fingerprint, seen_share, similarity
from held_out_shapes import TEST_SHAPES, VALIDATION_SHAPES, shape_workload
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.workload import load_folder

MOST_SEEN = 0.25
SIZES = (12, 30, 60, 120)


@pytest.fixture(scope="module")
def prints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Counter[str]]]:
    """Fingerprint of each family by split, from graphs of several sizes."""
    found = {}
    for split, (families, shapes) in workloads.SPLITS.items():
        folder: Path = tmp_path_factory.mktemp(split)
        counts = 2 * len(families), 6 * len(shapes)
        read = workloads.write_workloads(folder, split, *counts, seed=77, smallest=10, largest=200)
        assert len(read) == len(load_folder(folder))
        found[split] = {
            family: fingerprint(w for w in read if w.family == family) for family in (*families, *shapes)
        }
    return found


def test_no_family_is_of_two_splits() -> None:
    named = [family for split in workloads.SPLITS.values() for families in split for family in families]
    assert len(set(named)) == len(named)


def test_training_has_seen_little_of_what_is_held_out(prints: dict[str, dict[str, Counter[str]]]) -> None:
    trained = sum(prints["training"].values(), Counter())
    for split in ("validation", "held-out"):
        for family, own in prints[split].items():
            assert seen_share(own, trained) <= MOST_SEEN, family


def test_families_of_different_splits_are_different(prints: dict[str, dict[str, Counter[str]]]) -> None:
    for validation, own in prints["validation"].items():
        for test, other in prints["held-out"].items():
            assert similarity(own, other) <= MOST_SEEN, (validation, test)


def test_families_that_differ_in_name_alone_are_found_out(tmp_path: Path) -> None:
    # ResNet was held out while MobileNet was trained on; both are chains with short skips.
    skips = fingerprint(workloads.network_workload("mobilenet", 60, seed) for seed in range(3))
    assert seen_share(fingerprint([workloads.network_workload("resnet", 60, 9)]), skips) > 0.4


@pytest.mark.parametrize("family", ["dense", "stencil", "nested_unet", "high_resolution"])
def test_shapes_that_repeat_stay_the_same_at_another_size(family: str) -> None:
    small, large = (fingerprint(shape_workload(family, n, s) for s in range(8)) for n in (60, 240))
    assert seen_share(small, large) > 0.3


@pytest.mark.parametrize("family", [*VALIDATION_SHAPES, *TEST_SHAPES])
@pytest.mark.parametrize("groups", SIZES)
def test_a_shape_has_about_the_groups_asked_for(family: str, groups: int) -> None:
    for seed in range(3):
        assert 0.4 * groups <= len(shape_workload(family, groups, seed)) <= 2.5 * groups


def test_depth_and_width_do_not_change_a_fingerprint() -> None:
    few = fingerprint(random_workload("random_fan_out", 60, seed) for seed in range(8))
    many = fingerprint([random_workload("random_fan_out", 300, 1)])
    assert seen_share(many, few) > 0.4
    assert similarity(few, fingerprint([random_workload("random_tree", 100, 1)])) < 0.1
