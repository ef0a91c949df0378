"""The state of a training run on disk, so that a run that was killed goes on as if it had not been.

Parameters, moments of the optimiser and random generators come back bit for bit.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace.errors import TrainingError
from ov_autoplace.training.state_file import load_state, save_state, state_bytes

__all__ = ["load_training", "save_training", "training_bytes"]

Generators = Mapping[str, "torch.Generator | np.random.Generator"]


def save_training(
    path: str | Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generators: Generators,
    values: Mapping[str, Any],
    extra: Mapping[str, Tensor] | None = None,
) -> None:
    """Save everything that a run needs to go on, in place of what ``path`` held.

    Args:
        path: The file.
        network: See :func:`training_bytes`, as for all the following.
        optimizer: What trains it.
        generators: The run's own.
        values: Whatever else the run needs.
        extra: Further tensors.

    Raises:
        OutputError: The file cannot be written.
        TrainingError: ``values`` or a generator cannot be said in JSON.
    """
    save_state(path, *_state_of(network, optimizer, generators, values, extra))


def training_bytes(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generators: Generators,
    values: Mapping[str, Any],
    extra: Mapping[str, Tensor] | None = None,
) -> bytes:
    """The content of the file that :func:`save_training` writes, to be written together with others.

    Args:
        network: Its parameters and buffers are saved.
        optimizer: Its state and options are saved; it must optimise parameters of ``network``.
        generators: The run's own random generators, torch's or NumPy's, by name. Torch's global ones (of
            dropout) are always saved.
        values: Whatever else the run needs, as JSON: the step, the seed, where a learning-rate schedule is.
        extra: Further tensors of the run, such as averaged weights.

    Raises:
        TrainingError: ``values`` or a generator cannot be said in JSON.
    """
    return state_bytes(*_state_of(network, optimizer, generators, values, extra))


def _state_of(
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generators: Generators,
    values: Mapping[str, Any],
    extra: Mapping[str, Tensor] | None,
) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors = {f"network/{name}": tensor for name, tensor in network.state_dict().items()}
    moments, groups = _flat_optimizer(optimizer, _parameter_names(network))
    tensors |= {f"optimizer/{name}": tensor for name, tensor in moments.items()}
    tensors |= {f"random/{name}": state for name, state in _global_generators().items()}
    tensors |= {f"extra/{name}": tensor for name, tensor in (extra or {}).items()}
    numpy_states = {}
    for name, generator in generators.items():
        if isinstance(generator, torch.Generator):
            tensors[f"generator/{name}"] = generator.get_state()
        else:
            numpy_states[name] = generator.bit_generator.state
    return tensors, {"values": values, "optimizer": groups, "generators": numpy_states}


def load_training(
    path: str | Path,
    network: nn.Module,
    optimizer: torch.optim.Optimizer,
    generators: Generators,
    extra: Mapping[str, Tensor] | None = None,
) -> dict[str, Any]:
    """Bring network, optimiser and generators to the state that :func:`save_training` saved.

    Args:
        path: The file.
        network: Restored in place; made from the same configuration as the saved one.
        optimizer: Restored in place; of the same parameters in the same groups.
        generators: Restored in place; the same names as were saved.
        extra: Tensors to fill in place with those that were saved under their names.

    Returns:
        The ``values`` that were saved.

    Raises:
        TrainingError: The file is damaged, foreign or newer, or of another network or run; nothing has been
            changed then.
    """
    tensors, saved = load_state(path)
    parts: dict[str, dict[str, Tensor]] = {
        "network": {},
        "optimizer": {},
        "random": {},
        "generator": {},
        "extra": {},
    }
    try:
        for name, tensor in tensors.items():
            part, _, rest = name.partition("/")
            parts[part][rest] = tensor
        values, groups, numpy_states = (saved[part] for part in ("values", "optimizer", "generators"))
    except KeyError as cause:
        raise TrainingError(f"{path} holds no state of a training run: {cause} is out of place") from cause
    if not (isinstance(values, dict) and isinstance(groups, list) and isinstance(numpy_states, dict)):
        raise TrainingError(f"{path} holds no state of a training run: its values have other types")
    _check_same(path, "network", parts["network"], network.state_dict())
    _check_same(path, "run", parts["extra"], extra or {})
    ours: dict[str, set[str]] = {"torch": set(), "numpy": set()}
    for name, generator in generators.items():
        ours["torch" if isinstance(generator, torch.Generator) else "numpy"].add(name)
    if ours != {"torch": set(parts["generator"]), "numpy": set(numpy_states)}:
        raise TrainingError(
            f"{path} was saved with other random generators: {sorted(generators)} are expected"
        )
    optimizer_state = _nested_optimizer(
        path, optimizer, _parameter_names(network), parts["optimizer"], groups
    )
    try:
        copy.deepcopy(optimizer).load_state_dict(optimizer_state)
    except (KeyError, TypeError, ValueError, RuntimeError) as cause:
        raise TrainingError(f"{path} was saved with an optimiser of another kind: {cause}") from cause
    _check_generators(path, generators, parts["generator"], numpy_states, parts["random"])

    network.load_state_dict(parts["network"])
    for name, tensor in (extra or {}).items():
        tensor.copy_(parts["extra"][name])
    optimizer.load_state_dict(optimizer_state)
    for name, generator in generators.items():
        if isinstance(generator, torch.Generator):
            generator.set_state(parts["generator"][name])
        else:
            generator.bit_generator.state = numpy_states[name]
    _set_global_generators(parts["random"])
    return dict(values)


def _parameter_names(network: nn.Module) -> dict[Tensor, str]:
    return {parameter: name for name, parameter in network.named_parameters()}


def _flat_optimizer(
    optimizer: torch.optim.Optimizer, names: Mapping[Tensor, str]
) -> tuple[dict[str, Tensor], list[dict[str, Any]]]:
    """The optimiser's tensors as ``"moment/parameter"``, and the options of its groups of parameters."""
    tensors = {
        f"{moment}/{names[parameter]}": torch.as_tensor(value)
        for parameter, state in optimizer.state.items()
        for moment, value in state.items()
    }
    groups = [
        {**group, "params": [names[parameter] for parameter in group["params"]]}
        for group in optimizer.param_groups
    ]
    return tensors, groups


def _nested_optimizer(
    path: str | Path,
    optimizer: torch.optim.Optimizer,
    names: Mapping[Tensor, str],
    tensors: Mapping[str, Tensor],
    groups: list[dict[str, Any]],
) -> dict[str, Any]:
    """What ``optimizer.load_state_dict`` takes: numbers in place of names."""
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


def _check_generators(
    path: str | Path,
    generators: Generators,
    torch_states: Mapping[str, Tensor],
    numpy_states: Mapping[str, Any],
    global_states: Mapping[str, Tensor],
) -> None:
    """Try the states of random generators on others, so that the run's own stay as they are on a failure."""
    try:
        for state in (*torch_states.values(), global_states["cpu"]):
            torch.Generator().set_state(state)
        for name, generator in generators.items():
            if isinstance(generator, np.random.Generator):
                type(generator.bit_generator)().state = numpy_states[name]
    except (KeyError, TypeError, ValueError, RuntimeError, OverflowError) as cause:
        raise TrainingError(f"{path} does not hold the states of random generators: {cause}") from cause


def _check_same(path: str | Path, what: str, saved: Mapping[str, Tensor], ours: Mapping[str, Tensor]) -> None:
    """Refuse a state of another architecture, naming the first tensor that differs."""
    for name in sorted(saved.keys() | ours.keys()):
        if name not in saved or name not in ours or saved[name].shape != ours[name].shape:
            have = [str(list(side[name].shape)) if name in side else "none" for side in (saved, ours)]
            raise TrainingError(
                f"{path} is the state of another {what}: {name} is {have[0]} there and {have[1]} here"
            )


def _global_generators() -> dict[str, Tensor]:
    states = {"cpu": torch.get_rng_state()}
    if torch.cuda.is_available():
        states |= {f"cuda{i}": state for i, state in enumerate(torch.cuda.get_rng_state_all())}
    return states


def _set_global_generators(states: Mapping[str, Tensor]) -> None:
    torch.set_rng_state(states["cpu"])
    if torch.cuda.is_available():
        for i in range(torch.cuda.device_count()):
            if f"cuda{i}" in states:
                torch.cuda.set_rng_state(states[f"cuda{i}"], i)
