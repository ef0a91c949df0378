"""What a network answers, and the distribution over placements that it defines."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["PlacementDistribution", "PolicyOutput"]


@dataclass(frozen=True, eq=False)
class PolicyOutput:
    """Decisions about M rows, each of which places one or more of the N units of B graphs.

    Attributes:
        logits: Preference for each device, ``[M, D]``; minus infinity where a row may not run, which is never
            everywhere.
        row_of: Row that decides for each unit, ``int64[N]``.
        graph_of_row: Graph of each row, ``int64[M]``.
        num_graphs: B.
        state: Where the next step depends on this one (HSDAG): what to pass to the network then,
            ``[N, hidden]``, without gradients.
    """

    logits: Tensor
    row_of: Tensor
    graph_of_row: Tensor
    num_graphs: int
    state: Tensor | None = None


class PlacementDistribution:
    """Placements drawn row by row, independently, from the softmax of the logits."""

    def __init__(self, output: PolicyOutput) -> None:
        self._output = output
        self._log_probability = torch.log_softmax(output.logits, dim=1)

    def greedy(self) -> Tensor:
        """The likeliest placement, ``int64[N]``: a device for each unit."""
        return self._output.logits.argmax(dim=1)[self._output.row_of]

    def sample(self, k: int, generator: torch.Generator) -> Tensor:
        """Draw ``k`` placements, ``int64[k, N]``; no unit ever gets a device that it may not run on.

        Args:
            k: How many.
            generator: Where randomness comes from; it may live on another device than the logits.
        """
        # By inverting the distribution function: a forbidden device adds nothing to it and is never crossed.
        cumulative = self._log_probability.detach().double().exp().cumsum(dim=1)
        rows = len(cumulative)
        uniform = torch.rand(k, rows, generator=generator, device=generator.device, dtype=torch.float64)
        # Rounding must not lift the product to the total, behind which there is no device.
        drawn = uniform.clamp(max=1.0 - 1e-12).to(cumulative.device) * cumulative[:, -1]
        device = (cumulative <= drawn.unsqueeze(2)).sum(dim=2)
        return device[:, self._output.row_of]

    def log_prob(self, actions: Tensor) -> Tensor:
        """Log-probability of placements per graph, ``[k, B]``, the sum over its rows.

        A row's own is the mean over its units. They agree on any placement drawn from this distribution; the
        mean also says something about a placement drawn while units were grouped differently, as when a
        policy is updated more than once on the same placements.

        Args:
            actions: ``int64[k, N]``.
        """
        output = self._output
        chosen = self._log_probability[output.row_of.expand_as(actions), actions]
        units = torch.bincount(output.row_of, minlength=len(output.logits))
        share = chosen / units[output.row_of]
        total = chosen.new_zeros(len(actions), output.num_graphs)
        return total.index_add(1, output.graph_of_row[output.row_of], share)

    def entropy(self) -> Tensor:
        """Entropy in nats per graph, ``[B]``, the mean over its rows."""
        output, log_probability = self._output, self._log_probability
        possible = torch.isfinite(log_probability)
        # Zero instead of minus infinity, whose product with the probability 0 has no gradient.
        surprise = log_probability.masked_fill(~possible, 0.0)
        per_row = -(log_probability.exp() * surprise).sum(dim=1)
        total = per_row.new_zeros(output.num_graphs).index_add(0, output.graph_of_row, per_row)
        return total / torch.bincount(output.graph_of_row, minlength=output.num_graphs).clamp(min=1)
