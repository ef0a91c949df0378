"""Everything that places, behind one signature: our solvers and policies, and the rivals."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec

import numpy as np

from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import SOLVERS, Problem, Solver
from ov_autoplace.solvers.policy import refined_assignment
from rivals import LEARNED_RIVALS, RIVALS, Rival, RivalOptions

__all__ = [
    "OURS",
    "SINGLE",
    "UNTRAINED",
    "Method",
    "Outcome",
    "immediate_methods",
    "missing_libraries",
    "policy_answer",
    "searches",
    "try_it",
]

SINGLE = "best single device"
OURS = ("policy", *(name for name in SOLVERS if name not in ("single", "policy", "exact", "oracle")))
UNTRAINED = tuple(name for name in RIVALS if name not in LEARNED_RIVALS)
"""Rivals that answer at once."""

_RANDOM_DRAWS = 10

Method = Callable[[Problem, RivalOptions], list[Placement]]
"""Problem and options to one or several placements, of which the mean latency counts."""


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
    seconds: float = np.nan
    bound_seconds: float = 0.0
    refusal: str = ""


def immediate_methods(policy: PolicyRunner) -> dict[str, Method]:
    """Those that answer at once, by name."""
    methods: dict[str, Method] = {SINGLE: partial(_one, SOLVERS["single"])}
    for name in OURS:
        methods[name] = partial(_one, SOLVERS[name])
    methods["policy"] = lambda problem, options: [policy_answer(policy, problem)]
    for name in UNTRAINED:
        methods[name] = partial(_one, RIVALS[name])
    methods["random"] = _random_draws
    return {name: method for name, method in methods.items() if name not in missing_libraries()}


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
    for name, rival in LEARNED_RIVALS.items():
        methods[name] = partial(_one, rival)
    for name in ("hsdag", "gdp"):
        methods[name] = partial(_from_scratch, name)
    return {name: method for name, method in methods.items() if name not in missing_libraries()}


def try_it(method: Method, shown: CostTable, options: RivalOptions, true: CostTable | None = None) -> Outcome:
    """Run a method on a fresh copy of a table, so that what it derives from the table is in its time.

    Args:
        method: What places.
        shown: What it reads.
        options: What it takes.
        true: What its placements are scored on; the same table unless that is an estimate.
    """
    copy = replace(shown)
    begin = time.process_time()
    try:
        answers = method(Problem.of(copy), options)
    except AutoplaceError as refusal:
        return Outcome(np.nan, refusal=str(refusal))
    seconds = (time.process_time() - begin) / len(answers)
    latencies = simulate_batch(true or shown, np.stack([answer.assignment for answer in answers]))
    bound = max(answer.lower_bound_seconds or 0.0 for answer in answers) if true is None else 0.0
    return Outcome(float(latencies.mean()), seconds, bound)


def policy_answer(policy: PolicyRunner, problem: Problem) -> Placement:
    """The policy's answer, as the solver ``policy`` gives it."""
    graph = policy_graph(problem)
    return problem.evaluator.answer(refined_assignment(policy.scores(graph), graph))


def _one(solver: Solver | Rival, problem: Problem, options: RivalOptions) -> list[Placement]:
    return [solver(problem, options)]


def _random_draws(problem: Problem, options: RivalOptions, draws: int = _RANDOM_DRAWS) -> list[Placement]:
    seeds = range(options.seed * draws, (options.seed + 1) * draws)
    return [RIVALS["random"](problem, replace(options, seed=seed)) for seed in seeds]


def _best_of_random(problem: Problem, options: RivalOptions) -> list[Placement]:
    answers = _random_draws(problem, options, options.evaluations)
    latencies = simulate_batch(problem.table, np.stack([answer.assignment for answer in answers]))
    return [answers[int(np.argmin(latencies))]]


def _from_scratch(network: str, problem: Problem, options: RivalOptions) -> list[Placement]:
    from ov_autoplace.training.environment import Environment
    from ov_autoplace.training.search import search

    found = search(Environment([problem]), network, options.evaluations, options.seed)
    return [Placement.of_groups(problem.table, found.assignment)]
