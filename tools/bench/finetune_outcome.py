"""What one run of tools/bench/finetune.py was worth."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

__all__ = ["WITHIN", "Outcome", "first_within", "improvements"]

WITHIN = 1.01
"""A latency counts as reached when it is at most this times the best known."""


@dataclass
class Outcome:
    """One run on devices, or one search on the simulator.

    Attributes:
        kind: Which policy, and what it learned from.
        evaluations: Placements that it proposed until one was within 1 % of the best known; ``None`` = never.
        of: How many it proposed in all.
        curve: Evaluation and latency over the best known wherever the latter fell.
        ratio: Its best placement over the best known.
        seconds: Wall-clock time until then, ``None`` on the simulator, like all that follow.
        measured: Placements that were run on devices until then, the single devices included.
        measurements: How many were in all.
        wall: Seconds from the start of the process to its end.
        others: Share of the machine that other processes took meanwhile.
    """

    model: str
    seed: int
    kind: str
    evaluations: int | None
    of: int
    ratio: float
    curve: list[tuple[int, float]] = field(default_factory=list)
    seconds: float | None = None
    measured: int | None = None
    measurements: int | None = None
    wall: float | None = None
    others: float | None = None


def improvements(values: list[float]) -> list[tuple[int, float]]:
    """Number, from 1, and value wherever a value is lower than all before."""
    found: list[tuple[int, float]] = []
    for number, value in enumerate(values, 1):
        if np.isfinite(value) and (not found or value < found[-1][1]):
            found.append((number, value))
    return found


def first_within(curve: list[tuple[int, float]], limit: float) -> int | None:
    """Evaluations until a curve is at most ``limit``."""
    return next((evaluation for evaluation, ratio in curve if ratio <= limit), None)
