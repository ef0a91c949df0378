"""Networks and their checkpoints: building one from its weights, and writing one; needs torch."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import safetensors.torch

from ov_autoplace.errors import CheckpointError, OptionError
from ov_autoplace.policy.card import CONSTANTS, GRAPH, WEIGHTS, Card, load_card, read_file, write_checkpoint
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.export import can_be_exported, export_network
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import make_network

__all__ = ["load_network", "save_checkpoint"]


def load_network(checkpoint: str | os.PathLike[str] | None = None) -> PlacementNetwork:
    """The network of a checkpoint with its weights, in evaluation mode; needs torch.

    Raises:
        CheckpointError: See :func:`load_card`; or weights and configuration do not fit together.
    """
    card = load_card(checkpoint)
    content = read_file(card, WEIGHTS)
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
    or the new one. What else lies in the folder stays there. Networks that cannot be exported
    (:func:`~ov_autoplace.policy.networks.export.can_be_exported`) are written without IR.

    Args:
        folder: Made when it does not exist; its parent must exist.
        network: Is exported as it is, in evaluation mode, and not changed.
        training: Where it comes from: data, seeds, command, commit, date; what JSON can hold.
        metrics: How good it is, with spread and losing cases; what JSON can hold.
        beside: See :func:`write_checkpoint`.

    Raises:
        CheckpointError: ``training`` or ``metrics`` hold what JSON cannot, or the exported network does not
            answer like the given one.
        OutputError: The folder cannot be written.
    """
    weights = {name: value.detach().cpu().contiguous() for name, value in network.state_dict().items()}
    files = {WEIGHTS: safetensors.torch.save(weights)}
    if can_be_exported(network):
        files[GRAPH], files[CONSTANTS] = export_network(network)
    return write_checkpoint(folder, files, network.config.to_dict(), training, metrics, beside)
