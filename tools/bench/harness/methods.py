"""Placement methods side by side on the same problems: our solvers and rivals.

The gap of a placement is its simulated latency over that of the fastest placement known, minus 1.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from importlib.util import find_spec
from typing import Any

import numpy as np
from rich.progress import track

from harness.result import Case, Table, percent
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.solvers import SOLVERS, Problem, Solver, solve_problem
from rivals import LEARNED_RIVALS, RIVALS, Rival, RivalOptions

SINGLE = "best single device"
OURS = tuple(name for name in SOLVERS if name not in ("single", "exact", "oracle"))
UNTRAINED = tuple(name for name in RIVALS if name not in LEARNED_RIVALS)
"""Rivals that answer at once."""

_RANDOM_DRAWS = 10
_EQUAL = 1e-9
_WORTH = 0.01
_RESAMPLES = 10_000
_OURS = "portfolio"  # whose cases are named

Method = Callable[[Problem, RivalOptions], list[Placement]]
"""Problem and options to one or several placements, of which the mean latency counts."""


@dataclass(frozen=True, eq=False)
class Instance:
    """A placement problem.

    Attributes:
        name, family: Of the network and the machine.
        table: What everybody reads, and what placements are scored on.
        objective: By which they are scored.
        known: Seconds of a placement that was found elsewhere; ``inf`` = none.
    """

    name: str
    family: str
    table: CostTable
    objective: str = "hetero"
    known: float = np.inf


@dataclass(frozen=True)
class Outcome:
    """What a method made of one problem.

    Attributes:
        latency_seconds: Of its placements, by the problem's objective; NaN = no answer, ``inf`` = not legal.
        seconds: Of processor time per answer.
        bound_seconds: That it proved to be below every placement; 0 = none.
        refusal: Why there is no answer.
    """

    latency_seconds: float
    seconds: float = np.nan
    bound_seconds: float = 0.0
    refusal: str = ""

    @classmethod
    def mean(cls, outcomes: Sequence[Outcome]) -> Outcome:
        """Over seeds; a refusal is one of all."""
        refusal = next((o.refusal for o in outcomes if o.refusal), "")
        latency, seconds, bound = np.mean(
            [(o.latency_seconds, o.seconds, o.bound_seconds) for o in outcomes], axis=0
        ).tolist()
        return cls(latency, seconds, bound, refusal)


def immediate_methods() -> dict[str, Method]:
    """Those that answer at once, by name."""
    methods = {SINGLE: solver("single")} | {name: solver(name) for name in OURS}
    methods |= {name: partial(_one, RIVALS[name]) for name in UNTRAINED}
    methods["random"] = _random_draws
    return {name: method for name, method in methods.items() if name not in missing_libraries()}


def solver(name: str, **options: Any) -> Method:
    """A solver as a method, with options that are the same on every problem."""
    return lambda problem, own: [solve_problem(problem, name, replace(own, **options))]


def missing_libraries() -> dict[str, str]:
    """Methods that cannot run here, and why."""
    missing = {}
    if find_spec("pymetis") is None:
        missing["multilevel"] = "pymetis is not installed"
    if find_spec("torch") is None:
        missing |= dict.fromkeys((*LEARNED_RIVALS, "hsdag", "gdp"), "torch is not installed")
    return missing


def searches() -> dict[str, Method]:
    """Those that are trained from scratch on each problem with ``options.evaluations``, and chance."""
    methods: dict[str, Method] = {"best of random": _best_of_random}
    methods |= {name: partial(_one, rival) for name, rival in LEARNED_RIVALS.items()}
    methods |= {name: partial(_from_scratch, name) for name in ("hsdag", "gdp")}
    return {name: method for name, method in methods.items() if name not in missing_libraries()}


def try_it(method: Method, instance: Instance, options: RivalOptions) -> Outcome:
    """Run a method on a fresh copy of a table, so that what it derives from the table is in its time."""
    copy = replace(instance.table)
    begin = time.process_time()
    problem = Problem.of(copy, objective=instance.objective)
    try:
        answers = method(problem, options)
    except AutoplaceError as refusal:
        return Outcome(np.nan, refusal=str(refusal))
    seconds = (time.process_time() - begin) / len(answers)
    bound = max(answer.lower_bound_seconds or 0.0 for answer in answers)
    return Outcome(float(_latencies(problem, answers).mean()), seconds, bound)


def _latencies(problem: Problem, answers: Iterable[Placement]) -> np.ndarray:
    assignments = np.stack([answer.assignment for answer in answers])
    return np.asarray(simulate_batch(problem.table, assignments, objective=problem.objective))


def _one(method: Solver | Rival, problem: Problem, options: RivalOptions) -> list[Placement]:
    return [method(problem, options)]


def _random_draws(problem: Problem, options: RivalOptions, draws: int = _RANDOM_DRAWS) -> list[Placement]:
    seeds = range(options.seed * draws, (options.seed + 1) * draws)
    return [RIVALS["random"](problem, replace(options, seed=seed)) for seed in seeds]


def _best_of_random(problem: Problem, options: RivalOptions) -> list[Placement]:
    answers = _random_draws(problem, options, options.evaluations)
    return [answers[int(np.argmin(_latencies(problem, answers)))]]


def _from_scratch(network: str, problem: Problem, options: RivalOptions) -> list[Placement]:
    from ov_autoplace.training.environment import Environment
    from rivals.papers import search

    found = search(Environment([problem]), network, options.evaluations, options.seed)
    return [Placement.of_groups(problem.table, found.assignment)]


@dataclass(frozen=True, eq=False)
class Comparison:
    """Methods side by side on P problems.

    Attributes:
        name: Of the set of problems.
        instances: The problems.
        outcomes: By method, P of them; :data:`SINGLE` is among them.
    """

    name: str
    instances: Sequence[Instance]
    outcomes: Mapping[str, Sequence[Outcome]]

    @cached_property
    def best(self) -> np.ndarray:
        """Latency of the fastest placement known, ``float64[P]``."""
        known = np.array([instance.known for instance in self.instances])
        return np.fmin.reduce(np.array([known, *map(self.latency, self.outcomes)]))

    @cached_property
    def bound(self) -> np.ndarray:
        """Proven below every placement, ``float64[P]``."""
        proven = [[o.bound_seconds for o in outcomes] for outcomes in self.outcomes.values()]
        # Sums in another order may differ in the last digits.
        return np.minimum(np.max(np.array(proven), axis=0), self.best)

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

    def over_bound(self, method: str) -> float:
        """Geometric mean of a method's latency over the proven bound; NaN where it answers nothing."""
        logs = np.log(self.latency(method) / self.bound)
        return float(np.exp(logs[np.isfinite(logs)].mean())) if np.isfinite(logs).any() else np.nan

    def row(self, method: str) -> dict[str, float]:
        """Figures of one method over all problems that it answers; gaps in shares (0.01 is one percent)."""
        latency, gaps = self.latency(method), self.gaps(method)
        ran = np.isfinite(latency)
        row: dict[str, float] = {"answered": int(ran.sum()), "not_legal": int(np.isinf(latency).sum())}
        if not ran.any():
            return row
        ratio = (latency / self.latency(SINGLE))[ran & np.isfinite(self.latency(SINGLE))]
        worth = ran & self.is_worth_placing
        seconds = np.array([o.seconds for o in self.outcomes[method]])[ran]
        low, high = _bootstrap(gaps[ran])
        return row | {
            "mean": float(gaps[ran].mean()),
            "low": low,
            "high": high,
            "median": float(np.median(gaps[ran])),
            "p95": float(np.quantile(gaps[ran], 0.95)),
            "worst": float(gaps[ran].max()),
            "optimal": int((latency[ran] <= self.bound[ran] * (1 + _EQUAL)).sum()),
            "worth": int(worth.sum()),
            "mean_where_worth": float(gaps[worth].mean()) if worth.any() else np.nan,
            "faster": int((ratio < 1 - _EQUAL).sum()),
            "slower": int((ratio > 1 + _EQUAL).sum()),
            "median_ms": 1e3 * float(np.median(seconds)),
        }

    def table(self) -> Table:
        """A row per method, and why one has no answer."""
        columns = (
            "method", "mean [95 %]", "median", "p95", "worst", "optimal", "where placing matters",
            "faster / slower than best device", "ms per placement",
        )  # fmt: skip
        rows = [(method, *_cells(self.row(method), len(self.instances))) for method in self.outcomes]
        firsts = {m: next((o.refusal for o in of if o.refusal), "") for m, of in self.outcomes.items()}
        refusals = [f"{method}: {refusal}" for method, refusal in firsts.items() if refusal]
        proven = int((self.best <= self.bound * (1 + _EQUAL)).sum())
        title = f"{self.name}: {len(self.instances)} problems, {proven} with proven optimum; gaps in %"
        note = f"Where there is no answer: {'; '.join(refusals)}" if refusals else ""
        return Table(title, columns, rows, note)

    def cases(self, among: Sequence[str]) -> list[Case]:
        """Where ours is slower, and where faster, than the best of some rivals; a tie is neither."""
        seconds = np.array([self.latency(m) for m in among])
        found = []
        for i, instance in enumerate(self.instances):
            if not np.isfinite(seconds[:, i]).any():
                continue
            fastest = int(np.nanargmin(seconds[:, i]))
            rival = float(seconds[fastest, i])
            own = self.outcomes[_OURS][i].latency_seconds
            if np.isfinite(own) and abs(own / rival - 1) > _EQUAL:
                detail = f"{1e3 * own:.4g} ms against {1e3 * rival:.4g} ms; {self.name}"
                found.append(Case(f"{_OURS} on {instance.name}", among[fastest], own / rival, detail))
        return found

    def to_list(self) -> list[dict[str, Any]]:
        """Every latency, for JSON."""
        return [
            {
                "problem": instance.name,
                "groups": len(instance.table),
                "devices": list(instance.table.devices),
                "best_known_ms": 1e3 * float(self.best[i]),
                "bound_ms": 1e3 * float(self.bound[i]),
                "ms": {
                    method: 1e3 * of[i].latency_seconds if np.isfinite(of[i].latency_seconds) else None
                    for method, of in self.outcomes.items()
                },
            }
            for i, instance in enumerate(self.instances)
        ]


def compare(
    name: str, instances: Sequence[Instance], methods: Mapping[str, Method], options: RivalOptions
) -> Comparison:
    """Run methods on problems; the first problem once before, which imports and compiles what they need."""
    outcomes: dict[str, list[Outcome]] = {method: [] for method in methods}
    for method in methods.values() if instances else ():
        try_it(method, instances[0], options)
    for instance in track(instances, name):
        for title, method in methods.items():
            outcomes[title].append(try_it(method, instance, options))
    return Comparison(name, instances, outcomes)


def _cells(row: Mapping[str, float], problems: int) -> tuple[str, ...]:
    if not row["answered"]:
        return (f"no answer, {row['not_legal']} not legal", *["-"] * 7)
    answered = "" if row["answered"] == problems else f" ({row['answered']} answered)"
    return (
        f"{percent(row['mean'])} [{percent(row['low'])}, {percent(row['high'])}]{answered}",
        *(percent(row[key]) for key in ("median", "p95", "worst")),
        str(row["optimal"]),
        f"{percent(row['mean_where_worth'])} ({row['worth']})" if row["worth"] else "-",
        f"{row['faster']} / {row['slower']}",
        f"{row['median_ms']:.3g}",
    )


def _bootstrap(gaps: np.ndarray, seed: int = 0) -> tuple[float, float]:
    """95 % bootstrap interval of the mean of ``float64[P]`` over the problems."""
    random = np.random.default_rng(seed)
    means = gaps[random.integers(len(gaps), size=(_RESAMPLES, len(gaps)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(low), float(high)
