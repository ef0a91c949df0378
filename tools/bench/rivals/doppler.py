"""DOPPLER: one policy that selects the next node of the graph, and one that places it.

X. Yao et al., "DOPPLER: Dual-Policy Learning for Device Assignment in Asynchronous Dataflow Graphs", ICLR
2026 (arXiv 2505.23131), and what its published programs do. An episode goes through the graph as a list
scheduler does. Of the nodes whose producers are all placed, the policy *SEL* selects one: it reads the node's
features and embedding and the sums of the embeddings on the longest way to it and from it. The policy *PLC*
selects its device: it reads the node's features and embedding, the sum of the embeddings of what the device
has already, how busy the device is, the inputs that are there, and when the node could start. Each policy has
a graph network of its own, whose messages are passed once for an episode and not at every step. Both take
what they score highest, and anything else with a probability that falls to nothing. They first imitate a list
scheduler (the ready node with the longest way to the end, where it can start first), and then learn by
REINFORCE from the simulator; the baseline is the mean of all episodes so far.

What differs: the third stage, on the machine itself, has the same rewards as the second where the simulator
is the judge, so it is left out. Episodes come in tens between two updates, and there are fewer of them that
imitate. Messages are plain means over edges, not those of a gated network that reads edges. Rewards are
logarithms of ratios, so that they do not depend on the size of the graph. Devices are unequal here, so the
list scheduler puts a node where it ends first, and a device is also described by the time that the node
takes there. What does not fit into memory is masked.
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

_HIDDEN = 64
_ROUNDS = 6
_EPISODES = 10  # of an update
_IMITATED = 40  # updates
_IMITATING_RATE, _LEARNING_RATE = 1e-3, 1e-4
_IMITATING_EXPLORED, _EXPLORED = 1.0, 0.2  # share of uniform choices at first, which falls to nothing
_DISCOUNT = 0.99  # of the reward, for each step before the last
_FAILING = 100.0  # times the best single device
_DEVICE_FEATURES = 6


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
        for i in range(_IMITATED):
            explored = _IMITATING_EXPLORED * (1 - i / _IMITATED)
            episodes = walk.episodes(policy, _EPISODES, generator, explored, imitates=True)
            step(policy, optimizer, [-episodes.log_probs.sum(dim=1).mean()])
        optimizer = torch.optim.Adam(policy.parameters(), lr=_LEARNING_RATE)
        discounts = _DISCOUNT ** torch.arange(len(walk.seconds) - 1, -1, -1)
        costs: list[float] = []
        while trials.left > 0:
            explored = _EXPLORED * trials.left / options.evaluations
            episodes = walk.episodes(policy, min(_EPISODES, trials.left), generator, explored)
            seconds = trials.seconds(episodes.device)
            cost = np.log(np.minimum(seconds / trials.reference_seconds, _FAILING))
            costs += cost.tolist()
            reward = torch.from_numpy(np.mean(costs) - cost).float()
            log_prob = (discounts * episodes.log_probs).sum(dim=1)
            step(policy, optimizer, [-(reward * log_prob).mean()])
    return trials


@dataclass(frozen=True, slots=True)
class _Episodes:
    """Devices of N nodes in k episodes, ``int32[k, N]``, and how probable each step was, ``[k, N]``."""

    device: IntArray
    log_probs: Tensor


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

        With ``imitates``, ``log_probs`` are those of what the list scheduler would do at every step, so that
        the policies learn what to do in states that their own mistakes lead to.
        """
        (N, D), k = self.allowed.shape, np.arange(count)
        score, embedded = policy.select(), policy.embedded()
        device = np.full((count, N + 1), 0, dtype=np.int32)
        begin, finish = np.zeros((count, N + 1)), np.zeros((count, N + 1))
        own = np.zeros((count, N + 1))  # what each node takes where it is
        free, load = np.zeros((count, D)), np.zeros((count, D))
        room = np.tile(self.capacity, (count, 1))
        waits = np.tile(self.reads.sum(axis=1), (count, 1))
        is_placed = np.zeros((count, N), dtype=np.bool_)
        held = torch.zeros(count, D, _HIDDEN)
        log_probs = []
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
            is_edge = edges < len(self.price) - 1
            there = (device[k[:, None], producer][:, :, None] == np.arange(D)) & is_edge[:, :, None]
            used = there.any(axis=1)
            inputs = (there * own[k[:, None], producer][:, :, None]).sum(axis=1)
            first = np.where(there, begin[k[:, None], producer][:, :, None], np.inf).min(
                axis=1, initial=np.inf
            )
            last = np.where(there, finish[k[:, None], producer][:, :, None], 0.0).max(axis=1, initial=0.0)
            seen = np.stack(
                [self.seconds[node], load, inputs, np.where(used, first, 0.0), last, start], axis=2
            )
            logits = policy.place(embedded, node, held, seen)
            chosen, where = _drawn(logits, may, wanted, explored, generator)
            log_probs.append(chance + where)
            begin[k, node] = start[k, chosen]
            own[k, node] = self.seconds[node, chosen]
            finish[k, node] = free[k, chosen] = start[k, chosen] + own[k, node]
            load[k, chosen] += self.seconds[node, chosen]
            device[k, node] = chosen
            room -= (self.device_of == self.device_of[chosen][:, None]) * self.bytes[node][:, None]
            is_placed[k, node] = True
            waits -= self.reads[:, node].T
            taken = nn.functional.one_hot(torch.from_numpy(chosen).long(), D).float()
            held = held + taken[:, :, None] * embedded[torch.from_numpy(node).long()][:, None, :]
        return _Episodes(device[:, :N], torch.stack(log_probs, dim=1))

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
        logits: ``[k, n]``; the largest is chosen.
        may: What can be chosen, ``bool[k, n]``.
        wanted: What should be chosen, ``int[k]``; ``None`` = whatever is.
        explored: With this probability all that can be chosen are equally probable instead.
        generator: Draws.
    """
    mask = torch.from_numpy(may)
    log_prob = logits.masked_fill(~mask, -torch.inf).log_softmax(dim=1)
    anything = torch.multinomial(mask.float(), 1, generator=generator)
    explores = torch.rand((len(may), 1), generator=generator) < explored
    taken = torch.where(explores, anything, log_prob.detach().argmax(dim=1, keepdim=True))
    judged = taken if wanted is None else torch.from_numpy(wanted.astype(np.int64))[:, None]
    return taken[:, 0].numpy(), log_prob.gather(1, judged)[:, 0].clamp(min=-30.0)


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
        self.features = _standardised(
            torch.from_numpy(np.stack([mean, sent, received, walk.above, walk.below], axis=1)).float(), 0
        )
        self.ways = torch.from_numpy(np.concatenate([walk.way_in, walk.way_out])).float()
        width = self.features.shape[1]
        self.selecting, self.placing = (_GraphNetwork(width) for _ in range(2))
        self.select_node = perceptron(3 * _HIDDEN + width, _HIDDEN, 1)
        self.select_device = perceptron(2 * _HIDDEN + width + _DEVICE_FEATURES, _HIDDEN, 1)

    def select(self) -> Tensor:
        """How much every node wants to be next, ``[N]``."""
        N = len(self.features)
        state = self.selecting(self.features, self.source, self.target)
        ways = self.ways @ state
        along, back = _standardised(ways[:N], 0), _standardised(ways[N:], 0)
        return self.select_node(torch.cat([state, along, back, self.features], dim=1))[:, 0]

    def embedded(self) -> Tensor:
        """Embedding of every node for its placement, ``[N, H]``."""
        return self.placing(self.features, self.source, self.target)

    def place(self, embedded: Tensor, node: IntArray, held: Tensor, seen: FloatArray) -> Tensor:
        """Logits of D devices for one node of each of k episodes, ``[k, D]``.

        Args:
            embedded: Of all nodes, ``[N, H]``.
            node: ``int[k]``.
            held: Sum of the embeddings of what each device has, ``[k, D, H]``.
            seen: Times of the node and of the devices, ``float64[k, D, 6]``.
        """
        chosen = torch.from_numpy(node).long()
        own = torch.cat([embedded[chosen], self.features[chosen]], dim=1)
        own = own[:, None, :].expand(-1, held.shape[1], -1)
        times = _standardised(torch.from_numpy(seen), 1).float()
        logits: Tensor = self.select_device(torch.cat([own, _standardised(held, 1), times], dim=2))[..., 0]
        return logits


class _GraphNetwork(nn.Module):
    """Embeds nodes; messages go along the edges and against them."""

    def __init__(self, features: int) -> None:
        super().__init__()
        self.embed = perceptron(features, _HIDDEN, _HIDDEN)
        self.message = nn.ModuleList(perceptron(_HIDDEN, _HIDDEN, _HIDDEN) for _ in range(2))

    def forward(self, features: Tensor, source: Tensor, target: Tensor) -> Tensor:
        N = len(features)
        state: Tensor = self.embed(features)
        for _ in range(_ROUNDS):
            along = mean_over_edges(self.message[0](state)[source], target, N)
            against = mean_over_edges(self.message[1](state)[target], source, N)
            state = nn.functional.layer_norm(state + (along + against).relu(), (_HIDDEN,))
        return state


def _standardised(values: Tensor, dim: int) -> Tensor:
    """With mean 0 and deviation 1 along a dimension."""
    spread = values.std(dim=dim, keepdim=True, correction=0)
    return (values - values.mean(dim=dim, keepdim=True)) / (spread + 1e-6 * values.abs().max() + 1e-12)
