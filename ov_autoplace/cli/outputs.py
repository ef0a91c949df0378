"""What commands write: ``--report`` and ``--trace``, and the folders of all output."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ov_autoplace._base.files import staged_folder
from ov_autoplace.cli.console import print_sentence
from ov_autoplace.errors import OutputError

if TYPE_CHECKING:
    from ov_autoplace.cli.request import Request
    from ov_autoplace.decide.options import PlacerOptions
    from ov_autoplace.explain.explanation import Explanation
    from ov_autoplace.explain.what_if import WhatIf
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.placement.placement import Placement
    from ov_autoplace.report.contents import Contents

__all__ = [
    "ReportFile",
    "TraceFile",
    "changes_of",
    "check_file",
    "check_folder",
    "check_outputs",
    "made_folder",
    "save_placement",
    "save_report",
    "save_trace",
]

ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report", metavar="FILE.html", help="Write a page to look at: schedule, placement graph, latencies."
    ),
]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE.json", help="Write the run as a trace for ui.perfetto.dev."),
]


def check_folder(folder: Path) -> None:
    """Refuse now a folder that could not be written, or made, after minutes of measuring; makes nothing.

    Raises:
        OutputError: It cannot, or is no folder.
    """
    with staged_folder(next(path for path in (folder, *folder.absolute().parents) if os.path.lexists(path))):
        pass


def check_file(path: Path) -> None:
    """The same of a file in a folder that may be missing.

    Raises:
        OutputError: It cannot be written, or is a folder.
    """
    if path.is_dir():
        raise OutputError(f"cannot write {path}: it is a folder; give the name of a file")
    check_folder(path.parent)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents where they are missing, to write into; a failure takes them away again.

    Raises:
        OutputError: It cannot be made.
    """
    missing = [path for path in (folder, *folder.absolute().parents) if not os.path.lexists(path)]
    try:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as cause:
            reason = (cause.strerror or str(cause)).lower()
            raise OutputError(f"cannot make the folder {folder}: {reason}") from cause
        yield
    except BaseException:
        with suppress(OSError):  # somebody else may have put something there meanwhile
            for path in missing:
                path.rmdir()
        raise


def check_outputs(report: Path | None, trace: Path | None = None) -> None:
    """:func:`check_file` of the files that were asked for.

    Raises:
        OptionError: The library that draws the report is not installed.
        OutputError: One cannot be written.
    """
    if report is not None:
        from ov_autoplace.report import require_library

        require_library()
    for path in (report, trace):
        if path is not None:
            check_file(path)


def save_report(path: Path | None, contents: Contents, quiet: bool) -> None:
    """Write the page.

    Args:
        path: The file.
        contents: What it shows.
        quiet: Say nothing, because stdout holds a JSON object.
    """
    if path is None:
        return
    from ov_autoplace.report import write_report

    with made_folder(path.parent):
        write_report(contents, path)
    if not quiet:
        print_sentence(f"wrote {path}")


def save_trace(
    path: Path | None, title: str, explanation: Explanation, quiet: bool, measured: MeasuredRun | None = None
) -> None:
    """Write the trace; the arguments are those of :func:`save_report`."""
    if path is None:
        return
    from ov_autoplace.explain.trace import write_trace

    with made_folder(path.parent):
        write_trace(path, title, explanation, measured)
    if not quiet:
        print_sentence(f"wrote {path}; open it at https://ui.perfetto.dev or chrome://tracing")


def changes_of(explanation: Explanation, options: PlacerOptions) -> list[WhatIf]:
    """What would change the answer, under the pins and limits of the request."""
    from ov_autoplace.explain.what_if import what_ifs

    return what_ifs(
        explanation.table,
        explanation.assignment,
        objective=explanation.objective,
        priority=explanation.priority,
        memory_limits=options.memory_limits,
        pins=options.pins,
        seed=options.seed,
    )


def save_placement(
    report: Path | None,
    trace: Path | None,
    request: Request,
    placement: Placement,
    devices: str | None,
    options: PlacerOptions,
    quiet: bool,
) -> None:
    """Write what was asked for of a placement that was decided.

    Args:
        report: The page, or ``None`` when it was not asked for.
        trace: The same of the trace.
        request: The model.
        placement: Its placement.
        devices: As the user named them.
        options: The placer's.
        quiet: Say nothing, because stdout holds a JSON object.
    """
    if report is None and trace is None:
        return
    from ov_autoplace.cli.request import decision_of

    explanation = request.explanation(placement, devices, options)
    title = str(request.path)
    if report is not None:
        from ov_autoplace.report.contents import placement_contents

        changes = changes_of(explanation, options)
        save_report(report, placement_contents(title, decision_of(placement), explanation, changes), quiet)
    save_trace(trace, title, explanation, quiet)
