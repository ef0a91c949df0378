"""Who wins: by a bound, by predictions, or by what races measured, and why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import (
    CONVINCING_ROUNDS,
    ESTIMATE_MARGIN,
    MINIMAL_GAIN,
    Interval,
    paired_ratio,
    was_disturbed,
)
from ov_autoplace.devices.widths import Cores
from ov_autoplace.measure.loads import Timing
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Explained, Finding, Kind
from ov_autoplace.plan.hetero_rules import are_rules_known
from ov_autoplace.plan.plan import SplitPlan

__all__ = [
    "Verdict",
    "is_as_fast",
    "is_faster",
    "measured",
    "out_of_time",
    "paired",
    "predicted",
    "proven",
    "proven_anew",
    "right",
    "sure_unrun",
    "sustained",
    "sustains_more",
    "unconfirmed",
    "were_disturbed",
]

_NO_SINGLE = "no single device could be run"
_OUT_OF_TIME = "the time budget ended before both were compiled anew to confirm it"


@dataclass(frozen=True, eq=False)
class Verdict(Explained):
    """Who won, why, and everybody who took part or was considered.

    Attributes:
        winner: Whose placement is the answer.
        findings: Why; the first one says why the winner won.
        candidates: All of them.
        disturbed: Other work made some of the samples behind it long.
    """

    winner: Candidate
    findings: tuple[Finding, ...]
    candidates: Sequence[Candidate]
    disturbed: bool = False

    def alone(self, device: str) -> Candidate | None:
        """A device as OpenVINO runs it by itself, where it was considered."""
        return next((c for c in self.candidates if c.plan.is_default and c.name == device), None)

    def noting(self, *findings: Finding) -> Verdict:
        """The same with more findings; one that lists others is told once, with all of them."""
        told = list(self.findings)
        for finding in findings:
            at = next((i for i, own in enumerate(told) if own.kind is finding.kind and own.is_list), None)
            if at is None:
                told.append(finding)
            else:
                told[at] = Finding(finding.kind, tuple(dict.fromkeys(told[at].names + finding.names)))
        return replace(self, findings=tuple(told))


def paired(one: FloatArray, other: FloatArray) -> Interval | None:
    """The ratio of two in the rounds that both ran; ``None`` where those are too few to prove anything."""
    rounds = min(len(one), len(other))
    return paired_ratio(one, other) if rounds >= CONVINCING_ROUNDS else None


def is_faster(ratio: Interval, gain: float = MINIMAL_GAIN) -> bool:
    """Whether somebody is faster by more than the noise, and by at least ``gain``.

    Args:
        ratio: Of its samples and its rival's, in the same rounds.
        gain: A share of the rival's time.
    """
    return ratio.high < 1 and ratio.median <= 1 - gain


def is_as_fast(ratio: Interval | None) -> bool:
    """Whether somebody is certainly not slower by what counts."""
    return ratio is not None and ratio.high <= 1 + MINIMAL_GAIN


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
        if candidate.name in samples:
            candidate.times[Load.STEADY] = samples[candidate.name]
    winner = next(c for c in candidates if c.name == best)
    return Verdict(winner, (Finding.of(Kind.BOUND, best, gain=100 * MINIMAL_GAIN),), candidates)


def out_of_time(candidates: Sequence[Candidate], budget_seconds: float) -> Verdict:
    """The verdict when the budget ended before every device was profiled: the costs are estimates.

    One device is taken where that is allowed, because no gain of a mix is proven.
    """
    verdict = predicted(candidates)
    winner = min(
        (c for c in candidates if c.is_single), key=attrgetter("expected_seconds"), default=verdict.winner
    )
    finding = Finding.of(Kind.UNPROFILED, winner.name, budget=1e3 * budget_seconds)
    return replace(verdict, winner=winner, findings=(finding,))


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
    finding = Finding.of(Kind.UNCONFIRMED, reference.name, mix.name, detail=because or _OUT_OF_TIME)
    return Verdict(reference, (finding,), candidates)


def sure_unrun(candidates: Sequence[Candidate]) -> list[Candidate]:
    """Those that may be the answer without having been run.

    No mixes, as long as there is anything else, where HETERO may cut them otherwise than predicted.
    """
    mixes = [c for c in candidates if any(isinstance(model, SplitPlan) for model in c.plan.models)]
    if not mixes or are_rules_known():
        return list(candidates)
    return [c for c in candidates if c not in mixes] or list(candidates)


def predicted(candidates: Sequence[Candidate]) -> Verdict:
    """The verdict when nothing may be run and all costs are estimates.

    The lowest prediction wins, unless it is a mix that is no more than :data:`ESTIMATE_MARGIN` below the best
    single device's, which estimates cannot tell apart; then that device does.
    """
    sure = sure_unrun(candidates)
    fastest = min(sure, key=attrgetter("expected_seconds"))
    single = min((c for c in sure if c.is_single), key=attrgetter("expected_seconds"), default=None)
    findings = [Finding.of(Kind.PREDICTED, fastest.name)]
    winner = fastest
    if single is not None and not fastest.is_single:
        gain = 1 - fastest.expected_seconds / single.expected_seconds
        if gain <= ESTIMATE_MARGIN:
            winner = single
            findings = [Finding.of(Kind.SINGLE_PREDICTED, single.name, fastest.name, gain=100 * gain)]
        else:
            findings.append(Finding.of(Kind.GAIN_PREDICTED, single.name, gain=100 * gain))
    return Verdict(winner, (*findings, Finding(Kind.NOTHING_MEASURED)), candidates)


def measured(
    candidates: Sequence[Candidate],
    reference: Candidate | None,
    fastest: Candidate | None,
    why_no_single: str = _NO_SINGLE,
) -> Verdict:
    """The fastest if it beats the best single device by more than the noise, else that device.

    Args:
        candidates: Everybody.
        reference: The best single device, if one can run the model.
        fastest: The fastest in the races, if anything could be run.
        why_no_single: Said where there is no ``reference``.
    """
    if fastest is None:
        # Nothing could be run here; the prediction is all there is.
        winner = min(sure_unrun(candidates), key=attrgetter("expected_seconds"))
        dropped = next((f"{c.name} {c.dropped}" for c in candidates if c.dropped), "")
        why = dropped or "the time budget ended before"
        return Verdict(winner, (Finding.of(Kind.NOT_RUN, winner.name, detail=why),), candidates)
    if fastest.plan.is_default:
        mixes = [c for c in candidates if not c.is_single and (len(c.samples) or c.dropped)]
        mix = min(candidates, key=attrgetter("expected_seconds"))
        gain = 1 - mix.expected_seconds / fastest.expected_seconds
        if not mixes and not mix.is_single and gain > MINIMAL_GAIN:
            finding = Finding.of(Kind.PREDICTED_NOT_RUN, fastest.name, mix.name, gain=100 * gain)
        else:
            finding = Finding.of(Kind.FASTEST_DEVICE if mixes else Kind.NO_MIX_PREDICTED, fastest.name)
        return Verdict(fastest, (finding,), candidates)
    if reference is None:
        finding = Finding.of(Kind.WITHOUT_RIVAL, fastest.name, detail=why_no_single)
        return Verdict(fastest, (finding,), candidates)
    ratio = paired(fastest.on(Load.STEADY), reference.on(Load.STEADY))
    if ratio is None:
        finding = Finding.of(
            Kind.TOO_FEW_ROUNDS,
            reference.name,
            fastest.name,
            rounds=min(len(fastest.on(Load.STEADY)), len(reference.on(Load.STEADY))),
            needed=CONVINCING_ROUNDS,
        )
        return Verdict(reference, (finding,), candidates)
    numbers = {"ratio": ratio.median, "low": ratio.low, "high": ratio.high}
    if is_faster(ratio):
        gain = 100 * (1 - ratio.median)
        finding = Finding.of(Kind.FASTER, fastest.name, reference.name, gain=gain, **numbers)
        return Verdict(fastest, (finding,), candidates)
    least = 100 * MINIMAL_GAIN
    finding = Finding.of(Kind.NOT_FASTER, reference.name, fastest.name, least=least, **numbers)
    return Verdict(reference, (finding,), candidates)


def proven_anew(
    candidates: Sequence[Candidate], reference: Candidate, fastest: Candidate, ran: Sequence[Candidate]
) -> Verdict:
    """What a race of two that were compiled anew says; those that did not run in it prove nothing.

    Args:
        candidates: Everybody.
        reference: Whom the fastest has to beat.
        fastest: Was the fastest before.
        ran: Who was run again.
    """
    failed = [c for c in (fastest, reference) if c not in ran]
    if not failed:
        return measured(candidates, reference, fastest)
    because = next((f"{c.name} {c.dropped}" for c in failed if c.dropped), "")
    return unconfirmed(candidates, reference, fastest, because=because)


def right(verdict: Verdict, candidate: Candidate) -> Verdict:
    """The verdict for somebody whose outputs are right, where the winner so far computes wrong ones."""
    finding = Finding.of(Kind.RIGHT_OUTPUTS, candidate.name)
    return replace(verdict, winner=candidate, findings=(finding,))


def sustained(before: Verdict, timings: Mapping[Candidate, Timing]) -> Verdict:
    """Who wins under a quota of processor time, by latencies over whole periods of it.

    Args:
        before: What was decided without the challengers.
        timings: Of whoever was run; the winner so far among them.
    """
    reference = before.winner
    ran = [c for c in timings if c is not reference and len(timings[c].samples)]
    if not ran:
        return before
    own = timings[reference]
    best = min(ran, key=lambda c: (not sustains_more(timings[c], own), _mean_and_tail(timings[c])))
    numbers = {
        "rate": float(own.samples.mean() / timings[best].samples.mean()),
        "tail": 1e3 * timings[best].tail_seconds,
        "before": 1e3 * own.tail_seconds,
    }
    if sustains_more(timings[best], own):
        finding = Finding.of(Kind.SUSTAINED, best.name, reference.name, **numbers)
        return replace(before, winner=best, findings=(finding,))
    return before.noting(Finding.of(Kind.SUSTAINED_NO_BETTER, best.name, reference.name, **numbers))


def sustains_more(one: Timing, other: Timing) -> bool:
    """Whether somebody is better under a quota of processor time than somebody else.

    It has a 99th percentile that is not above the other one's. By the geometric mean of mean latency and 99th
    percentile it is better in every turn, and by what counts in all of them together: what it loses in rate
    it has to gain more than once in the tail.
    """
    turns = zip(_by_turn(one), _by_turn(other), strict=True)
    return (
        one.tail_seconds <= other.tail_seconds
        and all(mine < theirs for mine, theirs in turns)
        and _mean_and_tail(one) <= (1 - MINIMAL_GAIN) * _mean_and_tail(other)
    )


def _by_turn(timing: Timing) -> list[float]:
    """What counts, in each turn."""
    pairs = zip(timing.samples, timing.latencies, strict=True)
    return [_mean_and_tail(Timing(np.atleast_1d(mean), latencies=(own,))) for mean, own in pairs]


def _mean_and_tail(timing: Timing) -> float:
    """Geometric mean of the two."""
    return math.sqrt(float(timing.samples.mean()) * timing.tail_seconds)
