"""Local search on the true objective: what cuts cannot see (launches, cyclic subgraphs) is mended here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

import numpy as np

from ov_autoplace._base.arrays import BoolArray, IntArray, rows_of
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.greedy import greedy_assignment
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["improve", "solve_local"]

# Nodes visited by the simulator in one search; with a time limit, that is meant to end the search first.
_WORK = 150_000
_WORK_WITH_TIME_LIMIT = 1000 * _WORK
_MIN_EVALUATIONS, _MAX_EVALUATIONS = 8, 2_000
_BATCH = 64
_SMALL_BATCH = 8
_STALE_BATCHES = 12

_Move = tuple[IntArray, IntArray]  # units, and the device that each of them changes to


def solve_local(problem: Problem, options: SolverOptions) -> Placement:
    """Local search from the best single device or from the greedy placement, whichever is faster.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    evaluator = problem.evaluator
    starts = [*evaluator.singles().values(), greedy_assignment(problem.table, problem.units)]
    return evaluator.answer(improve(evaluator, evaluator.best(starts), options))


def improve(
    evaluator: Evaluator,
    start: IntArray,
    options: SolverOptions,
    enough: float = 0.0,
    work: int | None = None,
    blocks: Sequence[IntArray] = (),
) -> IntArray:
    """Move whole subgraphs, blocks, single units and runs of units as long as the placement becomes faster.

    Args:
        evaluator: Scores assignments.
        start: Assignment of units that is allowed, ``int32[U]``.
        options: Seed and deadline.
        enough: Stop at this latency in seconds: a proven bound.
        work: Most nodes that the simulator may visit; by default few, or many where there is a deadline.
        blocks: Units that are worth moving together, each ``int32[n]``: chains and branches.

    Returns:
        An assignment at least as fast as ``start``.
    """
    rng = np.random.default_rng(options.seed)
    if work is None:
        work = _WORK if options.deadline is None else _WORK_WITH_TIME_LIMIT
    current, value = start, float(evaluator.latencies([start])[0])
    # What is left is counted as a share, since the work of a simulation changes with the placement.
    left, share = 1.0, _share(evaluator, current, work)
    stale = 0
    moves = _neighbours(evaluator, current, rng, blocks)
    while left > 0 and stale < _STALE_BATCHES and value > enough * (1 + 1e-9) and not options.expired:
        size = _BATCH if left >= 4 * _BATCH * share else _SMALL_BATCH
        batch = [m for m in islice(moves, size) if _is_worth_trying(evaluator, current, m)]
        stale += 1
        left -= len(batch) * share
        if not batch:
            continue
        latencies = evaluator.latencies([_applied(current, [m]) for m in batch], value)
        better = np.flatnonzero(latencies < value * (1 - 1e-9))
        if not len(better):
            continue
        # The best move alone, and the best few together: they often lie in different places.
        ranked = [batch[i] for i in better[np.argsort(latencies[better], kind="stable")]]
        counts = [k for k in (2, 4, 8, 16, 32, 64) if k < 2 * len(ranked)]
        together = [_applied(current, ranked[:k]) for k in counts]
        together = [a for a in together if _fits(evaluator, a)]
        best = float(latencies.min())
        latencies = np.append(evaluator.latencies(together, best) if together else [], best)
        left -= len(together) * share
        winner = int(np.argmin(latencies))
        current = together[winner] if winner < len(together) else _applied(current, ranked[:1])
        value, stale = float(latencies[winner]), 0
        share = _share(evaluator, current, work)
        moves = _neighbours(evaluator, current, rng, blocks)
    return current


def _share(evaluator: Evaluator, device: IntArray, work: int) -> float:
    """Share of all the work that one evaluation near ``device`` takes."""
    evaluations = work / max(1, evaluator.work(device))
    return 1.0 / float(np.clip(evaluations, _MIN_EVALUATIONS, _MAX_EVALUATIONS * work // _WORK))


def _applied(device: IntArray, moves: list[_Move]) -> IntArray:
    """A copy with the moves made; where several touch a unit, the first one counts."""
    changed: IntArray = device.copy()
    for members, target in reversed(moves):
        changed[members] = target
    return changed


def _is_worth_trying(evaluator: Evaluator, device: IntArray, move: _Move) -> bool:
    members, target = move
    changes = bool((device[members] != target).any())
    return changes and _fits(evaluator, _applied(device, [move]))


def _fits(evaluator: Evaluator, device: IntArray) -> bool:
    return not evaluator.units.has_memory_limits or evaluator.units.fits(device)


def _neighbours(
    evaluator: Evaluator, device: IntArray, rng: np.random.Generator, blocks: Sequence[IntArray]
) -> Iterator[_Move]:
    """Moves worth trying, most promising first; without an end."""
    units = evaluator.units
    may_run = np.isfinite(units.op_seconds)
    yield from _subgraph_moves(evaluator, device, may_run)
    for b in rng.permutation(len(blocks)):
        for target in units.usable_devices:
            yield _to(blocks[b], target, may_run)
    yield from _boundary_moves(units, device, may_run, rng)
    while True:
        yield _run_move(units, may_run, rng)
        yield _exchange_move(units, device, may_run, rng)
        if blocks:
            yield _block_exchange(units, device, may_run, rng, blocks)


def _to(members: IntArray, target: int, may_run: BoolArray) -> _Move:
    """Those of some units to a device that may run there."""
    members = members[may_run[members, target]]
    return members, np.full(len(members), target, dtype=np.int32)


def _block_exchange(
    units: UnitGraph,
    device: IntArray,
    may_run: BoolArray,
    rng: np.random.Generator,
    blocks: Sequence[IntArray],
) -> _Move:
    """One block to the device of another, and that one to any device."""
    first, second = blocks[int(rng.integers(len(blocks)))], blocks[int(rng.integers(len(blocks)))]
    there, elsewhere = int(device[second[0]]), int(rng.choice(units.usable_devices))
    moves = [_to(first, there, may_run), _to(second, elsewhere, may_run)]
    # Of a unit that is in both, the last one holds.
    return np.concatenate([m for m, _ in moves]), np.concatenate([t for _, t in moves])


def _subgraph_moves(evaluator: Evaluator, device: IntArray, may_run: BoolArray) -> Iterator[_Move]:
    """Every subgraph to every other device as a whole, small subgraphs first."""
    units, table = evaluator.units, evaluator.table
    placement = Placement.of_groups(table, units.to_groups(device))
    subgraph_of = simulate(table, placement, evaluator.objective).subgraph_of
    runs = np.flatnonzero(subgraph_of >= 0)
    by_piece = units.unit_of[runs[np.argsort(subgraph_of[runs], kind="stable")]]
    ends = np.cumsum(np.bincount(subgraph_of[runs]))
    starts = np.concatenate([[0], ends[:-1]])
    for i in np.argsort(ends - starts, kind="stable"):
        piece = by_piece[starts[i] : ends[i]]
        for target in units.usable_devices:
            members, targets = _to(np.unique(piece).astype(np.int32), target, may_run)
            if len(members) and device[members[0]] != target:
                yield members, targets


def _boundary_moves(
    units: UnitGraph, device: IntArray, may_run: BoolArray, rng: np.random.Generator
) -> Iterator[_Move]:
    """Each unit at a device boundary to the device on the other side, in random order."""
    producer = units.producer[rows_of(units.offsets)]
    crosses = device[producer] != device[units.consumers]
    ends = np.concatenate([producer[crosses], units.consumers[crosses]])
    other_side = np.concatenate([device[units.consumers[crosses]], device[producer[crosses]]])
    pair = np.unique(ends.astype(np.int64) * units.num_devices + other_side)
    unit, target = np.divmod(pair, units.num_devices)
    possible = np.flatnonzero(may_run[unit, target])
    for i in rng.permutation(possible):
        yield unit[i : i + 1].astype(np.int32), target[i : i + 1].astype(np.int32)


def _run_move(units: UnitGraph, may_run: BoolArray, rng: np.random.Generator) -> _Move:
    """A run of units in topological order to one device."""
    length = int(2.0 ** rng.uniform(0.0, np.log2(len(units) + 1)))
    first = int(rng.integers(len(units) - length + 1))
    target = int(rng.choice(units.usable_devices))
    return _to(np.arange(first, first + length, dtype=np.int32), target, may_run)


def _exchange_move(units: UnitGraph, device: IntArray, may_run: BoolArray, rng: np.random.Generator) -> _Move:
    """Two units change places: the only small move when memory is full."""
    pair = rng.integers(len(units), size=2, dtype=np.int32)
    target = device[pair[::-1]]
    possible = may_run[pair, target]
    return pair[possible], target[possible]
