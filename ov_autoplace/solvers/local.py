"""Local search on the true objective: what cuts cannot see (launches, cyclic subgraphs) is mended here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.problem.evaluator import Evaluator
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.neighbourhood import Moves, Neighbourhood
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["improve", "improve_again", "kicked"]

_WORK = 150_000  # nodes visited by the simulator in one search
_MIN_EVALUATIONS, _MAX_EVALUATIONS = 8, 2_000
_BATCH = 64
_SMALL_BATCH = 8
_STALE_BATCHES, _STALE_BATCHES_WITH_LIMITS = 12, 48
_PATIENCE = 3  # batches after which limits are crossed
_RETURN = 8  # batches after which the search goes on near the best placement
_FIRST_PRICE = 16.0


def improve(
    evaluator: Evaluator,
    start: IntArray,
    options: SolverOptions,
    enough: float = 0.0,
    work: int = _WORK,
    blocks: Sequence[IntArray] = (),
) -> IntArray:
    """Move whole subgraphs, blocks, single units and runs of units as long as the placement becomes faster.

    Args:
        evaluator: Scores assignments of units.
        start: Assignment of units that is allowed, ``int32[U]``.
        options: Seed and deadline.
        enough: Stop at this latency in seconds: a proven bound.
        work: Most nodes that the simulator may visit.
        blocks: Units that are worth moving together, each ``int32[n]``: chains and branches.

    Returns:
        An assignment at least as fast as ``start``, which is allowed.
    """
    neighbourhood = Neighbourhood(evaluator, blocks)
    search = _Search(evaluator, start, neighbourhood, np.random.default_rng(options.seed))
    most_stale = _STALE_BATCHES_WITH_LIMITS if evaluator.units.has_memory_limits else _STALE_BATCHES
    # What is left is counted as a share, since the work of a simulation changes with the placement.
    left = 1.0
    while left > 0 and search.stale < most_stale and not options.expired:
        if search.best_seconds <= enough * (1 + 1e-9):
            break
        share = _share(evaluator, search.current, work)
        left -= share * search.step(_BATCH if left >= 4 * _BATCH * share else _SMALL_BATCH)
    return search.best


def improve_again(
    evaluator: Evaluator,
    best: IntArray,
    options: SolverOptions,
    kicks: Sequence[IntArray],
    most_stale: int,
    enough: float = 0.0,
    work: int = _WORK,
    blocks: Sequence[IntArray] = (),
) -> IntArray:
    """Local search again and again from changed copies of the best placement (iterated local search).

    Lourenco, Martin and Stuetzle, "Iterated Local Search", 2003.

    Args:
        evaluator: Scores assignments of units.
        best: Assignment of units that is allowed, ``int32[U]``.
        options: Seed, and the deadline at which to stop; without one, ``most_stale`` ends the search.
        kicks: What moves as a whole in a changed copy, see :func:`kicked`; it is tried where it fits.
        most_stale: So many searches on end that find nothing faster are enough.
        enough: Stop at this latency in seconds: a proven bound.
        work: Of every search, as of :func:`improve`.
        blocks: Likewise.

    Returns:
        An assignment at least as fast as ``best``, which is allowed.
    """
    rng = np.random.default_rng(options.seed)
    value, number, stale = float(evaluator.latencies([best])[0]), 0, 0
    while value > enough * (1 + 1e-9) and not options.expired and (options.deadline or stale < most_stale):
        number, stale = number + 1, stale + 1
        start = kicked(evaluator.units, best, rng, kicks)
        if evaluator.units.has_memory_limits and not evaluator.units.fits(start):
            continue
        again = replace(options, seed=options.seed + number)
        found = improve(evaluator, start, again, enough, work, blocks)
        seconds = float(evaluator.latencies([found])[0])
        if seconds < value * (1 - 1e-9):
            best, value, stale = found, seconds, 0
    return best


def kicked(
    units: UnitGraph,
    device: IntArray,
    rng: np.random.Generator,
    blocks: Sequence[IntArray] = (),
) -> IntArray:
    """A copy with a few blocks, or stretches, on devices drawn at random, each unit where it can run.

    Args:
        units: The units.
        device: The assignment to be changed, ``int32[U]``.
        rng: Where the draws come from.
        blocks: What moves as a whole, each ``int32[n]``; without any, stretches of neighbours do.
    """
    changed: IntArray = device.copy()
    may_run = np.isfinite(units.op_seconds)
    for _ in range(int(rng.integers(2, 5))):
        target = int(rng.choice(units.usable_devices))
        members = blocks[int(rng.integers(len(blocks)))] if blocks else _stretch(units, len(units) / 4, rng)
        changed[members[may_run[members, target]]] = target
    return changed


def _stretch(units: UnitGraph, most: float, rng: np.random.Generator) -> IntArray:
    """Neighbours in topological order; short ones are as probable as long ones."""
    length = int(2.0 ** rng.uniform(0.0, np.log2(max(1.0, most) + 1)))
    first = int(rng.integers(len(units) - length + 1))
    return np.asarray(units.order[first : first + length])


def _share(evaluator: Evaluator, device: IntArray, work: int) -> float:
    """Share of all the work that one evaluation near ``device`` takes."""
    evaluations = work / max(1, evaluator.work(device))
    return 1.0 / float(np.clip(evaluations, _MIN_EVALUATIONS, _MAX_EVALUATIONS * work // _WORK))


class _Search:
    """A placement that moves to better ones around it, and the best one that it came by.

    Where moves that fit into memory lead no further, what does not fit is priced instead of forbidden. The
    price rises while the placement is overfull and falls while it is not, so that the search keeps crossing
    the limits (strategic oscillation: Glover, "Heuristics for Integer Programming Using Surrogate
    Constraints", 1977).

    Attributes:
        best: The fastest assignment that fits, ``int32[U]``.
        best_seconds: What it takes.
        current: The assignment that is searched around.
        stale: Batches of moves since the best one was found.
    """

    def __init__(
        self, evaluator: Evaluator, start: IntArray, neighbourhood: Neighbourhood, rng: np.random.Generator
    ) -> None:
        self._evaluator, self._neighbourhood, self._rng = evaluator, neighbourhood, rng
        self.best, self.best_seconds = start, float(evaluator.latencies([start])[0])
        self.stale = 0
        self._price = 0.0  # of being overfull by all bytes there are, in latencies; 0 = it is forbidden
        self._search_around(start, self.best_seconds, 0.0)

    def _search_around(self, device: IntArray, seconds: float, overfull: float) -> None:
        self.current, self._seconds, self._overfull = device, seconds, overfull
        self._moves, self._tried, self._has_moved = self._neighbourhood.listed(device, self._rng), 0, False

    def step(self, size: int) -> int:
        """Try the next moves, at most so many; how many placements were simulated."""
        self.stale += 1
        moves = self._next(size)
        devices = moves.each(self.current)
        changed = np.flatnonzero((devices != self.current).any(axis=1))
        seconds, overfull, count = self._look_at(devices[changed])
        values = self._priced(seconds, overfull)
        better = np.flatnonzero(values < self._value * (1 - 1e-9))
        if not len(better):
            self._cross_limits()
            return count
        # The best move alone, and the best few together: they often lie in different places.
        ranked = changed[better[np.argsort(values[better], kind="stable")]]
        counts = [k for k in (2, 4, 8, 16, 32, 64) if k < 2 * len(ranked)]
        together = [moves.chosen(ranked[:k]).together(self.current) for k in counts]
        found = np.array([devices[ranked[0]], *together])
        seconds, overfull, more = self._look_at(found)
        i = int(np.argmin(self._priced(seconds, overfull)))
        self.current, self._seconds, self._overfull = found[i], float(seconds[i]), float(overfull[i])
        self._has_moved = True
        return count + more

    def _next(self, size: int) -> Moves:
        """The next moves of the list around the placement, or random ones where it leads no further."""
        if self._tried >= len(self._moves):
            # What was found on the way through the list changes what is worth trying.
            if self._has_moved:
                self._moves = self._neighbourhood.listed(self.current, self._rng)
            else:
                self._moves = self._neighbourhood.drawn(self.current, size, self._rng)
            self._tried, self._has_moved = 0, False
        first, self._tried = self._tried, min(self._tried + size, len(self._moves))
        return self._moves.chosen(np.arange(first, self._tried))

    def _look_at(self, devices: IntArray) -> tuple[FloatArray, FloatArray, int]:
        """What B assignments take, how overfull they are, and how many were simulated: others take ``inf``.

        The fastest one that fits is kept.
        """
        overfull = self._evaluator.units.overfull(devices)
        possible = np.flatnonzero((overfull <= 0) | (self._price > 0))
        seconds = np.full(len(devices), np.inf)
        # Slower ones need not be simulated to the end.
        limit = max(self._value, self.best_seconds)
        seconds[possible] = self._evaluator.latencies(devices[possible], limit)
        fitting = np.where(overfull <= 0, seconds, np.inf)
        if fitting.min(initial=np.inf) < self.best_seconds * (1 - 1e-9):
            self.best, self.stale = devices[int(np.argmin(fitting))].copy(), 0
            self.best_seconds = float(fitting.min())
        return seconds, overfull, len(possible)

    @property
    def _value(self) -> float:
        return self._seconds * (1 + self._price * self._overfull)

    def _priced(self, seconds: FloatArray, overfull: FloatArray) -> FloatArray:
        return seconds * (1 + self._price * overfull)

    def _cross_limits(self) -> None:
        """Change the price of memory where nothing around the placement is better at the present one."""
        if not self._evaluator.units.has_memory_limits or self.stale < _PATIENCE:
            return
        if self._price == 0:
            self._price = _FIRST_PRICE
        elif self.stale % _RETURN:
            self._price *= 2.0 if self._overfull > 0 else 0.5
        else:
            self._price = _FIRST_PRICE
            kicked = self._neighbourhood.drawn(self.best, 1, self._rng).together(self.best)
            overfull = float(self._evaluator.units.overfull(kicked[None])[0])
            self._search_around(kicked, float(self._evaluator.latencies([kicked])[0]), overfull)
