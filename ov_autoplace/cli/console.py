"""What every command prints with: results on stdout; progress, notes and errors on stderr."""

from __future__ import annotations

import io
import json
import logging
import math
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from rich import table as rich_table
from rich.cells import chop_cells
from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.text import Text

from ov_autoplace._base import text as wording
from ov_autoplace._base.progress import Progress as ProgressCallback
from ov_autoplace._base.text import printable, printable_json
from ov_autoplace.cli.tables import columns_of, layout_of, shortened

if TYPE_CHECKING:
    from ov_autoplace.explain.tables import Table

__all__ = [
    "bytes_text",
    "fail",
    "log_handler",
    "make_writable",
    "milliseconds",
    "note",
    "print_json",
    "print_sentence",
    "print_table",
    "progress_bar",
    "show",
]

# A table that is piped into a file is wider than this only where names of ops are too long.
_PIPE_WIDTH = 160
_HANGING = "  "


def _stdout() -> Console:
    # Made for each use, because a test or a caller may have replaced sys.stdout.
    return Console(file=sys.stdout, width=None if _is_narrow() else _PIPE_WIDTH, highlight=False)


def _is_narrow() -> bool:
    """Whether lines end somewhere: on a terminal, or where the user says how wide it is."""
    return sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()


def _is_unicode() -> bool:
    """Whether stdout takes every character."""
    return (sys.stdout.encoding or "").lower().startswith("utf")


def _stderr() -> Console:
    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


def make_writable() -> None:
    """Make stdout and stderr take everything.

    Closed ones take it nowhere; those of a locale without Unicode show as escapes what they cannot write.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            # Open as long as the program runs.
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def fail(sentence: str) -> None:
    """Print why the program leaves."""
    _stderr().print(f"[bold red]error:[/] {_text(_one_line(sentence))}")


def note(sentence: str) -> None:
    """Print something that the user should know, but that stops nothing."""
    _stderr().print(f"[yellow]note:[/] {_text(_one_line(sentence))}")


def print_sentence(sentence: str) -> None:
    """Print a part of the result that is no table."""
    _stdout().print(_text(sentence), soft_wrap=True)


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table that fits the terminal; a column that is empty in all rows is left out.

    Where there is too little room, names lose their middles and sentences are printed below; where there is
    less still, each row is a list. In a pipe nothing is lost.

    Args:
        title: Plain text, as all cells are: nothing in it is taken for markup.
        columns: Headings; ``>`` in front of one aligns its column right, ``~`` says that it holds sentences,
            and then ``?`` that it may be left out where there is no room.
        rows: Cells; ``None`` prints as a dash.
    """
    console = _stdout()
    texts = [[None if cell is None else _plain(str(cell)) for cell in row] for row in rows]
    found = columns_of(columns, texts)
    layout = layout_of(found, console.width)
    if not _is_narrow() and layout.loses(found):
        # What a file is written with does not end at the width of any terminal.
        console.width += sum(column.natural for column in found)
        layout = layout_of(found, console.width)
    console.print(f"[bold]{_text(title)}[/]", soft_wrap=True)
    if not layout.columns:
        for name, *values in zip(*(column.cells for column in found), strict=True):
            said = [
                f"{_one_line(c.heading)} {value}" for c, value in zip(found[1:], values, strict=True) if value
            ]
            console.print(f"[bold]{escape(name)}[/]: {escape(', '.join(said))}")
        return
    if len(layout.columns) == 1 and layout.below:  # a table of names alone would say nothing
        for i, name in enumerate(found[0].cells):
            console.print(f"[bold]{escape(name)}[/]")
            for column in layout.below:
                if column.cells[i]:
                    _print_hanging(console, f"{_one_line(column.heading)}: {column.cells[i]}")
        return
    table = rich_table.Table()
    for column, width in layout.columns:
        side: Literal["left", "right"] = "right" if column.kind == ">" else "left"
        table.add_column(escape(column.heading), justify=side, overflow="fold", width=width)
    cells = [c.cells if c.kind else _folded(c.cells, width) for c, width in layout.columns]
    for row in zip(*cells, strict=True):
        table.add_row(*map(escape, row))
    console.print(table)
    for column in layout.below:
        console.print(f"[bold]{escape(_one_line(column.heading))}[/]")
        for name, text in zip(found[0].cells, column.cells, strict=True):
            if text:
                _print_hanging(console, f"{name}: {text}")


def show(table: Table) -> None:
    """Print a table, of which rows that stand out have a star, and the sentences below it."""
    rest = "  " if table.strong and table.columns[0].startswith(">") else ""
    marks = [" *" if i in table.strong else rest for i in range(len(table.rows))]
    rows = [(row[0] + mark, *row[1:]) for row, mark in zip(table.rows, marks, strict=True)]
    if rows:
        print_table(table.title, table.columns, rows)
    for sentence in table.notes:
        print_sentence(sentence)


def _print_hanging(console: Console, line: str) -> None:
    """Print an indented line, and what it goes on with one step further in."""
    if not _is_narrow():
        console.print(f"{_HANGING}{escape(line)}", soft_wrap=True)
        return
    parts = Text(line).wrap(console, max(console.width - 2 * len(_HANGING), 1))
    for i, part in enumerate(parts):
        console.print(
            _HANGING * (1 if i == 0 else 2), part.plain.rstrip(), sep="", soft_wrap=True, markup=False
        )


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; infinite numbers, which JSON does not have, become ``null``."""
    text = json.dumps(_finite(value), indent=1, ensure_ascii=not _is_unicode(), allow_nan=False)
    sys.stdout.write(printable_json(text) + "\n")


@contextmanager
def progress_bar() -> Iterator[ProgressCallback]:
    """A bar on stderr, nothing when that is no terminal; yields what moves it."""
    console = _stderr()
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def move(done: int, total: int, text: str) -> None:
            progress.update(task, completed=done, total=total or None, description=printable(text))

        yield move


def log_handler() -> logging.Handler:
    """Shows the package's own log records on stderr."""
    handler = RichHandler(console=_stderr(), show_time=False, show_path=False, markup=False, highlighter=None)
    handler.setFormatter(_PrintableFormatter("%(message)s"))
    said: set[str] = set()
    # What two parts of a command find out each for itself is said once.
    handler.addFilter(lambda it: it.levelno < logging.WARNING or not _is_in(said, it.getMessage()))
    return handler


def _is_in(said: set[str], message: str) -> bool:
    """Whether a message is among those said; from now on it is."""
    known = message in said
    said.add(message)
    return known


class _PrintableFormatter(logging.Formatter):
    """Lets nothing through that a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def milliseconds(seconds: float | None) -> str | None:
    """``0.0123`` as ``12.300``; ``None`` stays, as what is not finite does."""
    return None if seconds is None or not math.isfinite(seconds) else wording.milliseconds(seconds)


def bytes_text(size: float | None) -> str | None:
    """A number of bytes in binary units; ``None`` stays."""
    return None if size is None or not math.isfinite(size) else wording.bytes_text(size)


def _text(text: str) -> str:
    """Plain text as rich prints it: no markup, nothing that a terminal would obey."""
    return escape(_plain(text))


def _plain(text: str) -> str:
    """Nothing that a terminal would obey, and of our own signs those that it can show."""
    text = printable(text)
    return text if _is_unicode() else text.replace("±", "+/-")


def _folded(names: Sequence[str], width: int) -> list[str]:
    """Shortened names in lines of ``width`` characters, whatever is in them."""
    return ["\n".join(chop_cells(name, width)) for name in _shortened(names, width)]


def _shortened(names: Sequence[str], width: int) -> list[str]:
    return shortened(names, width, "…" if _is_unicode() else "..")


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
