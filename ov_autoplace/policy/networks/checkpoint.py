"""Networks and their checkpoints: building one from its weights, and writing one; needs torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import safetensors.torch

from ov_autoplace.errors import CheckpointError, OptionError
from ov_autoplace.policy.card import Card, load_card, read_weights, write_checkpoint
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.network import PlacementNetwork, make_network

__all__ = ["load_network", "save_checkpoint"]


def load_network(checkpoint: str | os.PathLike[str]) -> PlacementNetwork:
    """The network of a checkpoint with its weights, in evaluation mode; needs torch.

    Raises:
        CheckpointError: See :func:`load_card`; or weights and configuration do not fit together.
    """
    card = load_card(checkpoint)
    content = read_weights(card)
    try:
        network = make_network(NetworkConfig.from_dict(dict(card.network)))
        network.load_state_dict(safetensors.torch.load(content))
    except (OptionError, ValueError, RuntimeError, KeyError, safetensors.SafetensorError) as cause:
        first = (str(cause).strip().splitlines() or [type(cause).__name__])[0]
        raise CheckpointError(f"the network of {card.folder} cannot be built: {first}") from cause
    return network.eval()


def save_checkpoint(
    folder: str | os.PathLike[str],
    network: PlacementNetwork,
    training: Mapping[str, Any],
    metrics: Mapping[str, Any],
    beside: Mapping[str, bytes] | None = None,
) -> Card:
    """Write a checkpoint; needs torch.

    Everything is written beside the folder and takes its name in one step: a kill leaves the old checkpoint
    or the new one. What else lies in the folder stays there.

    Args:
        folder: Made when it does not exist; its parent must exist.
        network: Is not changed.
        training: Where it comes from: data, seeds, command, date; what JSON can hold.
        metrics: How good it is; what JSON can hold.
        beside: See :func:`write_checkpoint`.

    Raises:
        CheckpointError: ``training`` or ``metrics`` hold what JSON cannot.
        OutputError: The folder cannot be written.
    """
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    content = safetensors.torch.save(weights)
    return write_checkpoint(folder, content, network.config.to_dict(), training, metrics, beside)
