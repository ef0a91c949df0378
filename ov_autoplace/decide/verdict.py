"""Who wins: by a bound, by predictions, or by what races measured, and the sentence that says why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.proposals import POLICY_NAME, Proposal

__all__ = [
    "CONVINCING_ROUNDS",
    "ESTIMATE_MARGIN",
    "Contest",
    "Entrant",
    "out_of_time",
    "predicted",
    "settled",
    "unconfirmed",
    "verdict",
]

ESTIMATE_MARGIN = 0.1
"""Where predictions from estimated costs differ by less, they do not say which placement is faster."""

CONVINCING_ROUNDS = 6
"""Fewer paired samples than this give no 95 % interval of a median, so they cannot prove a gain."""


@dataclass(eq=False)
class Entrant:
    """A proposal with what was measured of it.

    Attributes:
        proposal: What was proposed.
        samples: Seconds per inference, all races together, ``float64[n]``.
        dropped: Why it left the last race that it was in.
    """

    proposal: Proposal
    samples: FloatArray = field(default_factory=lambda: np.empty(0))
    dropped: str = ""

    @property
    def name(self) -> str:
        """Name of the proposal."""
        return self.proposal.name

    @property
    def seconds(self) -> float:
        """Median of the samples, ``inf`` when there are none."""
        return float(np.median(self.samples)) if len(self.samples) else float("inf")


@dataclass(frozen=True, eq=False)
class Contest:
    """The outcome: who won, why, and everybody who took part or was considered.

    Attributes:
        winner: Whose placement is the answer.
        reason: One sentence.
        entrants: All of them.
        disturbed: Other work made some of the samples behind it long.
    """

    winner: Entrant
    reason: str
    entrants: tuple[Entrant, ...]
    disturbed: bool = False


def settled(proposals: Sequence[Proposal], samples: Mapping[str, FloatArray], best: str) -> Contest:
    """The contest that need not be held: a bound proves that no mix is faster than one device by what counts.

    Args:
        proposals: Single devices, the best one among them.
        samples: Latencies of the whole model by device, ``float64[n]`` in seconds.
        best: The device.
    """
    entrants = tuple(Entrant(p, samples.get(p.name, np.empty(0))) for p in proposals)
    winner = next(e for e in entrants if e.name == best)
    reason = (
        f"{best} is the fastest device and no mix of devices is predicted to be faster: "
        f"{100 * MINIMAL_GAIN:.0f} % are more than the best devices for all groups could gain"
    )
    return Contest(winner, reason, entrants)


def out_of_time(proposals: Sequence[Proposal], budget_seconds: float) -> Contest:
    """The contest when the budget ended before every device was profiled: the costs are estimates.

    One device is taken where that is allowed, because no gain of a mix is proven.
    """
    contest = predicted(proposals)
    singles = [e for e in contest.entrants if e.proposal.is_single]
    winner = min(singles, key=_prediction, default=contest.winner)
    reason = (
        f"{winner.name}: the time budget of {1e3 * budget_seconds:.0f} ms ended before the model was "
        "profiled on every device, so this rests on estimates"
    )
    return replace(contest, winner=winner, reason=reason)


def unconfirmed(entrants: list[Entrant], reference: Entrant | None, mix: Entrant) -> Contest:
    """The best single device, because the budget ended before a mix could win a second time."""
    if reference is None:
        return verdict(entrants, reference, mix)
    reason = (
        f"{reference.name}: {mix.name} was measured faster once, but the time budget ended before both were "
        "compiled anew to confirm it"
    )
    return Contest(reference, reason, tuple(entrants))


def predicted(proposals: Sequence[Proposal]) -> Contest:
    """The contest when nothing may be run and all costs are estimates.

    The policy's greedy answer wins unless it is predicted slower than the best single device, or slower than
    the best candidate by more than :data:`ESTIMATE_MARGIN`; then the lowest prediction wins.
    """
    entrants = tuple(Entrant(p) for p in proposals)
    fastest = min(entrants, key=_prediction)
    single = min((e for e in entrants if e.proposal.is_single), key=_prediction, default=None)
    winner = next((e for e in entrants if POLICY_NAME in (e.name, *e.proposal.also)), fastest)
    limit = _prediction(fastest) * (1 + ESTIMATE_MARGIN)
    if single is not None:
        limit = min(limit, _prediction(single))
    if _prediction(winner) > limit:
        winner = fastest
    if _prediction(winner) == _prediction(fastest):
        reason = f"{winner.name} is predicted to be fastest"
    else:
        behind = 100 * (_prediction(winner) / _prediction(fastest) - 1)
        reason = (
            f"{winner.name} is the learned policy's answer, {behind:.1f} % slower than {fastest.name} by "
            f"estimated costs, which cannot tell so little apart"
        )
    if single is not None and not winner.proposal.is_single:
        gain = 1 - _prediction(winner) / _prediction(single)
        reason += f", {100 * gain:.1f} % faster than {single.name} alone"
    return Contest(winner, f"{reason}; nothing was measured", entrants)


def _prediction(entrant: Entrant) -> float:
    return entrant.proposal.predicted_seconds


def verdict(entrants: list[Entrant], reference: Entrant | None, champion: Entrant | None) -> Contest:
    """The champion if it beats the best single device by more than the noise, else that device."""
    everybody = tuple(entrants)
    if champion is None:
        # Nothing could be run here; the prediction is all there is.
        winner = min(entrants, key=lambda e: e.proposal.predicted_seconds)
        reason = f"{winner.name} is predicted to be fastest; no candidate could be run"
        return Contest(winner, reason, everybody)
    if champion.proposal.is_single:
        mixes = [e for e in entrants if not e.proposal.is_single and (len(e.samples) or e.dropped)]
        hope = min(entrants, key=_prediction)
        gain = 1 - _prediction(hope) / _prediction(champion)
        if not mixes and not hope.proposal.is_single and gain > MINIMAL_GAIN:
            reason = (
                f"{champion.name} is the fastest device, and the time budget ended before {hope.name}, "
                f"predicted {100 * gain:.1f} % faster, could be run"
            )
            return Contest(champion, reason, everybody)
        verb = "was measured" if mixes else "is predicted"
        reason = f"{champion.name} is the fastest device and no mix of devices {verb} to be faster"
        return Contest(champion, reason, everybody)
    if reference is None:
        reason = f"{champion.name} was measured fastest; no single device can run the model"
        return Contest(champion, reason, everybody)
    ratio = paired_ratio(champion.samples, reference.samples)
    spread = f"95 % interval {ratio.low:.3f} to {ratio.high:.3f} of its time"
    rounds = min(len(champion.samples), len(reference.samples))
    if rounds < CONVINCING_ROUNDS:
        reason = (
            f"{reference.name}: {champion.name} looked faster, but the time budget allowed only "
            f"{rounds} paired runs, and fewer than {CONVINCING_ROUNDS} prove nothing"
        )
        return Contest(reference, reason, everybody)
    if ratio.high < 1 and ratio.median <= 1 - MINIMAL_GAIN:
        gain = 100 * (1 - ratio.median)
        reason = f"{champion.name} was measured {gain:.1f} % faster than {reference.name} ({spread})"
        return Contest(champion, reason, everybody)
    reason = (
        f"{reference.name}: {champion.name} was measured at {ratio.median:.3f} of its time ({spread}), "
        f"which is not faster by more than the noise and {100 * MINIMAL_GAIN:.0f} %"
    )
    return Contest(reference, reason, everybody)
