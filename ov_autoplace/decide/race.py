"""Racing candidates on the devices, again and again while the budget lasts, and what has to be won."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.statistics import CONVINCING_ROUNDS, MINIMAL_GAIN, Interval, paired_ratio
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.verdict import (
    Verdict,
    is_as_fast,
    is_faster,
    paired,
    proven_anew,
    right,
    sustained,
    unconfirmed,
    were_disturbed,
)
from ov_autoplace.decide.workbench import Raced, Workbench
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.loads import PAUSE_SECONDS, Timing
from ov_autoplace.measure.sustained import race_seconds
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Finding, Kind

__all__ = ["CONFIRMATION", "FIRST_RACE", "PAUSED_GAIN", "PAUSED_SECONDS", "Race", "must_win_after_pauses"]

PAUSED_SECONDS = 0.7
"""For how long candidates are tried with pauses."""

PAUSED_GAIN = 0.05
"""Of its rival's time after idle gaps, that a width has to gain which gains nothing back to back."""

FIRST_RACE, CONFIRMATION = 0.5, 0.2
"""Shares of the time that is left: of a first race, and what is kept for the race that confirms."""

# Of what was left when the races of TUNE began: each of them takes so much.
_TUNING_RACE = 0.15
# Of what is left when TUNE has raced its first schedules, so much is kept for proving the best of all.
_SCHEDULE_PROOF = 0.35
# Short models compile quickly, so their last contenders do it again several times; see `Workbench.forget`.
_SHORT, _COMPILATIONS = 5e-3, 3
# Where a model lies in memory changes its time by a few percent: who takes less than this is faster anywhere.
_BEYOND_LUCK = 0.85
_NO_TIME = "the time budget ended before"


class Race:
    """Races candidates for one model in what is left of a budget; what is reserved of that is left alone.

    Args:
        bench: Compiles and runs them.
        options: The caller's.
    """

    def __init__(self, bench: Workbench, options: PlacerOptions) -> None:
        self._bench = bench
        self._budget = bench.budget
        self._options = options

    def once(self, candidates: Sequence[Candidate], share: float, load: Load = Load.STEADY) -> Raced | None:
        """Run candidates in turns, which remember it.

        Those that fail are marked and left out; with one left, which was run before, there is nothing to run.

        Args:
            candidates: Whom to run; the first ones matter most, and those that the budget has no time for are
                left out, beginning with the last.
            share: Of the budget that is left, compilations included.
            load: How they are called.

        Returns:
            ``None`` where nobody could be run.
        """
        end = self._budget.free * (1 - share)
        if self._bench.is_short_of_memory:
            self._bench.keep_only(candidates)  # devices cannot hold everything at once

        def is_affordable(candidate: Candidate, entered: list[Candidate]) -> bool:
            if self._bench.is_compiled(candidate):
                return True
            left = self._budget.free - end
            if load is Load.STEADY and len(entered) < 2:
                return left > 0
            # What must be run to prove something comes after the compilations.
            return left > self._bench.compile_seconds(candidate) + _proof_seconds([candidate, *entered], load)

        entered = self._bench.enter(candidates, is_affordable)
        if not entered:
            return None
        if len(entered) == 1 and len(entered[0].on(load)):
            return Raced(load, {entered[0]: Timing(entered[0].on(load))}, 0, 0.0, entered[0])
        try:
            # Whoever is dropped as much slower ran often enough to be compared, too.
            raced = self._bench.race(entered, load, max(0.0, self._budget.free - end))
        except ProfilingError as cause:
            for candidate in entered:
                if not len(candidate.on(load)):  # what was measured before is as true as it was
                    candidate.dropped = str(cause)
            return None
        raced.record()
        return raced

    def challenge(self, verdict: Verdict, challengers: Sequence[Candidate]) -> Verdict:
        """Race more candidates with the winner of a verdict, which they have to beat as a mix has to.

        A schedule has to win after idle gaps too, unless requests come back to back. Under a quota of
        processor time whoever challenges has to win by what is sustained over its periods.

        Args:
            verdict: What was decided without them.
            challengers: Widths of single devices, or schedules on lanes.
        """
        reference, proof = verdict.winner, (verdict.winner.on(Load.STEADY), verdict.winner.dropped)
        verdict = replace(verdict, candidates=[*verdict.candidates, *challengers])
        if Cores.of_this_process().quota is None:
            found = self._challenged(verdict, challengers)
        else:
            found = self._challenged_over_periods(verdict, challengers)
        if found.winner is reference and len(proof[0]):
            # The answer stands by what proved it, whatever became of those who challenged it.
            reference.remember(Load.STEADY, proof[0])
            reference.dropped = proof[1]
        return found

    def _challenged_over_periods(self, verdict: Verdict, challengers: Sequence[Candidate]) -> Verdict:
        """:meth:`challenge` where a quota of processor time stops the threads of whoever uses it up."""
        reference = verdict.winner
        raced = self.once([reference, *challengers], 1.0, Load.SUSTAINED)
        if reference.is_wrong and raced is not None:
            return right(verdict, raced.best)
        if raced is None or not len(raced.samples(reference)):
            return verdict
        found = sustained(verdict, raced.timings)
        after_pauses, holds = self._after_pauses(found.winner, reference)
        if not holds:
            return _back_to_back_only(verdict, found.winner, after_pauses)
        return found.noting(*after_pauses)

    def _challenged(self, verdict: Verdict, challengers: Sequence[Candidate]) -> Verdict:
        """:meth:`challenge`, after which the winner may have the samples of a race that decided nothing."""
        reference = verdict.winner
        raced = self.once([reference, *challengers], FIRST_RACE)
        best = None if raced is None else raced.best
        was_disturbed = verdict.disturbed
        disturbed = was_disturbed or were_disturbed(c.samples for c in (reference, *challengers))
        verdict = replace(verdict, disturbed=disturbed)
        if reference.is_wrong and best is not None:
            return right(verdict, best)
        if best is None or best is reference:
            calmer = None if raced is None else self._faster_after_pauses(verdict, challengers, raced)
            if calmer is not None:
                return calmer
            names, ran = [c.name for c in challengers], any(len(c.samples) for c in challengers)
            if best is reference and ran:
                return verdict.noting(Finding.of(Kind.OTHERS_NOT_FASTER, *names))
            if not ran and not any(c.dropped for c in challengers):
                return verdict.noting(Finding.of(Kind.OTHERS_NOT_RUN, *names))
            return verdict
        after_pauses, holds = self._after_pauses(best, reference)
        if not holds:
            return _back_to_back_only(verdict, best, after_pauses)
        contenders = [best, reference]
        compilations = self.compilations(contenders)
        ratio = None if raced is None else raced.ratio(best, reference)
        if ratio is not None and ratio.high < _BEYOND_LUCK:
            compilations = min(compilations, 1)
        if compilations:
            again = self.anew(contenders, compilations)
            found = proven_anew(verdict.candidates, reference, best, again)
            disturbed = was_disturbed or were_disturbed(c.samples for c in contenders)
        else:
            found = unconfirmed(verdict.candidates, reference, best)
        if found.winner is not best:
            found = replace(found, findings=(*verdict.findings, *found.findings))
        else:
            found = found.noting(*after_pauses)
        return replace(found, disturbed=disturbed)

    def tune(
        self,
        field: list[Candidate],
        standing: Sequence[Candidate],
        more: Callable[[Sequence[Candidate]], list[Candidate]],
        seconds: float,
        kept: float,
    ) -> Candidate | None:
        """Race what is proposed next with those that stand, again and again; returns the fastest found.

        Args:
            field: All candidates, to which proposals are added.
            standing: Whom each proposal has to beat; the last one is the fastest so far.
            more: Proposals by what was tried; none when there are no others.
            seconds: What the budget had left when the races began; each race takes a share of it.
            kept: Share of these that is left in the end, to prove the best of all.
        """
        *rivals, best = standing or (None,)
        while self._budget.free > kept * seconds:
            fresh = more(field)
            if not fresh:
                break
            field += fresh
            others = list(dict.fromkeys(c for c in (*rivals, best) if c is not None))
            self._bench.keep_only(others)
            share = min(1.0, _TUNING_RACE * seconds / max(self._budget.free, 1e-9))
            raced = self.once([*others, *fresh], share)
            best = best if raced is None else raced.best
        return best

    def tune_schedules(
        self, schedules: Sequence[Candidate], more: Callable[[Sequence[Candidate]], list[Candidate]]
    ) -> list[Candidate]:
        """Race schedules and those that are proposed next, again and again; all of them, the fastest first.

        Args:
            schedules: The first ones.
            more: Further ones, by those that were tried already; none when there are no others.
        """
        field = list(schedules)
        raced = self.once(field, _TUNING_RACE)
        if raced is None:
            return field
        fastest = self.tune(field, [raced.best], more, self._budget.free, _SCHEDULE_PROOF)
        return sorted(field, key=lambda candidate: candidate is not fastest)

    def require(self, verdict: Verdict, schedules: Sequence[Candidate]) -> Verdict:
        """The fastest of some schedules, which the user wants whatever else is faster.

        Args:
            verdict: What was decided without them.
            schedules: On lanes.
        """
        rival, field = verdict.winner, [*verdict.candidates, *schedules]
        proof = rival.on(Load.STEADY), rival.dropped
        raced = self.once([*schedules, rival], FIRST_RACE)
        ran = [c for c in schedules if len(c.samples)]
        if not ran:
            rival.remember(Load.STEADY, proof[0])
            rival.dropped = proof[1]
            why = next((f"{c.name} {c.dropped}" for c in schedules if c.dropped), _NO_TIME)
            return replace(verdict, candidates=field).noting(Finding.of(Kind.NO_SCHEDULE, detail=why))
        if raced is None or not raced.best.plan.lane_count:
            best = min(ran, key=lambda c: c.seconds)
        else:
            best = raced.best
        findings = [Finding.of(Kind.REQUIRED, best.name)]
        if raced is not None and len(raced.samples(rival)) and len(raced.samples(best)):
            ratio = paired_ratio(raced.samples(best), raced.samples(rival)).median
            rounds = min(len(raced.samples(best)), len(raced.samples(rival)))
            kind = Kind.BESIDE if rounds >= CONVINCING_ROUNDS else Kind.BESIDE_TOO_FEW
            findings.append(
                Finding.of(kind, rival.name, ratio=ratio, rounds=rounds, needed=CONVINCING_ROUNDS)
            )
        disturbed = verdict.disturbed or were_disturbed([best.samples])
        return Verdict(best, tuple(findings), field, disturbed)

    def compilations(self, contenders: Sequence[Candidate]) -> int:
        """How often the contenders are compiled anew; a mix always has to win twice.

        Short models are compiled several times. All as far as the budget goes.
        """
        if len(contenders) < 2:
            return 0
        affordable = int(self._budget.free / max(self._once_anew(contenders), 1e-9))
        if min(c.seconds for c in contenders) >= _SHORT:
            affordable = min(affordable, 0 if contenders[0].plan.is_default else 1)
        return min(affordable, _COMPILATIONS)

    def _once_anew(self, contenders: Sequence[Candidate]) -> float:
        """Seconds of compiling contenders, and of a race that is as long as it must be to prove something."""
        compiling = sum(self._bench.compile_seconds(c) for c in contenders)
        return compiling + CONVINCING_ROUNDS * sum(c.seconds for c in contenders)

    def anew(self, contenders: Sequence[Candidate], compilations: int) -> list[Candidate]:
        """Compile and race several times, until it is clear whether the first one is faster.

        Args:
            contenders: The first one is to be proven.
            compilations: How often at most.

        Returns:
            Those that ran every time in turns with others. The rest have the samples that they had, but for
            a first one that failed.
        """
        before = {c: c.on(Load.STEADY) for c in contenders}
        parts: list[dict[Candidate, FloatArray]] = []
        failed: dict[Candidate, str] = {}
        once = self._once_anew(contenders)
        for compilation in range(compilations):
            if compilation and self._budget.free < once:
                break  # all before took longer than they were expected to
            self._bench.forget()
            for contender in contenders:
                contender.remember(Load.STEADY, np.empty(0))
                contender.dropped = ""
            # Who is compiled first tends to be slower, so they take turns.
            share = 1 / (compilations - compilation)
            self.once(contenders if compilation % 2 == 0 else contenders[::-1], share)
            failed |= {c: c.dropped for c in contenders if _has_failed(c)}
            # Whoever was dropped as slower has fewer samples. Pairs stay pairs, and no compilation outweighs
            # the others by much, when all end where the first one did. Who was alone has no pair.
            ran = [c for c in contenders if len(c.on(Load.STEADY))]
            if len(ran) > 1:
                rounds = min(len(c.on(Load.STEADY)) for c in ran)
                parts.append({c: c.on(Load.STEADY)[:rounds] for c in ran})
            # Between devices, the mean of all compilations decides; who has to beat one has to each time.
            if len(contenders) == 2 and not contenders[0].plan.is_default and _is_clear(parts, *contenders):
                break
        ran = [c for c in contenders if c not in failed and parts and all(c in part for part in parts)]
        for contender in contenders:
            contender.dropped = failed.get(contender, contender.dropped)
            if contender in ran:
                found = np.concatenate([part[contender] for part in parts])
                contender.times[Load.STEADY] = frozen_array(found, np.float64)
            else:
                contender.remember(Load.STEADY, before[contender])
        if contenders[0] in failed and not contenders[0].plan.is_default:
            contenders[0].remember(Load.STEADY, np.empty(0))
        return ran

    def _faster_after_pauses(
        self, verdict: Verdict, challengers: Sequence[Candidate], raced: Raced
    ) -> Verdict | None:
        """The narrowest width for the answer where it is as fast back to back and faster after idle gaps.

        Threads that have to be woken may cost a device after a gap what they gain it back to back.

        Args:
            verdict: On a device as OpenVINO runs it by itself, or it stands.
            challengers: Some of them on widths.
            raced: Back to back.
        """
        reference = verdict.winner
        if self._options.arrivals == "STEADY" or not reference.plan.is_default:
            return None
        alike = [c for c in challengers if c.plan.width is not None and is_as_fast(raced.ratio(c, reference))]
        if not alike:
            return None
        best = min(alike, key=lambda c: (c.plan.width.threads if c.plan.width else 0, c.seconds))
        findings, ratio = self._paused(best, reference)
        if ratio is None or not is_faster(ratio, gain=PAUSED_GAIN):
            return None
        if self.compilations([best, reference]):
            self.anew([best, reference], 1)
        steady = paired(best.on(Load.STEADY), reference.on(Load.STEADY))
        if steady is None or not is_as_fast(steady):
            return None
        numbers = {"ratio": steady.median, "low": steady.low, "high": steady.high}
        why = Finding.of(Kind.AS_FAST, best.name, reference.name, **numbers)
        return replace(verdict, winner=best, findings=(why, *findings))

    def _after_pauses(self, best: Candidate, reference: Candidate) -> tuple[list[Finding], bool]:
        """What two candidates take when inferences follow idle gaps, and whether the first may be the answer.

        Returns:
            Nothing is measured and said where it need not be faster then.
        """
        has_lanes = best.plan.lane_count > 0
        if best is reference or not must_win_after_pauses(self._options, has_lanes=has_lanes):
            return [], True
        findings, ratio = self._paused(best, reference)
        return findings, ratio is not None and is_faster(ratio, gain=0.0)

    def _paused(self, best: Candidate, reference: Candidate) -> tuple[list[Finding], Interval | None]:
        """What one candidate takes of another's time after idle gaps, and what to say of it."""
        pause = 1e3 * PAUSE_SECONDS
        try:
            seconds = min(PAUSED_SECONDS, self._budget.free)
            raced = self._bench.race([best, reference], Load.PAUSED, seconds)
        except ProfilingError as cause:
            return [Finding.of(Kind.AFTER_PAUSES_FAILED, detail=cause, pause=pause)], None
        for candidate, timing in raced.timings.items():
            candidate.remember(Load.PAUSED, timing.samples)
        ratio = raced.ratio(best, reference)
        if ratio is None:
            rounds = min(len(timing.samples) for timing in raced.timings.values())
            return [Finding.of(Kind.AFTER_PAUSES_TOO_FEW, rounds=rounds, pause=pause)], None
        numbers = {"ratio": ratio.median, "low": ratio.low, "high": ratio.high}
        return [Finding.of(Kind.AFTER_PAUSES, reference.name, pause=pause, **numbers)], ratio


def must_win_after_pauses(options: PlacerOptions, *, has_lanes: bool) -> bool:
    """Whether a candidate has to be faster after idle gaps too, to be the answer.

    Args:
        options: Say when requests arrive.
        has_lanes: Waking a lane takes longer than many an op.
    """
    return has_lanes and options.arrivals != "STEADY"


def _is_clear(parts: Sequence[Mapping[Candidate, FloatArray]], proven: Candidate, rival: Candidate) -> bool:
    """Whether no further compilation is needed to tell if one of two is faster.

    Args:
        parts: Samples of each compilation in which somebody ran in turns with others.
        proven: Has to win; who certainly does not as it is compiled anew had luck before.
        rival: What it has to beat.
    """
    ratios = [paired(part[proven], part[rival]) for part in parts if len(part) == 2]
    if not ratios or ratios[-1] is None:
        return False
    if ratios[-1].low > 1 - MINIMAL_GAIN:
        return True
    return all(ratio is not None and ratio.high < _BEYOND_LUCK for ratio in ratios)


def _proof_seconds(candidates: Sequence[Candidate], load: Load) -> float:
    """What candidates have to be run for to prove something."""
    quota = Cores.of_this_process().quota
    if load is Load.SUSTAINED and quota is not None:
        return race_seconds(quota, len(candidates), turns=1)
    return CONVINCING_ROUNDS * sum(c.expected_seconds for c in candidates)


def _back_to_back_only(verdict: Verdict, best: Candidate, after_pauses: Sequence[Finding]) -> Verdict:
    """The verdict that stands when a challenger was better, but not after pauses."""
    found = verdict.noting(Finding.of(Kind.STEADY_ONLY, best.name), *after_pauses)
    disturbed = verdict.disturbed or were_disturbed(c.on(Load.PAUSED) for c in (best, verdict.winner))
    return replace(found, disturbed=disturbed)


def _has_failed(candidate: Candidate) -> bool:
    """Whether a candidate left its latest race for another reason than being slower."""
    return bool(candidate.dropped) and (
        not len(candidate.on(Load.STEADY)) or candidate.dropped.startswith("failed")
    )
