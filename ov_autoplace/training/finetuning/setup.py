"""What a fine-tuning run starts from: the network, the models, and the state of an earlier run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace.cost.table import CostTable
from ov_autoplace.devices.models import read_model
from ov_autoplace.errors import CheckpointError, ProfilingError, TrainingError
from ov_autoplace.policy.config import config_named
from ov_autoplace.policy.networks.checkpoint import load_network
from ov_autoplace.policy.networks.network import PlacementNetwork, make_network
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.lanes import DividedModel, LanesTask, divided_model
from ov_autoplace.training.finetuning.preparing import ProfiledModel, profiled_model
from ov_autoplace.training.finetuning.request import FinetuneRequest, Source
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.finetuning.trials import ReferenceRaces

__all__ = ["check_same_run", "checked_values", "load_task", "network_of"]


def network_of(request: FinetuneRequest, num_devices: int) -> PlacementNetwork:
    """The network to start from.

    Raises:
        CheckpointError: The checkpoint cannot be used, or not for so many devices.
        TrainingError: There is no such configuration.
    """
    if request.checkpoint is None:
        return make_network(config_named(request.network).for_devices(num_devices), request.options.seed)
    network = load_network(request.checkpoint)
    if network.config.num_devices != num_devices:
        raise CheckpointError(
            f"the policy of {request.checkpoint} decides between exactly {network.config.num_devices} "
            f"devices, not {num_devices}"
        )
    return network


def load_task(
    name: str,
    source: Source,
    request: FinetuneRequest,
    budget: TuningBudget,
    known: CostTable | None = None,
) -> TuningTask:
    """Read, compile and profile a model.

    Args:
        name: Unique in the run.
        source: The model or its file.
        request: The machine and the hyper-parameters.
        budget: The time that all may take.
        known: The costs that an earlier run measured.
    """
    model = source if isinstance(source, ov.Model) else read_model(request.machine.core, Path(source))
    try:
        if request.tunes_lanes:
            profiled: ProfiledModel = divided_model(model, request.machine, budget, known)
        else:
            profiled = profiled_model(model, request.machine, budget, known)
    except (TrainingError, ProfilingError) as cause:
        raise type(cause)(f"{name}: {cause}") from cause
    try:
        races = ReferenceRaces(
            profiled.session,
            profiled.whole if isinstance(profiled, DividedModel) else profiled.table,
            budget,
            request.settings.inferences,
            request.options.seed,
            profiled.compile_seconds,
        )
        if isinstance(profiled, DividedModel):
            return LanesTask(name, profiled, races)
        return TuningTask(name, profiled, races)
    except BaseException:
        profiled.session.close()
        raise


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
