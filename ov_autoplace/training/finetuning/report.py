"""What a fine-tuning run says about itself: in the checkpoint's card, and to the caller."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timezone
from typing import Any

import numpy as np

from ov_autoplace.policy.card import Card
from ov_autoplace.training.finetuning.files import TuningFolder
from ov_autoplace.training.finetuning.request import FinetuneRequest
from ov_autoplace.training.finetuning.result import TunedModel
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.finetuning.trials import Trial

__all__ = ["card_metrics", "card_training", "tuned_model"]


def card_training(
    request: FinetuneRequest, base: Card | None, tasks: Sequence[TuningTask], seconds: float
) -> dict[str, Any]:
    """How the checkpoint came about; what its base says of itself stays in it."""
    return {
        "base": None if base is None else {"digest": base.digest, "training": dict(base.training)},
        "models": [task.name for task in tasks],
        "devices": list(request.machine.devices),
        "machine": request.machine.fingerprint,
        "settings": _finite(asdict(request.settings)),
        "seed": request.options.seed,
        "superposition_only": request.superposition_only,
        "seconds": round(seconds, 1),
        "measurements": sum(task.measurements for task in tasks),
        "command": request.command,
        "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
    }


def card_metrics(tasks: Sequence[TuningTask]) -> dict[str, Any]:
    """Measured latencies over that of the best single device, by model."""
    return {
        task.name: {
            "before": _measured(task, task.before),
            "after": _measured(task, task.after),
            "best": task.relative(task.champion),
            "best_single": task.single_name(task.best_single),
            "measurements": task.measurements,
        }
        for task in tasks
        if task.measurements
    }


def tuned_model(task: TuningTask, folder: TuningFolder) -> TunedModel:
    """The result for one model that was measured."""
    single, best = task.best_single, task.champion
    name = task.single_name(single)
    what = "schedule on lanes" if single.plan.is_divided or best.plan.is_divided else "mix of devices"
    if best in task.singles:
        reason = f"{name} is the fastest device and no {what} was proven to be faster"
    else:
        gain = 100 * (1 - task.relative(best))
        reason = f"a {what} was measured {gain:.1f} % faster than {name}, and again when compiled anew"
    return TunedModel(
        name=task.name,
        devices=task.table.devices,
        before=_measured(task, task.before),
        after=_measured(task, task.after),
        best=task.relative(best),
        best_single=name,
        single_seconds=single.known_seconds,
        placement=replace(task.placement(best), solver=task.single_name(best)),
        file=folder.best_file(task),
        measurements=task.measurements,
        seconds=task.seconds,
        reason=reason,
    )


def _measured(task: TuningTask, trial: Trial | None) -> float | None:
    return None if trial is None or not len(trial.samples) else task.relative(trial)


def _finite(values: dict[str, Any]) -> dict[str, Any]:
    """JSON has no infinity."""
    return {k: str(v) if isinstance(v, float) and not np.isfinite(v) else v for k, v in values.items()}
