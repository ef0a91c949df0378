"""Gaps between latencies: how they are summed up, with their uncertainty, and printed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass

import numpy as np
from common import print_table
from policy_problems import Solved

__all__ = ["Gaps", "Judged", "by_family_rows", "gap_columns", "gap_row", "summary_of"]

_RESAMPLES = 10_000
_WORTH = 0.01


@dataclass(frozen=True)
class Gaps:
    """Gaps over several problems, as shares (0.01 is one percent).

    Attributes:
        problems: How many.
        mean, low, high: Mean, and its 95 % bootstrap interval over the problems.
        median, p95, largest: Of the gaps.
    """

    problems: int
    mean: float
    low: float
    high: float
    median: float
    p95: float
    largest: float


def summary_of(gaps: np.ndarray, seed: int = 0) -> Gaps:
    """Sum up gaps ``float64[P]``."""
    random = np.random.default_rng(seed)
    means = gaps[random.integers(len(gaps), size=(_RESAMPLES, len(gaps)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    p95 = float(np.quantile(gaps, 0.95))
    return Gaps(
        len(gaps), float(gaps.mean()), float(low), float(high), float(np.median(gaps)), p95, float(gaps.max())
    )


def _summary(gaps: np.ndarray) -> dict[str, float] | None:
    return asdict(summary_of(gaps)) if len(gaps) else None


class Judged:
    """The latencies of several methods on the same problems.

    Attributes:
        solved: The P problems.
        seconds: By method, ``float64[P]``; NaN where it was not run, ``inf`` = not legal.
    """

    def __init__(self, solved: Sequence[Solved], seconds: Mapping[str, np.ndarray]) -> None:
        self.solved = list(solved)
        self.seconds = dict(seconds)
        known = np.array([s.best.seconds for s in solved])
        # Whatever is faster than the solvers is the best placement known.
        self.best = np.fmin.reduce([known, *self.seconds.values()])
        self.bound = np.minimum([s.best.bound for s in solved], self.best)
        self.is_proven = self.best <= self.bound * (1 + 1e-9)

    def gaps(self, method: str) -> np.ndarray:
        """Latency over the best known minus 1, ``float64[P]``."""
        return np.asarray(self.seconds[method] / self.best - 1)

    def to_dict(self) -> dict[str, object]:
        """Everything that was found, for JSON."""
        rows = {}
        for method in self.seconds:
            gaps, ran = self.gaps(method), ~np.isnan(self.seconds[method])
            proven = ran & self.is_proven
            rows[method] = {
                "to_best_known": asdict(summary_of(gaps[ran])),
                "to_proven_optimum": _summary(gaps[proven]),
                "where_placing_matters": _summary(gaps[ran & self.is_worth_placing]),
                "to_bound": asdict(summary_of(self.seconds[method][ran] / self.bound[ran] - 1)),
                "by_family": self.by_family(method),
                "gaps": [None if np.isnan(gap) else round(float(gap), 6) for gap in gaps],
            }
        return {
            "problems": [s.problem.name for s in self.solved],
            "groups": [len(s.problem.true) for s in self.solved],
            "proven": self.is_proven.tolist(),
            "methods": rows,
        }

    @property
    def is_worth_placing(self) -> np.ndarray:
        """Where the best single device is more than one percent off, ``bool[P]``."""
        return np.asarray(self.gaps("best single device") > _WORTH)

    def by_family(self, method: str) -> dict[str, float]:
        """Mean gap to the best known of each family."""
        family = np.array([s.problem.family for s in self.solved])
        gaps, ran = self.gaps(method), ~np.isnan(self.seconds[method])
        return {
            f: float(gaps[ran & (family == f)].mean())
            for f in dict.fromkeys(family.tolist())
            if (ran & (family == f)).any()
        }

    def part(self, where: np.ndarray) -> Judged:
        """The problems for which ``bool[P]`` is true, judged by the same best placements."""
        kept = np.flatnonzero(where)
        part = Judged([self.solved[i] for i in kept], {k: v[kept] for k, v in self.seconds.items()})
        part.best, part.bound, part.is_proven = self.best[kept], self.bound[kept], self.is_proven[kept]
        return part

    def show(self, title: str, worst_of: str, worst: int = 5, families: bool = True) -> None:
        """Print a row per method, the families, and where one method loses most."""
        proven = int(self.is_proven.sum())
        print_table(
            f"{title}: {len(self.solved)} problems, {proven} with proven optimum; gaps in %",
            gap_columns("method"),
            [gap_row(method, self, method) for method in self.seconds],
        )
        if families:
            columns = ("family", *self.seconds)
            print_table("Mean gap to the best known by family, %", columns, by_family_rows(self))
        gaps = self.gaps(worst_of)
        single = self.gaps("best single device")
        most = [(self.solved[i].problem, gaps[i], single[i]) for i in np.argsort(-gaps)[:worst]]
        rows = [(p.name, len(p.true), _percent(gap), _percent(of_single)) for p, gap, of_single in most]
        slower = int((gaps > single + 1e-9).sum())
        print_table(
            f"Where {worst_of} loses most (slower than the best single device on {slower} of {len(gaps)})",
            ("problem", "groups", "gap %", "best single device's gap %"),
            rows,
        )


def gap_columns(first: str) -> tuple[str, ...]:
    """Headings of :func:`gap_row`."""
    return (
        first,
        "problems",
        "mean to best known",
        "95 % interval",
        "median",
        "p95",
        "max",
        "mean, p95 to proven optimum",
        "mean where placing matters",
        "mean to bound",
    )


def gap_row(title: str, judged: Judged, method: str) -> tuple[str, ...]:
    """Cells of one method."""
    gaps, ran = judged.gaps(method), ~np.isnan(judged.seconds[method])
    all_of_them = summary_of(gaps[ran])
    proven, matters = ran & judged.is_proven, ran & judged.is_worth_placing
    optimal = "-"
    if proven.any():
        those = summary_of(gaps[proven])
        optimal = f"{_percent(those.mean)}, {_percent(those.p95)} ({those.problems})"
    return (
        title,
        str(all_of_them.problems),
        _percent(all_of_them.mean),
        f"{_percent(all_of_them.low)} .. {_percent(all_of_them.high)}",
        _percent(all_of_them.median),
        _percent(all_of_them.p95),
        _percent(all_of_them.largest),
        optimal,
        f"{_percent(float(gaps[matters].mean()))} ({matters.sum()})" if matters.any() else "-",
        _percent(float((judged.seconds[method][ran] / judged.bound[ran] - 1).mean())),
    )


def by_family_rows(judged: Judged) -> list[tuple[str, ...]]:
    """Mean gap of each family and method."""
    columns = {method: judged.by_family(method) for method in judged.seconds}
    families = dict.fromkeys(s.problem.family for s in judged.solved)
    return [
        (f, *(_percent(column[f]) if f in column else "-" for column in columns.values())) for f in families
    ]


def _percent(share: float) -> str:
    return f"{100 * share:.2f}" if abs(share) < 10 else f"{100 * share:.0f}"
