"""Requests a second."""

from __future__ import annotations

from collections.abc import Sequence

from ov_autoplace._base.text import relative_difference
from ov_autoplace.placement.decision import RateRow
from ov_autoplace.report.document import note, section
from ov_autoplace.report.tables import table

__all__ = ["rates_section"]


def rates_section(rates: Sequence[RateRow], bound: float | None) -> str:
    """Ways to run many requests, with the rates of both ways to call them; empty where none was asked for."""
    if not rates:
        return ""
    heads = (
        "way to run them",
        ">in flight",
        ">predicted",
        ">measured, waiting threads",
        ">measured, queue",
        ">outputs differ by",
        "note",
    )
    rows = [
        (
            f"{row.name} (chosen)" if row.is_answer else row.name,
            str(row.requests),
            _rate(row.predicted),
            _rate(row.synchronous),
            _rate(row.asynchronous),
            relative_difference(row.output_difference),
            row.dropped,
        )
        for row in rates
    ]
    chosen = [i for i, row in enumerate(rates) if row.is_answer]
    most = (
        ""
        if bound is None
        else note(f"No mixture of placements is predicted to exceed {bound:,.0f} a second.")
    )
    ran = any(row.synchronous or row.asynchronous for row in rates)
    known = [("measured", ran), ("predicted", any(row.predicted for row in rates))]
    tag = " and ".join(what for what, is_known in known if is_known)
    return section("Requests a second", note(_WAYS, _BELOW), table(heads, rows, strong=chosen), most, tag=tag)


def _rate(per_second: float | None) -> str:
    return "" if per_second is None else f"{per_second:,.0f}"


_WAYS = (
    "Many requests in flight, called in both ways in which programs call: a thread per request that waits "
    "for it, and one thread that starts whichever request is idle (a queue)."
)
_BELOW = "All below is about one request."
