"""``ov-autoplace annotate``: decides, and writes the annotated model and the affinity file."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, show
from ov_autoplace.cli.outputs import (
    ReportFile,
    TraceFile,
    check_distinct,
    check_file,
    check_folder,
    check_outputs,
    made_folder,
    save_answer,
)
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.cli.request import Request
    from ov_autoplace.plan.decision import Decision
    from ov_autoplace.plan.placement import Placement
    from ov_autoplace.plugin.annotated_files import AnnotatedFiles

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
    fit: Annotated[
        bool,
        typer.Option(
            "--fit",
            help="Write nothing: show which part of the model goes to each device, and the memory it takes.",
        ),
    ] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Folder for the files, or NAME.xml for the annotated model; folders are made.",
            show_default="the model's own",
        ),
    ] = None,
    page: ReportFile = None,
    trace: TraceFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Decide, and write MODEL.autoplace.xml with its .bin, and MODEL.affinity.json.

    With -o NAME.xml they are NAME.xml with its .bin, and NAME.affinity.json.

    With --executor auto or overlap the model may be divided into lanes. Programs then need this package's
    library to read it (ov-autoplace extension); by default it runs everywhere.
    """
    if fit and (unused := _first_given(output=output, report=page, trace=trace)):
        raise OptionError(f"--fit writes nothing, so --{unused} has no use; leave one of them away")
    check_outputs(page, trace, [model])
    from ov_autoplace.cli.request import decision_of, open_model
    from ov_autoplace.plan import fitting
    from ov_autoplace.plugin.annotated_files import save_fitted

    request = open_model(model)
    files = None if fit else _files(request, output)
    if files:
        check_distinct((*files, files.weights, page, trace))
    placement, fitted = (
        request.given_fitted(affinity, devices) if affinity else request.search_fitted(devices, options)
    )
    if files is None:
        _show_fit(request, placement, devices, options, as_json)
        return
    start = time.perf_counter()
    fitted = fitted or fitting.fit(request.model, placement)
    with made_folder(files.model.parent):
        is_needed = page is not None or trace is not None
        placement = save_fitted(fitted, files, in_place=not is_needed)
    # The file is for the model as it was given, whose shape computations are not folded.
    affinities, submodels = placement.to_dict(), fitted.submodels
    if placement.given is not None:
        submodels = fitted.submodels_as_given(affinities)
    decision = decision_of(placement)
    seconds = {"read": request.seconds, **decision.seconds, "write": time.perf_counter() - start}
    report: dict[str, Any] = {
        "model": str(model),
        # A placement may use fewer devices than were considered.
        "devices": list(decision.table.devices if decision.table is not None else placement.devices),
        **decision.to_json(),
        "subgraphs": decision.candidate(decision.chosen).subgraphs,
        "ops_per_device": dict(Counter(placement.decided().values()).most_common()),
        "affinity_file": str(files.affinities),
        "affinity_subgraphs": submodels,
        "affinity_ops_per_device": dict(Counter(affinities.values()).most_common()),
        "annotated_model": str(files.model),
        "seconds": seconds,
    }
    if not as_json:
        _print_summary(report, decision)
    if page or trace:
        save_answer(page, trace, request.explained(placement, devices, options), as_json)
    if as_json:
        print_json(report)


def _show_fit(
    request: Request, placement: Placement, devices: str | None, options: PlacerOptions, as_json: bool
) -> None:
    from ov_autoplace.cli.fit import fit_of, overfull, print_fit
    from ov_autoplace.cli.request import decision_of

    decision = decision_of(placement)
    report = {
        "model": str(request.path),
        **decision.to_json(),
        **fit_of(request, placement, devices, options),
    }
    if as_json:
        print_json(report)
    else:
        print_fit(
            f"{request.path}, which would go to {', '.join(dict.fromkeys(placement.decided().values()))}",
            report,
        )
        print_sentence(f"* {decision.reason}")
    if overfull(report):
        raise typer.Exit(1)


def _first_given(**options: Path | None) -> str:
    return next((name for name, value in options.items() if value is not None), "")


def _files(request: Request, output: Path | None) -> AnnotatedFiles:
    """What to write, checked as far as it can be before anything is decided.

    Raises:
        OutputError: It cannot be written, or would take the place of the model.
    """
    from ov_autoplace.plugin.annotated_files import AnnotatedFiles

    if output is None or output.suffix.lower() != ".xml":
        folder = output if output is not None else request.path.parent
        check_folder(folder)
        return AnnotatedFiles.of(folder, request.stem)
    files = AnnotatedFiles.named(output)
    for path in (*files, files.weights):
        check_file(path)
    check_distinct((*files, files.weights), [request.path])
    return files


def _print_summary(report: dict[str, Any], decision: Decision) -> None:
    from ov_autoplace.explain.candidates import candidates_table, row_of

    mode = decision.mode.lower().replace("_", "-")
    print_sentence(f"{report['model']} on {', '.join(report['devices'])} ({mode})")
    rows = [row_of(c, chosen=c is decision.winner) for c in decision.candidates]
    show(candidates_table(rows, decision.rate_bound))
    print_sentence(f"* {decision.reason}")
    ops = _ops(report["ops_per_device"])
    took = sum(report["seconds"].values())
    print_sentence(f"ops: {ops}; subgraphs: {report['subgraphs']}; decided in {took:.1f} s")
    if report["affinity_subgraphs"] != report["subgraphs"]:
        print_sentence(
            f"the affinity file is for {report['model']} as it is, where fewer cuts are possible: "
            f"ops: {_ops(report['affinity_ops_per_device'])}; subgraphs: {report['affinity_subgraphs']}"
        )
    if report["lanes"]:
        print_sentence(
            f"the annotated model runs on {counted(report['lanes'], 'lane')}: programs need the library that "
            "`ov-autoplace extension` names to read it"
        )
    print_sentence(f"wrote {report['annotated_model']} and {report['affinity_file']}")


def _ops(per_device: dict[str, int]) -> str:
    return ", ".join(f"{device} {count}" for device, count in per_device.items())
