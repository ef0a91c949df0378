"""From a policy's scores to placements: what is allowed is settled before anything is chosen or compared.

Where the highest scores of all units together do not fit into memory, the bytes of a device that overflows
get a price, which is subtracted from its scores (Lagrangian relaxation, as Handler and Zang, "A Dual
Algorithm for the Constrained Shortest Path Problem", 1980): the units leave it that prefer it least per byte.
Where that does not fit either, full devices are masked while units are decided one after another. The first
answer that fits counts: local search goes on from there (:mod:`ov_autoplace.solvers.policy`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.errors import PlacementError
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.device_memory import DeviceMemory
from ov_autoplace.problem.units import UnitGraph

__all__ = ["draw", "fastest", "fitting", "fitting_or_single", "likeliest"]

Scores = NDArray[np.floating]

_ROUNDS_PER_DEVICE = 3
_GRIDS, _PRICES = 2, 32
_DRAWS, _COOL = 8, 0.5


def likeliest(scores: Scores, graph: PolicyGraph) -> IntArray:
    """The allowed placement that scores ask for, ``int32[N]``, within memory limits if one is found.

    Args:
        scores: ``[N, D]``; those of forbidden devices do not count.
        graph: N units.
    """
    scores = np.where(graph.allowed, scores, -np.inf)
    free: IntArray = scores.argmax(axis=1).astype(np.int32)
    units = graph.problem.units
    if units.fits(free):
        return free
    return next((answer for answer in _within_limits(scores, units) if units.fits(answer)), free)


def fitting(scores: Scores, graph: PolicyGraph) -> IntArray:
    """:func:`likeliest`'s placement, which is within memory limits.

    Raises:
        PlacementError: Neither prices nor masks lead to one that is.
    """
    return _checked(likeliest(scores, graph), graph.problem.units)


def fitting_or_single(scores: Scores, graph: PolicyGraph) -> IntArray:
    """:func:`fitting`'s placement or a single device that fits, whichever is faster, ``int32[N]``.

    Under ``overlap`` and ``rate``, a few draws from the scores are compared too.

    Raises:
        PlacementError: Neither leads to a placement within the memory limits.
    """
    units = graph.problem.units
    singles = list(graph.problem.evaluator.singles().values())
    # Where work is shared out, a slip in one place is paid for in full, and draws slip elsewhere.
    shares = graph.objective != "hetero" and not units.has_memory_limits
    drawn = list(draw(scores, graph, _DRAWS, temperature=_COOL)) if shares else []
    answers = [*drawn, likeliest(scores, graph), *singles]
    return _checked(answers[fastest(graph, answers)], units)


def draw(scores: Scores, graph: PolicyGraph, k: int, seed: int = 0, temperature: float = 1.0) -> IntArray:
    """Placements drawn from scores, ``int32[k, N]``; see :meth:`PolicyRunner.sample`."""
    random = np.random.default_rng(seed)
    answers = np.empty((k, len(graph)), dtype=np.int32)
    for row in answers:
        # The largest of scores with Gumbel noise is a draw from their softmax.
        row[:] = fitting(scores / temperature + random.gumbel(size=scores.shape), graph)
    return answers


def fastest(graph: PolicyGraph, answers: Sequence[IntArray]) -> int:
    """Which of some placements is fastest by the problem's objective; of equals, the last.

    Those that fit into memory count, or all where none does.

    Args:
        graph: The graph.
        answers: Device of each unit, ``int32[N]`` each.
    """
    number = {answer.tobytes(): i for i, answer in enumerate(answers)}
    if len(number) == 1:
        return len(answers) - 1
    evaluator, units = graph.problem.evaluator, graph.problem.units
    if units.has_memory_limits:
        number = {key: i for key, i in number.items() if units.fits(answers[i])} or number
    # What takes long to simulate is slow itself: once something faster is known, nobody waits for it.
    by_work = sorted(number.values(), key=lambda i: evaluator.work(answers[i]))
    seconds = {}
    best = np.inf
    for i in by_work:
        seconds[i] = float(evaluator.latencies([answers[i]], best)[0])
        best = min(best, seconds[i])
    return max(i for i in seconds if seconds[i] <= best * (1 + 1e-9))


def _checked(answer: IntArray, units: UnitGraph) -> IntArray:
    """An answer that is within memory limits.

    Raises:
        PlacementError: It is not.
    """
    if not units.fits(answer):
        limits = ", ".join(f"{limit:.0f}" for limit in units.memory_capacity)
        raise PlacementError(f"the policy found no placement within the memory limits of {limits} bytes")
    return answer


def _within_limits(scores: Scores, units: UnitGraph) -> Iterator[IntArray]:
    """Answers that mostly fit: priced, and masked unit after unit."""
    orders = np.arange(len(units)), np.argsort(-units.packing_bytes, kind="stable")
    priced = _priced(scores, units)
    yield priced
    # Prices alone may leave a device a little too full: who comes first keeps its place.
    kept = np.where(priced[:, None] == np.arange(units.num_devices), np.inf, scores)
    yield from _masked(kept, units, orders)
    yield from _masked(scores, units, orders)


def _priced(scores: Scores, units: UnitGraph) -> IntArray:
    """The highest scores less the prices of memory, ``int32[N]``, which need not fit in the end."""
    D = units.num_devices
    room = units.memory_capacity * MEMORY_TOLERANCE
    size = units.packing_bytes / max(float(units.packing_bytes.sum()), 1e-30)
    finite = np.where(np.isfinite(scores), scores, 0.0)
    smallest = size[size > 0].min(initial=1.0)
    # At this price not even the smallest unit wants to stay.
    highest = 2.0 * (float(np.ptp(finite, axis=1).max(initial=0.0)) + 1.0) / smallest
    price = np.zeros(D)

    def answers(prices: FloatArray) -> IntArray:
        """The answer at each of B prices of the devices, ``int32[B, N]``."""
        chosen = np.empty((len(prices), len(units)), dtype=np.int32)
        for i, row in enumerate(prices):
            chosen[i] = (scores - size[:, None] * row[units.device_of]).argmax(axis=1)
        return chosen

    for _ in range(_ROUNDS_PER_DEVICE * D):
        over = units.memory_of(answers(price[None])[0]) / np.maximum(room, 1e-30)
        full = int(units.device_of[int(over.argmax())])
        if over.max() <= 1.0:
            break
        # The lowest price that empties the device enough; prices may have any magnitude.
        low, high = max(price[full], highest * 1e-12), highest
        for _ in range(_GRIDS):
            tried = np.repeat(price[None], _PRICES, axis=0)
            tried[:, full] = np.geomspace(low, high, _PRICES)
            fits = units.memory_of(answers(tried))[:, full] <= room[full]
            first = int(np.argmax(fits)) if fits.any() else _PRICES - 1
            low, high = float(tried[max(first - 1, 0), full]), float(tried[first, full])
        price[full] = high
    return np.asarray(answers(price[None])[0])


def _masked(scores: Scores, units: UnitGraph, orders: Sequence[NDArray[np.integer]]) -> Iterator[IntArray]:
    """Units decided one after another in each order, full devices being masked, where all find room."""
    for order in orders:
        room = DeviceMemory(units)
        chosen = np.empty(len(units), dtype=np.int32)
        for unit in order.tolist():
            open_to = np.where(room.takes(unit), scores[unit], -np.inf)
            chosen[unit] = open_to.argmax()
            if open_to[chosen[unit]] == -np.inf:
                break
            room.put(unit, chosen[unit])
        else:
            yield chosen
