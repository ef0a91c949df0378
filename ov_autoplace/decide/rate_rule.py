"""Which way to serve many requests wins, by what was measured of waiting callers and of queues.

An answer is a compiled model (the base), which ``AsyncInferQueue`` and OpenVINO's own code see, and, where
that is worth it, further ones whose requests whoever calls ``create_infer_request`` gets in turns. Nobody
knows how a program will call, so an answer must be as good as the best of OpenVINO's own in both ways, and
better in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from ov_autoplace._base.statistics import MINIMAL_GAIN, Interval
from ov_autoplace.decide.verdict import paired, were_disturbed
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import PoolPlan

__all__ = [
    "RATE_LOADS",
    "Pair",
    "best_hint",
    "chosen",
    "finalists",
    "holds",
    "ranked",
    "were_loads_disturbed",
]

RATE_LOADS = (Load.WAITING, Load.QUEUED)
"""The two ways in which programs keep many requests in flight."""

# An answer may be this much slower than the best of OpenVINO's own in one way of calling, which is noise.
_NEVER_BELOW = 0.98
_FIRST_FLOOR, _FINALISTS = 0.9, 4  # of the first race, whose best answers run again


@dataclass(frozen=True, eq=False)
class Pair:
    """An answer: a base, and what those who ask it for requests get them from (itself, or something else)."""

    base: Candidate
    pool: Candidate

    @property
    def is_one(self) -> bool:
        """Whether one compiled model is all of it."""
        return self.base is self.pool

    @property
    def is_hint(self) -> bool:
        """Whether it is what OpenVINO offers by itself."""
        return self.is_one and self.base.plan.is_default

    @property
    def name(self) -> str:
        """For tables and sentences."""
        return self.base.name if self.is_one else f"{self.pool.name}, for queues {self.base.name}"

    @property
    def waiting(self) -> float:
        """Seconds per request of a thread per request, ``inf`` where that was not measured."""
        return self.pool.median(Load.WAITING)

    @property
    def queued(self) -> float:
        """Seconds per request of a queue, which has the base."""
        return self.base.median(Load.QUEUED)

    @property
    def slowest_queued(self) -> float:
        """Of a queue, or of requests out of the pool that a program starts by itself."""
        return max(self.queued, self.pool.median(Load.QUEUED))

    @property
    def mean(self) -> float:
        """Geometric mean of both ways."""
        return float(np.sqrt(self.waiting * self.queued))

    def ratios(self, reference: Pair) -> tuple[Interval, Interval] | None:
        """Seconds per request over a hint's, waiting and queued; ``None`` = too few rounds."""
        waiting = paired(self.pool.on(Load.WAITING), reference.base.on(Load.WAITING))
        queued = paired(self.base.on(Load.QUEUED), reference.base.on(Load.QUEUED))
        return None if waiting is None or queued is None else (waiting, queued)

    def candidate(self) -> Candidate:
        """Both as one plan, with what was measured of each where it is used."""
        base, pool = self.base.plan, self.pool.plan
        assert isinstance(base, PoolPlan)
        assert isinstance(pool, PoolPlan)
        if self.is_one:
            return self.base
        known = [c.predicted_seconds for c in (self.base, self.pool) if c.predicted_seconds is not None]
        differences = [self.base.output_difference, self.pool.output_difference]
        return replace(
            self.base,
            name=self.name,
            plan=replace(pool, title=self.name, base=base.base),
            predicted_seconds=min(known, default=None),
            times={Load.WAITING: self.pool.on(Load.WAITING), Load.QUEUED: self.base.on(Load.QUEUED)},
            output_difference=max((d for d in differences if d is not None), default=None),
        )


def best_hint(candidates: Sequence[Candidate]) -> Pair | None:
    """The best of what OpenVINO offers by itself; ``None`` where none of it runs."""
    pairs = [Pair(c, c) for c in candidates if c.plan.is_default and not c.dropped]
    return min(pairs, key=lambda pair: pair.mean, default=None)


def chosen(candidates: Sequence[Candidate]) -> Pair | None:
    """The best answer that is not below OpenVINO's own in either way; ``None`` where nothing could be run."""
    reference = best_hint(candidates)
    best = next(iter(ranked(candidates, _NEVER_BELOW)), None)
    if best is None or (reference is not None and best.mean > (1 - MINIMAL_GAIN) * reference.mean):
        return reference or best
    return best


def ranked(candidates: Sequence[Candidate], floor: float) -> list[Pair]:
    """All answers that have at least ``floor`` of the best hint's rate in each way, the best mean first."""
    able = [c for c in candidates if not c.dropped]
    hints = [c for c in able if c.plan.is_default]
    most = {load: min((c.median(load) for c in hints), default=np.inf) / floor for load in RATE_LOADS}
    bases = [c for c in able if len(c.plan.models) == 1]
    pairs = [
        pair
        for pair in (Pair(base, pool) for base, pool in product(bases, able))
        if np.isfinite(pair.mean)
        and pair.waiting <= most[Load.WAITING]
        and pair.slowest_queued <= most[Load.QUEUED]
    ]
    # Two compiled models have to be worth it, too.
    return sorted(pairs, key=lambda p: p.mean * (1 if p.is_one else 1 + MINIMAL_GAIN))


def finalists(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Who is compiled and run again: hints that are best in one way, and the parts of the best answers."""
    hints = [c for c in candidates if c.plan.is_default and not c.dropped]
    best = [min(hints, key=lambda c: c.median(load)) for load in RATE_LOADS] if hints else []
    pairs = ranked(candidates, _FIRST_FLOOR)[:_FINALISTS]
    return list(dict.fromkeys([*best, *(c for pair in pairs for c in (pair.base, pair.pool))]))


def holds(answer: Pair, candidates: Sequence[Candidate]) -> bool | None:
    """Whether an answer would be chosen again by what was measured of it and of what OpenVINO offers.

    A hint holds where no other one is better by what counts, and nothing else wins. Anything else has to be
    better than the best hint in the mean of both ways by what counts, with the 95 % interval of one of them,
    and in neither below the noise.

    Args:
        answer: Of some of the candidates.
        candidates: All that were measured.

    Returns:
        ``None`` where that cannot be told, because the machine is busy or rounds are too few.
    """
    if answer.base.dropped or answer.pool.dropped:
        return False
    reference = best_hint(candidates)
    if reference is None:
        return True
    if answer.is_hint:
        best = chosen(candidates) or reference
        beaten = not best.is_hint and _is_better(best, reference)
        found = not beaten and answer.mean <= (1 + MINIMAL_GAIN) * reference.mean
    else:
        if answer.ratios(reference) is None:
            return None
        pairs = ranked(candidates, _NEVER_BELOW)
        able = any(pair.base is answer.base and pair.pool is answer.pool for pair in pairs)
        gains = answer.mean <= (1 - MINIMAL_GAIN) * reference.mean
        found = able and gains and _is_better(answer, reference)
    return None if were_loads_disturbed(candidates) else found


def were_loads_disturbed(candidates: Sequence[Candidate]) -> bool:
    """Whether other work on the machine made some of their samples long."""
    return were_disturbed(c.on(load) for c in candidates for load in RATE_LOADS)


def _is_better(pair: Pair, reference: Pair) -> bool:
    """Whether it is faster in one of the ways by more than the noise."""
    ratios = pair.ratios(reference)
    return ratios is not None and min(ratio.high for ratio in ratios) < 1
