"""``ov-autoplace annotate``: decides, and writes the annotated model and the affinity file."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, print_table
from ov_autoplace.cli.outputs import (
    ReportFile,
    TraceFile,
    check_folder,
    check_outputs,
    made_folder,
    save_placement,
)
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions

__all__ = ["annotate"]


@with_placer_options(executor="HETERO")
def annotate(
    model: arguments.Model,
    *,
    devices: arguments.Devices = None,
    options: PlacerOptions,
    affinity: Annotated[
        Path | None, typer.Option(help="Apply this affinity file instead of searching.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="Folder for the files; it is made.", show_default="the model's own"
        ),
    ] = None,
    page: ReportFile = None,
    trace: TraceFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Decide, and write MODEL.autoplace.xml with its .bin, and MODEL.affinity.json.

    With --executor auto or overlap the model may be divided into lanes. Programs then need this package's
    library to read it (ov-autoplace extension); by default it runs everywhere.
    """
    check_outputs(page, trace)
    from ov_autoplace.cli.request import decision_of, open_model
    from ov_autoplace.decide.unfolding import unfolded
    from ov_autoplace.placement.fitting import count_subgraphs
    from ov_autoplace.plugin.annotated_files import save_annotated

    request = open_model(model)
    folder = output if output is not None else model.parent
    check_folder(folder)
    placement = request.given(affinity, devices) if affinity else request.search(devices, options)
    start = time.perf_counter()
    placement = unfolded(request.model, placement) if placement.given is None else placement
    with made_folder(folder):
        files = save_annotated(request.model, placement, folder, request.stem)
    decision = decision_of(placement)
    seconds = {"read": request.seconds, **decision.seconds, "write": time.perf_counter() - start}
    report: dict[str, Any] = {
        "model": str(model),
        # A placement may use fewer devices than were considered.
        "devices": list(decision.table.devices if decision.table is not None else placement.devices),
        "mode": decision.mode,
        "predicted_ms": {
            c.name: c.predicted_seconds * 1e3 for c in decision.candidates if c.predicted_seconds is not None
        },
        "measured_ms": {
            c.name: c.measured_seconds * 1e3 for c in decision.candidates if c.measured_seconds is not None
        },
        "chosen": decision.chosen,
        "width": None if placement.width is None else str(placement.width),
        "lanes": None if placement.plan is None else len(placement.plan.lanes),
        "decision": decision.reason,
        "also_proposed_by": {c.name: list(c.also) for c in decision.candidates if c.also},
        "subgraphs": decision.candidate(decision.chosen).subgraphs,
        "ops_per_device": dict(Counter(placement.decided().values()).most_common()),
        "affinity_file": str(files.affinities),
        # The file is for the model as it was given, whose shape computations are not folded.
        "affinity_subgraphs": count_subgraphs(request.model, placement.to_dict()),
        "affinity_ops_per_device": dict(Counter(placement.to_dict().values()).most_common()),
        "annotated_model": str(files.model),
        "seconds": seconds,
    }
    if as_json:
        print_json(report)
    else:
        _print_summary(report, decision)
    save_placement(page, trace, request, placement, devices, options, as_json)


def _print_summary(report: dict[str, Any], decision: Any) -> None:
    from ov_autoplace.cli.request import candidate_rows

    print_table(
        f"{report['model']} on {', '.join(report['devices'])} ({decision.mode.lower().replace('_', '-')})",
        (
            "candidate",
            ">predicted ms",
            ">measured ms",
            ">samples",
            ">subgraphs",
            "also proposed by",
            "left out",
        ),
        candidate_rows(decision.candidates, decision.chosen),
    )
    print_sentence(f"* {decision.reason}")
    ops = _ops(report["ops_per_device"])
    print_sentence(f"ops: {ops}; subgraphs: {report['subgraphs']}; {sum(report['seconds'].values()):.1f} s")
    if report["affinity_subgraphs"] != report["subgraphs"]:
        print_sentence(
            f"the affinity file is for {report['model']} as it is, where fewer cuts are possible: "
            f"ops: {_ops(report['affinity_ops_per_device'])}; subgraphs: {report['affinity_subgraphs']}"
        )
    if report["lanes"]:
        print_sentence(
            f"the annotated model runs on {report['lanes']} lanes: programs need the library that "
            "`ov-autoplace extension` names to read it"
        )
    print_sentence(f"wrote {report['annotated_model']} and {report['affinity_file']}")


def _ops(per_device: dict[str, int]) -> str:
    return ", ".join(f"{device} {count}" for device, count in per_device.items())
