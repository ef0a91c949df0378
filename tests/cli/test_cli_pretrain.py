"""``ov-autoplace pretrain``: it learns from what was collected."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from collected import NETWORKS, networks, samples_of
from command_line import Command
from ov_autoplace.cost.learned import CostNetwork
from ov_autoplace.cost.samples import CostSamples

pytestmark = pytest.mark.torch

FEW = ("--members", 2, "--epochs", 2, "--hidden", 8, "--layers", 1, "--threads", 1)


def test_a_network_is_learned_from_several_files_and_judged_on_others(cli: Command, tmp_path: Path) -> None:
    files = [tmp_path / "one.npz", tmp_path / "two.npz"]
    for number, path in enumerate(files):
        samples_of(networks(20, first=20 * number)).save(path)
    out = tmp_path / "new" / "costs.npz"
    report = cli("pretrain", *files, "-o", out, *FEW, "--json").json()

    network = CostNetwork.load(out)
    assert network.about["settings"]["hidden"] == 8
    assert report["networks"] == network.about["networks"]
    assert 2 * report["networks"] == report["measurements"] == 80 - report["validated"]
    assert report["validated"] > 0
    assert report["typical_factor"] > 1
    assert len(report["devices"]) == 4

    again = cli("pretrain", *files, "-o", tmp_path / "again.npz", *FEW)
    assert f"{report['typical_factor']:.3f}" in again.out
    other = CostNetwork.load(tmp_path / "again.npz")
    assert all(np.array_equal(network.weights[name], other.weights[name]) for name in network.weights)


def test_nothing_is_written_where_there_is_nothing_to_learn_or_the_output_is_an_input(
    cli: Command, tmp_path: Path
) -> None:
    empty, file = tmp_path / "empty.npz", tmp_path / "some.npz"
    CostSamples().save(empty)
    samples_of(NETWORKS).save(file)
    before = file.read_bytes()
    for inputs, out, sentence in (
        ((empty,), tmp_path / "out" / "costs.npz", "there are no measurements"),
        ((tmp_path / "none.npz",), tmp_path / "out" / "costs.npz", "none.npz"),
        ((file,), file, "belongs to what is read"),
        ((file,), tmp_path, "it is a folder"),
    ):
        outcome = cli("pretrain", *inputs, "-o", out, *FEW)
        assert outcome.code == 2
        assert sentence in outcome.err
        assert outcome.err.count("error:") == 1
    assert file.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.npz", "some.npz"]
