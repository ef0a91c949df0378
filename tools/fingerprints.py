"""Whether two families of graphs have the same structure, whatever their names and sizes are.

Chains are contracted to one node, so that depth does not count. Then every node is labelled with what is
around it: its numbers of neighbours (4 and more are alike) and, twice, the labels of those before and behind
it (B. Weisfeiler, A. Leman, "The reduction of a graph to canonical form", 1968), each kind once, so that
width does not count either. A family's fingerprint is how often each label occurs.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

import numpy as np

from ov_autoplace._base.arrays import rows_of
from ov_autoplace.training.workload import Workload

_ROUNDS = 2
_MOST = 4  # neighbours that are told apart


def fingerprint(workloads: Iterable[Workload]) -> Counter[str]:
    """How often each kind of surroundings occurs in some graphs."""
    return Counter(label for workload in workloads for label in _labels(workload))


def seen_share(family: Counter[str], others: Counter[str]) -> float:
    """Share of a family's nodes whose surroundings occur in other graphs too, 0 to 1."""
    return sum(n for label, n in family.items() if label in others) / max(family.total(), 1)


def similarity(first: Counter[str], second: Counter[str]) -> float:
    """The larger of the two shares of nodes whose surroundings the other family has too, 0 to 1."""
    return max(seen_share(first, second), seen_share(second, first))


def _labels(workload: Workload) -> list[str]:
    """One label per node of the graph without its chains."""
    before, behind = _without_chains(workload)
    labels = [f"{min(len(a), _MOST)}>{min(len(b), _MOST)}" for a, b in zip(before, behind, strict=True)]
    for _ in range(_ROUNDS):
        labels = [
            _digest(labels[i], {labels[j] for j in before[i]}, {labels[j] for j in behind[i]})
            for i in range(len(labels))
        ]
    return labels


def _digest(own: str, before: set[str], behind: set[str]) -> str:
    text = f"{own}|{','.join(sorted(before))}|{','.join(sorted(behind))}"
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _without_chains(workload: Workload) -> tuple[list[set[int]], list[set[int]]]:
    """What each node reads and what reads it, every chain being one node."""
    tensor = rows_of(workload.tensor_offsets)
    moves = ~workload.tensor_is_constant[tensor]
    edges = np.stack([workload.tensor_producer[tensor], workload.tensor_consumers], axis=1)[moves]
    edges = np.unique(edges, axis=0)
    groups = len(workload)
    leaving, entering = (np.bincount(edges[:, side], minlength=groups) for side in (0, 1))
    head = np.arange(groups)
    for source, target in edges[np.argsort(edges[:, 1], kind="stable")].tolist():
        if leaving[source] == 1 and entering[target] == 1:
            head[target] = head[source]  # groups are in topological order
    nodes, node_of = np.unique(head, return_inverse=True)
    before: list[set[int]] = [set() for _ in nodes]
    behind: list[set[int]] = [set() for _ in nodes]
    for source, target in node_of[edges].tolist():
        if source != target:
            before[target].add(source)
            behind[source].add(target)
    return before, behind
