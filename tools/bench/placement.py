"""Placement quality on cost tables: our solvers and the learned policy beside published rivals.

    python tools/bench/placement.py [--quick] [--seed 0] [--json FILE]

Every method gets the same tables and is scored on the same objective, the simulated latency of one request on
HETERO. The gap of a placement is its latency over the fastest placement known, minus 1; where the fastest is
proven to be optimal, the table says of how many. List schedulers assume devices that run side by side, which
HETERO's do not: what is measured is what they are worth here, not how good they are at their own task.

Rivals that learn are trained from scratch on each single graph, as in their papers' comparisons, with a
budget of simulated placements of which the best counts; so they run on a few graphs only, beside all other
methods and as many random placements. Times are processor time, which other users of the machine leave alone.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import machine_line
from placement_methods import SINGLE, Outcome, immediate_methods, missing_libraries, searches, try_it
from placement_problems import problem_sets
from placement_report import FROM_SCRATCH, Comparison, cases, print_cases, print_rows, ratios_of, rows_of
from policy_problems import Problem
from rich.progress import track

from ov_autoplace._base.files import write_text_atomically
from ov_autoplace.baselines import BaselineOptions
from ov_autoplace.cost.table import CostTable
from ov_autoplace.solvers import solve

__all__ = ["run"]


@dataclass(frozen=True)
class _Effort:
    """How much is done.

    Attributes:
        longer_search: Seconds of each of three further searches for the fastest placement.
        evaluations: Budget of a rival that learns.
        seeds: How many seeds of each of them.
        graphs: How many graphs they run on.
        sizes: Groups of those graphs, from and to.
    """

    longer_search: float
    evaluations: int
    seeds: int
    graphs: int
    sizes: tuple[int, int]


_QUICK = _Effort(longer_search=0.0, evaluations=200, seeds=1, graphs=3, sizes=(20, 60))
_FULL = _Effort(longer_search=2.0, evaluations=2000, seeds=3, graphs=5, sizes=(20, 200))


def run(quick: bool, seed: int) -> dict[str, Any]:
    """Measure everything and print it.

    Args:
        quick: Fewer and smaller problems, for less than two minutes on one core.
        seed: Of everything random.

    Returns:
        For JSON: ``name``, ``command``, ``machine``, ``rows`` (one per set and method), ``losing`` and
        ``winning`` (cases of our default solver and of the policy against the best rival), ``ratios`` (of our
        methods, lower is better, the same on every machine), ``problems`` (every latency) and ``not_run``.
    """
    effort = _QUICK if quick else _FULL
    comparisons: dict[str, Comparison] = {}
    rows: list[dict[str, Any]] = []

    def take(name: str, comparison: Comparison) -> None:
        comparisons[name] = comparison
        new = rows_of(name, comparison, seed)
        print_rows(new)  # at once: the rest may take long
        rows.extend(new)

    with _one_thread():
        for name, problems in problem_sets(quick, seed).items():
            take(name, _compare(name, problems, effort, seed))
        take(FROM_SCRATCH, _train(list(comparisons.values()), effort, seed))
    losing, winning = cases(comparisons)
    result = {
        "name": "placement",
        "command": f"python tools/bench/placement.py{' --quick' if quick else ''} --seed {seed}",
        "machine": machine_line(),
        "rows": rows,
        "losing": losing,
        "winning": winning,
        "ratios": ratios_of(comparisons),
        "problems": [p for name, comparison in comparisons.items() for p in comparison.to_list(name)],
        "not_run": missing_libraries(),
    }
    print_cases(result)
    return result


def _compare(name: str, problems: Sequence[Problem], effort: _Effort, seed: int) -> Comparison:
    """All methods that answer at once, on every problem, and longer searches where the optimum is open."""
    methods = immediate_methods()
    options = BaselineOptions(seed=seed)
    outcomes: dict[str, list[Outcome]] = {method: [] for method in methods}
    for method in methods.values():
        try_it(method, problems[0].true, options)  # imports and compiles what it needs
    for problem in track(problems, name):
        for title, method in methods.items():
            outcomes[title].append(try_it(method, problem.true, options))
    comparison = Comparison(problems, outcomes, np.full(len(problems), np.inf))
    if not effort.longer_search:
        return comparison
    searched = [
        np.inf if is_proven else _longer_search(problem.true, effort.longer_search, seed)
        for problem, is_proven in zip(problems, comparison.is_proven, strict=True)
    ]
    return Comparison(problems, outcomes, np.array(searched))


def _longer_search(table: CostTable, seconds: float, seed: int) -> float:
    """Latency of the fastest placement that the default solver finds with more time and three seeds."""
    answers = [solve(table, time_limit=seconds, seed=3 * seed + i).latency_seconds for i in range(3)]
    return min(answer for answer in answers if answer is not None)


def _train(comparisons: Sequence[Comparison], effort: _Effort, seed: int) -> Comparison:
    """The rivals that learn, on graphs where no single device is best, beside all other methods."""
    parts = [
        part
        for comparison in comparisons
        for part in comparison.parts()
        if part.is_worth_placing[0] and effort.sizes[0] <= len(part.problems[0].true) <= effort.sizes[1]
    ]
    seen: set[str] = set()
    chosen = []
    for part in parts:  # one graph of each family, in the order of the sets
        family = part.problems[0].family
        if family not in seen:
            seen.add(family)
            chosen.append(part)
    chosen = chosen[: effort.graphs]
    outcomes = {
        name: [part.outcomes[name][0] for part in chosen]
        for name in (chosen[0].outcomes if chosen else (SINGLE,))
    }
    for name, method in searches().items():
        outcomes[name] = [
            _mean(
                [
                    try_it(
                        method,
                        part.problems[0].true,
                        BaselineOptions(seed=seed + i, evaluations=effort.evaluations),
                    )
                    for i in range(effort.seeds)
                ]
            )
            for part in track(chosen, f"{name}, {effort.evaluations:,} evaluations")
        ]
    known = np.array([part.best[0] for part in chosen])
    return Comparison([part.problems[0] for part in chosen], outcomes, known)


def _mean(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over seeds; a refusal is one of all."""
    refusal = next((o.refusal for o in outcomes if o.refusal), "")
    return Outcome(
        float(np.mean([o.latency_seconds for o in outcomes])),
        float(np.mean([o.seconds for o in outcomes])),
        refusal=refusal,
    )


@contextmanager
def _one_thread():
    """Times are those of one core, also where torch would take all."""
    if "hsdag" in missing_libraries():
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="less than two minutes on one core")
    parser.add_argument("--seed", type=int, default=0, help="of everything random (default: %(default)s)")
    parser.add_argument("--json", type=Path, help="also write everything to this file")
    arguments = parser.parse_args()
    result = run(arguments.quick, arguments.seed)
    if arguments.json is not None:
        arguments.json.parent.mkdir(parents=True, exist_ok=True)
        write_text_atomically(arguments.json, json.dumps(result, indent=1, allow_nan=False) + "\n")


if __name__ == "__main__":
    main()
