"""Everything that places, behind one signature: our solvers and policies, and the rivals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec

import numpy as np
from policy_zero_shot import policy_answer

from ov_autoplace.baselines import BASELINES, LEARNED_BASELINES, Baseline, BaselineOptions
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import SOLVERS, Constraints, Solver, SolverAnswer

__all__ = [
    "OURS",
    "RIVALS",
    "SINGLE",
    "Outcome",
    "immediate_methods",
    "missing_libraries",
    "searches",
    "try_it",
]

SINGLE = "best single device"
OURS = ("policy", *(name for name in SOLVERS if name not in ("single", "policy")))
RIVALS = tuple(name for name in BASELINES if name not in LEARNED_BASELINES)
_RANDOM_DRAWS = 10

Method = Callable[[CostTable, BaselineOptions], list[SolverAnswer]]
"""Table and options to one or several placements, of which the mean latency counts."""


@dataclass(frozen=True)
class Outcome:
    """What one method made of one problem.

    Attributes:
        latency_seconds: Simulated; ``inf`` = HETERO could not run it, NaN = no answer.
        seconds: Processor time that one placement took.
        bound_seconds: Proven below every placement; 0 where a method proves nothing.
        refusal: Why there is no answer.
    """

    latency_seconds: float
    seconds: float
    bound_seconds: float = 0.0
    refusal: str = ""


def immediate_methods() -> dict[str, Method]:
    """Those that answer at once, by name."""
    runner = PolicyRunner()
    methods: dict[str, Method] = {SINGLE: partial(_of_table, SOLVERS["single"])}
    for name in OURS:
        methods[name] = partial(_of_table, SOLVERS[name])
    methods["policy"] = lambda table, options: [SolverAnswer(policy_answer(runner, table))]
    for name in RIVALS:
        methods[name] = partial(_of_table, BASELINES[name])
    methods["random"] = _random_draws
    return {name: method for name, method in methods.items() if name not in missing_libraries()}


def missing_libraries() -> dict[str, str]:
    """Methods that cannot run here, and why."""
    missing = {}
    if find_spec("pymetis") is None:
        missing["multilevel"] = "pymetis is not installed"
    if find_spec("torch") is None:
        missing |= dict.fromkeys((*LEARNED_BASELINES, "hsdag", "gdp"), "torch is not installed")
    return missing


def searches() -> dict[str, Method]:
    """Those that are trained from scratch on each problem with ``options.evaluations``, and chance."""
    methods: dict[str, Method] = {"best of random": _best_of_random}
    for name, baseline in LEARNED_BASELINES.items():
        methods[name] = partial(_of_table, baseline)
    for name in ("hsdag", "gdp"):
        methods[name] = partial(_from_scratch, name)
    return {name: method for name, method in methods.items() if name not in missing_libraries()}


def try_it(method: Method, table: CostTable, options: BaselineOptions) -> Outcome:
    """Run a method on a fresh copy of a table, so that what it derives from the table is in its time."""
    copy = replace(table)
    begin = time.process_time()
    try:
        answers = method(copy, options)
    except AutoplaceError as refusal:
        return Outcome(np.nan, np.nan, refusal=str(refusal))
    seconds = (time.process_time() - begin) / len(answers)
    latencies = simulate_batch(table, np.stack([answer.assignment for answer in answers]))
    bound = max(answer.lower_bound_seconds or 0.0 for answer in answers)
    return Outcome(float(latencies.mean()), seconds, bound)


def _of_table(solver: Solver | Baseline, table: CostTable, options: BaselineOptions) -> list[SolverAnswer]:
    return [solver(table, Constraints.of(table), options)]


def _random_draws(
    table: CostTable, options: BaselineOptions, draws: int = _RANDOM_DRAWS
) -> list[SolverAnswer]:
    constraints = Constraints.of(table)
    seeds = range(options.seed * draws, (options.seed + 1) * draws)
    return [BASELINES["random"](table, constraints, replace(options, seed=seed)) for seed in seeds]


def _best_of_random(table: CostTable, options: BaselineOptions) -> list[SolverAnswer]:
    answers = _random_draws(table, options, options.evaluations)
    latencies = simulate_batch(table, np.stack([answer.assignment for answer in answers]))
    return [answers[int(np.argmin(latencies))]]


def _from_scratch(network: str, table: CostTable, options: BaselineOptions) -> list[SolverAnswer]:
    from ov_autoplace.training.search import search

    return [SolverAnswer(search(table, network, options.evaluations, options.seed).assignment)]
