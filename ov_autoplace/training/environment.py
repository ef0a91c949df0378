"""Where policies are rewarded: many cost tables at once, each behind the C++ simulator.

A policy decides per unit (groups that must share a device). What it may not do is *masked*: such a placement
has an infinite latency and takes no part in an update, instead of being paid for with some huge number that
would drown what the legal placements say.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace.errors import TrainingError
from ov_autoplace.plan.simulator import simulate_batch
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve_problem

__all__ = ["Environment"]

# Nodes that HETERO's cutting of cycles may visit. In the worst case (a ladder with all rungs on the other
# device) 50 million take two seconds; with random placements of a network they take milliseconds.
_MOST_WORK = 50_000_000

Actions = NDArray[np.integer[Any]]


class Environment:
    """B problems, for each of which a policy chooses k placements at a time.

    Attributes:
        problems: The B problems.
        best_single: What a reward of 0 means, in seconds, ``float64[B]``: the fastest single device that
            may run everything; where there is none, what the ``portfolio`` solver finds.
        reference: Which of the two that is, for each problem: a device name or ``"portfolio"``.
    """

    def __init__(self, problems: Sequence[Problem], most_work: int = _MOST_WORK) -> None:
        """Take B problems, which takes seconds where memory limits leave no single device.

        Args:
            problems: All of them.
            most_work: Nodes that the simulator may visit to cut one placement; what takes more is masked.

        Raises:
            PlacementError: A problem has no legal placement.
        """
        self.problems = tuple(problems)
        self._most_work = most_work
        references = [_reference(problem) for problem in self.problems]
        self.reference = tuple(name for name, _ in references)
        self.best_single = frozen_array([seconds for _, seconds in references], np.float64)

    def __len__(self) -> int:
        return len(self.problems)

    def split(self, actions: Actions) -> list[Actions]:
        """Cut the actions of a whole batch, ``int[k, N]``, into those of each graph, ``int[k, N_b]``."""
        ends = np.cumsum([len(problem.units) for problem in self.problems])
        if actions.ndim != 2 or actions.shape[1] != ends[-1]:
            raise TrainingError(f"actions must be int[k, {ends[-1]}], not {list(actions.shape)}")
        return np.split(actions, ends[:-1], axis=1)

    def latencies(self, actions: Sequence[Actions]) -> FloatArray:
        """Simulate k placements of every graph on all cores.

        Args:
            actions: Device of every unit: B arrays ``int[k, N_b]``.

        Returns:
            Seconds, ``float64[B, k]``; ``inf`` = masked: a unit on a device that may not run it, more memory
            than a device has, a cut through what must stay together, or so many subgraphs waiting for each
            other in a cycle that HETERO would take seconds to sort them out.
        """
        given = zip(self.problems, actions, strict=True)
        return np.stack([_latencies_of(problem, own, self._most_work) for problem, own in given])

    def rewards(self, latencies: FloatArray) -> FloatArray:
        """``-log(latency / best single device)`` of latencies ``float64[B, k]``; ``-inf`` = masked."""
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(-np.log(latencies / self.best_single[:, None]))


def _latencies_of(problem: Problem, actions: Actions, most_work: int) -> FloatArray:
    devices = np.ascontiguousarray(actions, dtype=np.int32)
    legal = _is_legal(problem.evaluator, devices, most_work)
    latencies = np.full(len(devices), np.inf)
    if legal.any():
        groups = devices[legal][:, problem.units.unit_of]
        latencies[legal] = simulate_batch(problem.table, groups, objective=problem.objective)
    return latencies


def _is_legal(evaluator: Evaluator, devices: IntArray, most_work: int) -> BoolArray:
    """Which of k placements ``int32[k, N]`` break no constraint and can be simulated in a moment or two."""
    units = evaluator.units
    runs = np.isfinite(units.op_seconds[np.arange(len(units)), devices])
    legal: BoolArray = np.asarray(runs.all(axis=1))
    if units.has_memory_limits:
        legal &= np.array([units.fits(device) for device in devices], dtype=np.bool_)
    if evaluator.nodes * len(units) > most_work:
        for i in np.flatnonzero(legal):
            legal[i] = evaluator.work(devices[i]) <= most_work
    return legal


def _reference(problem: Problem) -> tuple[str, float]:
    """The placement to compare with, by name, and its seconds."""
    singles = problem.evaluator.singles()
    if singles:
        seconds = problem.evaluator.latencies(list(singles.values()))
        fastest = int(np.argmin(seconds))
        return problem.table.devices[list(singles)[fastest]], float(seconds[fastest])
    answer = solve_problem(problem, "portfolio", SolverOptions())
    assert answer.latency_seconds is not None
    return "portfolio", answer.latency_seconds
