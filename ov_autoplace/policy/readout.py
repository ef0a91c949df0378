"""From a policy's scores to placements: what is allowed is settled before anything is chosen or compared.

Where the highest scores of all units together do not fit into memory, the bytes of a device that overflows
get a price, which is subtracted from its scores (Lagrangian relaxation, as Handler and Zang, "A Dual
Algorithm for the Constrained Shortest Path Problem", 1980): the units leave it that prefer it least per byte.
Priced one by one, units may leave from anywhere and cut many tensors; so whole groups of the levels are
priced too, and full devices are masked in topological order, and of all these answers the fastest one counts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE
from ov_autoplace.errors import PlacementError
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.units import UnitGraph

__all__ = ["draw", "fastest", "fitting", "fitting_or_single", "likeliest"]

Scores = NDArray[np.floating]

_PRICED_LEVELS = 4
_ROUNDS_PER_DEVICE = 3
_BISECTIONS = 20
_DRAWS, _COOL = 8, 0.5


def likeliest(scores: Scores, graph: PolicyGraph, thorough: bool = True) -> IntArray:
    """The allowed placement that scores ask for, ``int32[N]``, within memory limits as far as one is found.

    Args:
        scores: ``[N, D]``; those of forbidden devices do not count.
        graph: N units.
        thorough: Whether several placements within the limits are compared; else the first one counts.
    """
    scores = np.where(graph.allowed, scores, -np.inf)
    free: IntArray = scores.argmax(axis=1).astype(np.int32)
    units = graph.problem.units
    if not units.has_memory_limits or units.fits(free):
        return free
    if not thorough:
        return next((answer for answer in _within_limits(scores, graph) if units.fits(answer)), free)
    # Of equally fast ones that which was priced by units counts, the first.
    answers = list(_within_limits(scores, graph))[::-1]
    return answers[fastest(graph, answers)] if answers else free


def fitting(scores: Scores, graph: PolicyGraph, thorough: bool = True) -> IntArray:
    """:func:`likeliest`'s placement, which is within memory limits.

    Raises:
        PlacementError: Neither prices nor masks lead to one that is.
    """
    answer, units = likeliest(scores, graph, thorough), graph.problem.units
    if not units.fits(answer):
        limits = ", ".join(f"{limit:.0f}" for limit in units.memory_capacity)
        raise PlacementError(f"the policy found no placement within the memory limits of {limits} bytes")
    return answer


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
    best = answers[fastest(graph, answers)]
    return best if units.fits(best) else fitting(scores, graph)


def draw(scores: Scores, graph: PolicyGraph, k: int, seed: int = 0, temperature: float = 1.0) -> IntArray:
    """Placements drawn from scores, ``int32[k, N]``; see :meth:`PolicyRunner.sample`."""
    random = np.random.default_rng(seed)
    answers = np.empty((k, len(graph)), dtype=np.int32)
    for row in answers:
        # The largest of scores with Gumbel noise is a draw from their softmax.
        row[:] = fitting(scores / temperature + random.gumbel(size=scores.shape), graph, thorough=False)
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


def _within_limits(scores: Scores, graph: PolicyGraph) -> Iterator[IntArray]:
    """Answers that mostly fit: priced by units and by groups, and masked unit after unit."""
    units = graph.problem.units
    in_order, by_size = np.arange(len(graph)), np.argsort(-units.packing_bytes, kind="stable")
    group = in_order
    for level in graph.levels[:_PRICED_LEVELS]:
        summed: Scores = np.stack(
            [np.bincount(group, column, len(level.cost)) for column in scores.T], axis=1
        )
        # A forbidden device of a member is one of the group; where that leaves a group none, units decide.
        if np.isfinite(summed).any(axis=1).all():
            priced = _priced(summed, group, units)
            yield priced
            # Prices alone may leave a device a little too full: who comes first keeps its place.
            kept = np.where(priced[:, None] == np.arange(units.num_devices), np.inf, scores)
            yield from _masked(np.where(graph.allowed, kept, -np.inf), units, (in_order, by_size))
        group = level.parent[group]
    yield from _masked(scores, units, (in_order, by_size))


def _priced(scores: Scores, group: NDArray[np.int64], units: UnitGraph) -> IntArray:
    """The highest scores less the prices of memory, ``int32[N]``, which need not fit in the end.

    Args:
        scores: Of each group, ``[n, D]``.
        group: Of each unit, ``int64[N]``.
        units: N units.
    """
    D = units.num_devices
    room = units.memory_capacity * MEMORY_TOLERANCE
    size = np.bincount(group, units.packing_bytes, len(scores)) / max(float(units.packing_bytes.sum()), 1e-30)
    finite = np.where(np.isfinite(scores), scores, 0.0)
    smallest = size[size > 0].min(initial=1.0)
    # At this price not even the smallest group wants to stay.
    highest = 2.0 * (float(np.ptp(finite, axis=1).max(initial=0.0)) + 1.0) / smallest
    price = np.zeros(D)

    def answer() -> IntArray:
        chosen = (scores - size[:, None] * price[units.device_of]).argmax(axis=1)[group]
        return np.asarray(chosen, dtype=np.int32)

    for _ in range(_ROUNDS_PER_DEVICE * D):
        over = units.memory_of(answer()) / np.maximum(room, 1e-30)
        full = int(units.device_of[int(over.argmax())])
        if over.max() <= 1.0:
            break
        # Bisection of the logarithm: prices may have any magnitude.
        low, high = max(price[full], highest * 1e-12), highest
        for _ in range(_BISECTIONS):
            price[full] = np.sqrt(low * high)
            if units.memory_of(answer())[full] <= room[full]:
                high = price[full]
            else:
                low = price[full]
        price[full] = high
    return answer()


def _masked(scores: Scores, units: UnitGraph, orders: Sequence[NDArray[np.integer]]) -> Iterator[IntArray]:
    """Units decided one after another in each order, full devices being masked, where all find room."""
    device_of = units.device_of.tolist()
    size = units.packing_bytes.tolist()
    preferred = np.argsort(-scores, axis=1, kind="stable").tolist()
    allowed = (scores > -np.inf).tolist()
    for order in orders:
        room = (units.memory_capacity * MEMORY_TOLERANCE).tolist()
        chosen = np.empty(len(units), dtype=np.int32)
        for unit in order.tolist():
            takes = (d for d in preferred[unit] if allowed[unit][d] and size[unit] <= room[device_of[d]])
            device = next(takes, None)
            if device is None:
                break
            room[device_of[device]] -= size[unit]
            chosen[unit] = device
        else:
            yield chosen
