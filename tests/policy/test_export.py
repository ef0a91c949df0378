"""The exported network against the torch network, on graphs that were not traced."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from ov_autoplace.errors import CheckpointError
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.inference import compile_network, compute_scores
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.checkpoint import load_network, save_checkpoint
from ov_autoplace.policy.networks.export import can_be_exported, export_network
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.policy.networks.pairwise import PairwiseNetwork
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table

pytestmark = pytest.mark.torch

SMALL = replace(CONFIGS["autoplace-base"], hidden=8, layers=1)


def network_of(config: NetworkConfig, seed: int = 0) -> PlacementNetwork:
    """A network whose every weight matters; some start as zeros."""
    network = make_network(config, seed)
    random = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in network.parameters():
            weight += 0.2 * torch.randn(weight.shape, generator=random)
    return network.eval()


def torch_scores(network: PlacementNetwork, graph) -> np.ndarray:
    with torch.no_grad():
        return network(collate([graph])).logits.numpy()


def largest_difference(ours: np.ndarray, expected: np.ndarray) -> float:
    np.testing.assert_array_equal(np.isneginf(ours), np.isneginf(expected))
    finite = np.isfinite(expected)
    return float(np.abs(ours[finite] - expected[finite]).max())


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoints") / "small"
    save_checkpoint(folder, network_of(SMALL), {"seed": 0}, {})
    return folder


@pytest.mark.parametrize(("groups", "devices"), [(1, 2), (2, 4), (33, 2), (90, 3), (700, 2), (300, 6)])
def test_any_number_of_nodes_edges_and_devices_gives_the_torch_networks_scores(
    checkpoint: Path, groups: int, devices: int
) -> None:
    network, runner = load_network(checkpoint), PolicyRunner(checkpoint)
    for seed in range(3):
        table = random_table(seed, groups, devices, constrained=groups < 40)
        graph = policy_graph(Problem.of(table))
        assert largest_difference(runner.scores(graph), torch_scores(network, graph)) < 1e-4


def test_graphs_without_any_edge_and_with_one_hub_give_the_torch_networks_scores(checkpoint: Path) -> None:
    network, runner = load_network(checkpoint), PolicyRunner(checkpoint)
    seconds = np.random.default_rng(0).lognormal(size=(50, 2))
    apart, hub = make_table(seconds), make_table(seconds, [(0, 2.0, list(range(1, 50)))])
    for table in (apart, hub, replace(hub, source="analytic")):
        graph = policy_graph(Problem.of(table))
        assert largest_difference(runner.scores(graph), torch_scores(network, graph)) < 1e-4


def test_an_estimated_table_is_told_from_a_measured_one(checkpoint: Path) -> None:
    table = random_table(0, 20, 2, constrained=False)
    runner = PolicyRunner(checkpoint)
    measured, estimated = (
        runner.scores(policy_graph(Problem.of(replace(table, source=s)))) for s in ("profiled", "analytic")
    )
    assert np.abs(measured - estimated).max() > 1e-3


def test_what_is_saved_is_what_was_given(checkpoint: Path) -> None:
    given, loaded = network_of(SMALL).state_dict(), load_network(checkpoint).state_dict()
    assert list(given) == list(loaded)
    assert all(torch.equal(given[name], loaded[name]) for name in given)
    assert not load_network(checkpoint).training


def test_exporting_leaves_the_network_as_it_was() -> None:
    network = network_of(SMALL).train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    export_network(network)
    assert network.training
    assert all(torch.equal(before[name], value) for name, value in network.state_dict().items())


@pytest.mark.dgl
def test_a_network_that_passes_messages_by_dgl_is_exported_as_bags() -> None:
    network = network_of(SMALL)
    assert collate([policy_graph(Problem.of(random_table(4, 45, 3)))]).implementation == "dgl"
    compiled = compile_network(*export_network(network))
    graph = policy_graph(Problem.of(random_table(4, 45, 3, constrained=False)))
    assert largest_difference(compute_scores(compiled, graph), torch_scores(network, graph)) < 1e-4


def test_weights_are_exported_in_full_precision_and_no_path_is_written(checkpoint: Path) -> None:
    text = (checkpoint / "policy.xml").read_text()
    assert 'element_type="f16"' not in text
    assert 'precision="FP16"' not in text
    assert not re.search(r"(/tmp|/home|/root|\.py\b)", text)


@pytest.mark.parametrize(
    "config", [replace(SMALL, superposition=False), replace(SMALL, layers=SMALL.layers + 1)]
)
def test_variants_of_the_network_are_exported_too(config: NetworkConfig) -> None:
    network = network_of(config)
    compiled = compile_network(*export_network(network))
    graph = policy_graph(Problem.of(random_table(4, 45, 3, constrained=False)))
    assert largest_difference(compute_scores(compiled, graph), torch_scores(network, graph)) < 1e-4


@pytest.mark.parametrize("readers", [[[1, 2], [3]], [[1, 2]], [[3]], []])
def test_units_without_arcs_are_exported_wherever_they_are(readers: list[list[int]]) -> None:
    network = network_of(SMALL)
    compiled = compile_network(*export_network(network))
    table = make_table(np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0], [1.0, 4.0]]),
                       [(0, 1.0, to) for to in readers])  # fmt: skip
    graph = policy_graph(Problem.of(table))
    assert largest_difference(compute_scores(compiled, graph), torch_scores(network, graph)) < 1e-4


@pytest.mark.parametrize("name", ["hsdag", "gdp"])
def test_networks_whose_steps_depend_on_the_graph_are_saved_without_ir(tmp_path: Path, name: str) -> None:
    config = replace(CONFIGS[name], hidden=8, heads=2)
    network = network_of(config)
    assert not can_be_exported(network)
    card = save_checkpoint(tmp_path / name, network, {}, {})
    assert set(card.files) == {"policy.safetensors"}
    assert load_network(tmp_path / name).config == config
    with pytest.raises(CheckpointError, match="runs with torch only"):
        PolicyRunner(tmp_path / name)


def test_a_network_that_tracing_ties_to_one_size_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    original = PairwiseNetwork.scores

    def tied(self, batch):
        scores = original(self, batch)
        return scores + float(len(scores))

    monkeypatch.setattr(PairwiseNetwork, "scores", tied)
    with pytest.raises(CheckpointError, match="differs from the torch network by"):
        export_network(network_of(SMALL))
