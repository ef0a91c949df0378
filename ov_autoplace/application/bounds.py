"""What no plan of an application can exceed: nothing is busy more than all the time.

A request takes processor time of all cores together, at least as much as in the most frugal way to run its
models alone. Closed loops, besides, are never faster than alone. The best that this leaves is a convex
problem, which one multiplier solves (water-filling; Boyd and Vandenberghe, *Convex Optimization*, section
5.5.3, example 5.2)::

    maximise  sum_l w_l log r_l   with  sum_l r_l c_l <= cores,  0 <= r_l <= m_l
    r_l = min(m_l, w_l / (x c_l))

``c_l`` are core-seconds of a request of load l, ``m_l`` its rate alone, ``w_l`` its priority.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ov_autoplace.application.bench import Model
from ov_autoplace.application.candidates import fairness
from ov_autoplace.application.workload import Application
from ov_autoplace.plan.decision import Load

__all__ = ["capacity_bound"]

_STEPS = 100
_FRUGAL = 1e-9  # core-seconds of what runs elsewhere


def capacity_bound(models: Sequence[Model], application: Application, cores: int) -> float:
    """The weighted geometric mean of rates that no plan exceeds; of rates that are asked for, the headroom.

    Args:
        models: With what they take alone.
        application: The loads.
        cores: How many there are.
    """
    frugal = {
        model.name: min(s.median(Load.APPLICATION) * (s.cores or 0.0) for s in model.settings)
        for model in models
    }
    seconds = {model.name: model.alone.median(Load.APPLICATION) for model in models}
    reached = [(demand, application.reached(demand.start)) for demand in application.load]
    costs = [max(sum(frugal[n] * times for n, times in own.items()), _FRUGAL) for _, own in reached]
    if application.is_open:
        return cores / max(sum(d.rate * c for (d, _), c in zip(reached, costs, strict=True)), _FRUGAL)
    # What a model takes alone is with all its requests in flight.
    most = [1 / sum(seconds[n] * times for n, times in own.items()) for _, own in reached]
    weights = [demand.priority for demand, _ in reached]

    def rates(multiplier: float) -> list[float]:
        return [min(m, w / (multiplier * c)) for m, w, c in zip(most, weights, costs, strict=True)]

    low, high = 1e-12, 1e12
    for _ in range(_STEPS):
        middle = math.sqrt(low * high)
        wanted = sum(rate * cost for rate, cost in zip(rates(middle), costs, strict=True))
        low, high = (middle, high) if wanted > cores else (low, middle)
    starts = [demand.start for demand, _ in reached]
    return 1 / fairness(application, dict(zip(starts, rates(high), strict=True)))
