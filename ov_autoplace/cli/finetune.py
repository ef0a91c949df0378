"""``ov-autoplace finetune``: a policy that learns from measured latencies of the user's own models."""

from __future__ import annotations

import shlex
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import milliseconds, note, print_json, print_sentence, print_table, progress_bar
from ov_autoplace.cli.outputs import ReportFile, check_folder, check_outputs, save_report
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cli.settings_options import with_settings
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.training.finetuning.settings import FinetuneSettings

if TYPE_CHECKING:
    from ov_autoplace.training.finetuning.result import FinetuneResult, TunedModel

__all__ = ["finetune"]

_PLACER_OPTIONS = ("target", "pins", "memory_limits", "shapes", "seed", "isolation", "executor", "lanes")

Models = Annotated[
    list[Path],
    typer.Argument(
        metavar="MODEL",
        show_default=False,
        help="One or more models: IR (.xml), ONNX or any that OpenVINO reads.",
    ),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="What an earlier run wrote, to start from its weights; without it they are random.",
    ),
]
Budget = Annotated[str, typer.Option(help="Wall-clock time for everything, like 90, 120s, 5m or 1h.")]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="Folder for the best placements, the log and the policy."),
]
SuperpositionOnly = Annotated[
    bool,
    typer.Option(
        "--superposition-only", help="Train only the part of the network that conditions it on the graph."
    ),
]
Resume = Annotated[bool, typer.Option("--resume", help="Continue the run in the folder, for another budget.")]
Network = Annotated[
    str,
    typer.Option("--network", help="Whose network to train without --checkpoint: hsdag or gdp."),
]


@with_settings(FinetuneSettings)
@with_placer_options(*_PLACER_OPTIONS, purpose="tuning", executor="HETERO")
def finetune(
    models: Models,
    *,
    devices: arguments.Devices = None,
    checkpoint: Checkpoint = None,
    budget: Budget = "120s",
    output: Output = Path("tuned"),
    superposition_only: SuperpositionOnly = False,
    resume: Resume = False,
    options: PlacerOptions,
    network: Network = "hsdag",
    page: ReportFile = None,
    as_json: arguments.Json = False,
    **settings: Any,
) -> None:
    """Train a policy on measured latencies of given models, and keep the best placement found of each.

    With --executor overlap, placements are schedules on the lanes of one CPU. Needs the packages of the
    extra `train`. Ctrl-C ends it as the end of the budget does.
    """
    started = time.perf_counter()
    check_outputs(page, models=models)
    check_folder(output)
    try:
        from ov_autoplace.training.finetune import finetune as tune

        with progress_bar() as progress:
            result = tune(
                models,
                devices,
                checkpoint=checkpoint,
                budget=budget,
                out=output,
                superposition_only=superposition_only,
                resume=resume,
                settings=FinetuneSettings(**settings),
                network=network,
                progress=progress,
                command=shlex.join(["ov-autoplace", *sys.argv[1:]]),
                started=started,
                **{name: getattr(options, name) for name in _PLACER_OPTIONS},
                properties=options.properties,
            )
    except KeyboardInterrupt:
        note("stopped by Ctrl-C before anything was measured; nothing was written")
        raise
    if result.stopped == "interrupted":
        note(f"stopped by Ctrl-C; --resume -o {output} continues")
    for name in result.not_reached:
        note(f"no placement of {name} was measured; --resume -o {output} continues")
    if not as_json and result.models:
        _show_result(result)
    if page is not None:
        from ov_autoplace.cli.request import open_model
        from ov_autoplace.report.tuning import finetune_contents

        model = open_model(models[0]).model if len(models) == 1 else None
        save_report(page, finetune_contents(result, model), as_json)
    if as_json:
        print_json(_result_values(result))


def _result_values(result: FinetuneResult) -> dict[str, Any]:
    """A run for ``--json``."""
    return {
        "checkpoint": str(result.checkpoint),
        "learning_curve": str(result.learning_curve),
        "seconds": result.seconds,
        "stopped": result.stopped,
        "not_reached": list(result.not_reached),
        "models": [
            {
                "model": model.name,
                "devices": list(model.devices),
                "before_ms": _ms(model, model.before),
                "after_ms": _ms(model, model.after),
                "best_ms": _ms(model, model.best),
                "best_single": model.best_single,
                "best_single_ms": 1e3 * model.single_seconds,
                "relative": {"before": model.before, "after": model.after, "best": model.best},
                "measurements": model.measurements,
                "seconds": model.seconds,
                "break_even_inferences": model.break_even,
                "affinity_file": str(model.file),
                "decision": model.reason,
            }
            for model in result.models
        ],
    }


def _show_result(result: FinetuneResult) -> None:
    """Print the table of a run."""
    print_table(
        f"measured latency ({result.seconds:.0f} s)",
        ("model", "placement", ">ms", ">of the best\nsingle device"),
        [
            (model.name, what, milliseconds(relative * model.single_seconds), f"{relative:.3f}")
            for model in result.models
            for what, relative in (
                (f"{model.best_single}, the best single device", 1.0),
                ("policy before", model.before),
                ("policy after", model.after),
                ("best found", model.best),
            )
            if relative is not None
        ],
    )
    for model in result.models:
        measured = counted(model.measurements, "measurement")
        print_sentence(f"{model.name}: {model.reason}; {measured}, {_pays_off(model)}; {model.file}")
    if result.stopped == "nothing new":
        print_sentence("ended before the budget did: not even bold proposals bring anything new to measure")
    print_sentence(f"wrote the policy to {result.checkpoint} and {result.learning_curve}")


def _pays_off(model: TunedModel) -> str:
    """After how many inferences the time that they took is gained back."""
    if model.break_even is None:
        return "which gained nothing"
    return f"which pays off after {counted(round(model.break_even), 'inference')}"


def _ms(model: TunedModel, relative: float | None) -> float | None:
    return None if relative is None else 1e3 * relative * model.single_seconds
