"""Published placement methods beside the policy, on problems of ``hetero`` and ``overlap`` from the test set.

They are those of ``problems/judged.py`` where placing matters: the best placement known is over a percent
faster than every single device. Each method reads the problem's costs and is scored on its objective. Those
that learn are trained from scratch on each problem with a budget of simulated placements, of which the best
counts, and several seeds, whose mean counts; the others answer at once, as the policy does. List schedulers
and METIS are made for devices that work side by side, so ``overlap`` is their ground and ``hetero`` is not.

Each problem and seed is a process of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from examples import JUDGED
from harness.methods import (
    SINGLE,
    UNTRAINED,
    Comparison,
    Outcome,
    immediate_methods,
    missing_libraries,
    searches,
    try_it,
)
from harness.process import Pieces
from harness.result import Result
from ov_autoplace.policy.runner import PolicyRunner
from problems.judged import Kind, instance_of, problems_of
from rivals import RivalOptions

_OURS = ("policy", "portfolio")
_POOL = 12  # problems of each kind, of which those are taken where placing matters
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
    for kind in JUDGED:
        objective, columns, limited = kind
        if objective not in objectives or columns != devices or limited:
            continue
        pool = [instance_of(labelled) for labelled in problems_of("held-out", kind, _POOL, seed)]
        instances, outcomes = [], {}
        for number in _chosen(kind, seed, problems, smallest, largest):
            what = {"kind": list(kind), "number": number, "pool_seed": seed, "evaluations": evaluations}
            title = f"{pool[number].name}, {objective}"
            told = [
                pieces(f"{title}, seed {own}", answers, **what, seed=own) for own in range(seed, seed + seeds)
            ]
            by_seed = [one for one in told if one is not None]
            for method in by_seed[0] if by_seed else ():
                mean = Outcome.mean([Outcome(**one[method]) for one in by_seed])
                outcomes.setdefault(method, []).append(mean)
            instances += [pool[number]] if by_seed else []
        if instances:
            comparisons.append(Comparison(f"{objective}, {evaluations:,} evaluations", instances, outcomes))
    return Result(
        "The policy and published methods",
        tuple(found.table() for found in comparisons),
        cases=tuple(
            case
            for found in comparisons
            for method in found.outcomes
            if method not in _OURS
            for case in found.cases([method])
        ),
        remarks=(
            *(f"{method} was not run: {reason}" for method, reason in missing_libraries().items()),
            *pieces.remarks,
        ),
        data={found.name: found.to_list() for found in comparisons} | {"seed": seed},
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
) -> dict[str, dict[str, Any]]:
    """Everybody's :class:`Outcome` on one problem, as JSON values.

    Args:
        kind: Of the problem.
        number: Which of its kind.
        pool_seed: Of the problems.
        evaluations: Budget of a method that learns.
        seed: Of the methods.
    """
    import torch

    torch.set_num_threads(1)
    instance = instance_of(problems_of("held-out", (kind[0], kind[1], kind[2]), _POOL, pool_seed)[number])
    options = RivalOptions(seed=seed, evaluations=evaluations)
    answering = immediate_methods(PolicyRunner())
    methods = {name: answering[name] for name in (SINGLE, *_OURS, *UNTRAINED) if name in answering}
    return {
        name: asdict(try_it(method, instance, options)) for name, method in (methods | searches()).items()
    }
