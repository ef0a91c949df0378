"""The suite's results in Markdown: on the terminal, and the page of what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from textwrap import shorten
from typing import Any

from harness.result import Case, Claim, Result, Table

_SHOWN = 6  # cases of each section; benchmarks.json has all
_LONGEST = 400  # characters of a remark: an error may be a page


def markdown(document: Mapping[str, Any]) -> str:
    """The page of a whole ``benchmarks.json``: one section for each thing that is claimed."""
    lines = [
        "# What was measured",
        "",
        "`make bench` wrote this page on idle machines, and `benchmarks.json` with every ratio. Brackets",
        "hold 95 % intervals. Ratios of times are below 1 where AUTOPLACE is faster.",
        "",
        *_rows(("", ""), [(key, str(value)) for key, value in document["head"].items()]),
    ]
    for name, section in document["sections"].items():
        lines += ["", *_section(name, section)]
    return "\n".join([*lines, ""])


def _section(name: str, section: Mapping[str, Any]) -> list[str]:
    if "failure" in section:
        return [f"## {name}", "", f"**Did not end**: {_escaped(section['failure'])}"]
    result = Result.from_dict(section["result"])
    shown = replace(result, tables=tuple(table for table in result.tables if table.published))
    _, processor, *_ = section["machine"].split(" | ")
    run = f"`{result.command}`: {section['seconds']:.0f} s at commit {section['commit']}, {processor}"
    return [f"## {result.title}", "", run, *lines_of(shown)]


def lines_of(result: Result) -> list[str]:
    """The claims, the tables, the losing cases and the remarks of one section."""
    lines = []
    if result.claims:
        rows = [_claim(claim) for claim in result.claims]
        lines += ["", *_rows(("claim", "measured", "at most", ""), rows)]
    for table in result.tables:
        lines += ["", *table_lines(table)]
    if result.cases:
        lines += ["", f"**{_count('Losing cases', result.losing)}**"]
    if result.losing:
        rows = [(case.what, case.rival, f"{case.ratio:.3f}", case.detail) for case in result.losing[:_SHOWN]]
        lines += ["", *_rows(("what", "against", "ratio", ""), rows)]
    if result.remarks:
        lines += ["", *(f"* {_escaped(shorten(remark, _LONGEST))}" for remark in result.remarks)]
    return lines


def _claim(claim: Claim) -> tuple[str, ...]:
    return claim.what, f"{claim.reached:.3g}", f"{claim.limit:.3g}", "" if claim.holds else "**missed**"


def table_lines(table: Table) -> list[str]:
    """A table with its title and its note."""
    lines = [f"**{_escaped(table.title)}**", "", *_rows(table.columns, table.rows)]
    return [*lines, "", _escaped(table.note)] if table.note else lines


def _count(title: str, cases: Sequence[Case]) -> str:
    if not cases:
        return f"{title}: none"
    shown = f", the {_SHOWN} largest" if len(cases) > _SHOWN else ""
    return f"{title}: {len(cases)}{shown}"


def _rows(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] + ["---:"] * (len(columns) - 1), *rows]
    return ["| " + " | ".join(_escaped(cell) for cell in line) + " |" for line in lines]


def _escaped(text: str) -> str:
    """Text that stays in its cell: a model's name or an error may hold anything."""
    return " ".join(str(text).split()).replace("\\", "\\\\").replace("|", "\\|").replace("<", "&lt;")
