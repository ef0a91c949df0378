"""Placement under memory limits: mixed-integer programs for large neighbourhoods, and for the bound.

The whole program is out of reach beyond two accelerators, so it is solved in parts. *Large neighbourhood
search* (Shaw, "Using Constraint Programming and Local Search Methods to Solve Vehicle Routing Problems",
1998) frees the units of a few devices, or of a stretch of the graph, keeps everything else, and lets HiGHS
find the best way to place what is free; that cannot make things worse, and replaces a warm start, which
SciPy's ``milp`` does not take. The *bound* comes from programs in which copies of a device are pooled: pools
have the memory of all their members and no transfers inside. Splitting single devices off the pool, each tied
to one of the largest units so that copies are not exchanged, raises the bound step by step up to the optimum.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ov_autoplace._base.arrays import BoolArray, IntArray, rows_of
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.cuts import expansion_proposals
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.milp_model import Solved, solve_model
from ov_autoplace.solvers.pooling import copies_of, pooled, segmented
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["refine", "solve_milp", "with_relaxation"]

# Without a time limit the effort is counted in nodes of search trees, so that answers can be repeated. On
# graphs where that takes longer than anyone would wait, the clock ends it.
_BOUND_NODES, _PART_NODES = 40, 10
_SPLITS_WITHOUT_LIMIT = 1
# With one: how it is shared out.
_POOLED_SHARE, _SEARCH_SHARE = 0.5, 0.85
_SEARCHED = 2  # placements from which the search starts
_PART_SECONDS = 2.0
_STRETCHES = (16, 32)
_STEPS = 2  # along tensors, to what counts as nearby
_MOST_FREE = 400  # units in one part
_MOST_UNITS = 2_500  # in a program over all units
_CLOSE_ENOUGH = 2e-3
_CLOSE_WITHOUT_LIMITS = 0.02
_MOST_VARIABLES = 60_000  # of a relaxation, which takes up to some seconds then


def solve_milp(problem: Problem, options: SolverOptions) -> Placement:
    """The best placement that large neighbourhoods reach, with the bound that pooled programs prove.

    Raises:
        PlacementError: Nothing fits into memory, or nothing that does was found.
    """
    found = expansion_proposals(problem, options)
    return problem.evaluator.answer(*refine(problem.evaluator, found.assignments, found.bound, options))


@dataclass(frozen=True)
class _Effort:
    """How much the programs may take: until some moment, and a number of nodes each unless it is ``None``."""

    until: float
    nodes: int | None

    def solve(self, units: UnitGraph, allowed: BoolArray, seconds: float = np.inf) -> Solved:
        """The best placement of a program that, where nodes are not counted, takes at most some seconds."""
        left = self.until - time.monotonic()
        time_limit = left if self.nodes is not None else min(left, seconds)
        return solve_model(units, allowed, time_limit=time_limit, node_limit=self.nodes)

    @property
    def is_over(self) -> bool:
        return time.monotonic() >= self.until


def refine(
    evaluator: Evaluator, starts: list[IntArray], bound: float, options: SolverOptions
) -> tuple[IntArray, float]:
    """Improve placements under memory limits, and raise the bound.

    Args:
        evaluator: Scores assignments of units.
        starts: Assignments that fit.
        bound: What is proven already, in seconds.
        options: Deadline and seed.

    Returns:
        An assignment at least as fast as the best start, and a bound at least as high as ``bound``.
    """
    units = evaluator.units
    begin = time.monotonic()
    seconds = options.program_seconds if options.deadline is None else options.deadline - begin

    def effort(share: float, nodes: int) -> _Effort:
        return _Effort(begin + share * seconds, nodes if options.deadline is None else None)

    classes = copies_of(units)
    candidates = list(starts)
    if len(units) <= _MOST_UNITS and not _is_close(evaluator, evaluator.best(candidates), bound):
        first, bound = _bound(evaluator, classes, bound, effort(_POOLED_SHARE, _BOUND_NODES))
        candidates += [] if first is None else [first]
    candidates = sorted(candidates, key=lambda device: _value(evaluator, device))[:_SEARCHED]
    search = effort(_SEARCH_SHARE, _PART_NODES)
    ends = [_search(evaluator, start, bound, search) for start in candidates]
    best = improve(evaluator, evaluator.best(ends), options, enough=bound)
    most = len(units) <= _MOST_UNITS and max(len(c) for c in classes) > 1
    splits = sum(len(c) - 1 for c in classes) if most else 0
    if options.deadline is None:
        splits = min(splits, _SPLITS_WITHOUT_LIMIT)
    for split in range(1, splits + 1):
        whole = effort(1.0, _BOUND_NODES)
        if whole.is_over or _is_close(evaluator, best, bound):
            break
        found, bound = _bound(evaluator, _split(classes, split), bound, whole)
        if found is not None:
            found = _search(evaluator, found, bound, effort(1.0, _PART_NODES))
            best = evaluator.best([best, found])
    return best, bound


def with_relaxation(
    evaluator: Evaluator, proposals: list[IntArray], bound: float, options: SolverOptions
) -> tuple[list[IntArray], float]:
    """Without memory limits the relaxation of the whole program nearly solves it.

    Returns:
        The proposals, with the relaxation's where it is affordable, and the better of two bounds.
    """
    units = evaluator.units
    best = float(evaluator.latencies(proposals).min())
    devices = len(units.usable_devices)
    variables = devices * len(units) + devices * (devices - 1) * len(units.producer)
    if best <= bound * (1 + _CLOSE_WITHOUT_LIMITS) or variables > _MOST_VARIABLES:
        return proposals, bound
    left = None if options.deadline is None else options.deadline - time.monotonic()
    solved = solve_model(units, np.isfinite(units.op_seconds), time_limit=left, is_fractional=True)
    if solved.assignment is not None:
        proposals = [*proposals, solved.assignment]
    return proposals, max(bound, evaluator.bound(solved.bound))


def _is_close(evaluator: Evaluator, device: IntArray, bound: float) -> bool:
    return _value(evaluator, device) <= bound * (1 + _CLOSE_ENOUGH)


def _value(evaluator: Evaluator, device: IntArray) -> float:
    return float(evaluator.latencies([device])[0])


def _split(classes: list[list[int]], count: int) -> list[list[int]]:
    """Pools, with ``count`` devices of the largest classes standing alone, those first."""
    pools: list[list[int]] = []
    for members in sorted(classes, key=len, reverse=True):
        alone = min(count, len(members) - 1)
        count -= alone
        pools += [[d] for d in members[:alone]] + [members[alone:]]
    return pools


def _bound(
    evaluator: Evaluator, pools: list[list[int]], bound: float, effort: _Effort
) -> tuple[IntArray | None, float]:
    """The minimum over pools: a placement made from it that fits, if any, and the better of two bounds."""
    units = evaluator.units
    taken = pooled(units, pools)
    solved = effort.solve(taken, _without_exchanges(units, taken, pools))
    bound = max(bound, evaluator.bound(solved.bound)) if np.isfinite(solved.bound) else bound
    if solved.assignment is None:
        return None, bound
    near = segmented(units, pools, solved.assignment)
    segments = effort.solve(units.with_launches(1.0), near, _PART_SECONDS)
    return segments.assignment, bound


def _without_exchanges(units: UnitGraph, taken: UnitGraph, pools: list[list[int]]) -> BoolArray:
    """Where units may be in a pooled program, without placements that only exchange copies.

    The copies of a class are numbered by the largest unit that they hold: of the class's k-th largest units,
    none is beyond the k-th copy.
    """
    allowed = np.isfinite(taken.op_seconds)
    largest = np.argsort(-units.memory_bytes, kind="stable")
    place = {d: p for p, pool in enumerate(pools) for d in pool}
    for members in copies_of(units):
        own = sorted({place[d] for d in members})
        for k, unit in enumerate(largest[: len(own) - 1].tolist()):
            allowed[unit, own[k + 1 :]] = False
    return allowed


def _search(evaluator: Evaluator, start: IntArray, bound: float, effort: _Effort) -> IntArray:
    """Free one part after the other until none makes the placement faster."""
    units = evaluator.units
    priced = units.with_launches(1.0)
    may_run = np.isfinite(units.op_seconds)
    best, value = start, _value(evaluator, start)
    known_stuck: set[bytes] = set()
    improved = True
    while improved:
        improved = False
        for allowed in _parts(units, best, may_run):
            if effort.is_over or value <= bound * (1 + 1e-9):
                return best
            key = np.packbits(allowed).tobytes()
            if key in known_stuck:
                continue
            solved = effort.solve(priced, allowed, _PART_SECONDS)
            if solved.is_optimal:
                known_stuck.add(key)
            if solved.assignment is None:
                continue
            found = _value(evaluator, solved.assignment)
            if found < value * (1 - 1e-9):
                best, value, improved = solved.assignment, found, True
    return best


def _parts(units: UnitGraph, device: IntArray, may_run: BoolArray) -> Iterator[BoolArray]:
    """Parts to free: where each unit may be, ``bool[U, D]``, its present device included."""
    stays = device[:, None] == np.arange(units.num_devices)
    devices = _distinct_devices(units, device)
    if len(units) <= _MOST_FREE:
        yield _nearby(units, stays) & may_run
    for size in (2, 3):
        for chosen in combinations(devices, size):
            free = np.isin(device, chosen)
            if 0 < free.sum() <= _MOST_FREE:
                targets = np.isin(np.arange(units.num_devices), chosen)
                yield stays | (may_run & free[:, None] & targets)
        stretch = _STRETCHES[size - 2]
        for first in range(0, max(len(units) - stretch // 2, 1), stretch // 2):
            free = np.zeros(len(units), dtype=np.bool_)
            free[units.order[first : first + stretch]] = True
            targets = np.isin(np.arange(units.num_devices), devices)
            yield stays | (may_run & free[:, None] & targets)


def _nearby(units: UnitGraph, stays: BoolArray) -> BoolArray:
    """Where each unit is, where what it exchanges tensors with is, one step further, and where room is."""
    near: BoolArray = stays | ~units.may_overflow
    producer = units.producer[rows_of(units.offsets)]
    for _ in range(_STEPS):
        before = near.copy()
        np.logical_or.at(near, producer, before[units.consumers])
        np.logical_or.at(near, units.consumers, before[producer])
    return near


def _distinct_devices(units: UnitGraph, device: IntArray) -> list[int]:
    """The devices in use, and one idle one of each class of copies."""
    used = set(device.tolist())
    chosen = []
    for members in copies_of(units):
        idle = [d for d in members if d not in used]
        chosen += [d for d in members if d in used] + idle[:1]
    return sorted(chosen)
