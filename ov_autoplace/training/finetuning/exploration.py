"""Draws from a policy that is too sure of itself: hotter ones, in which groups of units move together.

Independent draws of hundreds of units are of no use at a high temperature: each unit that leaves its
neighbours costs transfers, so no such placement is worth a measurement. What is worth one moves whole
regions, and first those that the policy is least sure of.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.training.finetuning.settings import FinetuneSettings

__all__ = ["Exploration", "explore", "is_novel", "work_shares"]


@dataclass(slots=True)
class Exploration:
    """How far the proposals for one model stray from the policy.

    Attributes:
        steps: How often the temperature was raised since something promising was found.
        idle: Rounds in a row, at the highest temperature, that brought nothing new to measure.
    """

    steps: int = 0
    idle: int = 0

    def temperature(self, settings: FinetuneSettings) -> float:
        """What logits are divided by in the next round; 1 = the policy as it is."""
        # So many doublings are beyond any bound, and do not overflow.
        return float(min(settings.hottest, settings.heating ** min(self.steps, 64)))

    def note(self, settings: FinetuneSettings, fresh: bool, promising: bool, moving: bool) -> None:
        """Take account of a round.

        Args:
            settings: The hyper-parameters.
            fresh: It brought something new to measure.
            promising: Something new was faster than everything before.
            moving: The policy's likeliest placement was not measured yet, so it is still on its way to
                something.
        """
        if promising:
            self.steps = 0
        elif not fresh:
            hottest = self.temperature(settings) >= settings.hottest
            self.idle = self.idle + 1 if hottest and not moving else 0
            self.steps += not hottest
            return
        self.idle = 0


def explore(
    output: PolicyOutput,
    coarser: Sequence[NDArray[np.int64]],
    k: int,
    temperature: float,
    generator: torch.Generator,
) -> Tensor:
    """Draw placements of one graph at up to some temperature, with one noise for all units of a group.

    Each draw has a temperature of its own, between 1 and ``temperature`` (uniform in the logarithm), and one
    of the graph's groupings, from single decisions up to the whole graph. A decision falls for the device
    with the largest ``logit / temperature + noise``, where the noise is Gumbel's and common to its group.
    That is the Gumbel-max trick: each decision alone is drawn from the policy's softmax at that temperature.
    Only the dependence between them is new: in a group, those of which the policy is about equally sure
    move together, and the least sure ones first.

    Args:
        output: The policy's answer for one graph.
        coarser: That graph's groupings, each ``int64[N]``.
        k: How many.
        temperature: The highest, at least 1.
        generator: Where randomness comes from.

    Returns:
        Device of each unit, ``int64[k, N]``; never one that the unit may not run on.
    """
    groupings = _groupings(output, coarser)
    logits = output.logits.detach().double()
    D = logits.shape[1]
    drawn = []
    for _ in range(k):
        chance = torch.rand(2, generator=generator, dtype=torch.float64).tolist()
        groups, group_of_row = groupings[int(chance[0] * len(groupings))]
        uniform = torch.rand(groups, D, generator=generator, dtype=torch.float64)
        gumbel = -torch.log(-torch.log(uniform.clamp(1e-300, 1.0 - 1e-16)))
        row = (logits / temperature ** chance[1] + gumbel[group_of_row]).argmax(dim=1)
        drawn.append(row[output.row_of])
    return torch.stack(drawn)


def _groupings(output: PolicyOutput, coarser: Sequence[NDArray[np.int64]]) -> list[tuple[int, Tensor]]:
    """Numbers of groups and the group of each of the M rows, ``int64[M]``, the finest grouping first.

    A row that decides for several units belongs to the group of its first one.
    """
    rows = len(output.logits)
    N = len(output.row_of)
    first = torch.full((rows,), N).scatter_reduce(0, output.row_of, torch.arange(N), "amin")
    found = [(rows, torch.arange(rows))]
    for label in coarser:
        groups = int(label.max(initial=-1)) + 1
        if groups < found[-1][0]:  # small graphs repeat their coarsest grouping
            found.append((groups, torch.from_numpy(label)[first]))
    return found


def work_shares(table: CostTable) -> FloatArray:
    """Share of each group in the time of all, averaged over the devices that can run it, ``float64[G]``."""
    seconds = np.where(table.supported, table.op_seconds, 0.0).sum(axis=1)
    mean = seconds / np.maximum(table.supported.sum(axis=1), 1)
    total = float(mean.sum())
    if total <= 0:
        return np.full(len(mean), 1.0 / max(len(mean), 1))
    return np.asarray(mean / total)


def is_novel(assignment: IntArray, known: Sequence[IntArray], shares: FloatArray, least: float) -> bool:
    """Whether a placement moves at least so large a share of the work against every one that is known.

    Args:
        assignment: Device of each group, ``int32[G]``.
        known: Placements like it.
        shares: :func:`work_shares`.
        least: The smallest share.
    """
    if not known:
        return True
    moved = (np.stack(known) != assignment) @ shares
    return bool(moved.min() >= least)
