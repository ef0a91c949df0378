"""What commands write: ``--report`` and ``--trace``, and the folders of all output."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ov_autoplace._base.files import make_folder, staged_folder
from ov_autoplace.cli.console import print_sentence
from ov_autoplace.errors import OutputError

if TYPE_CHECKING:
    from ov_autoplace.explain.answer import Answer
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.report.contents import Contents

__all__ = [
    "ReportFile",
    "TraceFile",
    "check_distinct",
    "check_file",
    "check_folder",
    "check_outputs",
    "made_folder",
    "save_answer",
    "save_report",
]

ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--report",
        metavar="FILE.html",
        help="Write a page to look at: schedule, ops, latencies.",
    ),
]
TraceFile = Annotated[
    Path | None,
    typer.Option("--trace", metavar="FILE.json", help="Write the run as a trace for ui.perfetto.dev."),
]


# What follows a dot in these is part of a file's name, and of no folder that anybody means.
_FILE_SUFFIXES = (".bin", ".blob", ".html", ".json", ".jsonl", ".onnx", ".safetensors", ".xml")


def check_folder(folder: Path) -> None:
    """Refuse now a folder that could not be written, or made, after minutes of measuring; makes nothing.

    Raises:
        OutputError: It cannot, or is no folder, or would be one with the name of a file.
    """
    if folder.suffix.lower() in _FILE_SUFFIXES and not folder.is_dir():
        raise OutputError(f"cannot write to {folder}: it is a file's name; give the name of a folder")
    if folder.exists() and not folder.is_dir():
        raise OutputError(f"cannot write to {folder}: it is a file, not a folder")
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


def check_distinct(outputs: Sequence[Path | None], models: Sequence[Path] = ()) -> None:
    """Refuse files that would take the place of each other, or of what is read.

    Args:
        outputs: Files to be written; ``None`` counts for nothing.
        models: Models and other files that are read; the weights of models count, too.

    Raises:
        OutputError: Two of them are the same.
    """
    read = list(models)
    read += [model.with_suffix(".bin") for model in models if model.name]  # "." and "/" have no name
    written: list[Path] = []
    for path in outputs:
        if path is None:
            continue
        if any(_are_same(path, other) for other in read):
            raise OutputError(f"cannot write {path}: it belongs to what is read; give another name")
        if any(_are_same(path, other) for other in written):
            raise OutputError(f"cannot write {path}: two outputs have this name; give one of them another")
        written.append(path)


def _are_same(first: Path, second: Path) -> bool:
    try:
        return first.samefile(second)
    except OSError:  # one of them is not there yet
        return os.path.realpath(first) == os.path.realpath(second)


@contextmanager
def made_folder(folder: Path) -> Iterator[None]:
    """Make a folder and its parents where they are missing, to write into; a failure takes them away again.

    Raises:
        OutputError: It cannot be made.
    """
    missing = [path for path in (folder, *folder.absolute().parents) if not os.path.lexists(path)]
    try:
        make_folder(folder)
        yield
    except BaseException:
        with suppress(OSError, ValueError):  # somebody else may have put something there meanwhile
            for path in missing:
                path.rmdir()
        raise


def check_outputs(report: Path | None, trace: Path | None = None, models: Sequence[Path] = ()) -> None:
    """:func:`check_file` and :func:`check_distinct` of the files that were asked for.

    Raises:
        OutputError: One cannot be written.
        OptionError: The library that draws the report is not installed.
    """
    for path in (report, trace):
        if path is not None:
            check_file(path)
    check_distinct((report, trace), models)
    if report is not None:
        from ov_autoplace.report import require_library

        require_library(report)


def save_answer(
    report: Path | None,
    trace: Path | None,
    answer: Answer,
    quiet: bool,
    measured: MeasuredRun | None = None,
) -> None:
    """Write what was asked for of a placement.

    Args:
        report: The page, or ``None`` when it was not asked for.
        trace: The same of the trace.
        answer: The placement.
        quiet: Say nothing, because stdout holds a JSON object.
        measured: Its run on the devices.
    """
    if report is not None:
        from ov_autoplace.report.contents import placement_contents

        save_report(report, placement_contents(answer, measured), quiet)
    if trace is not None:
        from ov_autoplace.explain.trace import write_trace

        with made_folder(trace.parent):
            write_trace(trace, answer.title, answer.explanation, measured)
        if not quiet:
            print_sentence(f"wrote {trace}; open it at https://ui.perfetto.dev or chrome://tracing")


def save_report(path: Path, contents: Contents, quiet: bool) -> None:
    """Write a page; the arguments are those of :func:`save_answer`."""
    from ov_autoplace.report import write_report

    with made_folder(path.parent):
        write_report(contents, path)
    if not quiet:
        print_sentence(f"wrote {path}")
