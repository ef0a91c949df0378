"""What to tell a user whose memory limits nothing fits into: the smallest ones that would do."""

from __future__ import annotations

import math

import numpy as np

from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.milp_model import solve_model

__all__ = ["smallest_limits"]

_NODES = 500
_SECONDS = 5.0
_UNITS_BYTES = ("bytes", "KiB", "MiB", "GiB")


def smallest_limits(names: tuple[str, ...], units: UnitGraph) -> str:
    """The smallest limit of each device alone, and of all limited devices together, in one clause."""
    limited = [d for d in units.usable_devices if units.may_overflow[d]]
    choices: list[tuple[tuple[int, ...], str]] = [((d,), f"on {names[d]}") for d in limited]
    if len(limited) > 1:
        choices.append((tuple(limited), "each on " + ", ".join(names[d] for d in limited)))
    clauses = []
    for devices, where in choices:
        solved = solve_model(
            units,
            np.isfinite(units.op_seconds),
            node_limit=_NODES,
            time_limit=_SECONDS,
            shrinking=devices,
        )
        if solved.assignment is not None:
            needed = math.ceil(units.memory_of(solved.assignment)[list(devices)].max())
            clauses.append(f"{_size(needed)} {where}")
    if not clauses:
        return "no larger limit of one device alone is enough"
    return "it needs at least " + " or ".join(clauses)


def _size(number: int) -> str:
    """A number of bytes, exact and, where it is large, readable."""
    size, unit = float(number), 0
    while size >= 1024 and unit + 1 < len(_UNITS_BYTES):
        size, unit = size / 1024, unit + 1
    exact = f"{number} bytes"
    return exact if unit == 0 else f"{exact} ({size:.1f} {_UNITS_BYTES[unit]})"
