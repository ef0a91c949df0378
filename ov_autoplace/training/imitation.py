"""Learning from a teacher: cross-entropy with its answer, and the expected latency of the policy's own.

The teacher's label alone says that a wrong device is wrong, but not what it costs. The expected latency of
independent draws (:mod:`ov_autoplace.training.expected`) says what it costs, and is differentiable. Where the
policy sees estimates, costs are the true ones: the mean over many truths is what hedging has to lower.

Copies of a device have no identity: an answer with two of them exchanged is the same answer. So the label is
taken with those copies exchanged that make it likeliest for the policy (an assignment problem per graph).
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from torch import Tensor
from torch.nn import functional

from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.training.expected import expected_overfill, expected_seconds

__all__ = ["imitation_loss", "likeliest_label"]

_FORBIDDEN = 1e12


def imitation_loss(
    scores: Tensor,
    batch: GraphBatch,
    label: Tensor,
    expected_cost: float,
    truth: GraphBatch | None = None,
    estimate_labels: float = 1.0,
    overfill: float = 1.0,
) -> tuple[Tensor, dict[str, float]]:
    """Mean loss over the graphs of a batch, and what it is made of.

    Args:
        scores: The network's, ``[N, D]``.
        batch: The graphs.
        label: The teacher's device of each unit, ``int64[N]``.
        expected_cost: Weight of the logarithm of expected over the teacher's relaxed latency.
        truth: The same graphs with the true costs; ``batch`` when absent.
        estimate_labels: Weight of the cross-entropy where the policy sees an estimate. The teacher has seen
            the truth, so there its answer is one of many that would be right.
        overfill: Weight of the expected bytes beyond a device's capacity, by that capacity.
    """
    label = likeliest_label(batch, scores, label)
    truth = truth or batch
    wanted = functional.one_hot(label, batch.num_devices).to(torch.float32)
    reference = expected_seconds(truth, wanted)
    trusted = 1 - (1 - estimate_labels) * batch.is_estimate
    log_probability = torch.log_softmax(scores, dim=1)
    wrong = -log_probability.gather(1, label.unsqueeze(1)).squeeze(1)
    cross_entropy = (_mean_per_graph(batch, wrong) * trusted).mean()
    # The relaxed objective does not see that HETERO cuts subgraphs that wait for each other in a cycle.
    # The teacher does, so there is nothing to win below its own relaxed latency.
    probability = log_probability.exp()
    excess = torch.log(expected_seconds(truth, probability) / reference).clamp(min=0).mean()
    beyond = expected_overfill(batch, probability).mean()
    total = cross_entropy + expected_cost * excess + overfill * beyond
    metrics = {
        "loss": total.item(),
        "cross_entropy": cross_entropy.item(),
        "excess": excess.item(),
        "overfill": beyond.item(),
    }
    return total, metrics


def likeliest_label(batch: GraphBatch, scores: Tensor, label: Tensor) -> Tensor:
    """The label with copies of a device exchanged so that scores make it likeliest, ``int64[N]``.

    Args:
        batch: The graphs.
        scores: ``[N, D]``.
        label: The teacher's device of each unit, ``int64[N]``.
    """
    copied = [bool(np.isfinite(graph.copy_phase).any()) for graph in batch.graphs]
    if not any(copied):
        return label
    log_probability = torch.log_softmax(scores.detach(), dim=1).double().numpy()
    result = label.numpy().copy()
    spans = pairwise(batch.node_offsets.tolist())
    for graph, is_copied, (a, b) in zip(batch.graphs, copied, spans, strict=True):
        if is_copied:
            result[a:b] = _exchanged(graph.copy_of, log_probability[a:b], result[a:b])
    return torch.from_numpy(result)


def _exchanged(
    copy_of: NDArray[np.int64], log_probability: NDArray[np.float64], label: NDArray[np.int64]
) -> NDArray[np.int64]:
    """One graph's label with copies exchanged."""
    D = len(copy_of)
    gain = np.zeros((D, D))
    np.add.at(gain, label, log_probability)
    other = np.where(copy_of[:, None] == copy_of, -gain, _FORBIDDEN)
    _, exchanged = linear_sum_assignment(other)
    return np.asarray(exchanged[label], dtype=np.int64)


def _mean_per_graph(batch: GraphBatch, values: Tensor) -> Tensor:
    """Mean over the units of each graph, ``[B]``, so that large graphs do not drown small ones."""
    sums = torch.zeros(batch.num_graphs).index_add(0, batch.graph_of, values)
    return sums / (batch.node_offsets[1:] - batch.node_offsets[:-1])
