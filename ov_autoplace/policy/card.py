"""Checkpoints: a folder with a network's weights and a card about them.

The folder holds ``policy.safetensors`` and ``card.json``: the schema and its version, the network's
configuration, the features that it reads, the SHA-256 of the weights and of the card itself, how the network
was trained and how good it is. Nothing in it is code, and nothing is used that the card does not vouch for.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import os_reason, possible
from ov_autoplace._base.json_fields import read_json, shown
from ov_autoplace._version import __version__
from ov_autoplace.errors import CheckpointError
from ov_autoplace.policy.structure import NODE_FEATURES
from ov_autoplace.policy.vocabulary import OP_TYPES, vocabulary_hash

__all__ = ["CARD", "WEIGHTS", "Card", "load_card", "read_weights", "write_checkpoint"]

SCHEMA, VERSION = "ov-autoplace/policy", 1
CARD, WEIGHTS = "card.json", "policy.safetensors"


@dataclass(frozen=True)
class Card:
    """What ``card.json`` says.

    Attributes:
        folder: Where the checkpoint lies.
        network: What :meth:`~ov_autoplace.policy.config.NetworkConfig.to_dict` answers.
        weights: SHA-256 of the weights.
        training: Data, seeds, command and date, as the trainer wrote them.
        metrics: How good the policy is, and on what.
        digest: SHA-256 of all of the above: two checkpoints with the same digest answer the same.
    """

    folder: Path
    network: Mapping[str, Any]
    weights: str
    training: Mapping[str, Any]
    metrics: Mapping[str, Any]
    digest: str

    @property
    def name(self) -> str:
        """Name of the network's configuration."""
        return str(self.network.get("name", "unnamed"))


def load_card(checkpoint: str | os.PathLike[str]) -> Card:
    """Read and check the card of a checkpoint's folder.

    Raises:
        CheckpointError: The checkpoint is missing, foreign, newer or damaged, or was made for other features.
    """
    folder = Path(checkpoint)
    if not folder.is_dir():
        raise CheckpointError(
            f"there is no checkpoint at {folder}; give a folder that `ov-autoplace finetune` wrote"
        )
    if not (folder / CARD).is_file():
        raise CheckpointError(f"{folder} is not a policy checkpoint: it holds no {CARD}")
    data = read_json(folder / CARD, CheckpointError, "the card of a policy checkpoint")
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise CheckpointError(
            f"{folder / CARD} does not describe a policy checkpoint: its schema is not {SCHEMA!r}; give a "
            "folder that `ov-autoplace finetune` wrote"
        )
    version = data.get("version")
    if isinstance(version, int) and version > VERSION:
        raise CheckpointError(
            f"the checkpoint {folder} has version {shown(version)}, and ov-autoplace {__version__} reads "
            f"up to {VERSION}; upgrade ov-autoplace"
        )
    digest = data.pop("sha256", None)
    if version != VERSION or digest != _digest_of(data) or not _is_complete(data):
        raise CheckpointError(
            f"{folder / CARD} was damaged or edited after it was written; copy the checkpoint again"
        )
    for part, ours in _features().items():
        if data["features"].get(part) != ours:
            raise CheckpointError(
                f"the checkpoint {folder} was made for other features than ov-autoplace {__version__} "
                f"computes ({part} differs); use the version that made it, or train again"
            )
    return Card(
        folder=folder,
        network=data["network"],
        weights=data["weights"],
        training=data["training"],
        metrics=data["metrics"],
        digest=str(digest),
    )


def read_weights(card: Card) -> bytes:
    """Content of the weights' file of a checkpoint.

    Raises:
        CheckpointError: It is missing, or is not the file that the card describes.
    """
    path = card.folder / WEIGHTS
    try:
        content = possible(path).read_bytes()
    except OSError as cause:
        raise CheckpointError(
            f"the checkpoint {card.folder} is incomplete: cannot read {WEIGHTS} "
            f"({os_reason(cause)}); copy the checkpoint again"
        ) from cause
    if hashlib.sha256(content).hexdigest() != card.weights:
        raise CheckpointError(
            f"{path} is damaged: it is not the file that {CARD} describes; copy the checkpoint again"
        )
    return content


def write_checkpoint(
    folder: str | os.PathLike[str],
    weights: bytes,
    network: Mapping[str, Any],
    training: Mapping[str, Any],
    metrics: Mapping[str, Any],
    beside: Mapping[str, bytes] | None = None,
) -> Card:
    """Write a checkpoint from its parts; see :func:`save_checkpoint`.

    Args:
        folder: Made when it does not exist; its parent must exist.
        weights: Content of ``policy.safetensors``.
        network: The fields of the network's configuration.
        training: What JSON can hold.
        metrics: What JSON can hold.
        beside: Content of further files that must belong to the checkpoint at any moment, by name; the card
            does not speak of them.
    """
    from ov_autoplace._base.atomic_folder import write_folder

    card = _card_text(network, weights, training, metrics)
    write_folder(folder, {**(beside or {}), WEIGHTS: weights, CARD: card})
    return load_card(folder)


def _card_text(
    network: Mapping[str, Any], weights: bytes, training: Mapping[str, Any], metrics: Mapping[str, Any]
) -> bytes:
    data = {
        "schema": SCHEMA,
        "version": VERSION,
        "package": __version__,
        "network": dict(network),
        "features": _features(),
        "weights": hashlib.sha256(weights).hexdigest(),
        "training": dict(training),
        "metrics": dict(metrics),
    }
    try:
        data = json.loads(json.dumps(data, allow_nan=False))  # what a reader will see
    except (TypeError, ValueError) as cause:
        raise CheckpointError(
            f"the card cannot be written: training or metrics hold what JSON cannot ({cause})"
        ) from cause
    data["sha256"] = _digest_of(data)
    return (json.dumps(data, indent=1, ensure_ascii=False) + "\n").encode()


def _digest_of(data: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(data, sort_keys=True).encode()).hexdigest()


def _is_complete(data: Mapping[str, Any]) -> bool:
    parts = ("network", "features", "training", "metrics")
    return all(isinstance(data.get(part), dict) for part in parts) and isinstance(data.get("weights"), str)


def _features() -> dict[str, Any]:
    """What a network of this version of the package reads."""
    return {
        "vocabulary": {"op_types": len(OP_TYPES), "sha256": vocabulary_hash()},
        "node": list(NODE_FEATURES),
    }
