"""``ov-autoplace fleet annotate``: a placement for each kind of machine, written as files of its own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, print_table
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
from ov_autoplace.cli.outputs import check_folder
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions

if TYPE_CHECKING:
    from ov_autoplace.fleet.annotate import KindPlacement

__all__ = ["annotate"]


@with_placer_options(*FLEET_OPTIONS, purpose="a fleet", executor="HETERO")
def annotate(
    model: arguments.Model,
    *,
    ray: Address,
    options: PlacerOptions,
    output: OutputFolder,
    kinds: Kinds = None,
    machines: MachinesPerKind = None,
    limit: Limit = 600.0,
    resume: Resume = False,
    report: Annotated[bool, typer.Option("--report", help="Write a page for each kind, too.")] = False,
    as_json: arguments.Json = False,
) -> None:
    """Decide for each kind of machine, and write OUTPUT/KIND/MODEL.autoplace.xml and MODEL.affinity.json.

    All machines of a kind measure the model; their medians are the costs that placements are searched with,
    and one machine of the kind races the best of them with its devices alone.
    """
    check_folder(output)
    if report:
        from ov_autoplace.report import require_library

        require_library(output / "report.html")
    from ov_autoplace.cli.request import open_model
    from ov_autoplace.fleet.annotate import place_on_fleet
    from ov_autoplace.fleet.models import model_digest, share_model

    request = open_model(model)
    asked = option_values(options)
    record = {"command": "annotate", "model": model_digest(request.model), "options": asked}
    with fleet_run(ray, output, record, kinds=kinds, machines=machines, limit=limit, resume=resume) as run:
        answers = place_on_fleet(run, share_model(request.model), asked)
    say_missing([answer.group for answer in answers])
    rows = []
    for answer in answers:
        row = _placement_values(answer)
        if answer.placement is not None:
            row |= _save(output, request, answer, options if report else None)
        rows.append(row)
    if as_json:
        print_json({"model": str(model), "kinds": rows, "unused": [member_values(m) for m in run.unused]})
    else:
        _print(model, rows)
    if any(row["chosen"] is None for row in rows):
        raise typer.Exit(1)


def _placement_values(answer: KindPlacement) -> dict[str, Any]:
    """What is said of a kind, in a table or as JSON."""
    decision = None if answer.placement is None else answer.placement.decision
    decided: dict[str, Any] = {"chosen": None, "decision": None, "measured_ms": {}}
    return group_values(answer.group, answer.merged) | {
        **(decided if decision is None else decision.to_json()),
        "raced_on": answer.raced_on,
        "confirmation": None if answer.answer is None else dict(answer.answer["confirmation"]),
        "annotated_model": None,
        "affinity_file": None,
    }


def _save(output: Path, request: Any, answer: KindPlacement, options: PlacerOptions | None) -> dict[str, str]:
    """Write the files of a kind.

    Args:
        output: Of all kinds.
        request: The model.
        answer: Has a placement.
        options: The placer's, where a page is wanted.
    """
    from ov_autoplace.cli.outputs import made_folder, save_answer
    from ov_autoplace.cost.table_json import save_table
    from ov_autoplace.plugin.annotated_files import save_annotated

    placement, folder = answer.placement, output / answer.group.kind.name
    assert placement is not None
    with made_folder(folder):
        files = save_annotated(request.model, placement, folder, request.stem)
        found = {"annotated_model": str(files.model), "affinity_file": str(files.affinities)}
        decision = placement.decision
        if decision is not None and decision.table is not None:
            save_table(decision.table, folder / "costs.json")
            found["costs"] = str(folder / "costs.json")
            if options is not None:
                page = folder / "report.html"
                save_answer(page, None, request.explained(placement, None, options), quiet=True)
                found["report"] = str(page)
    return found


def _print(model: Path, rows: list[dict[str, Any]]) -> None:
    print_table(
        f"{model} on {counted(len(rows), 'kind')} of machines",
        ("kind", ">machines", "chosen", ">measured ms", ">best other device ms", ">spread"),
        [
            (
                row["kind"],
                len(row["machines"]),
                row["chosen"] or "missing",
                number_text((row["confirmation"] or {}).get("ms")),
                number_text((row["confirmation"] or {}).get("best_device_ms")),
                spread_text(row["spread"], len(row["machines"])),
            )
            for row in rows
        ],
    )
    for row in rows:
        if row["decision"]:
            print_sentence(f"* {row['kind']}: {row['decision']}; {_confirmed(row)}")
    say_outliers(rows)
    for row in rows:
        if row["annotated_model"]:
            print_sentence(f"wrote {row['annotated_model']} and {row['affinity_file']}")


def _confirmed(row: dict[str, Any]) -> str:
    """What the last race said, in words."""
    found = row["confirmation"]
    where = f"on {row['raced_on']}"
    if found["ratio"] is None:
        return f"decided {where}"
    ratio, low, high = found["ratio"]
    took = f"{ratio:.3f} of the time of {found['best_device']} ({low:.3f} to {high:.3f})"
    if found["holds"] is None:
        return f"a last race {where}, which is busy, tells nothing: it took {took}"
    return f"in a last race {where} it took {took}"
