"""``annotate --fit``: which part of a model goes to which device, and how much memory that takes there."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.text import counted
from ov_autoplace.cli.console import bytes_text, print_sentence, print_table
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE, static_bytes
from ov_autoplace.cost.table import CostTable

if TYPE_CHECKING:
    from ov_autoplace.cli.request import Request
    from ov_autoplace.decide.options import PlacerOptions
    from ov_autoplace.plan.placement import Placement

__all__ = ["fit_of", "overfull", "print_fit"]

_PARTS = 15  # that are shown


def fit_of(
    request: Request, placement: Placement, devices: str | None, options: PlacerOptions
) -> dict[str, Any]:
    """What each device gets of a model: an object for ``--json``.

    Args:
        request: The model.
        placement: Its placement.
        devices: As the user named them.
        options: The placer's.

    Returns:
        ``fit``: of each device the number of ops, bytes of weights, of the results that it holds at one
        moment, of both, and of its memory (``inf`` = it does not tell). ``parts``: of each subgraph its
        device, number of ops, bytes of weights, and the heaviest ops of its first and last group.
    """
    explanation = request.by_device(placement, devices, options)
    table, assignment, schedule = explanation.table, explanation.assignment, explanation.schedule
    weights = _weight_bytes(table, assignment)
    subgraph_of = schedule.subgraph_of
    own = np.bincount(subgraph_of, static_bytes(table), schedule.subgraphs)
    return {
        "fit": [
            {
                "device": device,
                "ops": sum(explanation.num_ops(g) for g in np.flatnonzero(assignment == d).tolist()),
                "weight_bytes": weights[d],
                "result_bytes": max(schedule.memory_bytes[d] - weights[d], 0.0),
                "needed_bytes": schedule.memory_bytes[d],
                "memory_bytes": memory,
            }
            for d, (device, memory) in enumerate(
                zip(table.devices, _memory(request, table, options), strict=True)
            )
        ],
        "parts": [
            {
                "subgraph": part.subgraph,
                "device": part.device,
                "ops": part.ops,
                "weight_bytes": float(own[part.subgraph]),
                "from": table.names[part.groups[0]],
                "to": table.names[part.groups[-1]],
            }
            for part in explanation.predicted.stages
        ],
    }


def overfull(report: dict[str, Any]) -> list[str]:
    """Sentences about devices that are given more than they have room for."""
    return [
        f"{row['device']} would need {bytes_text(row['needed_bytes'])}, but may hold "
        f"{bytes_text(row['memory_bytes'])}"
        for row in report["fit"]
        if row["needed_bytes"] > row["memory_bytes"] * MEMORY_TOLERANCE
    ]


def print_fit(title: str, report: dict[str, Any]) -> None:
    """The same as tables."""
    print_table(
        title,
        ("device", ">ops", ">weights", ">results at once", ">needs", ">may hold", ">share"),
        [
            (
                row["device"],
                f"{row['ops']:,}",
                bytes_text(row["weight_bytes"]),
                bytes_text(row["result_bytes"]),
                bytes_text(row["needed_bytes"]),
                bytes_text(row["memory_bytes"]) or "unknown",
                _share(row["needed_bytes"], row["memory_bytes"]),
            )
            for row in report["fit"]
        ],
    )
    largest = sorted(report["parts"], key=lambda part: (-part["weight_bytes"], part["subgraph"]))[:_PARTS]
    left_out = len(report["parts"]) - len(largest)
    print_table(
        "Parts of the model" + (f", the {_PARTS} with most weights" if left_out else ""),
        (">part", "device", ">ops", ">weights", "from", "to"),
        [
            (
                part["subgraph"],
                part["device"],
                f"{part['ops']:,}",
                bytes_text(part["weight_bytes"]),
                part["from"],
                part["to"],
            )
            for part in sorted(largest, key=lambda part: int(part["subgraph"]))
        ],
    )
    if left_out:
        print_sentence(f"and {counted(left_out, 'smaller part')}")
    for sentence in overfull(report):
        print_sentence(sentence)
    print_sentence("nothing was written; memory is what weights and results take, without a plugin's own")


def _weight_bytes(table: CostTable, assignment: IntArray) -> list[float]:
    """Of each device; it has a copy of its own of a constant that several share."""
    weights = np.bincount(assignment, static_bytes(table), table.num_devices)
    if table.result_bytes is not None:
        for t in np.flatnonzero(table.tensor_is_constant).tolist():
            readers = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
            holders = np.unique(assignment[np.append(readers, table.tensor_producer[t])])
            weights[holders] += table.tensor_bytes[t]
    found: list[float] = weights.tolist()
    return found


def _memory(request: Request, table: CostTable, options: PlacerOptions) -> FloatArray:
    """What devices, or the target profile, say that they have, and what the user allows."""
    from ov_autoplace.cost.target_json import load_target
    from ov_autoplace.measure.feasibility import memory_capacity

    target = None if options.target is None else load_target(options.target)
    return memory_capacity(request.core, table.devices, options.memory_limits, target)


def _share(needed: float, memory: float) -> str | None:
    if not np.isfinite(memory):
        return None
    return f"{100 * needed / memory:.1f} %" if memory > 0 else None
