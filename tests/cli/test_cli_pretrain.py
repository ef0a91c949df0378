"""``ov-autoplace pretrain``: it solves examples and learns from them."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from command_line import Command
from ov_autoplace.training.examples import by_family, make_labelled
from ov_autoplace.training.labelled import save_labelled
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.targets import RandomTargets

pytestmark = pytest.mark.torch


@pytest.fixture
def validation(tmp_path: Path) -> Path:
    """A folder of some examples."""
    folder = tmp_path / "validation"
    folder.mkdir()
    families = by_family([random_workload(RANDOM_FAMILIES[i], 8, i) for i in range(3)])
    problems = [make_labelled(families, np.random.default_rng(i), RandomTargets()) for i in range(4)]
    save_labelled(folder / "00000.npz", problems)
    return folder


def test_a_policy_learns_from_examples_that_are_made_and_solved_first(
    cli: Command, validation: Path, tmp_path: Path
) -> None:
    workloads, data, out = tmp_path / "workloads", tmp_path / "examples", tmp_path / "out"
    workloads.mkdir()
    for i, family in enumerate(RANDOM_FAMILIES):
        random_workload(family, 8 + i, i).save(workloads / f"{i}.npz")
    words = ("--workloads", workloads, "--examples", 64, "--steps", 1, "--graphs-per-step", 4)
    report = cli("pretrain", data, "-o", out, "--validation", validation, *words, "--json").json()

    assert [path.name for path in data.iterdir()] == ["00000.npz"]
    assert report["steps"] == 1
    assert report["validation"]["mean_gap"] > -1
    card = json.loads((out / "card.json").read_text())
    assert card["training"]["settings"]["steps"] == 1
    assert card["metrics"]["validation"]["mean_gap"] == report["validation"]["mean_gap"]


def test_examples_to_make_need_graphs_to_make_them_of(cli: Command, validation: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    outcome = cli("pretrain", validation, "-o", out, "--validation", validation, "--examples", 64)

    assert outcome.code == 2
    assert "--workloads" in outcome.err
    assert not out.exists()
