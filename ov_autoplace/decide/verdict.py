"""Who wins: by a bound, by predictions, or by what races measured, and the sentence that says why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.statistics import Interval, paired_ratio, was_disturbed
from ov_autoplace._base.text import counted
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.proposals import POLICY_NAME
from ov_autoplace.devices.widths import Cores
from ov_autoplace.measure.sustained import Turn
from ov_autoplace.placement.decision import Candidate

__all__ = [
    "CONVINCING_ROUNDS",
    "ESTIMATE_MARGIN",
    "Verdict",
    "is_faster",
    "measured",
    "out_of_time",
    "paired",
    "predicted",
    "proven",
    "sustained",
    "unconfirmed",
    "were_disturbed",
]

ESTIMATE_MARGIN = 0.1
"""Where predictions from estimated costs differ by less, they do not say which placement is faster."""

CONVINCING_ROUNDS = 6
"""Fewer paired samples than this give no 95 % interval of a median, so they cannot prove a gain."""

_TAIL = 99  # percentile of latencies that no answer makes worse under a quota
_NO_SINGLE = "no single device could be run"
_OUT_OF_TIME = "the time budget ended before both were compiled anew to confirm it"


@dataclass(frozen=True, eq=False)
class Verdict:
    """Who won, why, and everybody who took part or was considered.

    Attributes:
        winner: Whose placement is the answer.
        reason: One sentence.
        candidates: All of them.
        disturbed: Other work made some of the samples behind it long.
    """

    winner: Candidate
    reason: str
    candidates: Sequence[Candidate]
    disturbed: bool = False


def paired(champion: FloatArray, reference: FloatArray) -> Interval | None:
    """The ratio of two in the rounds that both ran; ``None`` where those are too few to prove anything."""
    rounds = min(len(champion), len(reference))
    return paired_ratio(champion, reference) if rounds >= CONVINCING_ROUNDS else None


def is_faster(ratio: Interval, gain: float = MINIMAL_GAIN) -> bool:
    """Whether somebody is faster by more than the noise, and by at least ``gain``.

    Args:
        ratio: Of its samples and its rival's, in the same rounds.
        gain: A share of the rival's time.
    """
    return ratio.high < 1 and ratio.median <= 1 - gain


def were_disturbed(samples: Iterable[FloatArray]) -> bool:
    """Whether other work made some samples long; where a quota of processor time does, nobody can tell."""
    return Cores.of_this_process().quota is None and any(map(was_disturbed, samples))


def proven(candidates: Sequence[Candidate], samples: Mapping[str, FloatArray], best: str) -> Verdict:
    """The verdict without a race: a bound proves that no mix is faster than one device by what counts.

    Args:
        candidates: Single devices, the best one among them.
        samples: Latencies of the whole model by device, ``float64[n]`` in seconds.
        best: The device.
    """
    for candidate in candidates:
        candidate.samples = samples.get(candidate.name, np.empty(0))
    winner = next(c for c in candidates if c.name == best)
    reason = (
        f"{best} is the fastest device and no mix of devices is predicted to be faster: "
        f"{100 * MINIMAL_GAIN:.0f} % are more than the best devices for all groups could gain"
    )
    return Verdict(winner, reason, candidates)


def out_of_time(candidates: Sequence[Candidate], budget_seconds: float) -> Verdict:
    """The verdict when the budget ended before every device was profiled: the costs are estimates.

    One device is taken where that is allowed, because no gain of a mix is proven.
    """
    verdict = predicted(candidates)
    winner = min(
        (c for c in candidates if c.is_single), key=attrgetter("promised_seconds"), default=verdict.winner
    )
    reason = (
        f"{winner.name}: the time budget of {1e3 * budget_seconds:.0f} ms ended before the model was "
        "profiled on every device, so this rests on estimates"
    )
    return replace(verdict, winner=winner, reason=reason)


def unconfirmed(
    candidates: Sequence[Candidate],
    reference: Candidate | None,
    mix: Candidate,
    why_no_single: str = _NO_SINGLE,
    because: str = "",
) -> Verdict:
    """The best single device, because a mix could not win a second time; for want of time where not said."""
    if reference is None:
        return measured(candidates, reference, mix, why_no_single)
    reason = f"{reference.name}: {mix.name} was measured faster once, but {because or _OUT_OF_TIME}"
    return Verdict(reference, reason, candidates)


def predicted(candidates: Sequence[Candidate]) -> Verdict:
    """The verdict when nothing may be run and all costs are estimates.

    The policy's greedy answer wins unless it is predicted slower than the best single device, or slower than
    the best candidate by more than :data:`ESTIMATE_MARGIN`; then the lowest prediction wins.
    """
    fastest = min(candidates, key=attrgetter("promised_seconds"))
    single = min((c for c in candidates if c.is_single), key=attrgetter("promised_seconds"), default=None)
    winner = next((c for c in candidates if POLICY_NAME in (c.name, *c.also)), fastest)
    limit = fastest.promised_seconds * (1 + ESTIMATE_MARGIN)
    if single is not None:
        limit = min(limit, single.promised_seconds)
    if winner.promised_seconds > limit:
        winner = fastest
    if winner.promised_seconds == fastest.promised_seconds:
        reason = f"{winner.name} is predicted to be fastest"
    else:
        behind = 100 * (winner.promised_seconds / fastest.promised_seconds - 1)
        reason = (
            f"{winner.name} is the learned policy's answer; it is predicted {behind:.1f} % slower than "
            f"{fastest.name}, which is less than estimates can tell apart"
        )
    if single is not None and not winner.is_single:
        gain = 1 - winner.promised_seconds / single.promised_seconds
        reason += f", and {100 * gain:.1f} % faster than {single.name} alone"
    return Verdict(winner, f"{reason}; nothing was measured", candidates)


def measured(
    candidates: Sequence[Candidate],
    reference: Candidate | None,
    champion: Candidate | None,
    why_no_single: str = _NO_SINGLE,
) -> Verdict:
    """The champion if it beats the best single device by more than the noise, else that device.

    Args:
        candidates: Everybody.
        reference: The best single device, if one can run the model.
        champion: The fastest in the races, if anything could be run.
        why_no_single: Said where there is no ``reference``.
    """
    if champion is None:
        # Nothing could be run here; the prediction is all there is.
        winner = min(candidates, key=attrgetter("promised_seconds"))
        dropped = next((f"{c.name} {c.dropped}" for c in candidates if c.dropped), "")
        why = dropped or "the time budget ended before"
        reason = f"{winner.name} is predicted to be fastest; no candidate could be run: {why}"
        return Verdict(winner, reason, candidates)
    if champion.plan.is_default:
        mixes = [c for c in candidates if not c.is_single and (len(c.samples) or c.dropped)]
        hope = min(candidates, key=attrgetter("promised_seconds"))
        gain = 1 - hope.promised_seconds / champion.promised_seconds
        if not mixes and not hope.is_single and gain > MINIMAL_GAIN:
            reason = (
                f"{champion.name} is the fastest device, and the time budget ended before {hope.name}, "
                f"predicted {100 * gain:.1f} % faster, could be run"
            )
            return Verdict(champion, reason, candidates)
        verb = "was measured" if mixes else "is predicted"
        reason = f"{champion.name} is the fastest device and no mix of devices {verb} to be faster"
        return Verdict(champion, reason, candidates)
    if reference is None:
        reason = f"{champion.name} was measured fastest; {why_no_single}"
        return Verdict(champion, reason, candidates)
    ratio = paired(champion.samples, reference.samples)
    if ratio is None:
        rounds = min(len(champion.samples), len(reference.samples))
        reason = (
            f"{reference.name}: {champion.name} looked faster, but the time budget allowed only "
            f"{counted(rounds, 'paired run')}, and fewer than {CONVINCING_ROUNDS} prove nothing"
        )
        return Verdict(reference, reason, candidates)
    spread = f"95 % interval {ratio.low:.3f} to {ratio.high:.3f} of its time"
    if is_faster(ratio):
        gain = 100 * (1 - ratio.median)
        reason = f"{champion.name} was measured {gain:.1f} % faster than {reference.name} ({spread})"
        return Verdict(champion, reason, candidates)
    reason = (
        f"{reference.name}: {champion.name} was measured at {ratio.median:.3f} of its time ({spread}), "
        f"which is not faster by more than the noise and {100 * MINIMAL_GAIN:.0f} %"
    )
    return Verdict(reference, reason, candidates)


def sustained(
    candidates: Sequence[Candidate], before: Verdict, turns: Mapping[Candidate, Sequence[Turn]]
) -> Verdict:
    """Who wins under a quota of processor time, by latencies over whole periods of it.

    Whoever replaces the winner so far has a 99th percentile that is not above that one's. By the geometric
    mean of mean latency and 99th percentile it is the best, better than the winner so far in every turn, and
    by what counts in all of them together: what it loses in rate it has to gain more than once in the tail.

    Args:
        candidates: Everybody.
        before: What was decided without the challengers.
        turns: Of whoever was run; the winner so far among them.
    """
    reference, own = before.winner, turns[before.winner]
    challengers = [c for c in turns if c is not reference]
    if not challengers:
        return replace(before, candidates=candidates)
    for candidate, parts in turns.items():
        candidate.samples = frozen_array([turn.seconds for turn in parts], np.float64)
        candidate.tail_seconds = _tail(parts)

    def wins(candidate: Candidate) -> bool:
        parts = turns[candidate]
        return (
            _tail(parts) <= _tail(own)
            and all(_both([a]) < _both([b]) for a, b in zip(parts, own, strict=True))
            and _both(parts) <= (1 - MINIMAL_GAIN) * _both(own)
        )

    best = min(challengers, key=lambda c: (not wins(c), _both(turns[c])))
    shown = (
        f"{best.name} has {_mean(own) / _mean(turns[best]):.2f} times the rate of {reference.name} over "
        f"whole periods, and a {_TAIL}th percentile of {1e3 * _tail(turns[best]):.3g} ms instead of "
        f"{1e3 * _tail(own):.3g} ms"
    )
    if wins(best):
        return Verdict(best, shown, candidates, before.disturbed)
    reason = f"{before.reason}; {shown}, which is not better on the whole"
    return replace(before, candidates=candidates, reason=reason)


def _mean(turns: Sequence[Turn]) -> float:
    return float(np.mean([turn.seconds for turn in turns]))


def _tail(turns: Sequence[Turn]) -> float:
    return float(np.percentile(np.concatenate([turn.latencies for turn in turns]), _TAIL))


def _both(turns: Sequence[Turn]) -> float:
    """Geometric mean of the two."""
    return math.sqrt(_mean(turns) * _tail(turns))
