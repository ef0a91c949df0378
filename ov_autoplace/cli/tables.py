"""Tables that fit the terminal: names are shortened in the middle, sentences go below."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise, takewhile

from rich.cells import cell_len

__all__ = ["Column", "Layout", "columns_of", "layout_of", "shortened"]

_SHORTEST_NAME, _SHORTEST_PROSE = 16, 20
_MOST_LINES = 3  # in a cell
_FRAME, _GAP = 1, 3  # of a table, and of each column: a line and a blank on both sides


@dataclass(frozen=True)
class Column:
    """A column of a table.

    Attributes:
        heading: Plain text; it may have several lines.
        cells: One per row.
        kind: ``>`` = numbers, aligned right and never shortened; ``~`` = sentences; ``""`` = names.
        is_optional: Whether it is left out where there is no room for it.
    """

    heading: str
    cells: tuple[str, ...]
    kind: str = ""
    is_optional: bool = False

    @property
    def natural(self) -> int:
        """The width in which nothing is wrapped or shortened."""
        return max(map(cell_len, (*self.heading.splitlines(), *self.cells)), default=0)

    @property
    def least(self) -> int:
        """The width below which it is hard to read."""
        cells = max(map(cell_len, self.cells), default=0)
        if self.kind == "~":
            # Lines end with words, so they are not full.
            cells = min(cells, max(_SHORTEST_PROSE, math.ceil(1.2 * cells / _MOST_LINES)))
        elif not self.kind:
            cells = min(cells, _SHORTEST_NAME)
        return max(cells, *map(cell_len, self.heading.split() or [""]))


@dataclass(frozen=True)
class Layout:
    """How a table is shown.

    Attributes:
        columns: Those that are in it, with their widths; none where the table has no room at all.
        below: Those whose cells are sentences below it.
    """

    columns: tuple[tuple[Column, int], ...]
    below: tuple[Column, ...]

    def loses(self, columns: Sequence[Column]) -> bool:
        """Whether some of all columns are left out, or names are shortened."""
        shortens = any(not column.kind and column.natural > width for column, width in self.columns)
        return shortens or not self.columns or len(self.columns) + len(self.below) < len(columns)


def columns_of(headings: Sequence[str], rows: Sequence[Sequence[str | None]]) -> list[Column]:
    """Columns from rows; one that is empty in all rows is left out, and an empty cell is a dash.

    Args:
        headings: Each behind the mark of its kind, see :class:`Column`, and ``?`` where it is optional.
        rows: Cells, ``None`` or empty where there is nothing to say.
    """
    columns = []
    for i, heading in enumerate(headings):
        cells = [row[i] for row in rows]
        if rows and not any(cells):
            continue
        kind = heading[:1] if heading[:1] in (">", "~") else ""
        nothing = "" if kind == "~" else "-"
        text = heading[len(kind) :]
        texts = tuple(cell or nothing for cell in cells)
        columns.append(Column(text.removeprefix("?"), texts, kind, text.startswith("?")))
    return columns


def layout_of(columns: Sequence[Column], width: int) -> Layout:
    """What is shown where.

    Args:
        columns: All of them.
        width: Of the terminal, in characters.
    """
    shown, below = list(columns), list[Column]()
    while _room(shown, width) < sum(column.least for column in shown):
        prose = [column for column in shown[1:] if column.kind == "~"]
        spared = prose or [column for column in shown[1:] if column.is_optional]
        if not spared:
            return Layout((), tuple(columns))
        shown.remove(spared[-1])
        below[:0] = prose[-1:]
    widths = {id(column): column.least for column in shown}
    spare = _room(shown, width) - sum(widths.values())
    # What is spare goes to names, then to sentences, then to headings.
    for kind in ("", "~", ">"):
        wanting = [column for column in shown if column.kind == kind]
        for waiting, column in enumerate(sorted(wanting, key=lambda c: c.natural - c.least), start=1):
            share = spare // (len(wanting) - waiting + 1)
            grown = min(share, column.natural - column.least)
            widths[id(column)] += grown
            spare -= grown
    return Layout(tuple((column, widths[id(column)]) for column in shown), tuple(below))


def shortened(names: Sequence[str], width: int, ellipsis: str = "…") -> list[str]:
    """Names without their middles, in lines of ``width`` characters: one line, or as few as tell them apart.

    Names of ops say by their ends what they are, unless several end alike; then that is left out.
    """
    if max(map(cell_len, names), default=0) <= width:
        return list(names)
    best: list[str] = []
    for lines in range(1, _MOST_LINES + 1):
        for tails in ([""] * len(names), _shared_ends(names)):
            for part in (3, 2, 1):
                cut = zip(names, tails, strict=True)
                found = [_without_middle(name, tail, lines * width, part, ellipsis) for name, tail in cut]
                if len(set(found)) > len(set(best)):
                    best = found
        if len(set(best)) == len(set(names)):
            break
    return best


def _without_middle(name: str, tail: str, length: int, part: int, ellipsis: str) -> str:
    """A name of at most ``length`` characters, of which one part in so many is its beginning."""
    if cell_len(name) <= length:
        return name
    rest, end = name.removesuffix(tail), ellipsis if tail else ""
    kept = max(length - cell_len(ellipsis + end), 2)
    if cell_len(rest) <= kept:
        return rest + end
    head = kept // part
    return rest[:head] + ellipsis + rest[len(rest) - (kept - head) :] + end


def _shared_ends(names: Sequence[str]) -> list[str]:
    """What each name ends with as another one does, from a ``/`` on."""
    backwards = sorted({name[::-1] for name in names})
    shared = dict.fromkeys(backwards, "")
    for one, other in pairwise(backwards):
        end = "".join(a for a, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
        for name in (one, other):
            shared[name] = max(shared[name], end, key=len)
    ends = (shared[name[::-1]][::-1] for name in names)
    return [end[end.find("/") :] if "/" in end else "" for end in ends]


def _room(columns: Sequence[Column], width: int) -> int:
    """Characters for cells."""
    return width - _FRAME - _GAP * len(columns)
