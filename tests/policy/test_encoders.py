"""Encoders against dense matrices and plain loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from policy_batches import batch_of_edges, random_batch

from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.networks.encoders import GcnEncoder, SageEncoder, make_encoder, unit_inputs
from ov_autoplace.policy.networks.groupers import colocated, uncontracted

pytestmark = pytest.mark.torch

GCN = replace(CONFIGS["hsdag"], hidden=8, layers=2)
SAGE = replace(CONFIGS["gdp"], hidden=8, layers=2)


def encoder_of(config: NetworkConfig, seed: int = 0) -> torch.nn.Module:
    torch.manual_seed(seed)
    return make_encoder(config).eval()


def layer_norm(z: np.ndarray) -> np.ndarray:
    return (z - z.mean(1, keepdims=True)) / np.sqrt(z.var(1, keepdims=True) + 1e-5)


def test_a_convolution_with_equal_weights_is_the_symmetric_one_of_the_paper():
    batch = random_batch([1, 2])
    graph = uncontracted(batch)
    encoder = encoder_of(GCN)
    assert isinstance(encoder, GcnEncoder)
    adjacency = np.eye(batch.num_nodes)
    for a, b in zip(batch.topology.source.tolist(), batch.topology.target.tolist(), strict=True):
        adjacency[a, b] += 1
        adjacency[b, a] += 1
    degree = adjacency.sum(axis=1)
    normalised = adjacency / np.sqrt(degree[:, None] * degree)
    with torch.no_grad():
        z = encoder.transform(unit_inputs(batch, GCN)).numpy()
        for convolution in encoder.convolutions:
            for other in (convolution.producers, convolution.consumers):
                other.weight.copy_(convolution.own.weight)
            weight, bias = convolution.own.weight.numpy(), convolution.own.bias.numpy()
            z = np.maximum(normalised @ z @ weight.T + bias, 0)
        np.testing.assert_allclose(encoder(batch, graph).numpy(), layer_norm(z), atol=1e-4)


def test_a_sage_layer_takes_the_maximum_over_producers_and_over_consumers():
    batch = random_batch([3, 4])
    encoder = encoder_of(replace(SAGE, layers=1))
    assert isinstance(encoder, SageEncoder)
    with torch.no_grad():
        z = torch.relu(encoder.enter(unit_inputs(batch, SAGE)))
        layer = encoder.layers[0]
        pooled = torch.relu(layer.pool(z)).numpy()
        heard = np.zeros((batch.num_nodes, 16))
        for a, b in zip(batch.topology.source.tolist(), batch.topology.target.tolist(), strict=True):
            heard[b, :8] = np.maximum(heard[b, :8], pooled[a, :8])
            heard[a, 8:] = np.maximum(heard[a, 8:], pooled[b, 8:])
        merged = np.concatenate([z.numpy(), heard], axis=1)
        expected = np.maximum(merged @ layer.merge.weight.numpy().T + layer.merge.bias.numpy(), 0)
        np.testing.assert_allclose(encoder(batch, uncontracted(batch)).numpy(), expected, atol=1e-5)


@pytest.mark.parametrize("config", [GCN, SAGE], ids=["gcn", "sage"])
def test_producers_and_consumers_are_told_apart(config):
    batch = batch_of_edges(2, [(0, 1)])
    batch.node_features.zero_()  # so that only the direction of the edge is left to tell them apart
    z = encoder_of(config)(batch, uncontracted(batch))
    assert float((z[0] - z[1]).detach().abs().max()) > 1e-3


@pytest.mark.parametrize("config", [GCN, SAGE], ids=["gcn", "sage"])
def test_a_graph_is_encoded_alike_alone_and_among_others(config):
    encoder = encoder_of(config)
    together = random_batch([5, 6, 7])
    z = encoder(together, uncontracted(together))
    alone = random_batch([6], groups=23)
    torch.testing.assert_close(encoder(alone, uncontracted(alone)), z[together.graph_of == 1])


@pytest.mark.parametrize("config", [GCN, SAGE], ids=["gcn", "sage"])
def test_op_types_are_read_where_the_configuration_says_so(config):
    def changed(config: NetworkConfig, field: str) -> bool:
        encoder, batch = encoder_of(config), random_batch([10])
        before = encoder(batch, uncontracted(batch))
        getattr(batch, field)[:] += 1
        return not torch.equal(encoder(batch, uncontracted(batch)), before)

    assert changed(config, "node_features")
    assert changed(config, "op_type")
    assert not changed(replace(config, op_types=False), "op_type")


@pytest.mark.parametrize("config", [GCN, SAGE], ids=["gcn", "sage"])
def test_rows_of_a_coarsened_graph_get_the_mean_of_inputs_and_of_earlier_states(config):
    batch = batch_of_edges(4, [(0, 1), (1, 2), (1, 3)])  # 0 and 1 are joined
    graph = colocated(batch)
    assert graph.row_of.tolist() == [0, 0, 1, 2]
    encoder = encoder_of(config)
    state = torch.randn(4, 8, generator=torch.Generator().manual_seed(0))
    rows = torch.stack([(state[0] + state[1]) / 2, state[2], state[3]])
    torch.testing.assert_close(encoder(batch, graph, state), encoder(batch, graph) + rows)
    swapped = batch.node_features[[1, 0, 2, 3]].clone()
    before = encoder(batch, graph)
    batch.node_features.copy_(swapped)
    torch.testing.assert_close(encoder(batch, graph), before)


@pytest.mark.parametrize("config", [GCN, SAGE], ids=["gcn", "sage"])
def test_dropout_is_for_training_only(config):
    batch = random_batch([11])
    encoder = encoder_of(replace(config, dropout=0.5))
    assert torch.equal(encoder(batch, uncontracted(batch)), encoder(batch, uncontracted(batch)))
    encoder.train()
    assert not torch.equal(encoder(batch, uncontracted(batch)), encoder(batch, uncontracted(batch)))
