"""Learning from a teacher: cross-entropy with its answer, and the expected latency of the policy's own.

The teacher's label alone says that a wrong device is wrong, but not what it costs. The expected latency of
independent draws says what it costs, and is differentiable: it is the relaxed objective of the solvers with
probabilities in place of decisions (as in N. Karalias, A. Loukas, "Erdos Goes Neural", NeurIPS 2020). Where
the policy sees estimates, costs are the true ones: the mean over many truths is what hedging has to lower.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor
from torch.nn import functional

from ov_autoplace.policy.networks.batch import GraphBatch

__all__ = ["expected_seconds", "imitation_loss"]


def imitation_loss(
    answers: Sequence[Tensor],
    batch: GraphBatch,
    label: Tensor,
    expected_cost: float,
    early_rounds: float,
    importance: Tensor | None = None,
    truth: GraphBatch | None = None,
    estimate_labels: float = 1.0,
) -> tuple[Tensor, dict[str, float]]:
    """Mean loss over the graphs of a batch, and what it is made of.

    Args:
        answers: Scores after each of the network's rounds, ``[N, D]`` each; the last one counts fully.
        batch: The graphs.
        label: The teacher's device of each unit, ``int64[N]``.
        expected_cost: Weight of the logarithm of expected over the teacher's relaxed latency.
        early_rounds: Weight of all answers but the last.
        importance: Weight of each graph, ``[B]``; equal when absent.
        truth: The same graphs with the true costs; ``batch`` when absent.
        estimate_labels: Weight of the cross-entropy where the policy sees an estimate. The teacher has seen
            the truth, so there its answer is one of many that would be right.
    """
    truth = truth or batch
    share = torch.ones(batch.num_graphs) if importance is None else importance
    share = share / share.sum()
    wanted = functional.one_hot(label, batch.num_devices).to(torch.float32)
    reference = expected_seconds(truth, wanted)
    trusted = 1 - (1 - estimate_labels) * batch.is_estimate
    total = torch.zeros(())
    for i, scores in enumerate(answers):
        log_probability = torch.log_softmax(scores, dim=1)
        wrong = -log_probability.gather(1, label.unsqueeze(1)).squeeze(1)
        cross_entropy = (_mean_per_graph(batch, wrong) * trusted * share).sum()
        # The relaxed objective does not see that HETERO cuts subgraphs that wait for each other in a cycle.
        # The teacher does, so there is nothing to win below its own relaxed latency.
        excess = torch.log(expected_seconds(truth, log_probability.exp()) / reference).clamp(min=0)
        excess = (excess * share).sum()
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
