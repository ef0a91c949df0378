"""How long a training step takes on DGL's kernels and on torch's bags: the same network, weights and graphs.

A step collates a batch, which for DGL includes making its graphs, and runs the network forwards and
backwards. The two take turns. Beside the whole step, the kernels alone: what each unit and group of the
batch hears, with gradients.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import torch

from harness.result import Result, Table
from ov_autoplace.policy.config import config_named
from ov_autoplace.policy.features import PolicyGraph, policy_graph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.messages import IMPLEMENTATIONS, aggregate_edges, source_plus
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.targets import RandomTargets, random_task

__all__ = ["run"]

_WIDTH = 48  # of what the kernels alone carry per device


def run(
    quick: bool,
    seed: int,
    threads: tuple[int, ...] = (1, 2),
    sizes: tuple[str, ...] = ("16x90", "2x783"),
    repeats: int = 30,
) -> Result:
    """One row per batch, part and number of threads.

    Args:
        quick: A fifth of the repeats.
        seed: Of graphs, machines and weights.
        threads: Of torch and of DGL.
        sizes: Of batches: graphs x groups of each.
        repeats: Pairs of runs per row.
    """
    repeats = max(repeats // 5, 3) if quick else repeats
    before, rows = torch.get_num_threads(), []
    try:
        for size in sizes:
            graphs = _graphs(*(int(number) for number in size.split("x")), seed)
            for count in threads:
                torch.set_num_threads(count)
                for part, make in (("training step", _step), ("kernels alone", _kernels)):
                    rows.append((size, part, count, *_compared(make(graphs, seed), repeats)))
    finally:
        torch.set_num_threads(before)
    columns = ("graphs x groups", "part", "threads", "bag ms", "DGL ms", "DGL / bag", "5-95 %")
    table = Table("Passing messages while training, medians", columns, rows)
    return Result("Message passing by DGL and by torch", (table,))


def _graphs(count: int, groups: int, seed: int) -> list[PolicyGraph]:
    random = np.random.default_rng(seed)
    targets = RandomTargets()
    families = [RANDOM_FAMILIES[i % len(RANDOM_FAMILIES)] for i in range(count)]
    workloads = [random_workload(family, groups, seed + i) for i, family in enumerate(families)]
    tables = [random_task(workload, random, targets, devices=2).true for workload in workloads]
    return [policy_graph(Problem.of(table)) for table in tables]


def _step(graphs: list[PolicyGraph], seed: int) -> Callable[[str], None]:
    network = make_network(config_named("autoplace-base"), seed)

    def step(implementation: str) -> None:
        network.zero_grad()
        network(collate(graphs, implementation)).unit_scores.mean().backward()

    return step


def _kernels(graphs: list[PolicyGraph], seed: int) -> Callable[[str], None]:
    batches = {name: collate(graphs, name) for name in IMPLEMENTATIONS}
    batch = batches["bag"]
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(*batch.node_cost.shape, _WIDTH, generator=generator, requires_grad=True)
    values = torch.randn(*batch.arc_features.shape[:2], _WIDTH, generator=generator, requires_grad=True)

    def passed(implementation: str) -> None:
        arcs = batches[implementation].arcs
        x.grad = values.grad = None
        aggregate_edges(arcs, torch.relu(source_plus(arcs, x, values))).mean().backward()

    return passed


def _compared(run_once: Callable[[str], None], repeats: int) -> tuple[str, ...]:
    """Median milliseconds of both, and the median ratio of neighbours with its spread."""
    seconds = np.empty((repeats, len(IMPLEMENTATIONS)))
    for i in range(-2, repeats):
        for column, implementation in enumerate(IMPLEMENTATIONS):
            start = time.perf_counter()
            run_once(implementation)
            seconds[i, column] = time.perf_counter() - start
    ratio = seconds[:, 1] / seconds[:, 0]
    low, high = np.percentile(ratio, (5, 95))
    bag, dgl = 1e3 * np.median(seconds, axis=0)
    return f"{bag:.1f}", f"{dgl:.1f}", f"{np.median(ratio):.2f}", f"{low:.2f}-{high:.2f}"
