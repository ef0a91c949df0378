"""Saving a network that is being tuned: often, so it must be fast."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import safetensors.torch

from ov_autoplace.policy.card import CONSTANTS, GRAPH, WEIGHTS, Card, read_file, write_checkpoint
from ov_autoplace.policy.networks.checkpoint import save_checkpoint
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.reweighting import exchange_weights

__all__ = ["CheckpointWriter"]


class CheckpointWriter:
    """Saves a network again and again; only its weights change.

    Args:
        folder: The checkpoint.
        base: The checkpoint that the network was loaded from, ``None`` = it has fresh weights.
    """

    def __init__(self, folder: Path, base: Card | None) -> None:
        self._folder = folder
        self._exported: tuple[bytes, bytes] | None = None
        self._weights: dict[str, Any] = {}
        if base is not None:
            self._remember(base)

    @property
    def is_fast(self) -> bool:
        """Whether the network need not be exported again."""
        return self._constants(self._weights) is not None

    def save(
        self,
        network: PlacementNetwork,
        training: Mapping[str, Any],
        metrics: Mapping[str, Any],
        beside: Mapping[str, bytes],
    ) -> Card:
        """Write the checkpoint, and the files beside it, in one step."""
        state = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
        constants = self._constants({name: value.numpy() for name, value in state.items()})
        if constants is None or self._exported is None:
            card = save_checkpoint(self._folder, network, training, metrics, beside)
            self._remember(card)
            return card
        files = {
            WEIGHTS: safetensors.torch.save(state),
            GRAPH: self._exported[0],
            CONSTANTS: constants,
        }
        return write_checkpoint(self._folder, files, network.config.to_dict(), training, metrics, beside)

    def _constants(self, weights: Mapping[str, Any]) -> bytes | None:
        if self._exported is None:
            return None
        return exchange_weights(*self._exported, self._weights, weights)

    def _remember(self, card: Card) -> None:
        """Take an exported network as the pattern for the next ones."""
        if GRAPH in card.files:
            self._exported = read_file(card, GRAPH), read_file(card, CONSTANTS)
            content = safetensors.torch.load(read_file(card, WEIGHTS))
            self._weights = {name: value.numpy() for name, value in content.items()}
