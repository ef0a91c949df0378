"""The picture of a fine-tuning run: how fast the best placement is after so many measurements."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.files import staged_folder
from ov_autoplace.errors import OutputError
from ov_autoplace.training.finetuning.task import AFTER, ZERO_SHOT

__all__ = ["best_so_far", "draw_learning_curve"]

_HIGHEST = 3.0  # latencies beyond this say no more than that they are bad
_COLOURS = ("#0868ac", "#d95f02", "#1b9e77", "#7570b3", "#e7298a", "#66a61e", "#a6761d", "#444444")


def best_so_far(lines: Sequence[Mapping[str, Any]]) -> tuple[FloatArray, FloatArray]:
    """Numbers of measurements, ``float64[n]``, and the best relative latency after each, ``float64[n]``.

    The best is what would be taken then: a placement that was fast once has to win again first.

    Args:
        lines: Of one model in the measurement log.
    """
    numbers: list[float] = []
    best: list[float] = []
    for line in lines:
        if line["kind"] == "measured":
            numbers.append(float(line["measurement"]))
            best.append(math.inf)
        if best:
            # What confirms a placement, or refutes it, comes after its first measurement.
            best[-1] = math.inf if line["best"] is None else line["best"]
    return np.array(numbers), np.array(best)


def draw_learning_curve(lines: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw the measurement log: one line per model, dots for all placements, marks for before and after.

    Args:
        lines: The whole log.
        path: The picture, ``.png``.

    Raises:
        OutputError: It cannot be written.
    """
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.add_subplot()
    axes.axhline(1.0, color="black", linewidth=0.8, linestyle=":")
    names = dict.fromkeys(line["model"] for line in lines)
    for i, name in enumerate(names):
        _draw_model(
            axes, name, [line for line in lines if line["model"] == name], _COLOURS[i % len(_COLOURS)]
        )
    axes.set_xlabel("measured placements")
    axes.set_ylabel("latency / best single device")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_title("best proven placement (line), every measured one (dots), policy before (○) and after (●)")
    if names:
        axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    with staged_folder(path.parent) as stage:
        try:
            canvas: Any = FigureCanvasAgg(figure)  # its methods have no types
            canvas.print_png(stage / path.name)
            (stage / path.name).replace(path)
        except OSError as cause:
            raise OutputError(f"cannot write {path}: {cause.strerror}") from cause


def _draw_model(axes: Axes, name: str, lines: Sequence[Mapping[str, Any]], colour: str) -> None:
    numbers, best = best_so_far(lines)
    axes.step(numbers, best, where="post", color=colour, label=name)
    run = [line for line in lines if line["kind"] == "measured" and line["relative"] is not None]
    heights = np.minimum([line["relative"] for line in run], _HIGHEST)
    axes.scatter([line["measurement"] for line in run], heights, s=9, color=colour, alpha=0.35, linewidths=0)
    for mark, fill in ((ZERO_SHOT, "white"), (AFTER, colour)):
        found = [line for line in lines if mark in (line["source"], line["note"]) and line["relative"]]
        if found:
            last = found[-1]
            x = last["measurement"] if mark == ZERO_SHOT or not len(numbers) else numbers[-1]
            y = min(last["relative"], _HIGHEST)
            axes.scatter([x], [y], s=60, facecolor=fill, edgecolor=colour, zorder=3)
