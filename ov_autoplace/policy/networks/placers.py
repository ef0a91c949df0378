"""Placers: from the state of each row to its preference for each device."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from ov_autoplace.errors import OptionError
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch
from ov_autoplace.policy.networks.groupers import Grouping
from ov_autoplace.policy.networks.superposition import Superposition

__all__ = ["AttentionPlacer", "MlpPlacer", "make_placer"]


class _Conditioned(nn.Module):
    """What both placers share: the factors that superposition puts before each layer."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__()
        self.superposition = Superposition(config) if config.superposition else None

    def _factors(self, batch: GraphBatch, grouping: Grouping) -> Tensor | float:
        """What multiplies the input of each layer: ``[M, hidden]``, or 1."""
        if self.superposition is None:
            return 1.0
        factors: Tensor = self.superposition(batch)
        return factors[grouping.graph_of_row]


class MlpPlacer(_Conditioned):
    """Two linear layers, row by row (HSDAG, arXiv 2405.14185, step 6)."""

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        self.first = nn.Linear(config.hidden, config.hidden)
        self.second = nn.Linear(config.hidden, config.num_devices)

    def forward(self, z_rows: Tensor, batch: GraphBatch, grouping: Grouping) -> Tensor:
        """Logits of the M rows, ``[M, D]``, forbidden devices among them.

        Args:
            z_rows: State of each row, ``[M, hidden]``.
            batch: The graphs.
            grouping: Which graph each row belongs to.
        """
        factors = self._factors(batch, grouping)
        logits: Tensor = self.second(factors * torch.relu(self.first(factors * z_rows)))
        return logits


class AttentionPlacer(_Conditioned):
    """Segment-recurrent attention over the rows of each graph in topological order (GDP, arXiv 1910.01578).

    All rows are decided on at once. As in Transformer-XL (arXiv 1901.02860) a row attends to its own segment
    and, without passing gradients on, to what the layer below has made of the segment before. So time and
    memory grow linearly with the rows, and with L layers a row sees the L segments before its own. Positions
    are not encoded again: the encoder has seen them.
    """

    def __init__(self, config: NetworkConfig) -> None:
        super().__init__(config)
        if config.hidden % config.heads:
            raise OptionError(f"hidden is {config.hidden}; it has to be a multiple of heads, {config.heads}")
        self.segment = config.segment
        self.layers = nn.ModuleList(
            _AttentionLayer(config.hidden, config.heads) for _ in range(config.placer_layers)
        )
        self.norm = nn.LayerNorm(config.hidden)
        self.decide = nn.Linear(config.hidden, config.num_devices)

    def forward(self, z_rows: Tensor, batch: GraphBatch, grouping: Grouping) -> Tensor:
        """As :meth:`MlpPlacer.forward`."""
        factors = self._factors(batch, grouping)
        segments = _cut(grouping.graph_of_row, batch.num_graphs, self.segment)
        x = z_rows
        for layer in self.layers:
            x = layer(factors * x, segments)
        logits: Tensor = self.decide(self.norm(factors * x))
        return logits


@dataclass(frozen=True, eq=False)
class _Segments:
    """The rows of all graphs in C segments of S places, no segment with rows of two graphs.

    Attributes:
        row: Row at each place, ``int64[C, S]``; any row where there is none.
        place: Place of each row, counted through all segments, ``int64[M]``.
        previous: Segment before each one, ``int64[C]``; any where it is the graph's first.
        visible: Which of the previous segment's and then its own places each segment may look at,
            ``bool[C, 1, 1, 2 S]``.
    """

    row: Tensor
    place: Tensor
    previous: Tensor
    visible: Tensor


def _cut(graph_of_row: Tensor, num_graphs: int, length: int) -> _Segments:
    rows = torch.bincount(graph_of_row, minlength=num_graphs)
    # Short graphs do not pay for places that none of them could fill.
    length = max(min(length, int(rows.max())), 1)
    parts = torch.div(rows + length - 1, length, rounding_mode="floor")
    index = torch.arange(len(graph_of_row), device=graph_of_row.device)
    within = index - (rows.cumsum(0) - rows)[graph_of_row]
    first_segment = parts.cumsum(0) - parts
    place = first_segment[graph_of_row] * length + within
    count = int(parts.sum())
    row = place.new_zeros(count * length).scatter(0, place, index).reshape(count, length)
    filled = torch.zeros(count * length, dtype=torch.bool, device=place.device)
    filled = filled.index_fill(0, place, True).reshape(count, length)
    number = torch.arange(count, device=place.device)
    graph_of_segment = torch.repeat_interleave(torch.arange(num_graphs, device=place.device), parts)
    has_previous = number > first_segment[graph_of_segment]
    previous = (number - 1).clamp(min=0)
    visible = torch.cat([filled[previous] & has_previous[:, None], filled], dim=1)
    return _Segments(row, place, previous, visible[:, None, None, :])


class _AttentionLayer(nn.Module):
    """Attention and a feed-forward network, each after a norm and beside a shortcut."""

    def __init__(self, hidden: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.LayerNorm(hidden)
        self.query = nn.Linear(hidden, hidden)
        self.key_value = nn.Linear(hidden, 2 * hidden)
        self.merge = nn.Linear(hidden, hidden)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(hidden), nn.Linear(hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, hidden)
        )

    def forward(self, x: Tensor, segments: _Segments) -> Tensor:
        normed = self.norm(x)
        own = normed[segments.row]
        seen = torch.cat([own.detach()[segments.previous], own], dim=1)
        keys, values = self.key_value(seen).chunk(2, dim=2)
        attended = functional.scaled_dot_product_attention(
            self._by_head(self.query(own)),
            self._by_head(keys),
            self._by_head(values),
            attn_mask=segments.visible,
        )
        attended = attended.transpose(1, 2).flatten(2).flatten(0, 1)[segments.place]
        x = x + self.merge(attended)
        result: Tensor = x + self.feed_forward(x)
        return result

    def _by_head(self, x: Tensor) -> Tensor:
        """``[C, S, hidden]`` to ``[C, heads, S, hidden / heads]``."""
        segments, places, hidden = x.shape
        return x.reshape(segments, places, self.heads, hidden // self.heads).transpose(1, 2)


def make_placer(config: NetworkConfig) -> MlpPlacer | AttentionPlacer:
    """The placer that ``config.placer`` names: ``mlp`` or ``attention``."""
    return MlpPlacer(config) if config.placer == "mlp" else AttentionPlacer(config)
