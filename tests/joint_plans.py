"""Files of plans of several models, made by hand: what a decision would have written."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.devices.widths import Width
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import Plan, WholePlan

__all__ = ["IN_CALLER", "ONE_THREAD", "part", "saved"]

IN_CALLER = WholePlan("CPU", Width(1, in_caller=True))
ONE_THREAD = WholePlan("CPU", Width(1))


def part(name: str, plan: Plan, source: object = "", **others: Any) -> Part:
    """A part; the model's file need not be there."""
    return Part(name, plan, source=str(source), **others)


def saved(path: Path, plans: Mapping[str, tuple[Plan, object]], **others: Any) -> Path:
    """The file of a plan.

    Args:
        path: Where it is written.
        plans: How each model runs, and where its file is.
        others: Of :class:`JointPlan`.
    """
    parts = tuple(part(name, plan, source) for name, (plan, source) in plans.items())
    ApplicationPlan(JointPlan("by hand", parts, **others)).save(path)
    return path
