"""Tables as HTML; every cell is escaped, and where there is no room each row becomes a list of its cells."""

from __future__ import annotations

import re
from collections.abc import Sequence
from html import escape

__all__ = ["table"]

_SHORT, _LONG = 11, 18  # characters
_PART_ENDS = re.compile(r"(?<=[A-Za-z0-9][._/:])(?=[A-Za-z])|(?<=[a-z])(?=[A-Z])")
_PIECE = re.compile(rf"(?:\S{{1,{_LONG}}}(?!\S)|\s)+|\S{{{_LONG}}}")


def table(
    heads: Sequence[str],
    rows: Sequence[Sequence[str]],
    *,
    strong: Sequence[int] = (),
    swatches: Sequence[str] = (),
) -> str:
    """A table without the columns that are empty.

    Args:
        heads: Headings; a leading ``>`` aligns a column right, as numbers are.
        rows: Cells.
        strong: Numbers of the rows that stand out.
        swatches: Colours beside the first cells, one for each row.
    """
    kept = [i for i in range(len(heads)) if any(row[i] for row in rows)]
    sides = [
        _side(head.startswith(">"), max((len(row[i]) for row in rows), default=0))
        for i, head in enumerate(heads)
    ]
    names = [escape(head.lstrip(">")) for head in heads]
    head = "".join(f'<th scope="col"{sides[i]}>{names[i]}</th>' for i in kept)
    lines = []
    for r, row in enumerate(rows):
        opening = '<tr class="strong">' if r in strong else "<tr>"
        cells = []
        for i in kept:
            swatch = _swatch(swatches[r]) if swatches and i == kept[0] else ""
            named = f' data-head="{names[i]}"' if row[i] else ""
            cells.append(f"<td{sides[i]}{named}>{swatch}{_breakable(row[i])}</td>")
        lines.append(f"{opening}{''.join(cells)}</tr>")
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(lines)}</tbody>"
    return f'<div class="wide"><table>{body}</table></div>'


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
