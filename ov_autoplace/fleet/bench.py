"""Placements of each kind of machine beside their rivals, on all machines of the kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ov_autoplace.fleet.annotate import KindPlacement, place_on_fleet, request_for
from ov_autoplace.fleet.models import SharedModel
from ov_autoplace.fleet.run import FleetRun

__all__ = ["KindBench", "bench_fleet", "merge_rows"]


@dataclass(frozen=True, eq=False)
class KindBench:
    """The benchmark of one kind of machine.

    Attributes:
        placed: The placement that was compared.
        machines: Names of those that ran it.
        rows: See :func:`merge_rows`; empty where none did.
    """

    placed: KindPlacement
    machines: tuple[str, ...]
    rows: list[dict[str, Any]]


def bench_fleet(
    run: FleetRun, shared: SharedModel, options: Mapping[str, Any], seconds: float
) -> list[KindBench]:
    """Place a model for each kind of machine, and compare the answer on all machines of the kind.

    Args:
        run: The machines.
        shared: The model.
        options: The placer's, as JSON values.
        seconds: How long each machine measures.
    """
    placed = place_on_fleet(run, shared, options)
    requests = {
        p.group.kind.name: request_for(p.group, shared, options) | {"answer": p.answer, "seconds": seconds}
        for p in placed
        if p.answer is not None
    }
    answers = run.on_each("bench", "ov_autoplace.fleet.on_machine:bench", requests, shared.data)
    result = []
    for p in placed:
        found = answers.get(p.group.kind.name, {})
        rows = merge_rows([answer["rows"] for answer in found.values()], p.group.kind.devices)
        result.append(KindBench(p, tuple(found), rows))
    return result


def merge_rows(tables: Sequence[Sequence[Mapping[str, Any]]], devices: Sequence[str]) -> list[dict[str, Any]]:
    """Rows of machines of one kind as one table.

    Args:
        tables: Rows by machine, as :meth:`~ov_autoplace.decide.comparison.Comparison.rows` gives them.
        devices: Of the kind.

    Returns:
        By name: ``median_ms`` and ``paused_median_ms`` of the median machine, ``low_ms`` and ``high_ms`` of
        the fastest and slowest one, ``relative`` (the median of the machines' ratios to their own fastest
        device alone), on how many ``machines`` it ran, and ``note``.
    """
    names = list(dict.fromkeys(row["name"] for rows in tables for row in rows))
    result = []
    for name in names:
        own = [(row, rows) for rows in tables for row in rows if row["name"] == name]
        measured = [row["median_ms"] for row, _ in own if row["median_ms"] is not None]
        paused = [row["paused_median_ms"] for row, _ in own if row["paused_median_ms"] is not None]
        ratios = [
            row["median_ms"] / _fastest(rows, devices) for row, rows in own if row["median_ms"] is not None
        ]
        result.append(
            {
                "name": name,
                "median_ms": _median(measured),
                "low_ms": min(measured, default=None),
                "high_ms": max(measured, default=None),
                "relative": _median(ratios),
                "paused_median_ms": _median(paused),
                "machines": len(measured),
                "note": "; ".join(dict.fromkeys(row["note"] for row, _ in own if row["note"])),
            }
        )
    return result


def _fastest(rows: Sequence[Mapping[str, Any]], devices: Sequence[str]) -> float:
    """Milliseconds of the fastest row that is one device as OpenVINO runs it, else of the fastest row."""
    measured = [row for row in rows if row["median_ms"] is not None]
    alone = [row for row in measured if row["name"] in devices]
    return float(min(row["median_ms"] for row in alone or measured))


def _median(values: Sequence[float]) -> float | None:
    return float(np.median(values)) if values else None
