"""The network of autoplace-base: rounds over the levels, one answer per round."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.policy.config import MultilevelConfig
from ov_autoplace.policy.features import GRAPH_FEATURES, PAIR_FEATURES, UNIT_FEATURES
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.distribution import PolicyOutput
from ov_autoplace.policy.networks.equivariant import Round, expected_loads
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.probes import LOOK_FEATURES, PROBE_FEATURES, look_features
from ov_autoplace.policy.readout import fastest, likeliest
from ov_autoplace.policy.vocabulary import OP_TYPES

__all__ = ["OP_TYPE_WIDTH", "MultilevelNetwork", "Rounds", "fastest_scores", "look_at"]

OP_TYPE_WIDTH = 16
"""Numbers that an op type becomes."""

_MASKED = -1e9
_SHARPNESS = 4.0


class MultilevelNetwork(PlacementNetwork):
    """Decides about every unit by itself; of the answers that it has looked at, the fastest one counts."""

    def __init__(self, config: MultilevelConfig) -> None:
        super().__init__()
        self.config: MultilevelConfig = config
        self.multilevel = Rounds(config)

    def forward(self, batch: GraphBatch, state: Tensor | None = None) -> PolicyOutput:
        """See :class:`~ov_autoplace.policy.networks.interface.PlacementNetwork`; ``state`` is not used."""
        answers = self.answers(batch)
        looked_at = [answers[rounds[-1]] for rounds in self.multilevel.stages]
        logits = fastest_scores(batch, looked_at) if len(looked_at) > 1 else looked_at[0]
        units = torch.arange(batch.num_nodes, device=logits.device)
        return PolicyOutput(
            logits.masked_fill(~batch.allowed, -torch.inf), units, batch.graph_of, batch.num_graphs
        )

    def answers(self, batch: GraphBatch) -> list[Tensor]:
        """Scores of every unit after each round, ``[N, D]``, the last ones final; forbidden = very low."""
        answers: list[Tensor] = self.multilevel(batch)
        return answers


class Rounds(nn.Module):
    """Scores of every pair of unit and device, better ones in each round."""

    def __init__(self, config: MultilevelConfig) -> None:
        super().__init__()
        hidden = config.hidden
        self.op_type = nn.Embedding(len(OP_TYPES), OP_TYPE_WIDTH) if config.op_types else None
        self.probes = config.probes
        self.loads = config.loads
        width = len(self.columns(config))
        self.embed = nn.Sequential(nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        self.superposition = (
            Modulation(len(PAIR_FEATURES) + len(GRAPH_FEATURES), hidden) if config.superposition else None
        )
        self.rounds = nn.ModuleList(Round(config) for _ in range(config.rounds))
        self.looks = config.looks
        self.look = nn.ModuleList(
            nn.Sequential(nn.Linear(len(LOOK_FEATURES), hidden), nn.ReLU(), nn.Linear(hidden, hidden))
            for _ in range(config.looks)
        )

    @staticmethod
    def columns(config: MultilevelConfig) -> tuple[str, ...]:
        """Names of what is known of each unit and device before the first round."""
        types = tuple(f"op_type_{i}" for i in range(OP_TYPE_WIDTH)) * config.op_types
        of_all = (("pair", PAIR_FEATURES), ("graph", GRAPH_FEATURES), ("unit", UNIT_FEATURES))
        named = (f"{kind}_{name}" for kind, names in of_all for name in names)
        return (*named, *types, *(PROBE_FEATURES * config.probes))

    @property
    def stages(self) -> tuple[range, ...]:
        """The rounds between two looks."""
        first = len(self.rounds) - self.looks
        return range(first), *(range(i, i + 1) for i in range(first, len(self.rounds)))

    def forward(self, batch: GraphBatch) -> list[Tensor]:
        """Scores after every round, each ``[N, D]``; forbidden devices have a very low one."""
        answers = self.stage(batch, 0)
        for number in range(1, len(self.stages)):
            _, scores = answers[-1]
            answers += self.stage(batch, number, *answers[-1], look_at(batch, scores))
        return [scores for _, scores in answers]

    def stage(
        self,
        batch: GraphBatch,
        number: int,
        state: Tensor | None = None,
        scores: Tensor | None = None,
        look: Tensor | None = None,
    ) -> list[tuple[Tensor, Tensor]]:
        """States ``[M, D, H]`` and scores ``[N, D]`` after each round of a stage.

        Args:
            batch: The graphs.
            number: Of the stage; the first one, 0, takes nothing but the graphs.
            state: What the stage before ended with, of all M nodes, ``[M, D, H]``.
            scores: Likewise, ``[N, D]``.
            look: What these scores run into, ``[N, D, len(LOOK_FEATURES)]``.
        """
        forbidden = torch.where(batch.allowed, 0.0, _MASKED)
        if state is None or scores is None or look is None:
            state, scores = self._embedded(batch), forbidden
        else:
            units = batch.num_nodes
            state = torch.cat((state[:units] + self.look[number - 1](look), state[units:]))
        answers = []
        for i in self.stages[number]:
            # Sharpened, so that a round sees the answer that would be given: an even doubt about many units
            # together must end in one of their devices, not in some here and some there.
            believed = torch.softmax(_SHARPNESS * scores, dim=1)
            seen = believed.T.unsqueeze(0)
            if self.loads:
                seen = torch.cat((seen, expected_loads(batch, believed)))
            state, delta = self.rounds[i](state, seen.permute(2, 1, 0), batch.nodes)
            scores = delta + forbidden
            answers.append((state, scores))
        return answers

    def _embedded(self, batch: GraphBatch) -> Tensor:
        of_unit = [batch.graph_features[batch.graph_of], batch.unit_features]
        if self.op_type is not None:
            of_unit.append(self.op_type(batch.op_type))
        if self.probes:
            of_unit.append(batch.probes)
        unit = torch.cat(of_unit, dim=1).unsqueeze(1).expand(-1, batch.num_devices, -1)
        columns = batch.pair_features, unit
        embedded: Tensor = self.embed(torch.cat(columns, dim=2))
        if self.superposition is not None:
            embedded = embedded * self.superposition(batch)
        groups = batch.nodes.cost.shape[0] - embedded.shape[0]
        return torch.cat((embedded, embedded.new_zeros(groups, embedded.shape[1], embedded.shape[2])))


def look_at(batch: GraphBatch, scores: Tensor) -> Tensor:
    """What the likeliest answers run into, ``[N, D, len(LOOK_FEATURES)]``, without gradients."""
    placed = _placements(batch, scores)
    looks = [look_features(graph, own) for graph, own in zip(batch.graphs, placed, strict=True)]
    return torch.from_numpy(np.concatenate(looks)).to(scores.device)


def fastest_scores(batch: GraphBatch, answers: Sequence[Tensor]) -> Tensor:
    """Of each graph the scores whose likeliest placement the simulator finds fastest, ``[N, D]``.

    Args:
        batch: The graphs.
        answers: Scores ``[N, D]``, of which the last counts where several are equally fast.
    """
    placed = zip(*(_placements(batch, scores) for scores in answers), strict=True)
    best = [fastest(graph, own) for graph, own in zip(batch.graphs, placed, strict=True)]
    spans = pairwise(batch.node_offsets.tolist())
    return torch.cat([answers[i][a:b] for i, (a, b) in zip(best, spans, strict=True)])


def _placements(batch: GraphBatch, scores: Tensor) -> list[IntArray]:
    """What the scores ask for in each graph, within memory limits."""
    values = scores.detach().cpu().numpy()
    spans = pairwise(batch.node_offsets.tolist())
    return [likeliest(values[a:b], graph) for graph, (a, b) in zip(batch.graphs, spans, strict=True)]


class Modulation(nn.Module):
    """Superposition (GDP, arXiv 1910.01578): a vector made from the graph multiplies the units' states.

    It starts as all ones, so a network without it and one that has not trained it are the same.
    """

    def __init__(self, inputs: int, hidden: int) -> None:
        super().__init__()
        self.condition = nn.Sequential(nn.Linear(inputs, hidden), nn.ReLU(), nn.Linear(hidden, hidden))
        last = self.condition[2]
        assert isinstance(last, nn.Linear)
        nn.init.zeros_(last.weight)
        nn.init.zeros_(last.bias)

    def forward(self, batch: GraphBatch) -> Tensor:
        """Factors of each unit, ``[N, 1, H]``."""
        pair = batch.pair_features.mean(dim=1)
        units = torch.arange(pair.shape[0], device=pair.device)
        mean = functional.embedding_bag(units, pair, batch.node_offsets[:-1], mode="mean")
        graph = torch.cat((mean, batch.graph_features), dim=1)
        factors = 1.0 + torch.tanh(self.condition(graph))
        return factors[batch.graph_of].unsqueeze(1)
