"""Every op of a placement: where it may run, where it does, what that costs, and its share of the time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from ov_autoplace.explain.explanation import Explanation

__all__ = ["OpCost", "op_costs"]


@dataclass(frozen=True, slots=True)
class OpCost:
    """One op of a group.

    What a device runs as one kernel, or what follows a neighbour, is one group with one cost, which stands at
    its heaviest op, as in OpenVINO's own performance counters.

    Attributes:
        name: Its friendly name.
        type: Of the op.
        group: The heaviest op of its group: itself, or the one that it runs together with.
        device: Where it runs.
        seconds: The group's time on each device, ``None`` = cannot run there. Other ops of the group have
            ``None`` in its place.
        share: Of the time of all groups, 0 to 1; ``None`` where ``seconds`` is.
    """

    name: str
    type: str
    group: str
    device: str
    seconds: dict[str, float | None] | None
    share: float | None


def op_costs(explanation: Explanation, types: Mapping[str, str], pattern: str = "*") -> list[OpCost]:
    """The ops of a placement in topological order, each behind the heaviest of its group.

    Args:
        explanation: The placement.
        types: Type of the ops to list by friendly name. Those that were folded into constants are no part of
            the placement.
        pattern: Of names, shell-style.
    """
    table = explanation.table
    own = table.op_seconds[np.arange(len(table)), explanation.assignment]
    whole = float(own.sum())
    rows = []
    for g, members in enumerate(explanation.members()):
        head = table.names[g]
        for name in sorted(members, key=lambda op, head=head: op != head):  # type: ignore[misc]
            if name not in types or not fnmatchcase(name, pattern):
                continue
            costs = table.op_seconds[g].tolist()
            seconds: dict[str, float | None] = {
                device: cost if np.isfinite(cost) else None
                for device, cost in zip(table.devices, costs, strict=True)
            }
            is_head = name == head
            rows.append(
                OpCost(
                    name=name,
                    type=types[name],
                    group=head,
                    device=table.devices[int(explanation.assignment[g])],
                    seconds=seconds if is_head else None,
                    share=(float(own[g]) / whole if whole > 0 else 0.0) if is_head else None,
                )
            )
    return rows
