"""Running the ways to serve many requests against each other, called as programs do: waiting, and queued.

An answer is a compiled model (the base), which ``AsyncInferQueue`` and OpenVINO's own code see, and, where
that is worth it, further ones from which requests are dealt to whoever calls ``create_infer_request``. Nobody
knows how a program will call, so an answer must be as good as the best of OpenVINO's own in both ways, and
better in the mean.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import Interval, paired_ratio
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.rate_candidates import Entrant
from ov_autoplace.decide.verdict import CONVINCING_ROUNDS
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.loads import Load, race_loads
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import RateRow

__all__ = ["Pair", "best_hint", "chosen", "compile_entrant", "confirmed", "measure", "rows_of"]

_SAMPLE_SECONDS = 0.015
_ROUNDS = 24
# An answer may be this much slower than the best of OpenVINO's own in one way of calling, which is noise.
_NEVER_BELOW = 0.98


@dataclass(frozen=True, eq=False)
class Pair:
    """An answer: a base, and what is dealt to who asks it for requests (itself, or something else)."""

    base: Entrant
    dealt: Entrant

    @property
    def is_one(self) -> bool:
        """Whether one compiled model is all of it."""
        return self.base is self.dealt

    @property
    def synchronous(self) -> float:
        """Seconds per request of a thread per request, ``inf`` where that was not measured."""
        return _median(self.dealt.synchronous)

    @property
    def asynchronous(self) -> float:
        """Seconds per request of a queue, which has the base."""
        return _median(self.base.asynchronous)

    @property
    def slowest_asynchronous(self) -> float:
        """Of a queue, or of dealt requests that a program starts by itself."""
        return max(self.asynchronous, _median(self.dealt.asynchronous))

    @property
    def mean(self) -> float:
        """Geometric mean of both ways."""
        return float(np.sqrt(self.synchronous * self.asynchronous))


def compile_entrant(session: ProfilingSession, entrant: Entrant) -> None:
    """Compile an entrant's members, each anew, and ask how many requests they want.

    Raises:
        ProfilingError: One of them cannot be compiled.
    """
    entrant.executables = tuple(
        session.compile_with(member.device, member.properties, member.device_of or None)
        for member in entrant.members
    )
    wanted = sum(executable.optimal_requests for executable in entrant.executables)
    # A request of a pipeline is on one device at a time.
    fewest = len(set(entrant.members[0].device_of.values())) if entrant.is_base else len(entrant.turns)
    entrant.requests = max(wanted, fewest)


def rows_of(entrants: Sequence[Entrant]) -> tuple[RateRow, ...]:
    """What is known of entrants, in requests per second."""

    def rate(samples: FloatArray) -> float | None:
        return 1 / float(np.median(samples)) if len(samples) else None

    return tuple(
        RateRow(e.name, e.requests, e.predicted, rate(e.synchronous), rate(e.asynchronous), e.dropped)
        for e in entrants
    )


def measure(
    session: ProfilingSession,
    entrants: Sequence[Entrant],
    seconds: float,
    seed: int,
    *,
    keep_all: bool = False,
) -> None:
    """Run entrants in turns, first with waiting callers, then asynchronously, and keep the samples.

    Args:
        session: Has compiled them.
        entrants: Whom to run; those that fail are marked.
        seconds: For all of it.
        seed: Of the order in each round.
        keep_all: Nobody leaves for being slower.
    """
    for is_asynchronous in (False, True):
        running = [e for e in entrants if not e.dropped]
        if not running:
            return
        loads = []
        for entrant in running:
            members = tuple(entrant.executables[turn] for turn in entrant.turns)
            loads.append(Load(members, entrant.requests, is_asynchronous))
        try:
            result = race_loads(
                session,
                loads,
                seconds / 2,
                seed=seed,
                min_rounds=_ROUNDS if keep_all else CONVINCING_ROUNDS,
                max_rounds=_ROUNDS,
                sample_seconds=_SAMPLE_SECONDS,
                names=[entrant.name for entrant in running],
            )
        except ProfilingError as cause:
            for entrant in running:
                entrant.dropped = str(cause)
            return
        for entrant, entry in zip(running, result.entries, strict=True):
            if is_asynchronous:
                entrant.asynchronous = entry.samples
            else:
                entrant.synchronous = entry.samples
            if entry.dropped.startswith("failed"):
                entrant.dropped = entry.dropped


def best_hint(entrants: Sequence[Entrant]) -> Pair | None:
    """The best of what OpenVINO offers by itself; ``None`` where none of it runs."""
    pairs = [Pair(e, e) for e in entrants if e.is_hint and not e.dropped]
    return min(pairs, key=lambda pair: pair.mean, default=None)


def chosen(entrants: Sequence[Entrant]) -> Pair | None:
    """The best answer that is not below OpenVINO's own in either way; ``None`` where nothing could be run."""
    able = [e for e in entrants if not e.dropped]
    hints = [e for e in able if e.is_hint]
    reference = best_hint(able)
    most = {
        limited: min((_median(getattr(e, way)) for e in hints), default=np.inf) / _NEVER_BELOW
        for limited, way in (("synchronous", "synchronous"), ("slowest_asynchronous", "asynchronous"))
    }
    pairs = [Pair(base, dealt) for base, dealt in product([e for e in able if e.is_base], able)]
    pairs = [
        pair
        for pair in pairs
        if np.isfinite(pair.mean) and all(getattr(pair, name) <= limit for name, limit in most.items())
    ]
    # Two compiled models have to be worth it, too.
    best = min(pairs, key=lambda p: p.mean * (1 if p.is_one else 1 + MINIMAL_GAIN), default=None)
    if best is None or (reference is not None and best.mean > (1 - MINIMAL_GAIN) * reference.mean):
        return reference or best
    return best


def confirmed(
    session: ProfilingSession, winner: Pair, reference: Pair, budget: Budget, seed: int
) -> tuple[bool, Interval, Interval]:
    """Race a winner with OpenVINO's best once more; both were compiled anew.

    Returns:
        Whether it wins again: in the mean of both ways by what counts, in neither below the noise; and its
            seconds
        over the reference's, of waiting callers and asynchronous ones.
    """
    entrants = list(dict.fromkeys([winner.base, winner.dealt, reference.base]))
    for entrant in entrants:
        entrant.synchronous = entrant.asynchronous = np.empty(0)
    measure(session, entrants, budget.left, seed, keep_all=True)
    own = reference.base
    if any(e.dropped or not len(e.asynchronous) or not len(e.synchronous) for e in entrants):
        nothing = Interval(np.inf, np.inf, np.inf)
        return False, nothing, nothing
    waiting = paired_ratio(winner.dealt.synchronous, own.synchronous)
    queued, started = (paired_ratio(e.asynchronous, own.asynchronous) for e in (winner.base, winner.dealt))
    mean = np.sqrt(waiting.median * queued.median)
    wins = min(waiting.high, queued.high) < 1 and mean <= 1 - MINIMAL_GAIN
    slowest = max(waiting.median, queued.median, started.median)
    return bool(wins and slowest <= 1 / _NEVER_BELOW), waiting, queued


def _median(samples: FloatArray) -> float:
    return float(np.median(samples)) if len(samples) else np.inf
