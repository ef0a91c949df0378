"""Placers and superposition: what a row's logits depend on, and what they cost."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from policy_batches import random_batch

from ov_autoplace.errors import OptionError
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.networks import placers
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.groupers import Grouping
from ov_autoplace.policy.networks.network import superposition_parameters
from ov_autoplace.policy.networks.placers import AttentionPlacer, MlpPlacer, make_placer

pytestmark = pytest.mark.torch

MLP = replace(CONFIGS["hsdag"], hidden=8)
ATTENTION = replace(CONFIGS["gdp"], hidden=8, heads=2, segment=4, placer_layers=2, superposition=False)


def placer_of(config: NetworkConfig, seed: int = 0) -> MlpPlacer | AttentionPlacer:
    torch.manual_seed(seed)
    return make_placer(config)


def every_unit(batch: GraphBatch, seed: int = 0) -> Grouping:
    z = torch.randn(batch.num_nodes, 8, generator=torch.Generator().manual_seed(seed))
    return Grouping(torch.arange(batch.num_nodes), batch.graph_of, batch.allowed, z)


def plain_attention(placer: AttentionPlacer, rows: torch.Tensor) -> torch.Tensor:
    """Logits of one graph, segment by segment, with the cache of Transformer-XL."""
    segments = list(rows.split(placer.segment))
    for layer in placer.layers:
        cache = None
        result = []
        for x in segments:
            own = layer.norm(x)
            seen = own if cache is None else torch.cat([cache, own])
            keys, values = layer.key_value(seen).chunk(2, dim=1)
            heads = []
            for q, k, v in zip(
                *(t.chunk(layer.heads, dim=1) for t in (layer.query(own), keys, values)), strict=True
            ):
                heads.append(torch.softmax(q @ k.T / q.shape[1] ** 0.5, dim=1) @ v)
            y = x + layer.merge(torch.cat(heads, dim=1))
            result.append(y + layer.feed_forward(y))
            cache = own.detach()
        segments = result
    return placer.decide(placer.norm(torch.cat(segments)))


def test_the_mlp_decides_row_by_row():
    batch, placer = random_batch([1, 2]), placer_of(MLP)
    grouping = every_unit(batch)
    logits = placer(grouping.z_rows, batch, grouping)
    assert logits.shape == (batch.num_nodes, 2)
    changed = grouping.z_rows.clone()
    changed[3] += 1
    differs = (placer(changed, batch, grouping) != logits).any(dim=1)
    assert differs.nonzero().flatten().tolist() == [3]


@pytest.mark.parametrize("segment", [1, 4, 7, 128])
def test_attention_equals_the_segment_by_segment_computation_of_transformer_xl(segment):
    batch = random_batch([1, 2, 3], groups=11)
    placer = placer_of(replace(ATTENTION, segment=segment))
    grouping = every_unit(batch)
    logits = placer(grouping.z_rows, batch, grouping)
    weights = torch.randn(logits.shape, generator=torch.Generator().manual_seed(7))
    (logits * weights).sum().backward()
    gradients = [parameter.grad.clone() for parameter in placer.parameters()]
    placer.zero_grad()
    own = [batch.graph_of == b for b in range(batch.num_graphs)]
    expected = torch.cat([plain_attention(placer, grouping.z_rows[rows]) for rows in own])
    torch.testing.assert_close(logits, expected, atol=1e-5, rtol=1e-4)
    (expected * weights).sum().backward()
    for gradient, parameter in zip(gradients, placer.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, atol=1e-4, rtol=1e-3)


def test_a_row_sees_as_many_segments_back_as_there_are_layers_and_never_another_graph():
    batch = random_batch([4, 5, 6], groups=24)
    placer = placer_of(ATTENTION)
    grouping = every_unit(batch)
    logits = placer(grouping.z_rows, batch, grouping)
    second = (batch.graph_of == 1).nonzero()
    offset, end = int(second.min()), int(second.max()) + 1
    for row in (0, 6, 13):
        changed = grouping.z_rows.clone()
        changed[offset + row] = torch.linspace(-2, 2, 8)
        differs = (placer(changed, batch, grouping) != logits).any(dim=1).nonzero().flatten() - offset
        segment = row // 4
        reach = range(segment * 4, min((segment + 3) * 4, end - offset))
        assert set(differs.tolist()) == set(reach)


def test_no_gradient_passes_from_one_segment_to_the_one_before():
    batch = random_batch([7], groups=24)
    placer = placer_of(ATTENTION)
    grouping = every_unit(batch)
    z = grouping.z_rows.requires_grad_()
    placer(z, batch, grouping)[8:12].sum().backward()
    assert (z.grad != 0).any(dim=1).nonzero().flatten().tolist() == [8, 9, 10, 11]


def test_attention_costs_grow_linearly_with_the_rows(monkeypatch):
    sizes = []
    real = torch.nn.functional.scaled_dot_product_attention

    def spy(query, key, value, **rest):
        sizes.append(query.shape[0] * query.shape[2] * key.shape[2])
        return real(query, key, value, **rest)

    monkeypatch.setattr(placers.functional, "scaled_dot_product_attention", spy)
    placer = placer_of(ATTENTION)
    for groups in (50, 100, 200):
        batch = random_batch([8], groups=groups)
        sizes.clear()
        grouping = every_unit(batch)
        placer(grouping.z_rows, batch, grouping)
        rows = batch.num_nodes
        assert len(sizes) == 2
        assert max(sizes) <= (rows + 3) * 2 * 4


@pytest.mark.parametrize("config", [MLP, ATTENTION], ids=["mlp", "attention"])
def test_superposition_starts_as_the_network_without_it_and_changes_it_when_trained_alone(config):
    batch = random_batch([9, 10])
    grouping = every_unit(batch)
    placer, plain = placer_of(replace(config, superposition=True)), placer_of(config)
    unknown = plain.load_state_dict(placer.state_dict(), strict=False).unexpected_keys
    assert unknown
    assert all(name.startswith("superposition.") for name in unknown)
    before = plain(grouping.z_rows, batch, grouping)
    assert torch.equal(placer(grouping.z_rows, batch, grouping), before)

    own = superposition_parameters(placer)
    assert {id(p) for p in own} == {id(p) for p in placer.superposition.parameters()}
    assert superposition_parameters(plain) == []
    optimizer = torch.optim.Adam(own, lr=0.05)
    losses = []
    for _ in range(20):
        optimizer.zero_grad()
        logits = placer(grouping.z_rows, batch, grouping)
        loss = torch.nn.functional.cross_entropy(logits, batch.graph_of)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0] - 0.02
    assert torch.equal(plain(grouping.z_rows, batch, grouping), before)


def test_superposition_multiplies_the_input_of_every_layer_by_the_graphs_own_factors():
    batch = random_batch([11, 12])
    grouping = every_unit(batch)
    placer = placer_of(replace(MLP, superposition=True))
    torch.nn.init.normal_(placer.superposition.condition[2].weight)
    factors = placer.superposition(batch)
    assert factors.shape == (2, 8)
    assert not torch.equal(factors[0], factors[1])
    of_row = factors[batch.graph_of]
    expected = placer.second(of_row * torch.relu(placer.first(of_row * grouping.z_rows)))
    torch.testing.assert_close(placer(grouping.z_rows, batch, grouping), expected)
    alone = random_batch([11])
    torch.testing.assert_close(placer.superposition(alone)[0], factors[0])


def test_superposition_enters_every_attention_layer():
    batch = random_batch([11, 12])
    grouping = every_unit(batch)
    placer = placer_of(replace(ATTENTION, superposition=True))
    torch.nn.init.normal_(placer.superposition.condition[2].weight)
    of_row = placer.superposition(batch)[batch.graph_of]
    seen = []
    for part in (*placer.layers, placer.norm):
        part.register_forward_hook(lambda _, args, out: seen.append((args[0], out)))
    placer(grouping.z_rows, batch, grouping)
    inputs, outputs = [x for x, _ in seen], [grouping.z_rows, *(y for _, y in seen)]
    for x, y in zip(inputs, outputs, strict=False):
        torch.testing.assert_close(x, of_row * y)
    assert len(inputs) == 3


def test_widths_that_do_not_fit_are_refused():
    with pytest.raises(OptionError, match="multiple of heads"):
        make_placer(replace(ATTENTION, hidden=9))
