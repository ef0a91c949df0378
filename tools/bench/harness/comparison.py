"""Methods side by side on the same problems: gaps to the best placement known, wins and losses, ratios."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from rich.progress import track

from harness.methods import OURS, SINGLE, Method, Outcome, try_it
from harness.result import Case, Ratio, Table, exact_ratio, percent
from problems.tables import Instance
from rivals import RivalOptions

__all__ = ["Comparison", "bootstrap", "cases_of", "compare", "ratios_of", "rows_of", "table_of"]

_EQUAL = 1e-9
_WORTH = 0.01
_RESAMPLES = 10_000
_ANSWERS = ("portfolio", "policy")  # ours, whose cases are named


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side on P problems.

    Attributes:
        instances: The problems.
        outcomes: By method, P of them.
        known: Latency of a placement that no method here found, ``float64[P]``; ``inf`` = none.
        proven: Below every placement, as it was proven elsewhere, ``float64[P]``; 0 = nothing.
    """

    instances: Sequence[Instance]
    outcomes: Mapping[str, Sequence[Outcome]]
    known: np.ndarray
    proven: np.ndarray | float = 0.0

    @cached_property
    def best(self) -> np.ndarray:
        """Latency of the fastest placement known, ``float64[P]``."""
        return np.fmin.reduce(np.array([self.known, *map(self.latency, self.outcomes)]))

    @cached_property
    def bound(self) -> np.ndarray:
        """Proven below every placement, ``float64[P]``."""
        proven = [[o.bound_seconds for o in outcomes] for outcomes in self.outcomes.values()]
        # Sums in another order may differ in the last digits.
        return np.minimum(np.maximum(np.max(np.array(proven), axis=0), self.proven), self.best)

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

    def gaps(self, method: str) -> np.ndarray:
        """Latency over the best known minus 1, ``float64[P]``."""
        return np.asarray(self.latency(method) / self.best - 1)

    def parts(self) -> Iterator[Comparison]:
        """One problem each."""
        for i, instance in enumerate(self.instances):
            outcomes = {name: [outcomes[i]] for name, outcomes in self.outcomes.items()}
            yield Comparison([instance], outcomes, self.best[i : i + 1], self.bound[i : i + 1])

    def by_family(self) -> Table:
        """Mean gap of each family and method."""
        family = np.array([instance.family for instance in self.instances])
        rows = []
        for name in dict.fromkeys(family.tolist()):
            means = (np.nanmean(self.gaps(method)[family == name]) for method in self.outcomes)
            rows.append((name, *map(percent, means)))
        return Table("Mean gap to the best known by family, %", ("family", *self.outcomes), rows)

    def to_list(self, name: str) -> list[dict[str, Any]]:
        """Every latency, for JSON."""
        return [
            {
                "set": name,
                "problem": instance.name,
                "groups": len(instance.true),
                "devices": list(instance.true.devices),
                "best_known_ms": 1e3 * float(self.best[i]),
                "bound_ms": 1e3 * float(self.bound[i]),
                "ms": {m: _finite(1e3 * o[i].latency_seconds) for m, o in self.outcomes.items()},
                "refused": {m: o[i].refusal for m, o in self.outcomes.items() if o[i].refusal},
            }
            for i, instance in enumerate(self.instances)
        ]


def compare(
    text: str,
    instances: Sequence[Instance],
    methods: Mapping[str, Method],
    seed: int,
    estimated: Collection[str] = (),
) -> dict[str, list[Outcome]]:
    """Run methods on problems.

    Args:
        text: Of the progress.
        instances: The problems.
        methods: By name.
        seed: Of the methods.
        estimated: Names of those that read the table that is shown and not the true one.
    """
    options = RivalOptions(seed=seed)
    outcomes: dict[str, list[Outcome]] = {name: [] for name in methods}
    for method in methods.values() if instances else ():
        try_it(method, instances[0].true, options)  # imports and compiles what it needs
    for instance in track(instances, text):
        for name, method in methods.items():
            is_told = name in estimated
            shown, true = (instance.shown, instance.true) if is_told else (instance.true, None)
            outcomes[name].append(try_it(method, shown, options, true))
    return outcomes


def bootstrap(gaps: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of ``float64[P]`` over the problems."""
    random = np.random.default_rng(seed)
    means = gaps[random.integers(len(gaps), size=(_RESAMPLES, len(gaps)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)


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
            gaps = comparison.gaps(method)
            against = ran & np.isfinite(single)
            ratio = latency[against] / single[against]
            seconds = np.array([o.seconds for o in outcomes])[ran]
            low, high = bootstrap(gaps[ran], seed)
            row |= {
                "mean": float(gaps[ran].mean()),
                "low": low,
                "high": high,
                "median": float(np.median(gaps[ran])),
                "p95": float(np.quantile(gaps[ran], 0.95)),
                "worst": float(gaps[ran].max()),
                "optimal": int((latency[ran] <= comparison.bound[ran] * (1 + _EQUAL)).sum()),
                "mean_where_proven": _mean(gaps, ran & comparison.is_proven),
                "worth_placing": int((ran & comparison.is_worth_placing).sum()),
                "mean_where_worth": _mean(gaps, ran & comparison.is_worth_placing),
                "faster_than_single": int((ratio < 1 - _EQUAL).sum()),
                "slower_than_single": int((ratio > 1 + _EQUAL).sum()),
                "median_ms": 1e3 * float(np.median(seconds)),
                "p95_ms": 1e3 * float(np.quantile(seconds, 0.95)),
            }
        rows.append(row)
    return rows


def table_of(rows: Sequence[Mapping[str, Any]]) -> Table:
    """The rows of one set, and why a method has no answer."""
    name, problems, proven = (rows[0][key] for key in ("set", "problems", "proven"))
    columns = (
        "method",
        "mean [95 %]",
        "median",
        "p95",
        "worst",
        "optimal",
        "mean where proven",
        "where placing matters",
        "faster / slower than best device",
        "ms per placement",
    )
    refusals = [f"{row['method']}: {row['refusal']}" for row in rows if row["refusal"]]
    note = f"Where there is no answer: {'; '.join(refusals)}" if refusals else ""
    title = f"{name}: {problems} problems, {proven} with proven optimum; gaps in %"
    return Table(title, columns, [_cells(row, len(columns)) for row in rows], note)


def _cells(row: Mapping[str, Any], columns: int) -> tuple[str, ...]:
    if not row["answered"]:
        return (f"{row['method']} (no answer, {row['not_legal']} not legal)", *["-"] * (columns - 1))
    partial = "" if row["answered"] == row["problems"] else f" ({row['answered']} of {row['problems']})"
    proven, worth = (row[key] for key in ("mean_where_proven", "mean_where_worth"))
    return (
        row["method"] + partial,
        f"{percent(row['mean'])} [{percent(row['low'])}, {percent(row['high'])}]",
        *(percent(row[key]) for key in ("median", "p95", "worst")),
        str(row["optimal"]),
        "-" if proven is None else percent(proven),
        "-" if worth is None else f"{percent(worth)} ({row['worth_placing']})",
        f"{row['faster_than_single']} / {row['slower_than_single']}",
        f"{row['median_ms']:.3g} (p95 {row['p95_ms']:.3g})",
    )


def cases_of(name: str, comparison: Comparison, among: Sequence[str]) -> list[Case]:
    """Where ours are slower, and where faster, than the best of the set's rivals; a tie is neither."""
    rivals = [m for m in among if m in comparison.outcomes]
    if not rivals:
        return []
    found = []
    seconds = np.array([comparison.latency(m) for m in rivals])
    for i, instance in enumerate(comparison.instances):
        if not np.isfinite(seconds[:, i]).any():
            continue
        fastest = int(np.nanargmin(seconds[:, i]))
        rival = float(seconds[fastest, i])
        for method in _ANSWERS:
            own = comparison.outcomes[method][i].latency_seconds
            if np.isfinite(own) and abs(own / rival - 1) > _EQUAL:
                detail = f"{1e3 * own:.4g} ms against {1e3 * rival:.4g} ms; {name}"
                found.append(Case(f"{method} on {instance.name}", rivals[fastest], own / rival, detail))
    return found


def ratios_of(name: str, comparison: Comparison) -> list[Ratio]:
    """Geometric mean of each of our methods' latency over the proven bound.

    They depend on the seed and on the code alone, not on the machine: no search that feeds them is ended by a
    clock.
    """
    ratios = []
    for method in OURS:
        latency = comparison.latency(method)
        ran = np.isfinite(latency)
        if ran.any():
            mean = float(np.exp(np.log(latency[ran] / comparison.bound[ran]).mean()))
            kind = "decided" if method == "policy" else "exact"
            ratios.append(exact_ratio(f"{method}: {name}", mean, int(ran.sum()), kind))
    return ratios


def _mean(gaps: np.ndarray, where: np.ndarray) -> float | None:
    return float(gaps[where].mean()) if where.any() else None


def _finite(value: float) -> float | None:
    return value if np.isfinite(value) else None
