"""Tensors by name and a JSON object in one file: safetensors with the object in the metadata header.

Tensors come back bit for bit, and a checksum tells a damaged file. Nothing is pickled.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

from ov_autoplace._base.files import os_reason, write_atomically
from ov_autoplace.errors import TrainingError

__all__ = ["load_state", "save_state", "state_bytes"]

_FORMAT = "ov-autoplace training state"
_VERSION = 1


def save_state(path: str | Path, tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> None:
    """Write tensors by name and a JSON object into one file, beside ``path`` first and then in its place.

    Raises:
        OutputError: The file cannot be written.
        TrainingError: ``values`` cannot be said in JSON.
    """
    write_atomically(path, state_bytes(tensors, values))


def state_bytes(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> bytes:
    """The content of the file that :func:`save_state` writes, to be written together with others.

    Raises:
        TrainingError: ``values`` cannot be said in JSON.
    """
    try:
        text = json.dumps(values, allow_nan=False, sort_keys=True)
    except (TypeError, ValueError) as cause:
        raise TrainingError(f"the state of a run must be JSON: {cause}") from cause
    # Copies, because safetensors stores no two tensors that share memory.
    copies = {name: t.detach().to("cpu", copy=True).contiguous() for name, t in tensors.items()}
    header = {
        "format": _FORMAT,
        "version": str(_VERSION),
        "values": text,
        "sha256": _digest(copies, text),
    }
    return save(copies, metadata=header)


def load_state(path: str | Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read what :func:`save_state` wrote: the tensors (on the CPU) and the JSON object.

    Raises:
        TrainingError: The file is missing, damaged, foreign or written by a newer version.
    """
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
            if header.get("format") != _FORMAT:
                raise TrainingError(
                    f"{path} is not the state of a training run, but some other safetensors file"
                )
            if header.get("version") != str(_VERSION):
                raise TrainingError(
                    f"{path} has version {header.get('version')} of the training state, this release reads "
                    f"version {_VERSION}; use the release that wrote it"
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - no mapping
    except OSError as cause:
        raise TrainingError(f"cannot read the training state {path}: {os_reason(cause)}") from cause
    except (SafetensorError, UnicodeDecodeError) as cause:
        raise TrainingError(f"{path} is damaged or no training state: {cause}") from cause
    text = header.get("values", "")
    if header.get("sha256") != _digest(tensors, text):
        raise TrainingError(f"{path} is damaged: its checksum does not fit; go back to an older state")
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    if not isinstance(values, dict):
        raise TrainingError(f"{path} is no training state: it holds no JSON object")
    return tensors, values


def _digest(tensors: Mapping[str, Tensor], text: str) -> str:
    digest = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        tensor = tensors[name]
        digest.update(f"{name} {tensor.dtype} {list(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
