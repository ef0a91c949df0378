"""Pieces that the learned rivals share."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import FloatArray

_MOST_NORM = 1.0


def perceptron(width: int, hidden: int, out: int) -> nn.Sequential:
    """Two layers with a ReLU between them."""
    return nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, out))


def mean_over_edges(messages: Tensor, target: Tensor, num_nodes: int) -> Tensor:
    """Mean of the messages ``[..., E, H]`` that arrive at each node, ``[..., N, H]``; 0 where none does."""
    *batch, _, width = messages.shape
    total = messages.new_zeros(*batch, num_nodes, width).index_add_(-2, target, messages)
    count = messages.new_zeros(num_nodes).index_add_(0, target, messages.new_ones(len(target)))
    return total / count.clamp(min=1)[:, None]


def discounted_returns(rewards: list[float], discount: float) -> FloatArray:
    """Sum of each reward and all later ones, each worth ``discount`` of the one before, ``float64[T]``."""
    returns = np.array(rewards, dtype=np.float64)
    for t in range(len(returns) - 2, -1, -1):
        returns[t] += discount * returns[t + 1]
    return returns


def step(network: nn.Module, optimizer: torch.optim.Optimizer, losses: Iterable[Tensor]) -> None:
    """One gradient step down the sum of the losses, with a gradient of norm 1 at most.

    Each loss is let go before the next one is asked for, so that they may be many.
    """
    optimizer.zero_grad(set_to_none=True)
    for loss in losses:
        loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_(network.parameters(), _MOST_NORM)
    optimizer.step()


@contextmanager
def seeded(seed: int) -> Iterator[torch.Generator]:
    """Parameters drawn inside depend on the seed alone; so does what is sampled with the generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield torch.Generator().manual_seed(seed)
