"""Groupers against plain loops that follow the papers' wording."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from policy_batches import batch_of_edges, random_batch

from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.groupers import (
    Contraction,
    GpnGrouper,
    colocated,
    make_grouper,
    uncontracted,
)

pytestmark = pytest.mark.torch

GPN = replace(CONFIGS["hsdag"], hidden=8)


def edges_of(batch: GraphBatch) -> list[tuple[int, int]]:
    return list(zip(batch.topology.source.tolist(), batch.topology.target.tolist(), strict=True))


def sets_of(row_of: torch.Tensor) -> set[frozenset[int]]:
    rows: dict[int, set[int]] = {}
    for unit, row in enumerate(row_of.tolist()):
        rows.setdefault(row, set()).add(unit)
    return {frozenset(units) for units in rows.values()}


def joined(num_nodes: int, pairs: list[tuple[int, int]], allowed: torch.Tensor) -> set[frozenset[int]]:
    """Connected sets; one without a common device is split by what its members may run on."""
    sets = [{n} for n in range(num_nodes)]
    for a, b in pairs:
        first, second = (next(s for s in sets if n in s) for n in (a, b))
        if first is not second:
            sets.remove(second)
            first |= second
    result = set()
    for members in sets:
        masks = [tuple(allowed[n].tolist()) for n in sorted(members)]
        if any(all(column) for column in zip(*masks, strict=True)):
            result.add(frozenset(members))
        else:
            for mask in set(masks):
                result.add(frozenset(n for n in members if tuple(allowed[n].tolist()) == mask))
    return result


def random_states(graph: Contraction, seed: int) -> torch.Tensor:
    return torch.randn(len(graph), 8, generator=torch.Generator().manual_seed(seed), requires_grad=True)


def gpn(seed: int = 0) -> GpnGrouper:
    torch.manual_seed(seed)
    return GpnGrouper(GPN)


@pytest.mark.seeds(8)
def test_colocation_joins_only_children_to_only_parents(seed):
    batch = random_batch([seed, seed + 100], groups=15)
    edges = edges_of(batch)
    pairs = []
    for a, b in edges:
        children = [t for s, t in edges if s == a]
        parents = [s for s, t in edges if t == b]
        if children == [b] and parents == [a] and bool((batch.allowed[a] & batch.allowed[b]).any()):
            pairs.append((a, b))
    assert sets_of(colocated(batch).row_of) == joined(batch.num_nodes, pairs, batch.allowed)


def test_a_parent_of_several_children_is_joined_to_none():
    batch = batch_of_edges(6, [(0, 1), (1, 2), (1, 3), (2, 4), (3, 4), (4, 5)])
    assert sets_of(colocated(batch).row_of) == {frozenset(s) for s in ({0, 1}, {2}, {3}, {4, 5})}
    assert colocated(batch) is colocated(batch)


@pytest.mark.seeds(4)
def test_a_contraction_keeps_every_edge_between_rows_once(seed):
    batch = random_batch([seed, seed + 50])
    graph = colocated(batch)
    row = graph.row_of.tolist()
    expected = {(row[a], row[b]) for a, b in edges_of(batch) if row[a] != row[b]}
    found = list(zip(graph.topology.source.tolist(), graph.topology.target.tolist(), strict=True))
    assert len(found) == len(expected)
    assert set(found) == expected
    assert bool((graph.graph_of_row[graph.row_of] == batch.graph_of).all())
    assert graph.graph_of_row.tolist() == sorted(graph.graph_of_row.tolist())
    firsts = [row.index(r) for r in range(len(graph))]
    assert firsts == sorted(firsts)
    values = torch.randn(batch.num_nodes, 3, generator=torch.Generator().manual_seed(seed))
    for r, mean in enumerate(graph.mean(values)):
        torch.testing.assert_close(mean, values[graph.row_of == r].mean(dim=0))


def test_a_chain_without_a_common_device_is_split_by_devices():
    chain = [(0, 1), (1, 2), (2, 3)]
    batch = batch_of_edges(4, chain, allowed=["0", "01", "1", "01"])
    graph = colocated(batch)
    assert sets_of(graph.row_of) == {frozenset(s) for s in ({0}, {1, 3}, {2})}
    assert graph.allowed.tolist() == [[True, False], [True, True], [False, True]]
    apart = batch_of_edges(4, chain, allowed=["01", "0", "1", "01"])
    assert sets_of(colocated(apart).row_of) == {frozenset(s) for s in ({0, 1}, {2, 3})}


@pytest.mark.parametrize("name", ["none", "colocation"])
def test_without_the_parsing_network_rows_are_those_that_the_encoder_saw(name):
    batch = random_batch([1])
    grouper = make_grouper(replace(GPN, grouper=name))
    graph = grouper.coarsen(batch)
    assert graph.row_of.equal((uncontracted if name == "none" else colocated)(batch).row_of)
    z = random_states(graph, 0)
    grouping = grouper(z, graph)
    assert grouping.z_rows is z
    assert grouping.row_of.equal(graph.row_of)
    assert grouping.allowed.equal(graph.allowed)
    assert grouping.state is None


@pytest.mark.seeds(6)
def test_the_parsing_network_keeps_the_best_edge_of_every_row(seed):
    batch = random_batch([seed, seed + 20])
    grouper = gpn(seed)
    graph = grouper.coarsen(batch)
    z = random_states(graph, seed)
    grouping = grouper(z, graph)
    with torch.no_grad():
        normed = grouper.norm(z)
        ends = list(zip(graph.topology.source.tolist(), graph.topology.target.tolist(), strict=True))
        score = [float(torch.sigmoid(grouper.score(normed[a] * normed[b]))) for a, b in ends]
        pooled_inputs = grouper.before_pooling(normed)
        assert grouping.link_score.tolist() == pytest.approx(score, abs=1e-6)
        kept = set()
        for row in range(len(graph)):
            incident = [
                e
                for e, (a, b) in enumerate(ends)
                if row in (a, b) and bool((graph.allowed[a] & graph.allowed[b]).any())
            ]
            if incident:
                kept.add(max(incident, key=lambda e: score[e]))
        clusters = joined(len(graph), [ends[e] for e in kept], graph.allowed)
        units = {frozenset(u for u, row in enumerate(graph.row_of.tolist()) if row in c): c for c in clusters}
        assert sets_of(grouping.row_of) == set(units)
        for members, rows in units.items():
            row = int(grouping.row_of[min(members)])
            links = [score[e] for e in kept if ends[e][0] in rows and ends[e][1] in rows]
            strength = sum(links) / len(links) * len(links) if links else 1.0
            pooled = grouper.after_pooling(pooled_inputs[sorted(rows)].sum(dim=0))
            torch.testing.assert_close(grouping.z_rows[row], pooled * strength, atol=1e-4, rtol=1e-4)


def test_no_row_is_left_without_a_device_and_units_of_two_graphs_never_share_one():
    for seed in range(20):
        batch = random_batch([seed, seed + 200, seed + 400], devices=3)
        grouper = gpn(seed)
        graph = grouper.coarsen(batch)
        grouping = grouper(random_states(graph, seed), graph)
        assert bool(grouping.allowed.any(dim=1).all())
        for row in range(len(grouping.allowed)):
            members = grouping.row_of == row
            assert grouping.allowed[row].equal(batch.allowed[members].all(dim=0))
            assert set(batch.graph_of[members].tolist()) == {int(grouping.graph_of_row[row])}


def test_the_parsing_network_does_not_join_a_whole_graph():
    # Every node has two children and two parents, so that co-location joins nothing beforehand.
    edges = [(n, n + step) for n in range(100) for step in (1, 2) if n + step < 100]
    batch = batch_of_edges(100, edges)
    grouper = gpn()
    graph = grouper.coarsen(batch)
    rows = [len(grouper(random_states(graph, seed), graph).allowed) for seed in range(5)]
    assert all(10 < count <= 50 for count in rows)


def test_gradients_reach_the_edge_scores():
    grouper, batch = gpn(), random_batch([3])
    graph = grouper.coarsen(batch)
    z = random_states(graph, 4)
    grouper(z, graph).z_rows.square().sum().backward()
    assert all(float(p.grad.abs().max()) > 0 for p in grouper.score.parameters())
    assert float(z.grad.abs().max()) > 0


def test_the_state_adds_up_what_the_rows_of_each_unit_were():
    grouper, batch = gpn(), random_batch([5])
    graph = grouper.coarsen(batch)
    first = grouper(random_states(graph, 0), graph)
    second = grouper(random_states(graph, 1), graph, first.state)
    expected = first.z_rows[first.row_of] + second.z_rows[second.row_of]
    torch.testing.assert_close(second.state, expected)
    assert not second.state.requires_grad


def test_rows_without_edges_stay_by_themselves():
    batch = batch_of_edges(3, [(0, 1)])
    grouper = gpn()
    graph = uncontracted(batch)
    grouping = grouper(random_states(graph, 0), graph)
    assert grouping.row_of.tolist() == [0, 0, 1]
    assert bool(grouping.z_rows[1].abs().max() > 0)


def test_a_graph_is_grouped_alike_alone_and_among_others():
    grouper = gpn()
    together, alone = random_batch([5, 6, 7]), random_batch([6], groups=23)
    among = together.graph_of == 1
    states = torch.randn(together.num_nodes, 8, generator=torch.Generator().manual_seed(0))
    graph, graph_alone = uncontracted(together), uncontracted(alone)
    grouping, grouping_alone = grouper(states, graph), grouper(states[among], graph_alone)
    rows = grouping.graph_of_row == 1
    torch.testing.assert_close(grouping.z_rows[rows], grouping_alone.z_rows)
    own = grouping.row_of[among]
    assert torch.equal(own - own.min(), grouping_alone.row_of)
