"""What a fine-tuning run starts from: the network, the machine, the models, and an earlier run's identity."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import openvino as ov

from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.models import read_model
from ov_autoplace.devices.names import core_with_extra_devices, device_settings, fingerprint, resolve_devices
from ov_autoplace.errors import CheckpointError, OptionError, ProfilingError, TrainingError
from ov_autoplace.policy.card import Card
from ov_autoplace.policy.config import config_named
from ov_autoplace.policy.networks.checkpoint import load_network
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.preparing import profiled_model
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.finetuning.trials import ReferenceRaces

__all__ = [
    "FinetuneRequest",
    "check_same_run",
    "checked_values",
    "identity",
    "load_task",
    "machine_of",
    "model_names",
    "network_of",
]

Source: TypeAlias = "str | os.PathLike[str] | ov.Model"


@dataclass(frozen=True)
class FinetuneRequest:
    """The arguments of :func:`~ov_autoplace.training.finetune.finetune`, checked one by one.

    Attributes:
        models, devices, checkpoint, core, superposition_only, resume, config, command: As there.
        budget_seconds, started: The budget and when it began to count.
        out: The output folder.
        settings: The hyper-parameters.
        options: Seed, shapes, pins, memory limits, target, properties and progress.
    """

    models: Sequence[Source]
    devices: str | Sequence[str] | None
    checkpoint: str | os.PathLike[str] | None
    budget_seconds: float
    started: float
    out: Path
    core: ov.Core | None
    superposition_only: bool
    resume: bool
    settings: FinetuneSettings
    config: str
    options: PlacerOptions
    command: str


def model_names(models: Sequence[Source]) -> list[str]:
    """A name for each model that files can have; those that share one are numbered."""
    texts = [
        model.get_friendly_name() if isinstance(model, ov.Model) else Path(model).stem for model in models
    ]
    plain = [re.sub(r"[^\w.-]+", "_", text).strip(".") or "model" for text in texts]
    count, seen = Counter(plain), Counter[str]()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(f"{name}-{seen[name]}" if count[name] > 1 else name)
    return names


def machine_of(request: FinetuneRequest) -> Machine:
    """The devices that a request names.

    Raises:
        OptionError: There is nothing to choose between.
    """
    core = request.core or core_with_extra_devices()
    devices = resolve_devices(core, request.devices)
    if len(devices) < 2:
        raise OptionError(
            f"tuning needs at least two devices to choose from, not {', '.join(devices) or 'none'}"
        )
    return Machine(core, devices, request.options)


def network_of(request: FinetuneRequest, num_devices: int) -> PlacementNetwork:
    """The network to start from.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        TrainingError: There is no such configuration.
    """
    if request.checkpoint is None:
        return make_network(config_named(request.config).for_devices(num_devices), request.options.seed)
    network = load_network(request.checkpoint)
    if network.config.num_devices not in (None, num_devices):
        raise CheckpointError(
            f"the policy of {request.checkpoint} decides between exactly {network.config.num_devices} "
            f"devices, not {num_devices}"
        )
    return network


def load_task(
    name: str,
    source: Source,
    request: FinetuneRequest,
    machine: Machine,
    budget: TuningBudget,
    known: CostTable | None = None,
) -> TuningTask:
    """Read, compile and profile a model.

    Args:
        name: Unique in the run.
        source: The model or its file.
        request: The constraints.
        machine: The devices.
        budget: The time that all may take.
        known: The costs that an earlier run measured.
    """
    model = source if isinstance(source, ov.Model) else read_model(machine.core, Path(source))
    try:
        profiled = profiled_model(model, machine, budget, known)
    except (TrainingError, ProfilingError) as cause:
        raise type(cause)(f"{name}: {cause}") from cause
    try:
        races = ReferenceRaces(
            profiled.session,
            profiled.table,
            budget,
            request.settings.inferences,
            request.options.seed,
            profiled.compile_seconds,
        )
        return TuningTask(name, profiled, races)
    except BaseException:
        profiled.session.close()
        raise


def identity(request: FinetuneRequest, machine: Machine, base: Card | None) -> dict[str, Any]:
    """What must be the same in a run and in the one that resumes it."""
    options = request.options
    return {
        "models": ", ".join(model_names(request.models)),
        "devices": ", ".join(machine.devices),
        "machine": fingerprint(machine.core, machine.devices),
        "device settings": repr(device_settings(machine.core, machine.devices)),
        "configuration": repr(sorted(options.properties.items(), key=str)),
        "shapes": repr(dict(options.shapes)),
        "pins": repr(dict(options.pins)),
        "memory limits": repr(dict(options.memory_limits)),
        "checkpoint": "none" if base is None else base.digest,
        "network": request.config if base is None else base.name,
        "trained part": "superposition" if request.superposition_only else "all",
    }


def checked_values(path: Path, saved: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a state that a fine-tuning run saved.

    Raises:
        TrainingError: Another kind of run saved it.
    """
    values = saved.get("values")
    parts = {"seconds": (int, float)} | dict.fromkeys(
        ("identity", "digests", "measurements", "seconds_of", "heated"), (dict,)
    )
    if not isinstance(values, dict) or not all(isinstance(values.get(p), kind) for p, kind in parts.items()):
        raise TrainingError(f"{path} is not the state of a fine-tuning run; give another folder")
    return values


def check_same_run(folder: Path, saved: Mapping[str, Any], ours: Mapping[str, Any]) -> None:
    """Refuse to go on with the measurements of another run.

    Raises:
        TrainingError: Something is not as it was.
    """
    for what, value in ours.items():
        if saved.get(what) != value:
            raise TrainingError(
                f"the run in {folder} was started with other {what} ({saved.get(what)}, not {value}); "
                "resume it as it was started, or tune in another folder"
            )
