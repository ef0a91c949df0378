"""Minimum cuts at scale: the core's push-relabel beside SciPy's maximum flow, on the same networks.

    python tools/bench/max_flow.py [--nodes 50000] [--repeats 3] [--no-scipy]

Four kinds of networks, all with a price per node and side and prices on the edges of a DAG:

* chain: each node feeds the next and now and then a later one;
* random: two consumers per node, anywhere behind it;
* wide: layers of 1,000 nodes, each read by three of the next layer, edges about as dear as nodes: what makes
  augmenting paths long and many;
* mesh: a square grid with prices both ways, as in images.

Both solvers see the same integers; SciPy's capacities must stay below 2**31, the core's need not.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np
from common import machine_line, print_table

from ov_autoplace import _core

Network = tuple[int, int, int, np.ndarray, np.ndarray, np.ndarray, np.ndarray]
LARGEST = 1_000_000


def edges_of(kind: str, nodes: int, rng: np.random.Generator) -> np.ndarray:
    """Directed edges, ``int[E, 2]``."""
    here = np.arange(nodes)
    if kind == "chain":
        skips = rng.integers(0, nodes - 20, nodes // 10)
        jumps = np.stack([skips, skips + rng.integers(2, 20, len(skips))], axis=1)
        return np.concatenate([np.stack([here[:-1], here[1:]], axis=1), jumps])
    if kind == "random":
        tail = np.repeat(here[:-1], 2)
        return np.stack([tail, tail + 1 + (rng.random(len(tail)) * (nodes - 1 - tail)).astype(int)], axis=1)
    if kind == "wide":
        width = min(1000, nodes // 3)
        tail = np.repeat(here[: nodes - 2 * width], 3)
        return np.stack([tail, (tail // width + 1) * width + rng.integers(0, width, len(tail))], axis=1)
    side = math.isqrt(nodes)
    grid = np.arange(side * side).reshape(side, side)
    across = np.stack([grid[:, :-1].ravel(), grid[:, 1:].ravel()], axis=1)
    return np.concatenate([across, np.stack([grid[:-1].ravel(), grid[1:].ravel()], axis=1)])


def network(kind: str, nodes: int, seed: int) -> Network:
    """A network whose prices on edges are of the size of those on nodes."""
    rng = np.random.default_rng(seed)
    edges = np.unique(edges_of(kind, nodes, rng), axis=0)
    gain = rng.normal(0, 1, nodes) * LARGEST
    source, sink = nodes, nodes + 1
    here = np.arange(nodes)
    both = kind == "mesh"
    price = rng.integers(1, LARGEST, len(edges))
    tail = np.concatenate([np.where(gain > 0, source, here), edges[:, 0]])
    head = np.concatenate([np.where(gain > 0, here, sink), edges[:, 1]])
    forward = np.concatenate([np.abs(gain).astype(np.int64), price])
    backward = np.concatenate([np.zeros(nodes, dtype=np.int64), price if both else price // 3])
    return nodes + 2, source, sink, tail.astype(np.int32), head.astype(np.int32), forward, backward


def by_scipy(nodes: int, source: int, sink: int, tail, head, forward, backward) -> int:
    """The flow's value by SciPy's Dinic, its default."""
    from scipy.sparse import coo_array, csr_array
    from scipy.sparse.csgraph import maximum_flow

    ends = (np.concatenate([tail, head]), np.concatenate([head, tail]))
    matrix = coo_array((np.concatenate([forward, backward]).astype(np.int32), ends), shape=(nodes, nodes))
    return int(maximum_flow(csr_array(matrix), source, sink).flow_value)


def timed(call, repeats: int) -> tuple[int, float, float, float]:
    """The value, and the least, median and largest of the seconds taken."""
    seconds = []
    for _ in range(repeats):
        begin = time.perf_counter()
        value = call()
        seconds.append(time.perf_counter() - begin)
    return value, min(seconds), float(np.median(seconds)), max(seconds)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--nodes", type=int, default=50_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--kinds", nargs="+", default=["chain", "random", "wide", "mesh"])
    parser.add_argument("--no-scipy", action="store_true")
    arguments = parser.parse_args()
    print(machine_line())
    rows = []
    for kind in arguments.kinds:
        for seed in range(2):
            given = network(kind, arguments.nodes, seed)
            value, low, median, high = timed(lambda n=given: _core.minimum_cut(*n)[0], arguments.repeats)
            rows.append([kind, seed, "core", value, f"{median:.3f}", f"{low:.3f}-{high:.3f}"])
            if arguments.no_scipy:
                continue
            other, low, median, high = timed(lambda n=given: by_scipy(*n), 1)
            assert other == value, f"SciPy's flow on {kind} {seed} is {other}, the core's {value}"
            rows.append([kind, seed, "SciPy", other, f"{median:.3f}", f"{low:.3f}-{high:.3f}"])
    columns = ["network", "seed", "solver", "flow", "median s", "range s"]
    print_table(f"{arguments.nodes} nodes", columns, rows)


if __name__ == "__main__":
    main()
