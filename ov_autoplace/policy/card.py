"""Checkpoints: a folder with a network's weights, the same network as OpenVINO IR, and a card about both.

The folder holds ``policy.safetensors`` (to train further), ``policy.xml`` and ``policy.bin`` (to run without
torch) and ``card.json``: the schema and its version, the network's configuration, the features that it reads,
the SHA-256 of each other file and of the card itself, how the network was trained and how good it is. Nothing
in it is code, and nothing is used that the card does not vouch for.
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

__all__ = [
    "BASE",
    "NO_POLICY",
    "Card",
    "checkpoint_key",
    "load_card",
    "read_file",
    "resolve_checkpoint",
    "shipped_checkpoint",
    "write_checkpoint",
]

BASE = "base"
"""The name of the checkpoint that comes with the package."""

NO_POLICY = "none"
"""The name of no policy at all."""

SCHEMA, VERSION = "ov-autoplace/policy", 1
CARD, WEIGHTS, GRAPH, CONSTANTS = "card.json", "policy.safetensors", "policy.xml", "policy.bin"
_FILES = (WEIGHTS, GRAPH, CONSTANTS)  # the last two are missing where a network runs with torch only
_HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Card:
    """What ``card.json`` says.

    Attributes:
        folder: Where the checkpoint lies.
        network: What :meth:`~ov_autoplace.policy.config.NetworkConfig.to_dict` answers.
        files: SHA-256 of each other file by name.
        training: Data, seeds, command, commit and date, as the trainer wrote them.
        metrics: How good the policy is, on what, and where it loses.
        digest: SHA-256 of all of the above: two checkpoints with the same digest answer the same.
    """

    folder: Path
    network: Mapping[str, Any]
    files: Mapping[str, str]
    training: Mapping[str, Any]
    metrics: Mapping[str, Any]
    digest: str

    @property
    def name(self) -> str:
        """Name of the network's configuration."""
        return str(self.network.get("name", "unnamed"))

    @property
    def num_devices(self) -> int | None:
        """The only number of devices that the network can decide between; ``None`` = any."""
        count = self.network.get("num_devices")
        return count if isinstance(count, int) else None

    @property
    def max_devices(self) -> int | None:
        """The most devices it has seen (``training["max_devices"]``); ``None`` = not known."""
        most = self.training.get("max_devices")
        return most if isinstance(most, int) else None


def shipped_checkpoint() -> Path | None:
    """The checkpoint that comes with the package, or ``None`` when this installation has none."""
    # Installed: beside this module. An editable installation or a source tree: at the top of the repository.
    for folder in (_HERE / "checkpoints" / "autoplace-base", _HERE.parents[1] / "models" / "autoplace-base"):
        if (folder / CARD).is_file():
            return folder
    return None


def resolve_checkpoint(name_or_path: str | os.PathLike[str] | None = None) -> Path:
    """The folder of a checkpoint.

    Args:
        name_or_path: A folder, or ``"base"`` or ``None`` for the checkpoint that comes with the package.

    Raises:
        CheckpointError: There is none.
    """
    if name_or_path is None or name_or_path == BASE:
        shipped = shipped_checkpoint()
        if shipped is None:
            raise CheckpointError(
                "this installation of ov-autoplace has no policy checkpoint; install one that comes with "
                "models/autoplace-base, or name a folder that `ov-autoplace pretrain` or `finetune` wrote"
            )
        return shipped
    folder = Path(name_or_path)
    if not folder.is_dir():
        raise CheckpointError(
            f"there is no checkpoint at {folder}; give a folder that `ov-autoplace pretrain` or `finetune` "
            f"wrote, or {BASE!r}"
        )
    return folder


def load_card(checkpoint: str | os.PathLike[str] | None = None) -> Card:
    """Read and check a checkpoint's card.

    Args:
        checkpoint: See :func:`resolve_checkpoint`.

    Raises:
        CheckpointError: The checkpoint is missing, foreign, newer or damaged, or was made for other features.
    """
    folder = resolve_checkpoint(checkpoint)
    if not (folder / CARD).is_file():
        raise CheckpointError(f"{folder} is not a policy checkpoint: it holds no {CARD}")
    data = read_json(folder / CARD, CheckpointError, "the card of a policy checkpoint")
    if not isinstance(data, dict) or data.get("schema") != SCHEMA:
        raise CheckpointError(
            f"{folder / CARD} does not describe a policy checkpoint: its schema is not {SCHEMA!r}; give a "
            "folder that `ov-autoplace pretrain` or `finetune` wrote"
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
    _check_features(folder, data["features"])
    return Card(
        folder=folder,
        network=data["network"],
        files=data["files"],
        training=data["training"],
        metrics=data["metrics"],
        digest=str(digest),
    )


def checkpoint_key(asked: str | None) -> str:
    """What tells checkpoints apart without reading more than their cards: a hash, or the name of one without.

    Args:
        asked: As in :attr:`~ov_autoplace.decide.options.PlacerOptions.policy`.
    """
    folder = shipped_checkpoint() if asked in (None, BASE) else Path(str(asked))
    try:
        return hashlib.sha256(possible(folder / CARD).read_bytes()).hexdigest() if folder else "none"
    except OSError:
        return str(asked)


def read_file(card: Card, name: str) -> bytes:
    """Content of a file of a checkpoint.

    Raises:
        CheckpointError: It is missing, or is not the file that the card describes.
    """
    path = card.folder / name
    try:
        content = possible(path).read_bytes()
    except OSError as cause:
        raise CheckpointError(
            f"the checkpoint {card.folder} is incomplete: cannot read {name} "
            f"({os_reason(cause)}); copy the checkpoint again"
        ) from cause
    if hashlib.sha256(content).hexdigest() != card.files[name]:
        raise CheckpointError(
            f"{path} is damaged: it is not the file that {CARD} describes; copy the checkpoint again"
        )
    return content


def write_checkpoint(
    folder: str | os.PathLike[str],
    files: Mapping[str, bytes],
    network: Mapping[str, Any],
    training: Mapping[str, Any],
    metrics: Mapping[str, Any],
    beside: Mapping[str, bytes] | None = None,
) -> Card:
    """Write a checkpoint from its parts; see :func:`save_checkpoint`.

    Args:
        folder: Made when it does not exist; its parent must exist.
        files: Content of ``policy.safetensors``, and of ``policy.xml`` and ``policy.bin`` or of neither.
        network: The fields of the network's configuration.
        training: What JSON can hold.
        metrics: What JSON can hold.
        beside: Content of further files that must belong to the checkpoint at any moment, by name; the card
            does not speak of them.
    """
    from ov_autoplace._base.atomic_folder import write_folder

    write_folder(folder, {**(beside or {}), **files, CARD: _card_text(network, files, training, metrics)})
    return load_card(folder)


def _card_text(
    network: Mapping[str, Any],
    files: Mapping[str, bytes],
    training: Mapping[str, Any],
    metrics: Mapping[str, Any],
) -> bytes:
    data = {
        "schema": SCHEMA,
        "version": VERSION,
        "package": __version__,
        "network": dict(network),
        "features": _features(),
        "files": {name: hashlib.sha256(content).hexdigest() for name, content in files.items()},
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
    parts = ("network", "features", "files", "training", "metrics")
    return all(isinstance(data.get(part), dict) for part in parts) and set(data["files"]) in (
        set(_FILES),
        {WEIGHTS},
    )


def _features() -> dict[str, Any]:
    """What a network of this version of the package reads."""
    from ov_autoplace.policy.arcs import ARC_FEATURES
    from ov_autoplace.policy.features import GRAPH_FEATURES, PAIR_FEATURES, UNIT_FEATURES
    from ov_autoplace.policy.structure import NODE_FEATURES
    from ov_autoplace.policy.vocabulary import OP_TYPES, vocabulary_hash

    return {
        "vocabulary": {"op_types": len(OP_TYPES), "sha256": vocabulary_hash()},
        "node": list(NODE_FEATURES),
        "graph": list(GRAPH_FEATURES),
        "unit": list(UNIT_FEATURES),
        "pair": list(PAIR_FEATURES),
        "arc": list(ARC_FEATURES),
    }


def _check_features(folder: Path, features: Mapping[str, Any]) -> None:
    """Refuse a network that reads other features than this version of the package computes."""
    ours = _features()
    for part in [*ours, *(part for part in features if part not in ours)]:
        if features.get(part) != ours.get(part):
            raise CheckpointError(
                f"the checkpoint {folder} was made for other features than ov-autoplace {__version__} "
                f"computes ({part} differs); use the version that made it, or train again"
            )
