"""``ov-autoplace fleet calibrate``: what all machines measure, as one target for each kind."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_table
from ov_autoplace.cli.fleet_options import (
    Address,
    Kinds,
    Limit,
    MachinesPerKind,
    OutputFolder,
    Resume,
    fleet_run,
    group_values,
    member_values,
    option_values,
    say_missing,
    say_outliers,
    spread_text,
)
from ov_autoplace.cli.outputs import check_folder, made_folder
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions

__all__ = ["calibrate"]


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
