"""``ov-autoplace fleet collect``: what the operations of models cost on every kind of machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_table
from ov_autoplace.cli.fleet_options import (
    Address,
    Kinds,
    OutputFolder,
    Resume,
    fleet_run,
    group_values,
    member_values,
    say_missing,
)
from ov_autoplace.cli.outputs import check_folder, made_folder

__all__ = ["collect"]

# Devices are calibrated besides: so many times the seconds may pass before another machine tries it.
_GRACE = 2.0


def collect(
    models: arguments.Models,
    *,
    ray: Address,
    output: OutputFolder,
    seconds: Annotated[
        float, typer.Option("--seconds", min=1.0, help="After so long a machine begins no further model.")
    ] = 600.0,
    kinds: Kinds = None,
    machines: Annotated[
        int, typer.Option("--machines", min=1, help="Measure on so many machines of a kind at most.")
    ] = 1,
    resume: Resume = False,
    as_json: arguments.Json = False,
) -> None:
    """Measure what operations cost on each kind of machine, and write OUTPUT/MACHINE.npz for pretrain."""
    check_folder(output)
    import openvino as ov

    from ov_autoplace._base.files import write_atomically
    from ov_autoplace.cli.collect import named_models
    from ov_autoplace.devices.models import check_model_file
    from ov_autoplace.fleet.collecting import collect_on_fleet
    from ov_autoplace.fleet.models import model_digest

    for path in models:
        check_model_file(path)
    named = list(named_models(ov.Core(), models))
    record = {"command": "collect", "models": [model_digest(one.model) for one in named], "seconds": seconds}
    limit = _GRACE * seconds
    with fleet_run(ray, output, record, kinds=kinds, machines=machines, limit=limit, resume=resume) as run:
        found = collect_on_fleet(run, named, seconds)
    groups = list(run.groups.values())
    say_missing(groups)
    rows: list[dict[str, Any]] = []
    for group in groups:
        files = {}
        for machine, content in found.get(group.kind.name, {}).items():
            files[machine] = str(output / f"{machine}.npz")
            with made_folder(output):
                write_atomically(Path(files[machine]), content)
        rows.append(group_values(group, None) | {"costs": files})
    if as_json:
        print_json({"kinds": rows, "unused": [member_values(m) for m in run.unused]})
    else:
        print_table(
            f"{counted(len(rows), 'kind')} of machines",
            ("kind", "devices", "wrote"),
            [
                (row["kind"], ", ".join(row["devices"]), ", ".join(row["costs"].values()) or "missing")
                for row in rows
            ],
        )
    if not all(row["costs"] for row in rows):
        raise typer.Exit(1)
