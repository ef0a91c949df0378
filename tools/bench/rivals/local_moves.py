"""GiPH: a graph network over placement options that learns which single relocation to make next.

Y. Hu et al., "GiPH: Generalizable Placement Learning for Adaptive Heterogeneous Computing", MLSys 2023. The
graph *gpNet* has a node for each option (unit, device). The options that are in force are pivots, and an edge
of the model links the producer's pivot with all options of the consumer and all options of the producer with
the consumer's pivot. Messages run along the edges and, with other weights, against them; each option is
scored, and one that is not in force is drawn: that unit moves. The reward is what this makes the graph
faster. REINFORCE with an average as the baseline.

What differs from the paper: it trains one policy on many graphs and device networks, and is here trained from
scratch on each table. Three rounds of messages take the place of the sweep in topological order. The start-
time potential has no meaning where subgraphs never overlap; the transfers from the producers' present devices
are in its place. Rewards are logarithms of ratios, so that they do not depend on the size of the graph.
Gradient steps are made every 20 moves, and returns end there. An illegal move is taken back and costs 1.
"""

from __future__ import annotations

from math import log

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from rivals.neural import discounted_returns, mean_over_edges, perceptron, seeded, step
from rivals.rival import RivalOptions
from rivals.trials import Trials

_EMBEDDING, _HIDDEN = 10, 16
_ROUNDS = 3
_LEARNING_RATE = 0.01
_DISCOUNT = 0.97
_BASELINE_MEMORY = 0.9
_MOVES_PER_STEP = 20
_MOVES_PER_UNIT = 2  # of an episode
_ILLEGAL = -1.0


def search_local_moves(problem: Problem, options: RivalOptions) -> Trials:
    """Train on one table until the budget is spent; every move is one evaluation.

    Raises:
        PlacementError: The table has no legal placement.
        TrainingError: No legal placement was found to start from.
    """
    trials = Trials(problem, options)
    random = np.random.default_rng(options.seed)
    with seeded(options.seed) as generator:
        policy = _Policy(trials.graph)
        optimizer = torch.optim.Adam(policy.parameters(), lr=_LEARNING_RATE)
        baseline = 0.0
        while trials.left > 0:
            placement, seconds = trials.random_start(random)
            moved = -1
            for _ in range(0, _MOVES_PER_UNIT * len(placement), _MOVES_PER_STEP):
                log_probs: list[Tensor] = []
                rewards: list[float] = []
                while len(rewards) < _MOVES_PER_STEP and trials.left > 0:
                    scores = policy(placement, moved)
                    if not torch.isfinite(scores).any():
                        return trials  # there is nothing else to try
                    log_prob = torch.log_softmax(scores.flatten(), dim=0)
                    option = int(torch.multinomial(log_prob.detach().exp(), 1, generator=generator))
                    moved, device = divmod(option, scores.shape[1])
                    proposed = placement.copy()
                    proposed[moved] = device
                    then = float(trials.seconds(proposed[None])[0])
                    log_probs.append(log_prob[option])
                    rewards.append(_ILLEGAL if then == np.inf else log(seconds / then))
                    if then < np.inf:
                        placement, seconds = proposed, then
                if not rewards:
                    break
                returns = discounted_returns(rewards, _DISCOUNT)
                advantage = torch.from_numpy(returns - baseline).float()
                step(policy, optimizer, [-(torch.stack(log_probs) * advantage).mean()])
                baseline = _BASELINE_MEMORY * baseline + (1 - _BASELINE_MEMORY) * float(returns.mean())
    return trials


class _Policy(nn.Module):
    """Scores every option of one graph."""

    def __init__(self, graph: PolicyGraph) -> None:
        super().__init__()
        self.allowed = torch.from_numpy(graph.allowed.copy())
        self.source = torch.from_numpy(graph.edge_source)
        self.target = torch.from_numpy(graph.edge_target)
        self.price = torch.from_numpy(graph.edge_cost)  # [E, D, D]
        bytes_of = torch.from_numpy(np.log1p(graph.output_bytes) / 10).float()
        self.bytes = bytes_of[self.source]
        cost = torch.from_numpy(graph.node_cost)
        work = cost.mean(dim=1, keepdim=True).expand_as(cost)
        rate = (cost.sum(dim=0) / cost.sum(dim=0).min()).expand_as(cost)
        self.options = torch.stack([work.log1p(), rate.log(), cost.log1p()], dim=2)  # [N, D, 3]
        self.embed = perceptron(5, _HIDDEN, _EMBEDDING)
        self.message = nn.ModuleList(perceptron(_EMBEDDING + 3, _HIDDEN, _EMBEDDING) for _ in range(2))
        self.score = perceptron(2 * _EMBEDDING, _HIDDEN, 1)

    def forward(self, placement: IntArray, moved: int) -> Tensor:
        """Scores of all options, ``[N, D]``; ``-inf`` for pivots, what is not allowed, and unit ``moved``.

        The paper forbids to move the same task twice in a row; so do we unless nothing else can move.
        """
        N, D = self.allowed.shape
        pivot = torch.from_numpy(placement).long()
        is_pivot = nn.functional.one_hot(pivot, D).bool()
        edges = torch.arange(len(self.source))
        received = self.price[edges, pivot[self.source]]  # [E, D]: from the producer's pivot to any option
        sent = self.price[edges, :, pivot[self.target]]  # [E, D]: from any option to the consumer's pivot
        potential = received.new_zeros(N, D).index_add_(0, self.target, received)
        features = torch.cat([self.options, potential.log1p()[..., None], is_pivot.float()[..., None]], dim=2)
        start = self.embed(features).reshape(N * D, _EMBEDDING)
        tail, head, about = self._edges(pivot, received, sent)
        both = []
        for (sender, receiver), message in zip(((tail, head), (head, tail)), self.message, strict=True):
            state = start
            for _ in range(_ROUNDS):
                incoming = message(torch.cat([state[sender], about], dim=1))
                state = (start + mean_over_edges(incoming, receiver, N * D)).relu()
            both.append(state)
        scores: Tensor = self.score(torch.cat(both, dim=1)).reshape(N, D)
        forbidden = ~self.allowed | is_pivot
        if moved >= 0:
            others = forbidden.clone()
            others[moved] = True
            forbidden = forbidden if others.all() else others
        return scores.masked_fill(forbidden, -torch.inf)

    def _edges(self, pivot: Tensor, received: Tensor, sent: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Tail, head and features of the edges between options; an option is ``unit * D + device``."""
        D = self.allowed.shape[1]
        device = torch.arange(D).expand(len(self.source), D)
        from_pivot = (self.source * D + pivot[self.source])[:, None].expand_as(device)
        to_pivot = (self.target * D + pivot[self.target])[:, None].expand_as(device)
        to_any, from_any = self.target[:, None] * D + device, self.source[:, None] * D + device
        # The edge between two pivots is among both.
        once = from_any != from_pivot
        tail = torch.cat([from_pivot.flatten(), from_any[once]])
        head = torch.cat([to_any.flatten(), to_pivot[once]])
        price = torch.cat([received.flatten(), sent[once]])
        size = self.bytes[:, None].expand_as(device)
        about = torch.stack(
            [price.log1p(), torch.cat([size.flatten(), size[once]]), (price > 0).float()], dim=1
        )
        return tail, head, about
