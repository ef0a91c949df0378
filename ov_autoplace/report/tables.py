"""Tables as HTML; every cell is escaped, and where there is no room each row becomes a list of its cells."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape

from ov_autoplace.explain.tables import Table
from ov_autoplace.report.palette import MUTED

__all__ = ["note", "table"]

_SHORT, _LONG = 11, 18  # characters
_PART_ENDS = re.compile(r"(?<=[A-Za-z0-9][._/:])(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])")
_PIECE = re.compile(rf"(?:\S{{1,{_LONG}}}(?!\S)|\s)+|\S{{{_LONG}}}")


def note(*sentences: str) -> str:
    """Something to know before one looks."""
    return f'<p class="note">{escape(" ".join(filter(None, sentences)))}</p>'


def table(shown: Table, swatches: Mapping[str, str] | None = None) -> str:
    """A table without the columns that are empty, and the sentences below it; nothing without both.

    Args:
        shown: The table.
        swatches: Colours beside the first cells, by their text.
    """
    below = "".join(map(note, shown.notes))
    if not shown.rows:
        return below
    kept = [i for i in range(len(shown.columns)) if any(row[i] for row in shown.rows)]
    names = [escape(" ".join(head.lstrip(">~?").split())) for head in shown.columns]
    sides = [
        _side(head.startswith(">"), max(len(row[i]) for row in shown.rows))
        for i, head in enumerate(shown.columns)
    ]
    head = "".join(f'<th scope="col"{sides[i]}>{names[i]}</th>' for i in kept)
    lines = []
    for r, row in enumerate(shown.rows):
        opening = '<tr class="strong">' if r in shown.strong else "<tr>"
        cells = []
        for i in kept:
            swatch = _swatch(swatches.get(row[i], MUTED)) if swatches is not None and i == kept[0] else ""
            named = f' data-head="{names[i]}"' if row[i] else ""
            cells.append(f"<td{sides[i]}{named}>{swatch}{_breakable(row[i])}</td>")
        lines.append(f"{opening}{''.join(cells)}</tr>")
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="wide"><table>{body}</table></div>{below}'


def _side(is_number: bool, longest: int) -> str:
    """Numbers stand at the right; words and names are kept whole, and long texts get some room."""
    size = "name" if longest > _SHORT else "word"
    kind = f"n {size}" if is_number else "long" if longest > _LONG else size
    return f' class="{kind}"'


def _breakable(text: str) -> str:
    """Escaped text that may go on in the next line behind what separates the parts of a name.

    A part that is itself long may be broken anywhere.
    """
    if len(text) <= _LONG:
        return escape(text)
    return "<wbr>".join(escape(piece) for part in _PART_ENDS.split(text) for piece in _PIECE.findall(part))


def _swatch(colour: str) -> str:
    return (
        f'<svg class="swatch" viewBox="0 0 1 1" aria-hidden="true">'
        f'<rect width="1" height="1" fill="{escape(colour)}"/></svg>'
    )
