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
from ov_autoplace._base.statistics import Interval
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.rate_candidates import Entrant
from ov_autoplace.decide.verdict import CONVINCING_ROUNDS, paired, were_disturbed
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.loads import Load, race_loads
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import RateRow

__all__ = [
    "Pair",
    "best_hint",
    "chosen",
    "compare_outputs",
    "compile_entrant",
    "confirmed",
    "drop_wrong",
    "finalists",
    "holds",
    "measure",
    "race_seconds",
    "ranked",
    "rows_of",
    "were_entrants_disturbed",
]

_SAMPLE_SECONDS = 0.015
_ROUNDS = 24
# An answer may be this much slower than the best of OpenVINO's own in one way of calling, which is noise.
_NEVER_BELOW = 0.98
_FIRST_FLOOR, _FINALISTS = 0.9, 4  # of the first race, whose best answers run again
_WAYS = ("synchronous", "asynchronous")


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
    entrant.executables = tuple(member.compile(session) for member in entrant.members)
    wanted = sum(executable.optimal_requests for executable in entrant.executables)
    entrant.requests = max(wanted, entrant.fewest_requests)
    if session.outputs is not None:
        # Of copies one is enough.
        distinct = dict(zip(entrant.members, entrant.executables, strict=True))
        for name, (member, executable) in zip(_parts(entrant), distinct.items(), strict=False):
            session.outputs.note(name, executable, member.computes_like(session.makes))


def _parts(entrant: Entrant) -> list[str]:
    """Names for its members, where they are told apart."""
    return [entrant.name, *(f"{entrant.name} (model {i})" for i in range(2, len(entrant.members) + 1))]


def compare_outputs(session: ProfilingSession, entrants: Sequence[Entrant]) -> dict[str, str]:
    """Write into compiled entrants how far their outputs differ; why some are wrong, by name."""
    outputs = session.outputs
    if outputs is None:
        return {}
    wrong: dict[str, str] = {}
    for entrant in entrants:
        found = [(outputs.difference(name), name) for name in _parts(entrant)]
        known = [(difference, name) for difference, name in found if difference is not None]
        entrant.output_difference = max((difference for difference, _ in known), default=None)
        for _, name in known:
            if outputs.is_wrong(name):
                wrong[entrant.name] = outputs.refusal(name)
    return wrong


def drop_wrong(session: ProfilingSession, entrants: Sequence[Entrant]) -> None:
    """Mark compiled entrants whose outputs are wrong as dropped, unless nobody would be left."""
    wrong = compare_outputs(session, entrants)
    running = [entrant for entrant in entrants if not entrant.dropped]
    if any(entrant.name not in wrong for entrant in running):
        for entrant in running:
            entrant.dropped = wrong.get(entrant.name, "")


def rows_of(entrants: Sequence[Entrant]) -> tuple[RateRow, ...]:
    """What is known of entrants, in requests per second."""

    def rate(samples: FloatArray) -> float | None:
        return 1 / float(np.median(samples)) if len(samples) else None

    return tuple(
        RateRow(
            e.name,
            e.requests,
            e.predicted,
            rate(e.synchronous),
            rate(e.asynchronous),
            e.dropped,
            output_difference=e.output_difference,
        )
        for e in entrants
    )


def sample_seconds() -> float:
    """How long a load runs in each round: for whole periods of a quota, which stops all of it within each."""
    quota = Cores.of_this_process().quota
    return _SAMPLE_SECONDS if quota is None else quota.whole_periods(_SAMPLE_SECONDS)


def race_seconds(entrants: int) -> float:
    """How long so many entrants have to run, in both ways, for a race that proves something."""
    return 2 * CONVINCING_ROUNDS * entrants * sample_seconds()


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
                sample_seconds=sample_seconds(),
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
    reference = best_hint(entrants)
    best = next(iter(ranked(entrants, _NEVER_BELOW)), None)
    if best is None or (reference is not None and best.mean > (1 - MINIMAL_GAIN) * reference.mean):
        return reference or best
    return best


def ranked(entrants: Sequence[Entrant], floor: float) -> list[Pair]:
    """All answers that have at least ``floor`` of the best hint's rate in each way, the best mean first."""
    able = [e for e in entrants if not e.dropped]
    hints = [e for e in able if e.is_hint]
    most = {
        limited: min((_median(getattr(e, way)) for e in hints), default=np.inf) / floor
        for limited, way in (("synchronous", "synchronous"), ("slowest_asynchronous", "asynchronous"))
    }
    pairs = [Pair(base, dealt) for base, dealt in product([e for e in able if e.is_base], able)]
    pairs = [
        pair
        for pair in pairs
        if np.isfinite(pair.mean) and all(getattr(pair, name) <= limit for name, limit in most.items())
    ]
    # Two compiled models have to be worth it, too.
    return sorted(pairs, key=lambda p: p.mean * (1 if p.is_one else 1 + MINIMAL_GAIN))


def finalists(entrants: Sequence[Entrant]) -> list[Entrant]:
    """Who is compiled and run again: hints that are best in one way, and the parts of the best answers."""
    able = [e for e in entrants if not e.dropped]
    hints = [e for e in able if e.is_hint]
    best = []
    for way in _WAYS if hints else ():
        medians = [_median(getattr(hint, way)) for hint in hints]
        best.append(hints[int(np.argmin(medians))])
    pairs = ranked(entrants, _FIRST_FLOOR)[:_FINALISTS]
    return list(dict.fromkeys([*best, *(e for pair in pairs for e in (pair.base, pair.dealt))]))


def confirmed(
    session: ProfilingSession, contenders: Sequence[Entrant], budget: Budget, seed: int
) -> tuple[Pair | None, dict[str, float], str]:
    """Race finalists again, that were compiled anew; what was measured before chose them and counts no more.

    Returns:
        The winner, if there is one: in the mean of both ways better than the best hint by what counts, the
        95 % interval of one of them included, in neither below the noise. And its rates over that hint's, by
        way of calling, or why nobody could win.
    """
    for entrant in contenders:
        entrant.synchronous = entrant.asynchronous = np.empty(0)
    measure(session, contenders, budget.left, seed, keep_all=True)
    winner, reference = chosen(contenders), best_hint(contenders)
    if winner is None or reference is None or winner.base is reference.base is winner.dealt:
        return None, {}, ""
    ratios = _ratios(winner, reference)
    if ratios is None:
        return None, {}, "the time budget ended before anything else was confirmed to be better"
    waiting, queued = ratios
    if min(waiting.high, queued.high) >= 1:
        return None, {}, ""
    return winner, {"waiting": 1 / waiting.median, "queued": 1 / queued.median}, ""


def holds(answer: Pair, entrants: Sequence[Entrant]) -> bool | None:
    """Whether an answer would be chosen again by what was measured of it and of what OpenVINO offers.

    A hint holds where no other one is better by what counts, and nothing else wins; anything else has to win
    as in :func:`confirmed`.

    Args:
        answer: Of some of the entrants.
        entrants: All that were measured.

    Returns:
        ``None`` where that cannot be told, because the machine is busy or rounds are too few.
    """
    if answer.base.dropped or answer.dealt.dropped:
        return False
    reference = best_hint(entrants)
    if reference is None:
        return True
    if answer.is_one and answer.base.is_hint:
        best = chosen(entrants) or reference
        ratios = None if best.base is reference.base is best.dealt else _ratios(best, reference)
        beaten = ratios is not None and min(ratio.high for ratio in ratios) < 1
        found = not beaten and answer.mean <= (1 + MINIMAL_GAIN) * reference.mean
    else:
        ratios = _ratios(answer, reference)
        if ratios is None:
            return None
        able = any(p.base is answer.base and p.dealt is answer.dealt for p in ranked(entrants, _NEVER_BELOW))
        gains = answer.mean <= (1 - MINIMAL_GAIN) * reference.mean
        found = able and gains and min(ratio.high for ratio in ratios) < 1
    return None if were_entrants_disturbed(entrants) else found


def were_entrants_disturbed(entrants: Sequence[Entrant]) -> bool:
    """Whether other work on the machine made some of their samples long."""
    return were_disturbed(own for e in entrants for own in (e.synchronous, e.asynchronous))


def _ratios(pair: Pair, reference: Pair) -> tuple[Interval, Interval] | None:
    """Seconds per request over a hint's, of waiting callers and of a queue; ``None`` = too few rounds."""
    waiting = paired(pair.dealt.synchronous, reference.base.synchronous)
    queued = paired(pair.base.asynchronous, reference.base.asynchronous)
    return None if waiting is None or queued is None else (waiting, queued)


def _median(samples: FloatArray) -> float:
    return float(np.median(samples)) if len(samples) else np.inf
