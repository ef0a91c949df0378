"""A network of a few hundred parameters, for tests of training."""

from __future__ import annotations

import numpy as np
import torch
from torch import nn

from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.networks.batch import collate
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.environment import Environment


class SmallNetwork(nn.Module):
    """Two layers on each unit's own features; ``state`` is a copy of what the last call computed."""

    def __init__(self, features: int, devices: int = 2, hidden: int = 16, dropout: float = 0.0) -> None:
        super().__init__()
        self.hidden = nn.Linear(features, hidden)
        self.dropout = nn.Dropout(dropout)
        self.out = nn.Linear(hidden, devices)
        self.seen_states: list[torch.Tensor | None] = []

    @classmethod
    def for_batch(cls, batch, seed: int, dropout: float = 0.0) -> SmallNetwork:
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            return cls(_features(batch).shape[1], batch.allowed.shape[1], dropout=dropout)

    def forward(self, batch, state=None) -> PolicyOutput:
        self.seen_states.append(state)
        hidden = torch.tanh(self.hidden(_features(batch)))
        if state is not None:
            hidden = hidden + state
        logits = self.out(self.dropout(hidden)).masked_fill(~batch.allowed, -torch.inf)
        return PolicyOutput(
            logits=logits,
            row_of=torch.arange(len(logits)),
            graph_of_row=batch.graph_of,
            num_graphs=batch.num_graphs,
            state=0.1 * hidden,
        )


def _features(batch) -> torch.Tensor:
    costs = torch.from_numpy(np.concatenate([graph.node_cost for graph in batch.graphs]))
    compared = costs - costs.mean(dim=1, keepdim=True)
    return torch.cat([batch.node_features, costs, compared], dim=1).float()


def problem(*tables):
    problems = [Problem.of(table) for table in tables]
    return Environment(problems), collate([PolicyGraph.of(problem) for problem in problems])


def parameters(network):
    return [p.detach().clone() for p in network.parameters()]
