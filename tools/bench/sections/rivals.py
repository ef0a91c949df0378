"""Published placement methods beside the default solver, on random problems of ``hetero`` and ``overlap``.

They are graphs of ``problems/graphs.py`` where placing matters: the solver's placement is over a percent
faster than every single device. Each method reads the problem's costs and is scored on its objective. Those
that learn are trained from scratch on each problem with a budget of simulated placements, of which the best
counts, and several seeds, whose mean counts; the others answer at once, as the solver does. List schedulers
and METIS are made for devices that work side by side, so ``overlap`` is their ground and ``hetero`` is not.

Each problem and seed is a process of its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from itertools import islice
from typing import Any

import numpy as np

from harness.methods import (
    SINGLE,
    UNTRAINED,
    Comparison,
    Instance,
    Outcome,
    immediate_methods,
    missing_libraries,
    searches,
    try_it,
)
from harness.process import Pieces
from harness.result import Result
from ov_autoplace.solvers import solve
from problems.graphs import FAMILIES, many_device_table
from rivals import RivalOptions

_OURS = "portfolio"
_MOST_DRAWN = 200  # problems of an objective, of which those are taken where placing matters
_WORTH = 0.01


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
    """One table per objective, one row per method.

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
    comparisons = []
    for objective in objectives:
        instances: list[Instance] = []
        outcomes: dict[str, list[Outcome]] = {}
        for number in islice(_chosen(objective, seed, smallest, largest, devices), problems):
            instance = _instance(objective, number, seed, smallest, largest, devices)
            what = {
                "objective": objective,
                "number": number,
                "pool_seed": seed,
                "smallest": smallest,
                "largest": largest,
                "devices": devices,
                "evaluations": evaluations,
            }
            title = f"{instance.name}, {objective}"
            told = [
                pieces(f"{title}, seed {own}", answers, **what, seed=own) for own in range(seed, seed + seeds)
            ]
            by_seed = [one for one in told if one is not None]
            for method in by_seed[0] if by_seed else ():
                mean = Outcome.mean([Outcome(**one[method]) for one in by_seed])
                outcomes.setdefault(method, []).append(mean)
            instances += [instance] if by_seed else []
        if instances:
            comparisons.append(Comparison(f"{objective}, {evaluations:,} evaluations", instances, outcomes))
    return Result(
        "The default solver and published methods",
        tuple(found.table() for found in comparisons),
        cases=tuple(
            case
            for found in comparisons
            for method in found.outcomes
            if method != _OURS
            for case in found.cases([method])
        ),
        remarks=(
            *(f"{method} was not run: {reason}" for method, reason in missing_libraries().items()),
            *pieces.remarks,
        ),
        data={found.name: found.to_list() for found in comparisons} | {"seed": seed},
    )


def _instance(objective: str, number: int, seed: int, smallest: int, largest: int, devices: int) -> Instance:
    """One problem; families take turns."""
    family = list(FAMILIES)[number % len(FAMILIES)]
    own = np.random.default_rng((seed, number))
    ops = int(own.integers(smallest, largest + 1))
    table = many_device_table(family, ops, devices, int(own.integers(2**31)))
    return Instance(f"{family} of {ops}, number {number}", family, table, objective)


def _chosen(objective: str, seed: int, smallest: int, largest: int, devices: int) -> Iterator[int]:
    """Numbers of problems where placing matters."""
    for number in range(_MOST_DRAWN):
        table = _instance(objective, number, seed, smallest, largest, devices).table
        single, best = (
            solve(table, name, objective=objective).latency_seconds for name in ("single", "portfolio")
        )
        if single > best * (1 + _WORTH):
            yield number


def answers(
    objective: str,
    number: int,
    pool_seed: int,
    smallest: int,
    largest: int,
    devices: int,
    evaluations: int,
    seed: int,
) -> dict[str, dict[str, Any]]:
    """Everybody's :class:`Outcome` on one problem, as JSON values.

    Args:
        objective: Of the problem.
        number: Which of its kind.
        pool_seed: Of the problems.
        smallest: Fewest groups.
        largest: Most of them.
        devices: How many.
        evaluations: Budget of a method that learns.
        seed: Of the methods.
    """
    import torch

    torch.set_num_threads(1)
    instance = _instance(objective, number, pool_seed, smallest, largest, devices)
    options = RivalOptions(seed=seed, evaluations=evaluations)
    answering = immediate_methods()
    methods = {name: answering[name] for name in (SINGLE, _OURS, *UNTRAINED) if name in answering}
    return {
        name: asdict(try_it(method, instance, options)) for name, method in (methods | searches()).items()
    }
