"""The suite's results in Markdown: on the terminal, and BENCHMARKS.md."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from harness.result import Case, Result, Table

_SHOWN = 12  # cases of each section; benchmarks.json has all


def markdown(document: Mapping[str, Any]) -> str:
    """BENCHMARKS.md of a whole ``benchmarks.json``."""
    head = document["head"]
    lines = [
        "# Benchmarks",
        "",
        "Written by the benchmark suite; every number is in `benchmarks.json`, with its samples.",
        "Medians are followed by their 95 % intervals; ratios are below 1 where ours is faster.",
        "",
        *_rows(("", ""), [(key, str(value)) for key, value in head.items()]),
        "",
        *_rows(
            ("section", "seconds", "losing", "winning", "ratios"),
            [_summary(name, section) for name, section in document["sections"].items()],
        ),
    ]
    for name, section in document["sections"].items():
        lines += ["", *_section(name, section), ""]
    return "\n".join(lines)


def _summary(name: str, section: Mapping[str, Any]) -> tuple[str, ...]:
    seconds = f"{section['seconds']:.0f}"
    if "failure" in section:
        return name, seconds, "did not end", "", ""
    result = section["result"]
    return name, seconds, *(str(len(result[key])) for key in ("losing", "winning", "ratios"))


def _section(name: str, section: Mapping[str, Any]) -> list[str]:
    if "failure" in section:
        return [f"## {name}", "", f"**Did not end**: {_escaped(section['failure'])}"]
    result = Result.from_dict(section["result"])
    run = f"`{result.command}`, {section['extent']}, commit {section['commit']}"
    return [f"## {result.title}", "", run, *lines_of(result)]


def lines_of(result: Result) -> list[str]:
    """The tables, the cases and the remarks of one section."""
    lines = []
    for table in result.tables:
        lines += ["", *table_lines(table)]
    for title, cases in (("Losing cases", result.losing), ("Winning cases", result.winning)):
        lines += ["", f"**{_count(title, cases)}**"]
        if cases:
            rows = [(case.what, case.rival, f"{case.ratio:.3f}", case.detail) for case in cases[:_SHOWN]]
            lines += ["", *_rows(("what", "against", "ratio", ""), rows)]
    if result.remarks:
        lines += ["", *(f"* {_escaped(remark)}" for remark in result.remarks)]
    return lines


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
