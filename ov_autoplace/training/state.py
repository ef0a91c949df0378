"""The state of a tuning run on disk, so that a run that was killed goes on as if it had not been.

One safetensors file with a JSON object in its header; a checksum tells a damaged one, and nothing is pickled.
Parameters, moments of the optimiser and the random generator come back bit for bit.
"""

from __future__ import annotations

import copy
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from ov_autoplace._base.files import os_reason
from ov_autoplace.errors import TrainingError

__all__ = ["load_state", "load_training", "state_bytes", "training_bytes"]

_FORMAT = "ov-autoplace training state"
_VERSION = 1
_GENERATOR = "generator/samples"


def training_bytes(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    values: Mapping[str, Any],
    best: Mapping[str, Tensor],
) -> bytes:
    """The content of a file with everything that a run needs to go on.

    Args:
        network: Its parameters and buffers are saved.
        optimizer: Its state and options are saved; it must optimise parameters of ``network``.
        generator: The run's own.
        values: Whatever else the run needs, as JSON.
        best: The best weights so far.

    Raises:
        TrainingError: ``values`` cannot be said in JSON.
    """
    tensors = {f"network/{name}": tensor for name, tensor in network.state_dict().items()}
    names = {parameter: name for name, parameter in network.named_parameters()}
    tensors |= {
        f"optimizer/{moment}/{names[parameter]}": torch.as_tensor(value)
        for parameter, state in optimizer.state.items()
        for moment, value in state.items()
    }
    groups = [
        {**group, "params": [names[parameter] for parameter in group["params"]]}
        for group in optimizer.param_groups
    ]
    tensors |= {f"best/{name}": tensor for name, tensor in best.items()}
    tensors[_GENERATOR] = generator.get_state()
    return state_bytes(tensors, {"values": values, "optimizer": groups})


def load_training(
    path: str | Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    best: Mapping[str, Tensor],
) -> dict[str, Any]:
    """Bring network, optimiser and generator to the state that :func:`training_bytes` made a file of.

    Args:
        path: The file.
        network: Restored in place; made from the same configuration as the saved one.
        optimizer: Restored in place; of the same parameters in the same groups.
        generator: Restored in place.
        best: Tensors to fill in place.

    Returns:
        The ``values`` that were saved.

    Raises:
        TrainingError: The file is damaged, foreign or newer, or of another network or run; nothing has been
            changed then.
    """
    tensors, saved = load_state(path)
    parts: dict[str, dict[str, Tensor]] = {"network": {}, "optimizer": {}, "best": {}, "generator": {}}
    try:
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        values, groups = saved["values"], saved["optimizer"]
        state = tensors[_GENERATOR]
    except KeyError as cause:
        raise TrainingError(f"{path} holds no state of a training run: {cause} is out of place") from cause
    if not (isinstance(values, dict) and isinstance(groups, list)):
        raise TrainingError(f"{path} holds no state of a training run: its values have other types")
    _check_same(path, "network", parts["network"], network.state_dict())
    _check_same(path, "run", parts["best"], best)
    optimizer_state = _nested_optimizer(path, optimizer, network, parts["optimizer"], groups)
    try:
        copy.deepcopy(optimizer).load_state_dict(optimizer_state)
        torch.Generator().set_state(state)
    except (KeyError, TypeError, ValueError, RuntimeError) as cause:
        raise TrainingError(f"{path} was saved with an optimiser of another kind: {cause}") from cause

    network.load_state_dict(parts["network"])
    for name, tensor in best.items():
        tensor.copy_(parts["best"][name])
    optimizer.load_state_dict(optimizer_state)
    generator.set_state(state)
    return values


def _nested_optimizer(
    path: str | Path,
    optimizer: torch.optim.Optimizer,
    network: nn.Module,
    tensors: Mapping[str, Tensor],
    groups: list[dict[str, Any]],
) -> dict[str, Any]:
    """What ``optimizer.load_state_dict`` takes: numbers in place of names."""
    names = {parameter: name for name, parameter in network.named_parameters()}
    order = [[names[parameter] for parameter in group["params"]] for group in optimizer.param_groups]
    if order != [group.get("params") if isinstance(group, dict) else None for group in groups]:
        raise TrainingError(f"{path} was saved with an optimiser of other parameters")
    for ours, saved in zip(optimizer.param_groups, groups, strict=True):
        if {name: _kind(value) for name, value in ours.items()} != {n: _kind(v) for n, v in saved.items()}:
            raise TrainingError(f"{path} was saved with an optimiser of another kind")
    number = {name: i for i, name in enumerate(name for group in order for name in group)}
    shape_of = {name: parameter.shape for parameter, name in names.items()}
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        moment, _, name = key.partition("/")
        if name not in number or (tensor.ndim and tensor.shape != shape_of[name]):
            raise TrainingError(f"{path} was saved with an optimiser of other parameters: {key} does not fit")
        state.setdefault(number[name], {})[moment] = tensor
    numbered = [{**group, "params": [number[name] for name in group["params"]]} for group in groups]
    for group in numbered:
        group |= {option: tuple(value) for option, value in group.items() if option == "betas"}
    return {"state": state, "param_groups": numbered}


def _kind(value: Any) -> str:
    """What must be the same of an option of an optimiser that JSON has kept."""
    if isinstance(value, (list, tuple)):
        return "list"
    return "number" if type(value) in (int, float) else type(value).__name__


def _check_same(path: str | Path, what: str, saved: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> None:
    """Refuse a state of another architecture, naming the first tensor that differs."""
    for name in sorted(saved.keys() | ours.keys()):
        if name not in saved or name not in ours or saved[name].shape != ours[name].shape:
            have = [str(list(side[name].shape)) if name in side else "none" for side in (saved, ours)]
            raise TrainingError(
                f"{path} is the state of another {what}: {name} is {have[0]} there and {have[1]} here"
            )


def state_bytes(tensors: Mapping[str, Tensor], values: Mapping[str, Any]) -> bytes:
    """The content of a file with tensors by name and a JSON object, which :func:`load_state` reads.

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
    """Read such a file: the tensors and the JSON object.

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
