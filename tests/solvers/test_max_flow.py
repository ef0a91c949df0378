"""The core's maximum flow against SciPy's, and its cuts against their own value."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from ov_autoplace import _core

PER_SEED = 100


def random_network(rng: np.random.Generator):
    """Sparse to dense, small to large capacities (many equal), parallel and opposite arcs, loops."""
    nodes = int(rng.integers(2, 30))
    arcs = int(rng.integers(0, 6 * nodes))
    source, sink = (int(i) for i in rng.choice(nodes, 2, replace=False))
    tail, head = rng.integers(0, nodes, (2, arcs), dtype=np.int32)
    largest = int(10 ** rng.uniform(0, 7))
    forward, backward = rng.integers(0, largest + 1, (2, arcs))
    backward[rng.random(arcs) < 0.6] = 0
    return nodes, source, sink, tail, head, forward, backward


def scipy_flow(nodes, source, sink, tail, head, forward, backward) -> int:
    ends = (np.concatenate([tail, head]), np.concatenate([head, tail]))
    matrix = coo_array((np.concatenate([forward, backward]).astype(np.int32), ends), shape=(nodes, nodes))
    return int(maximum_flow(csr_array(matrix), source, sink).flow_value)


def cut_value(side, tail, head, forward, backward) -> int:
    side = side.astype(bool)
    leaves, enters = side[tail] & ~side[head], side[head] & ~side[tail]
    return int(forward[leaves].sum() + backward[enters].sum())


def check(network) -> None:
    _, source, sink, *arcs = network
    flow, smallest, largest = _core.minimum_cut(*network)
    assert flow == scipy_flow(*network)
    for side in (smallest, largest):
        assert side[source]
        assert not side[sink]
        assert cut_value(side, *arcs) == flow
    assert (smallest <= largest).all()


@pytest.mark.seeds(30)
def test_flows_equal_scipys_and_cuts_have_the_flows_value(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(PER_SEED):
        check(random_network(rng))


@pytest.mark.seeds(6)
def test_large_layered_networks_equal_scipys(seed: int) -> None:
    # Long ways and many equal capacities: relabelling, gaps and global relabelling all take part.
    rng = np.random.default_rng(seed)
    width, depth = int(rng.integers(2, 40)), int(rng.integers(10, 60))
    inner = width * depth
    tail = np.repeat(np.arange(inner - width), 3)
    head = (tail // width + 1) * width + rng.integers(0, width, len(tail))
    first, last = np.arange(width), np.arange(inner - width, inner)
    tail = np.concatenate([np.full(width, inner), tail, last]).astype(np.int32)
    head = np.concatenate([first, head, np.full(width, inner + 1)]).astype(np.int32)
    forward = rng.integers(1, 5, len(tail)) * int(10 ** rng.integers(0, 6))
    backward = np.where(rng.random(len(tail)) < 0.3, forward, 0)
    check((inner + 2, inner, inner + 1, tail, head, forward, backward))


@pytest.mark.seeds(5)
def test_smallest_and_largest_source_sides_bound_every_minimum_cut(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(40):
        nodes, source, sink, tail, head, forward, backward = random_network(rng)
        if nodes > 9:
            continue
        forward, backward = forward % 4, backward % 4  # ties, so that there are several minimum cuts
        flow, smallest, largest = _core.minimum_cut(nodes, source, sink, tail, head, forward, backward)
        sides = np.array(list(np.ndindex(*[2] * nodes)), dtype=np.uint8)
        sides = sides[(sides[:, source] == 1) & (sides[:, sink] == 0)]
        values = np.array([cut_value(side, tail, head, forward, backward) for side in sides])
        assert values.min() == flow
        minimum = sides[values == flow]
        assert (minimum.min(axis=0) == smallest).all()
        assert (minimum.max(axis=0) == largest).all()


def test_capacities_far_above_32_bits_are_exact() -> None:
    ends = (np.array([0, 1], dtype=np.int32), np.array([1, 2], dtype=np.int32))
    forward = np.array([2**61 + 3, 2**60 + 1], dtype=np.int64)
    flow, smallest, largest = _core.minimum_cut(3, 0, 2, *ends, forward, np.zeros(2, dtype=np.int64))
    assert flow == 2**60 + 1
    assert smallest.tolist() == largest.tolist() == [1, 1, 0]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"sink": 0}, "two nodes"),
        ({"source": 3}, "two nodes"),
        ({"nodes": -1}, "two nodes"),
        ({"head": [1, 3]}, "arc 1 names a node"),
        ({"tail": [-1, 1]}, "arc 0 names a node"),
        ({"forward": [1, -1]}, "arc 1 has a negative capacity"),
        ({"forward": [2**63 - 1, 1], "backward": [1, 0]}, "more than 2"),
        ({"tail": [0, 0], "forward": [2**62, 2**62]}, "more than 2"),
        ({"head": [1]}, "head has 1 entries instead of 2"),
    ],
)
def test_networks_that_are_none_are_refused(changes: dict, sentence: str) -> None:
    arguments = {"nodes": 3, "source": 0, "sink": 2, "tail": [0, 1], "head": [1, 2]}
    arguments |= {"forward": [1, 1], "backward": [0, 0]} | changes
    for name in ("tail", "head"):
        arguments[name] = np.array(arguments[name], dtype=np.int32)
    for name in ("forward", "backward"):
        arguments[name] = np.array(arguments[name], dtype=np.int64)
    with pytest.raises(ValueError, match=sentence):
        _core.minimum_cut(**arguments)
