"""What every command prints with: results on stdout; progress, notes and errors on stderr."""

from __future__ import annotations

import json
import logging
import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.logging import RichHandler
from rich.markup import escape
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.tree import Tree

from ov_autoplace._base.progress import Progress as ProgressCallback
from ov_autoplace._base.text import printable, printable_json

__all__ = [
    "bytes_text",
    "fail",
    "log_handler",
    "milliseconds",
    "note",
    "print_json",
    "print_sentence",
    "print_table",
    "print_tree",
    "progress_bar",
]

# Names of ops can be long, and a table that is piped into a file must not lose their ends.
_PIPE_WIDTH = 160


def _stdout() -> Console:
    # Made for each use, because a test or a caller may have replaced sys.stdout.
    return Console(file=sys.stdout, width=None if sys.stdout.isatty() else _PIPE_WIDTH, highlight=False)


def _stderr() -> Console:
    return Console(file=sys.stderr, soft_wrap=True, highlight=False)


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
    """Print a table; a column that is empty in all rows is left out.

    Args:
        title: Plain text, as all cells are: nothing in it is taken for markup.
        columns: Headings; a leading ``>`` aligns the column right.
        rows: Cells; ``None`` prints as a dash.
    """
    kept = [i for i in range(len(columns)) if not rows or any(row[i] not in (None, "") for row in rows)]
    columns, rows = [columns[i] for i in kept], [[row[i] for i in kept] for row in rows]
    table = Table()
    for column in columns:
        right = column.startswith(">")
        table.add_column(_text(column.lstrip(">")), justify="right" if right else "left", overflow="fold")
    for row in rows:
        table.add_row(*("-" if cell is None else _text(str(cell)) for cell in row))
    console = _stdout()
    console.print(f"[bold]{_text(title)}[/]", soft_wrap=True)
    console.print(table)


def print_tree(title: str, branches: Sequence[tuple[str, Sequence[str]]]) -> None:
    """Print a tree of two levels; all of it is plain text."""
    tree = Tree(f"[bold]{_text(title)}[/]")
    for text, leaves in branches:
        branch = tree.add(_text(text))
        for leaf in leaves:
            branch.add(_text(leaf))
    _stdout().print(tree)


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON object; infinite numbers, which JSON does not have, become ``null``."""
    text = json.dumps(_finite(value), indent=1, ensure_ascii=False, allow_nan=False)
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
    return handler


class _PrintableFormatter(logging.Formatter):
    """Lets nothing through that a terminal would obey."""

    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def milliseconds(seconds: float | None) -> str | None:
    """``0.0123`` as ``12.300``; ``None`` stays."""
    return None if seconds is None or not math.isfinite(seconds) else f"{seconds * 1e3:.3f}"


def bytes_text(size: float | None) -> str | None:
    """A number of bytes in binary units; ``None`` stays."""
    if size is None or not math.isfinite(size):
        return None
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 1024 or unit == "GiB":
            break
        size /= 1024
    return f"{size:.0f} {unit}" if unit == "B" else f"{size:.1f} {unit}"


def _text(text: str) -> str:
    """Plain text as rich prints it: no markup, nothing that a terminal would obey."""
    return escape(printable(text))


def _one_line(text: str) -> str:
    return " ".join(text.split())


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
