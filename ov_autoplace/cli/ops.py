"""``explain --ops``: a row for every op."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ov_autoplace._base.text import counted
from ov_autoplace.cli.console import milliseconds, print_table

if TYPE_CHECKING:
    from ov_autoplace.explain.explanation import Explanation
    from ov_autoplace.explain.op_costs import OpCost

__all__ = ["CANNOT", "print_ops"]

CANNOT = "cannot"
"""In the place of a time on a device that cannot run an op."""

_BESIDE = "+ "  # in front of what runs together with the op above


def print_ops(explanation: Explanation, ops: Sequence[OpCost]) -> None:
    """A row for every op; those that a device runs together stand below each other.

    Args:
        explanation: The placement.
        ops: Of it, see :func:`~ov_autoplace.explain.op_costs.op_costs`.
    """
    columns = explanation.columns
    groups = len({op.group for op in ops})
    how = "predicted" if explanation.table.source == "analytic" else explanation.table.source
    print_table(
        f"{counted(len(ops), 'op')} in {counted(groups, 'group')}, times are {how} "
        f"(an op behind {_BESIDE.strip()} runs together with those above, whose time is that of all)",
        ("op", "?type", "device", ">share", *(f">{device} ms" for device in columns)),
        [
            (
                op.name if op.name == op.group else _BESIDE + op.name,
                op.type,
                op.device,
                " " if op.share is None else f"{100 * op.share:.1f} %",
                *(" " if op.seconds is None else _cost(op.seconds[d]) for d in columns.values()),
            )
            for op in ops
        ],
    )


def _cost(seconds: float | None) -> str:
    return milliseconds(seconds) or CANNOT
