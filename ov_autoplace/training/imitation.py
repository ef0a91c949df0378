"""Learning from a teacher: cross-entropy with its answer, and the expected latency of the policy's own.

The teacher's label alone says that a wrong device is wrong, but not what it costs. The expected latency of
independent draws says what it costs, and is differentiable: it is the relaxed objective of the solvers with
probabilities in place of decisions (as in N. Karalias, A. Loukas, "Erdos Goes Neural", NeurIPS 2020).
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ov_autoplace.policy.batch import GraphBatch

__all__ = ["expected_seconds", "imitation_loss"]


def imitation_loss(
    answers: Sequence[Tensor],
    batch: GraphBatch,
    label: Tensor,
    expected_cost: float,
    early_rounds: float,
    importance: Tensor | None = None,
) -> tuple[Tensor, dict[str, float]]:
    """Mean loss over the graphs of a batch, and what it is made of.

    Args:
        answers: Scores after each of the network's rounds, ``[N, D]`` each; the last one counts fully.
        batch: The graphs.
        label: The teacher's device of each unit, ``int64[N]``.
        expected_cost: Weight of the logarithm of expected over the teacher's relaxed latency.
        early_rounds: Weight of all answers but the last.
        importance: Weight of each graph, ``[B]``; equal when absent.
    """
    share = torch.ones(batch.num_graphs) if importance is None else importance
    share = share / share.sum()
    wanted = functional.one_hot(label, batch.num_devices).to(torch.float32)
    reference = expected_seconds(batch, wanted)
    total = torch.zeros(())
    for i, scores in enumerate(answers):
        log_probability = torch.log_softmax(scores, dim=1)
        wrong = -log_probability.gather(1, label.unsqueeze(1)).squeeze(1)
        cross_entropy = (_mean_per_graph(batch, wrong) * share).sum()
        # The relaxed objective does not see that HETERO cuts subgraphs that wait for each other in a circle.
        # The teacher does, so there is nothing to win below its own relaxed latency. Tables that are
        # estimates differ from what the teacher saw; only its answer counts there.
        excess = torch.log(expected_seconds(batch, log_probability.exp()) / reference).clamp(min=0)
        excess = (excess * (1 - batch.is_estimate) * share).sum()
        weight = 1.0 if i == len(answers) - 1 else early_rounds
        total = total + weight * (cross_entropy + expected_cost * excess)
    metrics = {"loss": total.item(), "cross_entropy": cross_entropy.item(), "excess": excess.item()}
    return total, metrics


def expected_seconds(batch: GraphBatch, probability: Tensor) -> Tensor:
    """Expected relaxed latency per graph, in units of the graph's scale, ``[B]``.

    Units are drawn independently. A tensor with several consumers is paid for once per receiving device;
    edges know only the two extremes, all consumers together or all apart, of which the mean is taken.

    Args:
        batch: The graphs.
        probability: Of each unit and device, ``[N, D]``.
    """
    own = (probability * batch.node_cost).sum(dim=1)
    sender, receiver = probability[batch.edge_source], probability[batch.edge_target]
    price = torch.einsum("ea,eab,eb->e", sender, batch.edge_cost, receiver)
    price = price * (0.5 + 0.5 * batch.edge_share)
    total = torch.zeros(batch.num_graphs).index_add(0, batch.graph_of, own)
    return total.index_add(0, batch.graph_of[batch.edge_source], price)


def _mean_per_graph(batch: GraphBatch, values: Tensor) -> Tensor:
    """Mean over the units of each graph, ``[B]``, so that large graphs do not drown small ones."""
    sums = torch.zeros(batch.num_graphs).index_add(0, batch.graph_of, values)
    return sums / (batch.node_offsets[1:] - batch.node_offsets[:-1])
