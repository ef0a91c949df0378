"""What the outcomes of many methods on many problems come to: gaps, wins and losses, cases, ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from common import print_table
from placement_methods import OURS, RIVALS, SINGLE, Outcome
from policy_gaps import summary_of
from policy_problems import Problem

from ov_autoplace.baselines import LEARNED_BASELINES

__all__ = ["FROM_SCRATCH", "Comparison", "cases", "print_cases", "print_rows", "ratios_of", "rows_of"]

FROM_SCRATCH = "rivals trained from scratch on each graph"
_EQUAL = 1e-9
_WORTH = 0.01
_ANSWERS = ("auto", "policy")  # ours, whose cases are named
_TRAINED = (*LEARNED_BASELINES, "hsdag", "gdp", "best of random")
_SHOWN = 8


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side on P problems.

    Attributes:
        problems: The problems.
        outcomes: By method, P of them.
        known: Latency of a placement that no method here found, ``float64[P]``; ``inf`` = none.
    """

    problems: Sequence[Problem]
    outcomes: Mapping[str, Sequence[Outcome]]
    known: np.ndarray

    @cached_property
    def best(self) -> np.ndarray:
        """Latency of the fastest placement known, ``float64[P]``."""
        return np.fmin.reduce(np.array([self.known, *map(self.latency, self.outcomes)]))

    @cached_property
    def bound(self) -> np.ndarray:
        """Proven below every placement, ``float64[P]``."""
        proven = [[o.bound_seconds for o in outcomes] for outcomes in self.outcomes.values()]
        # Sums in another order may differ in the last digits.
        return np.minimum(np.max(np.array(proven), axis=0), self.best)

    @property
    def is_proven(self) -> np.ndarray:
        """Whether no placement can be faster than the fastest known, ``bool[P]``."""
        return np.asarray(self.best <= self.bound * (1 + _EQUAL))

    @property
    def is_worth_placing(self) -> np.ndarray:
        """Where every single device is more than a percent off, or none can take everything, ``bool[P]``."""
        return ~(self.latency(SINGLE) <= self.best * (1 + _WORTH))

    def latency(self, method: str) -> np.ndarray:
        """Seconds of a method's placements, ``float64[P]``; NaN = no answer, ``inf`` = not legal."""
        return np.array([o.latency_seconds for o in self.outcomes[method]])

    def parts(self) -> Iterator[Comparison]:
        """One problem each."""
        for i, problem in enumerate(self.problems):
            outcomes = {name: [outcomes[i]] for name, outcomes in self.outcomes.items()}
            yield Comparison([problem], outcomes, self.known[i : i + 1])

    def to_list(self, name: str) -> list[dict[str, Any]]:
        """Every latency, for JSON."""
        return [
            {
                "set": name,
                "problem": problem.name,
                "groups": len(problem.true),
                "devices": list(problem.true.devices),
                "best_known_ms": 1e3 * float(self.best[i]),
                "bound_ms": 1e3 * float(self.bound[i]),
                "ms": {m: _finite(1e3 * o[i].latency_seconds) for m, o in self.outcomes.items()},
                "refused": {m: o[i].refusal for m, o in self.outcomes.items() if o[i].refusal},
            }
            for i, problem in enumerate(self.problems)
        ]


def rows_of(name: str, comparison: Comparison, seed: int) -> list[dict[str, Any]]:
    """A row per method, gaps in shares (0.01 is one percent)."""
    rows = []
    single = comparison.latency(SINGLE)
    for method, outcomes in comparison.outcomes.items():
        latency = comparison.latency(method)
        ran = np.isfinite(latency)
        row: dict[str, Any] = {
            "set": name,
            "method": method,
            "problems": len(latency),
            "proven": int(comparison.is_proven.sum()),
            "answered": int(ran.sum()),
            "not_legal": int(np.isinf(latency).sum()),
            "refusal": next((o.refusal for o in outcomes if o.refusal), None),
        }
        if ran.any():
            gaps = summary_of(latency[ran] / comparison.best[ran] - 1, seed)
            against = ran & np.isfinite(single)
            ratio = latency[against] / single[against]
            seconds = np.array([o.seconds for o in outcomes])[ran]
            matters = ran & comparison.is_worth_placing
            row |= {
                "mean": gaps.mean,
                "low": gaps.low,
                "high": gaps.high,
                "median": gaps.median,
                "p95": gaps.p95,
                "worst": gaps.largest,
                "optimal": int((latency[ran] <= comparison.bound[ran] * (1 + _EQUAL)).sum()),
                "worth_placing": int(matters.sum()),
                "mean_where_worth": _mean_gap(latency, comparison.best, matters),
                "faster_than_single": int((ratio < 1 - _EQUAL).sum()),
                "slower_than_single": int((ratio > 1 + _EQUAL).sum()),
                "median_ms": 1e3 * float(np.median(seconds)),
                "p95_ms": 1e3 * float(np.quantile(seconds, 0.95)),
            }
        rows.append(row)
    return rows


def cases(comparisons: Mapping[str, Comparison]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Where ours are slower, and where they are faster, than the best of the set's rivals and single devices.

    Returns:
        Losing and winning cases, those with the largest differences first; a tie is neither.
    """
    losing, winning = [], []
    for name, comparison in comparisons.items():
        # Against the others, the graphs of those that learn are among the cases of their own sets.
        among = _TRAINED if name == FROM_SCRATCH else (SINGLE, *RIVALS)
        rivals = [m for m in among if m in comparison.outcomes]
        if not rivals:
            continue
        seconds = np.array([comparison.latency(m) for m in rivals])
        for i, problem in enumerate(comparison.problems):
            if not np.isfinite(seconds[:, i]).any():
                continue
            fastest = int(np.nanargmin(seconds[:, i]))
            for method in _ANSWERS:
                ratio = comparison.outcomes[method][i].latency_seconds / seconds[fastest, i]
                if np.isfinite(ratio) and abs(ratio - 1) > _EQUAL:
                    case = {
                        "set": name,
                        "problem": problem.name,
                        "method": method,
                        "rival": rivals[fastest],
                        "ms": 1e3 * comparison.outcomes[method][i].latency_seconds,
                        "rival_ms": 1e3 * float(seconds[fastest, i]),
                        "ratio": float(ratio),
                    }
                    (losing if ratio > 1 else winning).append(case)
    losing.sort(key=lambda case: -case["ratio"])
    winning.sort(key=lambda case: case["ratio"])
    return losing, winning


def ratios_of(comparisons: Mapping[str, Comparison]) -> dict[str, float]:
    """Geometric mean of each of our methods' latency over the proven bound, by set.

    They depend on the seed and on the code alone, not on the machine: no search that feeds them is ended by a
    clock.
    """
    ratios = {}
    for name, comparison in comparisons.items():
        if name == FROM_SCRATCH:
            continue
        for method in OURS:
            latency = comparison.latency(method)
            ran = np.isfinite(latency)
            if ran.any():
                ratios[f"{method}: {name}"] = float(
                    np.exp(np.log(latency[ran] / comparison.bound[ran]).mean())
                )
    return ratios


def print_rows(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print the table of one set."""
    name, problems = rows[0]["set"], rows[0]["problems"]
    if not problems:
        print(f"{name}: no problem of this kind among those that were chosen")
        return
    print_table(
        f"{name}: {problems} problems, {rows[0]['proven']} with proven optimum; gaps in %",
        (
            "method",
            "mean [95 %]",
            "median",
            "p95",
            "worst",
            "optimal",
            "where worth it",
            "faster/slower than best single",
            "ms per placement",
        ),
        [_cells(row) for row in rows],
    )
    for row in rows:
        if row["refusal"]:
            print(f"  {row['method']}, where it has no answer: {row['refusal']}")


def print_cases(result: Mapping[str, Any]) -> None:
    """Print the largest losing and winning cases, and what did not run."""
    for title, found in (("LOSING", result["losing"]), ("winning", result["winning"])):
        print_table(
            f"{title} cases: {len(found)} against the best rival or single device; the largest",
            ("problem", "ours", "ms", "rival", "ms", "ratio"),
            [
                (
                    c["problem"],
                    c["method"],
                    f"{c['ms']:.4g}",
                    c["rival"],
                    f"{c['rival_ms']:.4g}",
                    f"{c['ratio']:.4f}",
                )
                for c in found[:_SHOWN]
            ],
        )
    for method, reason in result["not_run"].items():
        print(f"not run: {method}: {reason}")


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    if not row["answered"]:
        return (row["method"], "none legal" if row["not_legal"] else "no answer", *["-"] * 7)
    incomplete = "" if row["answered"] == row["problems"] else f" ({row['answered']} of {row['problems']})"
    worth = row["mean_where_worth"]
    return (
        row["method"] + incomplete,
        f"{_percent(row['mean'])} [{_percent(row['low'])}, {_percent(row['high'])}]",
        *(_percent(row[key]) for key in ("median", "p95", "worst")),
        str(row["optimal"]),
        "-" if worth is None else f"{_percent(worth)} ({row['worth_placing']})",
        f"{row['faster_than_single']}/{row['slower_than_single']}",
        f"{row['median_ms']:.3g} (p95 {row['p95_ms']:.3g})",
    )


def _mean_gap(latency: np.ndarray, best: np.ndarray, where: np.ndarray) -> float | None:
    return float((latency[where] / best[where] - 1).mean()) if where.any() else None


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None


def _percent(share: float) -> str:
    return f"{100 * share:.2f}" if abs(share) < 10 else f"{100 * share:.0f}"
