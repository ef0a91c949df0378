"""A report read back: what ``--report FILE.json`` wrote, or a page, which holds the same data."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from ov_autoplace._base.files import os_reason, possible
from ov_autoplace._base.json_fields import Record
from ov_autoplace._base.text import parse_json
from ov_autoplace.errors import OptionError
from ov_autoplace.placement.decision import RateRow
from ov_autoplace.report.contents import Curve
from ov_autoplace.report.latency import Latency
from ov_autoplace.report.printed import record_of_printed
from ov_autoplace.report.record import SCHEMA, VERSION

__all__ = ["SavedGroup", "SavedPlacement", "SavedReport", "SavedRun", "read_report"]

_PAGE_DATA = re.compile(r'<script type="application/json" id="data">([^<]*)</script>')


@dataclass(frozen=True, slots=True)
class SavedGroup:
    """A group of ops that stay together.

    Attributes:
        name: Its heaviest op.
        kind: That op's type; empty where it is not known.
        lane: The device or lane that it runs on.
        seconds: Its predicted time there.
        ops: All of its ops.
    """

    name: str
    kind: str
    lane: str
    seconds: float
    ops: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SavedRun:
    """When subgraphs run, predicted or measured.

    Attributes:
        what: ``predicted`` or ``measured``.
        seconds: The latency.
        lanes: Devices or lanes with busy and idle seconds.
        stages: Number, lane, start, seconds, and whether it is critical, of each subgraph.
    """

    what: str
    seconds: float
    lanes: tuple[tuple[str, float, float], ...]
    stages: tuple[tuple[int, str, float, float, bool], ...]


@dataclass(frozen=True, slots=True)
class SavedPlacement:
    """A placement.

    Attributes:
        owner: Device of each device or lane.
        costs: Where its costs come from.
        groups: All of them.
        runs: Empty where only ops are known.
    """

    owner: Mapping[str, str]
    costs: str
    groups: tuple[SavedGroup, ...]
    runs: tuple[SavedRun, ...]


@dataclass(frozen=True, eq=False, slots=True)
class SavedReport:
    """One report.

    Attributes:
        path: Its file.
        title, answer, made: What it is about, the decision in a sentence, and when it was made.
        facts: What its head says, by name.
        latencies: The candidates.
        rates: Ways to run many requests, where their number a second counts.
        placement: ``None`` where the report has none.
        curves: Learning curves.
    """

    path: Path
    title: str
    answer: str
    made: str
    facts: Mapping[str, str]
    latencies: tuple[Latency, ...]
    rates: tuple[RateRow, ...]
    placement: SavedPlacement | None
    curves: tuple[Curve, ...]

    @property
    def chosen(self) -> Latency | None:
        """The answer among the candidates."""
        return next((row for row in self.latencies if row.chosen), None)


def read_report(path: Path) -> SavedReport:
    """Read a report.

    Args:
        path: What ``--report`` wrote, as ``.json`` or as a page, or what ``annotate``, ``explain`` or
            ``bench`` printed with ``--json``.

    Raises:
        OptionError: It cannot be read, or is none of these.
    """
    value = _parsed(path)
    if isinstance(value, dict) and "schema" not in value:
        value = record_of_printed(value, path)
    record = Record.of(value, str(path), OptionError)
    record.require_schema(SCHEMA, VERSION)
    placement = record.record("placement") if "placement" in record else None
    return SavedReport(
        path=path,
        title=record.text("title"),
        answer=record.text("answer"),
        made=record.text("made"),
        facts={fact.text("name"): fact.text("value") for fact in record.records("facts", "fact")},
        latencies=tuple(map(_latency, record.records("latencies", "candidate"))),
        rates=tuple(map(_rate, record.records("rates", "rate") if "rates" in record else ())),
        placement=None if placement is None else _placement(placement),
        curves=tuple(map(_curve, record.records("curves", "curve"))),
    )


def _parsed(path: Path) -> Any:
    try:
        text = possible(path).read_text(encoding="utf-8")
    except OSError as cause:
        raise OptionError(f"cannot read a report from {path}: {os_reason(cause)}") from cause
    except UnicodeDecodeError as cause:
        raise OptionError(f"{path} is not a report: it is no text") from cause
    is_page = text.lstrip()[:1] == "<"
    if is_page:
        found = _PAGE_DATA.search(text)
        if found is None:
            raise OptionError(f"{path} is a page, but none that --report wrote")
        text = found[1]
    try:
        value = parse_json(text)
    except (ValueError, RecursionError) as cause:
        raise OptionError(f"{path} is not a report: it does not parse as JSON ({cause})") from cause
    return value.get("report") if is_page and isinstance(value, dict) else value


def _latency(row: Record) -> Latency:
    def seconds(key: str) -> float | None:
        return row.number(f"{key}_ms") / 1e3 if f"{key}_ms" in row else None

    return Latency(
        name=row.text("name"),
        predicted=seconds("predicted"),
        median=seconds("measured"),
        low=seconds("low"),
        high=seconds("high"),
        samples=row.integer("samples", 0, 2**53),
        paused=seconds("paused"),
        subgraphs=row.integer("subgraphs", 0, 2**31) if "subgraphs" in row else None,
        output_difference=row.number("output_difference") if "output_difference" in row else None,
        note=row.text("note"),
        chosen=row.flag("chosen", False),
    )


def _rate(row: Record) -> RateRow:
    def rate(key: str) -> float | None:
        return row.number(key) if key in row else None

    return RateRow(
        name=row.text("name"),
        requests=row.integer("requests", 0, 2**31),
        predicted=rate("predicted"),
        synchronous=rate("synchronous"),
        asynchronous=rate("asynchronous"),
        dropped=row.text("dropped"),
        is_answer=row.flag("is_answer", False),
        output_difference=rate("output_difference"),
    )


def _placement(record: Record) -> SavedPlacement:
    lanes, owners = record.texts("devices"), record.texts("owners")
    names, kinds = record.texts("names"), record.texts("types")
    count = len(names)
    if len(kinds) != count or len(owners) != len(lanes):
        raise OptionError(f"{record.where}: its lists have different lengths")
    where = record.integers("device", 0, len(lanes) - 1)
    members = [
        Record({"members": ops}, record.where, record.error).texts("members")
        for ops in record.items("members")
    ]
    costs = record.items("ms")
    if not len(where) == len(members) == len(costs) == count:
        raise OptionError(f"{record.where}: its lists have different lengths")
    groups = []
    for name, kind, d, ops, row in zip(names, kinds, where, members, costs, strict=True):
        here = row[d] if isinstance(row, list) and d < len(row) else None
        seconds = Record({"ms": here}, f"{record.where}: {name!r}", record.error).number("ms") / 1e3
        groups.append(SavedGroup(name, kind, lanes[d], seconds, (name, *ops)))
    return SavedPlacement(
        owner=dict(zip(lanes, owners, strict=True)),
        costs=record.text("costs"),
        groups=tuple(groups),
        runs=tuple(_run(run) for run in record.records("runs", "run")),
    )


def _run(record: Record) -> SavedRun:
    return SavedRun(
        what=record.text("what"),
        seconds=record.number("ms") / 1e3,
        lanes=tuple(
            (lane.text("name"), lane.number("busy_ms") / 1e3, lane.number("idle_ms") / 1e3)
            for lane in record.records("lanes", "lane")
        ),
        stages=tuple(_stages(record)),
    )


def _stages(record: Record) -> Iterator[tuple[int, str, float, float, bool]]:
    names = ("number", "lane", "start", "ms", "critical")
    for value in record.items("stages"):
        fields = dict(zip(names, value if isinstance(value, list) else (), strict=False))
        stage = Record(fields, f"{record.where}: stage", record.error)
        start, seconds = stage.number("start") / 1e3, stage.number("ms") / 1e3
        yield (
            stage.integer("number", 0, 2**31),
            stage.text("lane"),
            start,
            seconds,
            stage.flag("critical", False),
        )


def _curve(record: Record) -> Curve:
    numbers = record.numbers("numbers")
    values, best = (record.numbers(key, len(numbers), null=np.inf) for key in ("values", "best"))
    return Curve(record.text("name"), np.array(numbers), np.array(values), np.array(best))
