"""``ov-autoplace fleet calibrate`` and ``bench``: what all machines measure, as one table for each kind."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, print_table
from ov_autoplace.cli.fleet_annotate import placement_values_of
from ov_autoplace.cli.fleet_options import (
    FLEET_OPTIONS,
    Address,
    Kinds,
    Limit,
    MachinesPerKind,
    OutputFolder,
    Resume,
    fleet_run,
    group_values,
    member_values,
    number_text,
    option_values,
    say_missing,
    say_outliers,
    spread_text,
)
from ov_autoplace.cli.outputs import check_folder, made_folder
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions

if TYPE_CHECKING:
    from ov_autoplace.fleet.bench import KindBench

__all__ = ["bench", "calibrate"]


@with_placer_options("isolation", purpose="calibrating")
def calibrate(
    *,
    ray: Address,
    output: OutputFolder,
    options: PlacerOptions,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and repetitions; rougher rates.")
    ] = False,
    kinds: Kinds = None,
    machines: MachinesPerKind = None,
    limit: Limit = 600.0,
    resume: Resume = False,
    as_json: arguments.Json = False,
) -> None:
    """Measure the machines of each kind once, and write OUTPUT/KIND.target.json, which --target takes."""
    check_folder(output)
    from ov_autoplace.cost.target_json import save_target
    from ov_autoplace.fleet.targets import calibrate_fleet

    asked = {
        name: value for name, value in option_values(options).items() if name in ("isolation", "properties")
    }
    record = {"command": "calibrate", "quick": quick, "options": asked}
    with fleet_run(ray, output, record, kinds=kinds, machines=machines, limit=limit, resume=resume) as run:
        found = calibrate_fleet(run, asked, quick)
    say_missing([answer.group for answer in found])
    rows: list[dict[str, Any]] = []
    for answer in found:
        path = output / f"{answer.group.kind.name}.target.json"
        if answer.target is not None:
            with made_folder(output):
                save_target(answer.target, path)
        target = None if answer.target is None else str(path)
        rows.append(group_values(answer.group, answer) | {"target": target})
    if as_json:
        print_json({"kinds": rows, "unused": [member_values(m) for m in run.unused]})
    else:
        print_table(
            f"{counted(len(rows), 'kind')} of machines",
            ("kind", ">machines", "devices", ">spread", "wrote"),
            [
                (
                    row["kind"],
                    len(row["machines"]),
                    ", ".join(row["devices"]),
                    spread_text(row["spread"], len(row["machines"])),
                    row["target"] or "missing",
                )
                for row in rows
            ],
        )
        say_outliers(rows)
    if any(row["target"] is None for row in rows):
        raise typer.Exit(1)


@with_placer_options(*FLEET_OPTIONS, purpose="a fleet")
def bench(
    model: arguments.Model,
    *,
    ray: Address,
    options: PlacerOptions,
    output: OutputFolder,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="How long each machine measures, all candidates together.")
    ] = 10.0,
    kinds: Kinds = None,
    machines: MachinesPerKind = None,
    limit: Limit = 600.0,
    resume: Resume = False,
    as_json: arguments.Json = False,
) -> None:
    """Place the model for each kind of machine, and run the answer and its rivals in turns on its machines.

    What was measured is kept in OUTPUT/measurements.
    """
    check_folder(output)
    from ov_autoplace.cli.request import open_model
    from ov_autoplace.fleet.bench import bench_fleet
    from ov_autoplace.fleet.models import model_digest, share_model

    request = open_model(model)
    asked = option_values(options)
    record = {
        "command": "bench",
        "model": model_digest(request.model),
        "options": asked,
        "seconds": seconds,
    }
    with fleet_run(ray, output, record, kinds=kinds, machines=machines, limit=limit, resume=resume) as run:
        found = bench_fleet(run, share_model(request.model), asked, seconds)
    say_missing([answer.placed.group for answer in found])
    if as_json:
        rows = [
            placement_values_of(answer.placed) | {"ran_on": list(answer.machines), "rows": answer.rows}
            for answer in found
        ]
        print_json({"model": str(model), "kinds": rows, "unused": [member_values(m) for m in run.unused]})
    else:
        for answer in found:
            _print(model, answer)
    if any(not answer.rows for answer in found):
        raise typer.Exit(1)


def _print(model: Path, answer: KindBench) -> None:
    kind, placement = answer.placed.group.kind, answer.placed.placement
    if placement is None or not answer.rows:
        print_sentence(f"{kind.name}: missing")
        return
    print_table(
        f"{model} on {counted(len(answer.machines), 'machine')} of the kind {kind.name}: medians in ms",
        (
            "name",
            ">back to back",
            ">fastest machine",
            ">slowest machine",
            ">of best device",
            ">after 3 ms idle",
        ),
        [
            (
                row["name"],
                number_text(row["median_ms"]),
                number_text(row["low_ms"]),
                number_text(row["high_ms"]),
                None if row["relative"] is None else f"{row['relative']:.3f}",
                number_text(row["paused_median_ms"]),
            )
            for row in answer.rows
        ],
    )
    if placement.decision is not None:
        print_sentence(f"AUTOPLACE: {placement.decision.reason}")
    for row in answer.rows:
        if row["note"]:
            print_sentence(f"{row['name']}: {row['note']}")
