"""``ov-autoplace fleet finetune``: a policy for each kind of machine, tuned on all machines of the kind."""

from __future__ import annotations

import shlex
import sys
import time
from typing import TYPE_CHECKING, Any

import openvino as ov
import typer

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import note, print_json, print_sentence, progress_bar
from ov_autoplace.cli.finetune import (
    Budget,
    Checkpoint,
    Models,
    Network,
    SuperpositionOnly,
    result_values,
    show_result,
)
from ov_autoplace.cli.fleet_options import (
    Address,
    Kinds,
    Limit,
    MachinesPerKind,
    OutputFolder,
    Resume,
    member_values,
    say_missing,
    say_unused,
)
from ov_autoplace.cli.outputs import check_folder
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cli.settings_options import with_settings
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import AutoplaceError, TrainingError
from ov_autoplace.training.finetuning.settings import FinetuneSettings

if TYPE_CHECKING:
    from ov_autoplace.training.finetuning.result import FinetuneResult

__all__ = ["finetune"]

_OPTIONS = ("pins", "memory_limits", "shapes", "seed", "isolation")


@with_settings(FinetuneSettings)
@with_placer_options(*_OPTIONS, purpose="tuning", executor="HETERO")
def finetune(
    models: Models,
    *,
    ray: Address,
    options: PlacerOptions,
    output: OutputFolder,
    checkpoint: Checkpoint = "base",
    budget: Budget = "120s",
    superposition_only: SuperpositionOnly = False,
    network: Network = "autoplace-base",
    kinds: Kinds = None,
    machines: MachinesPerKind = None,
    limit: Limit = 600.0,
    resume: Resume = False,
    as_json: arguments.Json = False,
    **settings: Any,
) -> None:
    """Tune a policy for each kind of machine, and keep the best placements found in OUTPUT/KIND.

    Kinds are tuned one after the other, each for the whole budget; several commands with a --kind each tune
    them at the same time. Machines of a kind share one policy: each race of what it proposes is divided among
    them, and every machine compares with its own fastest device. Needs the packages of the extra `train`.
    """
    check_folder(output)
    from ov_autoplace.devices.models import check_model_file
    from ov_autoplace.fleet.connection import connected
    from ov_autoplace.fleet.run import FleetRun
    from ov_autoplace.training.finetuning.budget import parse_seconds

    for path in models:
        check_model_file(path)
    seconds = parse_seconds(budget)
    with extra_needed("train", "fine-tuning", TrainingError):
        from ov_autoplace.fleet.finetune import KindMachine, finetune_kind
        from ov_autoplace.training.finetuning.request import FinetuneRequest
    rows: list[dict[str, Any]] = []
    results: list[tuple[str, tuple[str, ...], FinetuneResult]] = []
    core = ov.Core()
    with connected(ray):
        run = FleetRun(ray, wanted=kinds or (), most=machines, limit_seconds=limit)
        say_unused(run.unused)
        for name, group in run.groups.items():
            machine = KindMachine(core, group.kind.devices, options, kind=group.kind)
            row: dict[str, Any] = {"kind": name, "machines": list(group.machines)}
            rows.append(row)
            try:
                if len(group.kind.devices) < 2:
                    raise TrainingError(
                        f"it offers {group.kind.devices[0]} alone, so there is nothing to choose"
                    )
                machine.check_named_devices()
                with progress_bar() as progress:
                    result = finetune_kind(
                        run,
                        group,
                        FinetuneRequest(
                            models=tuple(models),
                            machine=machine.with_progress(progress),
                            checkpoint=None if checkpoint == "none" else checkpoint,
                            budget_seconds=seconds,
                            started=time.perf_counter(),
                            out=output / name,
                            superposition_only=superposition_only,
                            resume=resume and (output / name).exists(),
                            settings=FinetuneSettings(**settings),
                            network=network,
                            command=shlex.join(["ov-autoplace", *sys.argv[1:]]),
                        ),
                    )
            except AutoplaceError as cause:
                # A kind with one device has nothing to choose from; the others go on.
                note(f"{name} is not tuned: {cause}")
                row |= {"failure": str(cause)}
                continue
            row |= {"failure": "", **result_values(result), "notes": list(group.notes)}
            results.append((name, group.machines, result))
            if result.stopped == "interrupted":
                note(f"stopped by Ctrl-C; --resume -o {output} continues")
                break
    for name, names, result in results if not as_json else ():
        if result.models:
            print_sentence(f"{name}: {', '.join(names)}")
            show_result(result)
    say_missing(list(run.groups.values()))
    if as_json:
        print_json({"kinds": rows, "unused": [member_values(m) for m in run.unused]})
    if all(row["failure"] for row in rows):
        raise typer.Exit(1)
