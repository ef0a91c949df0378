"""Published placement methods beside the policy, on problems of ``hetero`` and ``overlap`` from the test set.

They are those of ``problems/judged.py`` where placing matters: the best placement known is over a percent
faster than every single device. Each method reads the problem's costs and is scored on its objective. Those
that learn are trained from scratch on each problem with a budget of simulated placements, of which the best
counts, and several seeds; the others answer at once, as the policy does. List schedulers and METIS are made
for devices that work side by side, so ``overlap`` is their ground and ``hetero`` is not.

Each problem and seed is a process of its own, and a run that was ended goes on with ``--resume``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from examples import JUDGED
from harness.methods import SINGLE, UNTRAINED, missing_libraries, searches
from harness.process import Pieces
from harness.result import Case, Result, Table, percent
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.solvers import Problem, solve_problem
from ov_autoplace.solvers.solver import SolverOptions
from ov_autoplace.training.labelled import Labelled
from problems.judged import Kind, problems_of
from rivals import RIVALS, RivalOptions

__all__ = ["answers", "run"]

_OURS = ("policy", "portfolio")
_LEFT_OUT = ("random", "grouper-placer")  # the section ``placement`` has them
_POOL = 12  # problems of each kind, of which those are taken where placing matters
_WORTH = 0.01
_EQUAL = 1e-9


def run(
    quick: bool,
    seed: int,
    problems: int = 3,
    evaluations: int = 2000,
    seeds: int = 3,
    smallest: int = 10,
    largest: int = 60,
    devices: int = 3,
    objectives: tuple[str, ...] = ("hetero", "overlap"),
) -> Result:
    """One row per objective and method: gaps to the best placement known.

    Args:
        quick: One seed, a tenth of the evaluations.
        seed: Of the problems, and the first of the methods'.
        problems: Of each objective.
        evaluations: Budget of a method that learns.
        seeds: How many of each method that draws.
        smallest: Fewest groups of a problem.
        largest: Most of them.
        devices: Columns of each problem.
        objectives: Of the problems.
    """
    if quick:
        seeds, evaluations = 1, evaluations // 10
    pieces = Pieces()
    found: dict[str, dict[str, dict[str, list[float]]]] = {}  # objective, problem, method: gap by seed
    sizes: dict[str, int] = {}
    known_of: dict[str, float] = {}
    for kind in JUDGED:
        objective, columns, limited = kind
        if objective not in objectives or columns != devices or limited:
            continue
        for number in _chosen(kind, seed, problems, smallest, largest):
            labelled = problems_of("held-out", kind, _POOL, seed)[number]
            name = f"{labelled.task.name}, {objective}"
            what = {"kind": list(kind), "number": number, "pool_seed": seed, "evaluations": evaluations}
            told = [
                pieces(f"{name}, seed {own}", answers, **what, seed=own) for own in range(seed, seed + seeds)
            ]
            by_seed = [one for one in told if one is not None]
            if not by_seed:
                continue
            sizes[name] = len(labelled.task.true)
            every = [seconds for one in by_seed for seconds in one.values() if np.isfinite(seconds)]
            known_of[name] = best = min([labelled.best_seconds, *every])
            found.setdefault(objective, {})[name] = {
                method: [one[method] / best - 1 for one in by_seed] for method in by_seed[0]
            }
    return Result(
        "The policy and published methods",
        tuple(_table(objective, of, evaluations) for objective, of in found.items())
        + tuple(_each(objective, of, sizes) for objective, of in found.items()),
        cases=tuple(_cases(found)),
        remarks=(
            *(f"{method} was not run: {reason}" for method, reason in missing_libraries().items()),
            *pieces.remarks,
        ),
        data={"gaps": found, "groups": sizes, "best_seconds": known_of, "seed": seed},
    )


def _chosen(kind: Kind, seed: int, problems: int, smallest: int, largest: int) -> list[int]:
    """Numbers of problems where placing matters, of different families as far as there are some."""
    families: dict[str, int] = {}
    matter: list[tuple[int, int]] = []
    for number, labelled in enumerate(problems_of("held-out", kind, _POOL, seed)):
        if not smallest <= len(labelled.task.true) <= largest:
            continue
        if labelled.single_seconds > labelled.best_seconds * (1 + _WORTH):
            turn = families[labelled.task.family] = families.get(labelled.task.family, 0) + 1
            matter.append((turn, number))
    return [number for _, number in sorted(matter)[:problems]]


def answers(
    kind: Sequence[Any], number: int, pool_seed: int, evaluations: int, seed: int
) -> dict[str, float]:
    """Seconds of everybody's answer to one problem by its objective; NaN = none.

    Args:
        kind: Of the problem.
        number: Which of its kind.
        pool_seed: Of the problems.
        evaluations: Budget of a method that learns.
        seed: Of the methods.
    """
    import torch

    torch.set_num_threads(1)
    labelled: Labelled = problems_of("held-out", (kind[0], kind[1], kind[2]), _POOL, pool_seed)[number]
    table, objective = labelled.task.true, labelled.task.objective
    options = RivalOptions(seed=seed, evaluations=evaluations)
    found = {SINGLE: labelled.single_seconds}
    for name in _OURS:
        answer = solve_problem(Problem.of(table, objective=objective), name, SolverOptions(seed=seed))
        found[name] = float(answer.latency_seconds or np.nan)
    methods = {name: RIVALS[name] for name in UNTRAINED if name not in missing_libraries()}
    for name, method in {**methods, **searches()}.items():
        if name in _LEFT_OUT:
            continue
        problem = Problem.of(table, objective=objective)
        try:
            answer = method(problem, options)
        except AutoplaceError:
            found[name] = np.nan
            continue
        (placement,) = answer if isinstance(answer, list) else [answer]
        units = problem.units.from_groups(placement.assignment)
        found[name] = float(problem.evaluator.latencies([units])[0])
    return found


def _table(objective: str, found: Mapping[str, Mapping[str, Sequence[float]]], evaluations: int) -> Table:
    """A row per method: gaps over all problems and seeds."""
    rows = []
    for method in next(iter(found.values())):
        gaps = np.array([of[method] for of in found.values()])  # [problems, seeds]
        answered = gaps[np.isfinite(gaps)]
        ours = np.array([of["policy"] for of in found.values()])
        rows.append(
            (
                method,
                percent(float(answered.mean())) if len(answered) else "-",
                percent(float(np.median(answered))) if len(answered) else "-",
                percent(float(answered.max())) if len(answered) else "-",
                ", ".join(percent(float(of)) for of in np.nanmean(gaps, axis=0)),
                f"{int((gaps < ours - _EQUAL).sum())} of {gaps.size}",
            )
        )
    columns = ("method", "mean", "median", "worst", "mean by seed", "better than the policy")
    title = f"{objective}, {len(found)} problems, {evaluations:,} evaluations: gaps to the best known, %"
    return Table(title, columns, rows)


def _each(
    objective: str, found: Mapping[str, Mapping[str, Sequence[float]]], sizes: Mapping[str, int]
) -> Table:
    """A row per problem."""
    methods = tuple(next(iter(found.values())))
    rows = [
        (name, str(sizes[name]), *(percent(float(np.mean(of[method]))) for method in methods))
        for name, of in found.items()
    ]
    return Table(
        f"{objective}, problem by problem: mean gaps over the seeds, %", ("problem", "groups", *methods), rows
    )


def _cases(found: Mapping[str, Mapping[str, Mapping[str, Sequence[float]]]]) -> list[Case]:
    """The policy over every other method, problem by problem."""
    return [
        Case(name, method, float((1 + np.mean(of["policy"])) / (1 + np.mean(gaps))), "policy")
        for problems in found.values()
        for name, of in problems.items()
        for method, gaps in of.items()
        if method not in _OURS and np.isfinite(gaps).all()
    ]
