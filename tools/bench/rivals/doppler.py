"""DOPPLER: one policy that selects the next node of the graph, and one that places it.

X. Yao et al., "DOPPLER: Dual-Policy Learning for Device Assignment in Asynchronous Dataflow Graphs", ICLR
2026. An episode goes through the graph as a list scheduler does. Of the nodes whose producers are all placed,
the policy *SEL* draws one: it reads the node's embedding and the means of the embeddings on the longest way
to it and from it. The policy *PLC* draws its device: it reads the node's embedding, those of what the device
has already, and how busy the device is, when the inputs arrive there and when the node could start. Messages
are passed once for an episode and not at every step. Both policies first imitate a list scheduler (the ready
node with the longest way to the end, where it finishes first) and then learn by REINFORCE from the simulator.

What differs from the paper: its third stage, on the machine itself, has the same rewards as the second where
the simulator is the judge, so it is left out. Episodes come in tens, whose mean is the baseline. Rewards are
logarithms of ratios, so that they do not depend on the size of the graph. Devices are unequal here, so that a
device is also described by the time that the node takes there. What does not fit into memory is masked.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from rivals.neural import mean_over_edges, perceptron, seeded, step
from rivals.rival import RivalOptions
from rivals.trials import Trials

__all__ = ["search_doppler"]

_HIDDEN = 32
_ROUNDS = 2
_EPISODES = 10  # of an update
_IMITATED = 40  # updates
_IMITATING_RATE, _LEARNING_RATE = 1e-2, 3e-3
_EXPLORED = 0.1  # share of uniform choices at first, which falls to nothing
_FAILING = 100.0  # times the best single device
_DEVICE_FEATURES = 5


def search_doppler(problem: Problem, options: RivalOptions) -> Trials:
    """Train on one table until the budget is spent; every episode is one evaluation.

    Raises:
        PlacementError: The table has no legal placement.
    """
    trials = Trials(problem, options)
    with seeded(options.seed) as generator:
        walk = _Walk(trials.graph)
        policy = _Policy(trials.graph, walk)
        optimizer = torch.optim.Adam(policy.parameters(), lr=_IMITATING_RATE)
        for _ in range(_IMITATED):
            episodes = walk.episodes(policy, _EPISODES, generator, imitates=True)
            step(policy, optimizer, [-episodes.log_prob.mean()])
        optimizer = torch.optim.Adam(policy.parameters(), lr=_LEARNING_RATE)
        while trials.left > 0:
            explored = _EXPLORED * trials.left / options.evaluations
            episodes = walk.episodes(policy, min(_EPISODES, trials.left), generator, explored)
            seconds = trials.seconds(episodes.device)
            reward = -np.log(np.minimum(seconds / trials.reference_seconds, _FAILING))
            advantage = torch.from_numpy((reward - reward.mean()) / (reward.std() + 1e-6)).float()
            step(policy, optimizer, [-(advantage * episodes.log_prob).mean()])
    return trials


@dataclass(frozen=True, slots=True)
class _Episodes:
    """Devices of N nodes in k episodes, ``int32[k, N]``, and how probable all choices were, ``[k]``."""

    device: IntArray
    log_prob: Tensor


class _Walk:
    """Goes through one graph node by node, with k episodes side by side."""

    def __init__(self, graph: PolicyGraph) -> None:
        # What shares a device may wait for each other in a cycle: the walk follows the order of the units.
        ahead = graph.edge_source < graph.edge_target
        source, target, cost = graph.edge_source[ahead], graph.edge_target[ahead], graph.edge_cost[ahead]
        N, E = len(graph), len(source)
        self.seconds = graph.node_cost.astype(np.float64)
        self.allowed = graph.allowed
        lengths = np.bincount(target, minlength=N)
        columns = np.arange(E) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        # Edges into each node, filled up with one more edge that costs nothing, from a node that needs none.
        self.edges = np.full((N, int(lengths.max(initial=0))), E)
        self.edges[target, columns] = np.arange(E)
        self.source = np.append(source, N)
        D = graph.num_devices
        self.price = np.concatenate([cost.astype(np.float64), np.zeros((1, D, D))])
        self.reads = np.zeros((N, N), dtype=np.int64)  # by consumer and producer
        self.reads[target, source] = 1
        mean = np.where(self.allowed, self.seconds, 0).sum(axis=1) / self.allowed.sum(axis=1)
        hop = cost.mean(axis=(1, 2)).astype(np.float64)
        self.below, self.way_out = _longest(source, target, hop, mean)
        self.above, self.way_in = _longest(target, source, hop, mean)
        units = graph.problem.units
        self.bytes, self.capacity, self.device_of = (
            units.packing_bytes,
            units.memory_capacity,
            units.device_of,
        )

    def episodes(
        self,
        policy: _Policy,
        count: int,
        generator: torch.Generator,
        explored: float = 0.0,
        imitates: bool = False,
    ) -> _Episodes:
        """Place all nodes ``count`` times as the policies draw.

        With ``imitates``, ``log_prob`` is that of what the list scheduler would do at every step, so that the
        policies learn what to do in states that their own mistakes lead to.
        """
        (N, D), k = self.allowed.shape, np.arange(count)
        embedded, score = policy.select()
        device = np.full((count, N + 1), 0, dtype=np.int32)
        finish, free, load = np.zeros((count, N + 1)), np.zeros((count, D)), np.zeros((count, D))
        room = np.tile(self.capacity, (count, 1))
        waits = np.tile(self.reads.sum(axis=1), (count, 1))
        is_placed = np.zeros((count, N), dtype=np.bool_)
        held = torch.zeros(count, D, _HIDDEN)
        log_prob = torch.zeros(count)
        for _ in range(N):
            ready = (waits == 0) & ~is_placed
            wanted = np.where(ready, self.below, -1.0).argmax(axis=1) if imitates else None
            node, chance = _drawn(score.expand(count, N), ready, wanted, explored, generator)
            edges = self.edges[node]  # [k, most]
            producer = self.source[edges]
            sent = self.price[edges, device[k[:, None], producer]]  # [k, most, D]
            arrival = (finish[k[:, None], producer][:, :, None] + sent).max(axis=1, initial=0.0)
            start = np.maximum(arrival, free)
            may = self._may(node, room)
            end = np.where(may, start + self.seconds[node], np.inf)
            wanted = end.argmin(axis=1) if imitates else None
            seen = np.stack([self.seconds[node], load, sent.sum(axis=1), arrival, start], axis=2)
            logits = policy.place(embedded, node, held, seen)
            chosen, where = _drawn(logits, may, wanted, explored, generator)
            log_prob = log_prob + chance + where
            finish[k, node] = free[k, chosen] = start[k, chosen] + self.seconds[node, chosen]
            load[k, chosen] += self.seconds[node, chosen]
            device[k, node] = chosen
            room -= (self.device_of == self.device_of[chosen][:, None]) * self.bytes[node][:, None]
            is_placed[k, node] = True
            waits -= self.reads[:, node].T
            taken = nn.functional.one_hot(torch.from_numpy(chosen).long(), D).float()
            held = held + taken[:, :, None] * embedded[torch.from_numpy(node).long()][:, None, :]
        return _Episodes(device[:, :N], log_prob)

    def _may(self, node: IntArray, room: FloatArray) -> BoolArray:
        """Which devices each node may go to, ``bool[k, D]``; where all are full, those that can run it."""
        can = self.allowed[node]
        fits = can & (self.bytes[node][:, None] <= room)
        return np.asarray(np.where(fits.any(axis=1, keepdims=True), fits, can))


def _drawn(
    logits: Tensor,
    may: BoolArray,
    wanted: IntArray | None,
    explored: float,
    generator: torch.Generator,
) -> tuple[IntArray, Tensor]:
    """One column of each row, ``int[k]``, and the logarithm of its or the wanted one's probability, ``[k]``.

    Args:
        logits: ``[k, n]``.
        may: What can be drawn, ``bool[k, n]``.
        wanted: What should be drawn, ``int[k]``; ``None`` = whatever is.
        explored: With this probability all that can be drawn are equally probable.
        generator: Draws.
    """
    mask = torch.from_numpy(may)
    probability = logits.masked_fill(~mask, -torch.inf).softmax(dim=1)
    probability = (1 - explored) * probability + explored * mask / mask.sum(dim=1, keepdim=True)
    taken = torch.multinomial(probability.detach(), 1, generator=generator)
    judged = taken if wanted is None else torch.from_numpy(wanted.astype(np.int64))[:, None]
    return taken[:, 0].numpy(), probability.gather(1, judged)[:, 0].clamp(min=1e-12).log()


def _longest(
    near: IntArray, far: IntArray, hop: FloatArray, mean: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """The longest way from each node along edges from ``near`` to ``far``, all of which go in one direction.

    Returns:
        Its length with both ends, ``float64[N]``, and which nodes (columns) are on it, ``float32[N, N]``.
    """
    length, on_way = mean.copy(), np.eye(len(mean), dtype=np.float32)
    edges: dict[int, list[int]] = {}
    for e, node in enumerate(near.tolist()):
        edges.setdefault(node, []).append(e)
    # The far end of an edge is known before its near one.
    for node in sorted(edges, reverse=bool((far > near).all())):
        after, e = max((hop[e] + length[far[e]], e) for e in edges[node])
        length[node] += after
        on_way[node] += on_way[far[e]]
    return length, on_way


class _Policy(nn.Module):
    """Scores nodes for being next, and devices for a node."""

    def __init__(self, graph: PolicyGraph, walk: _Walk) -> None:
        super().__init__()
        self.source = torch.from_numpy(graph.edge_source)
        self.target = torch.from_numpy(graph.edge_target)
        hop = graph.edge_cost.mean(axis=(1, 2))
        sent = np.bincount(graph.edge_source, hop, len(graph))
        received = np.bincount(graph.edge_target, hop, len(graph))
        mean = np.where(walk.allowed, walk.seconds, 0).sum(axis=1) / walk.allowed.sum(axis=1)
        self.typical = float(mean.mean()) or 1.0
        known = np.stack([mean, sent, received, walk.above, walk.below], axis=1)
        self.features = torch.from_numpy(known / known.max(axis=0).clip(min=1e-12)).float()
        self.ways = torch.from_numpy(np.concatenate([walk.way_in, walk.way_out])).float()
        self.embed = perceptron(known.shape[1], _HIDDEN, _HIDDEN)
        self.message = nn.ModuleList(perceptron(_HIDDEN, _HIDDEN, _HIDDEN) for _ in range(2))
        self.select_node = perceptron(3 * _HIDDEN + known.shape[1], _HIDDEN, 1)
        self.select_device = perceptron(2 * _HIDDEN + _DEVICE_FEATURES, _HIDDEN, 1)

    def select(self) -> tuple[Tensor, Tensor]:
        """Embedding of every node, ``[N, H]``, and how much it wants to be next, ``[N]``."""
        N = len(self.features)
        state = self.embed(self.features)
        for _ in range(_ROUNDS):
            along = mean_over_edges(self.message[0](state)[self.source], self.target, N)
            against = mean_over_edges(self.message[1](state)[self.target], self.source, N)
            state = (state + along + against).relu()
        ways = self.ways @ state / self.ways.sum(dim=1, keepdim=True)
        told = torch.cat([state, ways[:N], ways[N:], self.features], dim=1)
        return state, self.select_node(told)[:, 0]

    def place(self, embedded: Tensor, node: IntArray, held: Tensor, seen: FloatArray) -> Tensor:
        """Logits of D devices for one node of each of k episodes, ``[k, D]``.

        Args:
            embedded: Of all nodes, ``[N, H]``.
            node: ``int[k]``.
            held: Sum of the embeddings of what each device has, ``[k, D, H]``.
            seen: Times of the node and of the devices, ``float64[k, D, 5]``.
        """
        own = embedded[torch.from_numpy(node).long()][:, None, :].expand(-1, held.shape[1], -1)
        # By how much each device is worse than the best, in times of a typical node.
        times = torch.from_numpy((seen - seen.min(axis=1, keepdims=True)) / self.typical).float().log1p()
        logits: Tensor = self.select_device(torch.cat([own, held / len(embedded), times], dim=2))[..., 0]
        return logits
