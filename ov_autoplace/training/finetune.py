"""Training a policy on the measured latencies of real models, within a budget of wall-clock time."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.devices.models import check_model_file
from ov_autoplace.errors import OptionError, TrainingError
from ov_autoplace.training.finetuning.budget import parse_seconds
from ov_autoplace.training.finetuning.result import FinetuneResult
from ov_autoplace.training.finetuning.settings import FinetuneSettings

__all__ = ["finetune"]

# How a placement is searched, which is the policy's part here.
_WITHOUT_USE = ("mode", "time_budget_ms", "solvers", "arrivals", "application")


def finetune(
    models: str | os.PathLike[str] | ov.Model | Sequence[str | os.PathLike[str] | ov.Model],
    devices: str | Sequence[str] | None = None,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    budget: str | float = 120.0,
    out: str | os.PathLike[str] = "tuned",
    core: ov.Core | None = None,
    superposition_only: bool = False,
    resume: bool = False,
    settings: FinetuneSettings | None = None,
    network: str = "hsdag",
    command: str = "",
    started: float | None = None,
    **options: Any,
) -> FinetuneResult:
    """Train a policy of HSDAG's or GDP's network on given models by measuring what it proposes for them.

    In rounds that alternate between the models, the policy proposes placements; the simulator, with costs
    that every measurement corrects, tells the promising ones; these are compiled and raced against the
    fastest single device; and the policy learns from the ratios, and from the corrected simulator in
    between. A policy that has nothing new to propose explores: its draws get bolder from round to round,
    until something turns out faster. A mix of devices counts as found when it wins by more than the noise
    twice, compiled anew for the second race; until then the best placement is the fastest single device. Only
    the policy proposes: for the fastest placement of one model whoever thinks of it, use
    ``place(..., mode="TUNE")``.

    The folder ``out`` always holds the best placement found so far of each model
    (``best.MODEL.affinity.json``), every measurement (``measurements.jsonl``) and the policy, from whose
    weights another run can go on. It is there as soon as the first model was profiled. Ctrl-C ends the run
    as the end of the budget does, and before that leaves nothing; after a kill, ``resume`` continues it.

    Args:
        models: A model or several: files that OpenVINO reads, or ``openvino.Model``, which is not modified.
        devices: Real devices, ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
        checkpoint: A folder that an earlier run wrote, to start from its weights; ``None`` = random ones.
        budget: Seconds of wall-clock time for everything, or a text like ``"120s"`` or ``"5m"``.
        out: Output folder; must not hold another checkpoint.
        core: Where the devices are; ``None`` means a new Core.
        superposition_only: Train only the part of the network that conditions it on the graph (GDP).
        resume: Continue the run in ``out``, for another ``budget``; where there is none, start one.
        settings: The hyper-parameters.
        network: ``"hsdag"`` or ``"gdp"``, when ``checkpoint`` is ``None``.
        command: What was typed, for the checkpoint's card.
        started: ``time.perf_counter()`` when the budget began to count; ``None`` = now.
        **options: ``seed``, ``shapes``, ``pins``, ``memory_limits``, ``target``, ``isolation``, ``executor``,
            ``lanes``, ``properties`` and ``progress``, as for :func:`~ov_autoplace.place`. With the executor
            ``OVERLAP``, ``devices`` is one CPU, placements are schedules on its lanes, and what they have to
            beat is the whole model on its fastest width; otherwise HETERO runs them.

    Raises:
        TrainingError: The packages for training are not installed, the folder holds something else, or the
            budget does not suffice to measure anything.
        KeyboardInterrupt: Ctrl-C, before anything was measured.
        AutoplaceError: One of its kinds, when the request or a model cannot be met.
    """
    started = time.perf_counter() if started is None else started
    placing = PlacerOptions.from_arguments(options)
    for name in _WITHOUT_USE:
        if name in options:
            raise OptionError(f"the option {name!r} is for placing; tuning has no use for it")
    if placing.lanes and placing.executor != "OVERLAP":
        raise OptionError("lanes were given, but no schedules are tuned; set executor to OVERLAP")
    seconds = parse_seconds(budget)
    with extra_needed("train", "fine-tuning", TrainingError):
        from ov_autoplace.training.finetuning.request import FinetuneRequest
        from ov_autoplace.training.finetuning.run import run
    sources = [models] if isinstance(models, (str, os.PathLike, ov.Model)) else list(models)
    for source in sources:
        if not isinstance(source, ov.Model):
            check_model_file(Path(source))
    core = core or own_core()
    machine = Machine.of(core, devices, placing)
    machine.check_named_devices()
    request = FinetuneRequest(
        models=tuple(sources),
        machine=machine,
        checkpoint=checkpoint,
        budget_seconds=seconds,
        started=started,
        out=Path(out),
        superposition_only=superposition_only,
        resume=resume,
        settings=settings or FinetuneSettings(),
        network=network,
        command=command,
    )
    return run(request)
