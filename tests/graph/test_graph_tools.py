"""The graph helpers of the C++ core, against SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from ov_autoplace import _core
from ov_autoplace._base.arrays import IntArray


def random_edges(random: np.random.Generator, n: int, count: int) -> IntArray:
    return random.integers(n, size=(count, 2)).astype(np.int32)


def scipy_components(n: int, edges: IntArray, connection: str) -> IntArray:
    matrix = coo_array((np.ones(len(edges)), (edges[:, 0], edges[:, 1])), shape=(n, n))
    return connected_components(matrix, directed=True, connection=connection)[1]


def same_partition(a: IntArray, b: IntArray) -> bool:
    return len(set(zip(a.tolist(), b.tolist(), strict=True))) == len(set(a.tolist())) == len(set(b.tolist()))


@pytest.mark.seeds(30)
def test_connected_labels_are_scipys_components_numbered_by_first_appearance(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 40))
    pairs = random_edges(random, n, int(random.integers(0, n)))
    labels = _core.connected_labels(n, pairs)
    assert same_partition(labels, scipy_components(n, pairs, "weak"))
    assert list(dict.fromkeys(labels.tolist())) == list(range(labels.max() + 1))


@pytest.mark.seeds(60)
def test_merge_cycles_joins_exactly_the_strong_components_of_the_contracted_graph(seed: int) -> None:
    random = np.random.default_rng(seed)
    n = int(random.integers(1, 30))
    classes = int(random.integers(1, n + 1))
    labels = _core.connected_labels(n, random_edges(random, n, n - classes))
    edges = random_edges(random, n, int(random.integers(0, 2 * n)))
    merged = _core.merge_cycles(labels, edges)

    strong = scipy_components(int(labels.max()) + 1, labels[edges].reshape(-1, 2), "strong")
    assert same_partition(merged, strong[labels])
    assert set(merged.tolist()) == set(range(merged.max() + 1))
    assert all(merged[a] <= merged[b] for a, b in edges), "numbers are a topological order"


def test_merge_cycles_breaks_ties_by_the_smallest_member() -> None:
    labels = np.array([2, 0, 1, 2], dtype=np.int32)  # classes {1}, {2}, {0, 3}, no edge between them
    assert _core.merge_cycles(labels, np.empty((0, 2), np.int32)).tolist() == [0, 1, 2, 0]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda edges: _core.connected_labels(2, edges), "edge 0 names node 5; the graph has 2"),
        (lambda edges: _core.merge_cycles(np.zeros(2, np.int32), edges), "edge 0 names node 5"),
        (lambda _: _core.connected_labels(-1, np.empty((0, 2), np.int32)), "negative"),
        (lambda _: _core.merge_cycles(np.array([3], np.int32), np.empty((0, 2), np.int32)), "label 3"),
    ],
)
def test_nodes_that_do_not_exist_are_refused(call, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        call(np.array([[0, 5]], dtype=np.int32))
