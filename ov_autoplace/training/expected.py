"""What independent draws from a policy would cost, differentiable: one relaxation per objective.

These are the relaxed objectives of the solvers with probabilities in place of decisions (as in N. Karalias,
A. Loukas, "Erdos Goes Neural", NeurIPS 2020).

* ``hetero``: seconds of the ops and of the transfers, one after the other.
* ``rate``: seconds of the busiest device, which pays for the transfers that it receives.
* ``overlap``: the seconds of the busiest lane in every window of time (:mod:`ov_autoplace.policy.timing`),
  one window after the other, and transfers as far as they are on a longest way.

The busiest device is a p-norm over the devices, so that more than one of them has a gradient.
"""

from __future__ import annotations

import torch
from torch import Tensor

from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.messages import aggregate_edges

__all__ = ["expected_overfill", "expected_seconds"]

_NORM = 8.0
_FORGIVEN = 12.0  # a transfer whose ends could wait for a twelfth of the longest way counts a third


def expected_seconds(batch: GraphBatch, probability: Tensor) -> Tensor:
    """Expected relaxed seconds per graph by its objective, in units of its scale, ``[B]``.

    Units are drawn independently. A tensor with several consumers is paid for once per receiving device;
    edges know only the two extremes, all consumers together or all apart, of which the mean is taken.

    Args:
        batch: The graphs.
        probability: Of each unit and device, ``[N, D]``.
    """
    own = probability * batch.node_cost
    sender, receiver = probability[batch.edge_source], probability[batch.edge_target]
    arriving = torch.einsum("ea,eab,eb->eb", sender, batch.edge_cost, receiver)
    arriving = arriving * (0.5 + 0.5 * batch.edge_share).unsqueeze(1)
    graph_of_edge = batch.graph_of[batch.edge_source]
    seconds = _by_graph(batch, own.sum(dim=1), batch.graph_of)
    seconds = seconds + _by_graph(batch, arriving.sum(dim=1), graph_of_edge)
    objectives = [graph.objective for graph in batch.graphs]
    for objective, relaxed in (("rate", _busiest_seconds), ("overlap", _window_seconds)):
        if objective in objectives:
            chosen = torch.tensor([name == objective for name in objectives])
            seconds = torch.where(chosen, relaxed(batch, own, arriving), seconds)
    return seconds


def expected_overfill(batch: GraphBatch, probability: Tensor) -> Tensor:
    """Bytes on the fullest device beyond its capacity, by that capacity, ``[B]``."""
    held = probability.new_zeros(batch.num_graphs, batch.num_devices)
    held = held.index_add(0, batch.graph_of, probability * batch.memory_share)
    held = torch.matmul(held.unsqueeze(1), batch.same_device).squeeze(1)
    return (held - 1.0).clamp(min=0.0).amax(dim=1)


def _busiest_seconds(batch: GraphBatch, own: Tensor, arriving: Tensor) -> Tensor:
    load = own.new_zeros(batch.num_graphs, batch.num_devices)
    load = load.index_add(0, batch.graph_of, own)
    return _largest(load.index_add(0, batch.graph_of[batch.edge_target], arriving))


def _window_seconds(batch: GraphBatch, own: Tensor, arriving: Tensor) -> Tensor:
    load = aggregate_edges(batch.windows, own[batch.window_children], "sum")
    graph_of_window = torch.zeros(len(load), dtype=torch.int64)
    graph_of_window[batch.window_of] = batch.graph_of
    seconds = _by_graph(batch, _largest(load), graph_of_window)
    slack = batch.unit_features[:, 2].clamp(min=0.0)
    waiting = torch.maximum(slack[batch.edge_source], slack[batch.edge_target])
    paid = arriving.sum(dim=1) * torch.exp(-_FORGIVEN * waiting)
    return seconds + _by_graph(batch, paid, batch.graph_of[batch.edge_source])


def _largest(load: Tensor) -> Tensor:
    """The largest of each row, softly."""
    top = load.detach().amax(dim=1, keepdim=True).clamp(min=1e-9)
    share = (load / top).clamp(min=1e-6)
    return top.squeeze(1) * share.pow(_NORM).sum(dim=1).pow(1.0 / _NORM)


def _by_graph(batch: GraphBatch, values: Tensor, graph_of: Tensor) -> Tensor:
    return values.new_zeros(batch.num_graphs).index_add(0, graph_of, values)
