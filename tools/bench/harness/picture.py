"""The picture on the project's first page, from what the suite measured."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from harness.result import Point, Ratio

_OURS, _LOSS, _LINE = "#1f6feb", "#d1242f", "#8b949e"
_LOST = 1.02  # a network that takes longer than this share of the default's time has lost


def draw(path: Path, points: Sequence[Point], rates: Sequence[Ratio]) -> None:
    """Networks by their size with what they take, and applications with their rates, as an SVG.

    Args:
        path: Of the picture, written anew.
        points: Networks alone.
        rates: Of applications, OpenVINO's default over ours.
    """
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style = {"svg.hashsalt": "ov-autoplace", "svg.fonttype": "path", "font.size": 9}
    with rc_context(style):
        figure = Figure(figsize=(9, 3.4), layout="constrained")
        alone, together = figure.subplots(1, 2, width_ratios=(3, 2))
        lost = [point.ratio > _LOST for point in points]
        colours = [_LOSS if is_lost else _OURS for is_lost in lost]
        alone.scatter([1e3 * p.seconds for p in points], [p.ratio for p in points], c=colours, s=22)
        alone.axhline(1.0, color=_LINE, linewidth=1)
        alone.set(xscale="log", ylim=(0, max([1.1, *(p.ratio for p in points)]) + 0.05))
        alone.set(xlabel="ms with OpenVINO's default", ylabel="time with AUTOPLACE over the default")
        alone.set_title(f"{len(points)} networks, {sum(lost)} slower than {_LOST}")
        gains = sorted((1 / ratio.value, ratio.name.rpartition(":")[0]) for ratio in rates)
        together.barh([name for _, name in gains], [gain for gain, _ in gains], color=_OURS)
        together.axvline(1.0, color=_LINE, linewidth=1)
        together.set(xlabel="rates with AUTOPLACE over the default")
        together.tick_params(axis="y", labelsize=6)
        together.set_title(f"{len(gains)} applications of several models")
        path.parent.mkdir(parents=True, exist_ok=True)
        # A date in the file would make every run a change.
        figure.savefig(path, format="svg", metadata={"Date": None}, transparent=False)
    text = re.sub(r"[ \t]+$", "", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    path.write_text(text, encoding="utf-8")
