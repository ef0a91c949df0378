"""What commands print with ``--json``, as the report that they would have written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ov_autoplace._base.json_fields import Record
from ov_autoplace.errors import OptionError
from ov_autoplace.report.record import SCHEMA, VERSION

__all__ = ["record_of_printed"]


def record_of_printed(value: dict[str, Any], path: Path) -> dict[str, Any]:
    """A report with what the output of ``annotate``, ``explain`` or ``bench`` says; ops are in ``explain``'s.

    Args:
        value: The printed object.
        path: Where it is kept.

    Raises:
        OptionError: It is the output of something else.
    """
    printed = Record(value, str(path), OptionError)
    if not {"model", "devices", "decision"} <= value.keys():
        raise OptionError(
            f"{path} is no report; write one with --report FILE.json, or keep what annotate, explain "
            "or bench print with --json"
        )
    devices = printed.texts("devices")
    facts = [{"name": "devices", "value": ", ".join(devices)}]
    for name, key in (("chosen", "chosen"), ("mode", "mode"), ("costs", "cost_source")):
        if key in printed:
            facts.append({"name": name, "value": printed.text(key)})
    return {
        "schema": SCHEMA,
        "version": VERSION,
        "title": printed.text("model"),
        "answer": printed.text("decision"),
        "made": "",
        "facts": facts,
        "latencies": [] if "rates" in printed else list(_latencies(printed)),
        "rates": value.get("rows" if "rates" in printed and "rows" in printed else "rates", []),
        "placement": _placement(printed, devices),
        "curves": [],
    }


def _latencies(printed: Record) -> Iterator[dict[str, Any]]:
    """Candidates of a benchmark, of a decision, or the one that is explained."""
    row: dict[str, Any] = {"samples": 0, "note": ""}
    if "rows" in printed:
        for entry in printed.records("rows", "row"):
            fields = entry.fields
            low, high = entry.numbers("ci95_ms", 2) if "ci95_ms" in entry else (None, None)
            yield row | {
                "name": entry.text("name"),
                "chosen": fields.get("name") == "AUTOPLACE",
                "predicted_ms": fields.get("predicted_ms"),
                "measured_ms": fields.get("median_ms"),
                "low_ms": low,
                "high_ms": high,
                "samples": fields.get("samples", 0),
                "paused_ms": fields.get("paused_median_ms"),
                "subgraphs": fields.get("subgraphs"),
                "note": fields.get("note", ""),
            }
        return
    chosen = printed.text("chosen")
    predicted, measured = (_by_name(printed, key, chosen) for key in ("predicted_ms", "measured_ms"))
    for name in {**measured, **predicted}:
        yield row | {
            "name": name,
            "chosen": name == chosen,
            "predicted_ms": predicted.get(name),
            "measured_ms": measured.get(name),
        }


def _by_name(printed: Record, key: str, chosen: str) -> Mapping[str, Any]:
    value = printed.fields.get(key)
    if isinstance(value, dict):
        return value
    return {} if value is None else {chosen: value}


def _placement(printed: Record, devices: tuple[str, ...]) -> dict[str, Any] | None:
    """Groups from the list of ops, of which the heaviest of each group carries the cost."""
    if not isinstance(printed.fields.get("ops"), list) or not printed.items("ops"):
        return None
    heads: dict[str, Record] = {}
    members: dict[str, list[str]] = {}
    for op in printed.records("ops", "op"):
        name, group = op.text("name"), op.text("group")
        if name == group:
            heads[name] = op
        else:
            members.setdefault(group, []).append(name)
    lanes = list(dict.fromkeys((*devices, *(op.text("device") for op in heads.values()))))
    return {
        "objective": "overlap" if printed.fields.get("objective") == "overlap" else "hetero",
        "costs": printed.text("cost_source"),
        "devices": lanes,
        "owners": [lane.partition("#")[0] for lane in lanes],
        "names": list(heads),
        "types": [op.text("type") for op in heads.values()],
        "device": [lanes.index(op.text("device")) for op in heads.values()],
        "ms": [list(_milliseconds(op, lanes)) for op in heads.values()],
        "members": [members.get(name, []) for name in heads],
        "runs": [],
    }


def _milliseconds(op: Record, lanes: list[str]) -> Iterator[float]:
    seconds = op.record("seconds")
    for lane in lanes:
        yield seconds.number(lane) * 1e3 if lane in seconds else -1.0
