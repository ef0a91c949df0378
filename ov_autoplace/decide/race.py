"""Running candidates against each other on the devices, again and again while the budget lasts."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import POLICY_NAME, ProposalSource, propose
from ov_autoplace.decide.verdict import (
    CONVINCING_ROUNDS,
    Verdict,
    is_faster,
    measured,
    paired,
    sustained,
    unconfirmed,
    were_disturbed,
)
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.corrections import Observation, corrected_table, perturbed_table
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.sustained import Turn, race_seconds, run_over_periods, turn_seconds
from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.findings import Finding, Kind
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.problem.problem import Problem

__all__ = ["PAUSED_SECONDS", "PAUSE_SECONDS", "Race", "must_win_after_pauses", "sampling"]

PAUSE_SECONDS = 3e-3
"""How long the machine idles before each inference where a schedule is tried with pauses."""

PAUSED_SECONDS = 0.7
"""For how long a schedule is tried with pauses."""

_STEADY_SECONDS = 5e-3
_FINALISTS = 3
# A prediction this much above the best single device's is not worth compiling.
_HOPELESS = 1.15
# Shares of the time that is left: of the first race of PROFILE and of TUNE, and of each race of TUNE's
# rounds; TUNE ends when less than the last of them is left of all, which is for the race that confirms.
_FIRST_RACE, _FIRST_TUNING_RACE, _TUNING_RACE, _CONFIRMATION = 0.5, 0.3, 0.15, 0.2
# Of what is left when TUNE has raced its first schedules, so much is kept for proving the best of all.
_SCHEDULE_PROOF = 0.35
# How many perturbed cost tables TUNE solves for one round of proposals.
_TRIALS = 8
# Single devices of which an inference came this close to the best one's median are raced with it, instead of
# trusting the profile run, which other work may have disturbed.
_CLOSE = 1.25
# Short models compile quickly, so their last contenders do it again several times; see `Workbench.forget`.
_SHORT, _COMPILATIONS = 5e-3, 3
_NO_TIME = "the time budget ended before"


class Race:
    """Races candidates for one profiled model in what is left of a budget of wall-clock time.

    Args:
        session: The model on its devices.
        problem: Its profiled costs.
        samples: Latencies of the whole model on each device while it was profiled, ``float64[n]`` in seconds.
        source: Who proposes more for ``TUNE``.
        options: The caller's.
        budget: Wall-clock time; what is reserved of it is left alone.
    """

    def __init__(
        self,
        session: ProfilingSession,
        problem: Problem,
        samples: Mapping[str, FloatArray],
        source: ProposalSource,
        options: PlacerOptions,
        budget: Budget,
    ) -> None:
        self._bench = Workbench(session, problem.table, budget, options.seed)
        self._problem = problem
        self._samples = samples
        self._source = source
        self._options = options
        self._budget = budget
        self._seconds = budget.free  # when the races began

    def run(self, candidates: Sequence[Candidate]) -> Verdict:
        """Race the best of ``candidates``; ``TUNE`` goes on with corrected costs until its budget ends."""
        field = list(candidates)
        for candidate in field:
            candidate.samples = self._samples.get(candidate.name, np.empty(0))
        if self._bench.session.outputs is not None:
            self._bench.session.outputs.mark(field)
        singles = [c for c in field if c.is_single and len(c.samples)]
        reference = self._fastest(singles)
        tuning = self._options.mode == "TUNE"
        finalists = self._finalists(field, singles, reference)
        share = _FIRST_TUNING_RACE if tuning else _FIRST_RACE
        champion = self._race(finalists, share) or self._fastest(singles)
        if tuning:
            champion = self._tune(field, self._fastest(singles), champion)
        why = self._problem.why_no_single
        if singles and self._fastest(singles) is None:
            why = "no device alone computes the right outputs"
            # There is still an answer where nobody is right, and the decision says so.
            champion = champion or min(singles, key=lambda c: c.seconds)
        verdict = measured(field, self._fastest(singles), champion, why)
        contenders = self._contenders(verdict.winner, singles)
        compilations = self._compilations(contenders)
        is_mix = not verdict.winner.is_single
        if is_mix and len(contenders) > 1 and not compilations:
            return unconfirmed(field, self._fastest(singles), verdict.winner, why)
        if compilations:
            ran = self._race_anew(contenders, compilations)
            best = self._fastest([c for c in singles if c in ran]) or self._fastest(singles)
            if is_mix and best is not None:
                verdict = _proven_anew(field, best, verdict.winner, ran)
            else:
                verdict = measured(field, best, best or verdict.winner, why)
        disturbed = were_disturbed(c.samples for c in contenders)
        return replace(verdict, disturbed=disturbed)

    def challenge(self, verdict: Verdict, challengers: Sequence[Candidate]) -> Verdict:
        """Race more candidates with the winner of a verdict, which they have to beat as a mix has to.

        A schedule has to win after idle gaps too, unless requests come back to back. Under a quota of
        processor time whoever challenges has to win by what is sustained over its periods.

        Args:
            verdict: What was decided without them.
            challengers: Widths of single devices, or schedules on lanes.
        """
        quota, reference = Cores.of_this_process().quota, verdict.winner
        proof = reference.samples, reference.dropped
        if quota is not None:
            found = self._challenged_under(quota, verdict, challengers)
            proof = reference.samples, proof[1]  # over whole periods, if those were run
        else:
            found = self._challenged(verdict, challengers)
        if found.winner is reference and len(proof[0]):
            # The answer stands by what proved it, whatever became of those who challenged it.
            reference.samples, reference.dropped = proof
        return found

    def _challenged_under(self, quota: Quota, verdict: Verdict, challengers: Sequence[Candidate]) -> Verdict:
        """:meth:`challenge` where a quota of processor time stops the threads of whoever uses it up."""
        reference, field = verdict.winner, [*verdict.candidates, *challengers]
        if np.isfinite(self._problem.table.memory_capacity).any():
            self._bench.keep_only([reference, *challengers])

        def is_affordable(candidate: Candidate, entered: list[Candidate]) -> bool:
            compilation = 0 if self._bench.is_compiled(candidate) else self._bench.compile_seconds(candidate)
            return self._budget.free > compilation + race_seconds(quota, 1 + len(entered), turns=1)

        entered = self._bench.enter([reference, *challengers], is_affordable)
        if reference.is_wrong and entered:
            return Verdict(entered[0], _right(entered[0]), field, verdict.disturbed)
        if reference not in entered or len(entered) < 2:
            return replace(verdict, candidates=field)
        executables = [self._bench.executable(candidate) for candidate in entered]
        outcomes = run_over_periods(executables, quota, self._budget.free)
        turns: dict[Candidate, Sequence[Turn]] = {}
        for candidate, outcome in zip(entered, outcomes, strict=True):
            if isinstance(outcome, ProfilingError):
                candidate.dropped = str(outcome)
            else:
                turns[candidate] = outcome
        if reference not in turns:
            return replace(verdict, candidates=field)
        found = sustained(field, verdict, turns)
        after_pauses, holds = self._after_pauses(found.winner, reference)
        if not holds:
            return _back_to_back_only(verdict, field, found.winner, after_pauses)
        return found.noting(*after_pauses)

    def _challenged(self, verdict: Verdict, challengers: Sequence[Candidate]) -> Verdict:
        """:meth:`challenge`, after which the winner may have the samples of a race that decided nothing."""
        reference, field = verdict.winner, [*verdict.candidates, *challengers]
        champion = self._race([reference, *challengers], _FIRST_RACE)
        disturbed = verdict.disturbed or were_disturbed(c.samples for c in (reference, *challengers))
        if reference.is_wrong and champion is not None:
            return Verdict(champion, _right(champion), field, disturbed)
        if champion is None or champion is reference:
            lanes, found = challengers[0].plan.lane_count > 0, replace(verdict, candidates=field)
            if champion is reference and any(len(c.samples) for c in challengers):
                found = found.noting(Finding(Kind.LANES_NOT_FASTER if lanes else Kind.NARROWER_NOT_FASTER))
            elif not any(len(c.samples) or c.dropped for c in challengers):
                found = found.noting(Finding(Kind.LANES_NOT_RUN if lanes else Kind.NARROWER_NOT_RUN))
            return replace(found, disturbed=disturbed)
        after_pauses, holds = self._after_pauses(champion, reference)
        if not holds:
            return _back_to_back_only(replace(verdict, disturbed=disturbed), field, champion, after_pauses)
        contenders = [champion, reference]
        compilations = self._compilations(contenders)
        if compilations:
            ran = self._race_anew(contenders, compilations)
            disturbed = verdict.disturbed or were_disturbed(c.samples for c in contenders)
            found = _proven_anew(field, reference, champion, ran)
        else:
            found = unconfirmed(field, reference, champion)
        if found.winner is not champion:
            found = replace(found, findings=(*verdict.findings, *found.findings))
        else:
            found = found.noting(*after_pauses)
        return replace(found, disturbed=disturbed)

    def tune_schedules(
        self, schedules: Sequence[Candidate], more: Callable[[Sequence[Candidate]], list[Candidate]]
    ) -> list[Candidate]:
        """Race schedules and those that are proposed next, again and again; all of them, the fastest first.

        Args:
            schedules: The first ones.
            more: Further ones, by those that were tried already; none when there are no others.
        """
        field = list(schedules)
        champion = self._race(field, _TUNING_RACE)
        if champion is None:
            return field
        fastest = self._race_on(field, [champion], more, self._budget.free, _SCHEDULE_PROOF)
        return sorted(field, key=lambda candidate: candidate is not fastest)

    def demand(self, verdict: Verdict, schedules: Sequence[Candidate]) -> Verdict:
        """The fastest of some schedules, which the user wants whatever else is faster.

        Args:
            verdict: What was decided without them.
            schedules: On lanes.
        """
        rival, field = verdict.winner, [*verdict.candidates, *schedules]
        proof = rival.samples, rival.dropped
        champion = self._race([*schedules, rival], _FIRST_RACE)
        ran = [c for c in schedules if len(c.samples)]
        if not ran:
            rival.samples, rival.dropped = proof
            why = next((f"{c.name} {c.dropped}" for c in schedules if c.dropped), _NO_TIME)
            return replace(verdict, candidates=field).noting(Finding.of(Kind.NO_SCHEDULE, detail=why))
        if champion is None or not champion.plan.lane_count:
            champion = min(ran, key=lambda c: c.seconds)
        findings = [Finding.of(Kind.DEMANDED, champion.name)]
        # Samples of other races are no pairs.
        if len(rival.samples) and rival.samples is not proof[0]:
            ratio = paired_ratio(champion.samples, rival.samples).median
            rounds = min(len(champion.samples), len(rival.samples))
            kind = Kind.BESIDE if rounds >= CONVINCING_ROUNDS else Kind.BESIDE_TOO_FEW
            findings.append(
                Finding.of(kind, rival.name, ratio=ratio, rounds=rounds, needed=CONVINCING_ROUNDS)
            )
        disturbed = verdict.disturbed or were_disturbed([champion.samples])
        return Verdict(champion, tuple(findings), field, disturbed)

    def _after_pauses(self, champion: Candidate, reference: Candidate) -> tuple[list[Finding], bool]:
        """What two candidates take when inferences follow idle gaps, and whether the first may be the answer.

        Returns:
            Nothing is measured and said where it need not be faster then.
        """
        has_lanes = champion.plan.lane_count > 0
        if champion is reference or not must_win_after_pauses(self._options, has_lanes=has_lanes):
            return [], True
        seconds = min(PAUSED_SECONDS, self._budget.free)
        pause = 1e3 * PAUSE_SECONDS
        try:
            result = self._bench.race(
                [champion, reference], seconds, min_rounds=CONVINCING_ROUNDS, pause_seconds=PAUSE_SECONDS
            )
        except ProfilingError as cause:
            return [Finding.of(Kind.AFTER_PAUSES_FAILED, detail=cause, pause=pause)], False
        entries = result.entries
        rounds = min(len(entry.samples) for entry in entries)
        for candidate, entry in zip((champion, reference), entries, strict=True):
            candidate.paused_samples = entry.samples[:rounds]
        ratio = paired(champion.paused_samples, reference.paused_samples)
        if ratio is None:
            return [Finding.of(Kind.AFTER_PAUSES_TOO_FEW, rounds=rounds, pause=pause)], False
        numbers = {"ratio": ratio.median, "low": ratio.low, "high": ratio.high}
        took = Finding.of(Kind.AFTER_PAUSES, reference.name, pause=pause, **numbers)
        return [took], is_faster(ratio, gain=0.0)

    def _contenders(self, winner: Candidate, singles: list[Candidate]) -> list[Candidate]:
        """The winner, and the single devices that may be as fast; the best one always."""
        best = self._fastest(singles)
        others = [c for c in singles if _may_be_as_fast(c, best)] if best is not None else []
        return list(dict.fromkeys([winner, *others]))

    def _compilations(self, contenders: list[Candidate]) -> int:
        """How often the contenders are compiled anew; a mix always has to win twice.

        Short models are compiled several times. All as far as the budget goes.
        """
        if len(contenders) < 2:
            return 0
        once = sum(self._bench.compile_seconds(c) for c in contenders)
        # Each compilation is followed by a race that is as long as it must be to prove something.
        once += CONVINCING_ROUNDS * sum(c.seconds for c in contenders)
        affordable = int(self._budget.free / max(once, 1e-9))
        if min(c.seconds for c in contenders) >= _SHORT:
            affordable = min(affordable, 0 if contenders[0].plan.is_default else 1)
        return min(affordable, _COMPILATIONS)

    def _race_anew(self, contenders: list[Candidate], compilations: int) -> list[Candidate]:
        """Compile and race several times; what was measured before proves nothing, because it chose them.

        Args:
            contenders: The first one is to be proven.
            compilations: How often.

        Returns:
            Those that ran every time in turns with others. The rest have the samples that they had, but for
            a first one that failed.
        """
        before = {c: c.samples for c in contenders}
        parts: list[dict[Candidate, FloatArray]] = []
        failed: dict[Candidate, str] = {}
        for compilation in range(compilations):
            self._bench.forget()
            for contender in contenders:
                contender.samples, contender.dropped = np.empty(0), ""
            # Who is compiled first tends to be slower, so they take turns.
            share = 1 / (compilations - compilation)
            self._race(contenders if compilation % 2 == 0 else contenders[::-1], share)
            failed |= {c: c.dropped for c in contenders if _has_failed(c)}
            # Whoever was dropped as slower has fewer samples. Pairs stay pairs, and no compilation outweighs
            # the others by much, when all end where the first one did. Who was alone has no pair.
            ran = [c for c in contenders if len(c.samples)]
            if len(ran) > 1:
                rounds = min(len(c.samples) for c in ran)
                parts.append({c: c.samples[:rounds] for c in ran})
        ran = [c for c in contenders if c not in failed and parts and all(c in part for part in parts)]
        for contender in contenders:
            contender.dropped = failed.get(contender, contender.dropped)
            if contender in ran:
                found = np.concatenate([part[contender] for part in parts])
                contender.samples = frozen_array(found, np.float64)
            else:
                contender.samples = before[contender]
        if contenders[0] in failed and not contenders[0].plan.is_default:
            contenders[0].samples = np.empty(0)
        return ran

    @staticmethod
    def _fastest(singles: list[Candidate]) -> Candidate | None:
        """Of those whose outputs are not wrong."""
        return min((c for c in singles if not c.is_wrong), key=lambda c: c.seconds, default=None)

    def _finalists(
        self, field: list[Candidate], singles: list[Candidate], reference: Candidate | None
    ) -> list[Candidate]:
        """The best single device, the mixes that promise most, and single devices close to the best."""
        promised = min((c.promised_seconds for c in singles if not c.is_wrong), default=np.inf)
        mixes = sorted((c for c in field if c not in singles), key=lambda c: c.promised_seconds)
        mixes = [c for c in mixes if c.promised_seconds <= _HOPELESS * promised][:_FINALISTS]
        if reference is None:
            return mixes
        close = [c for c in singles if c is not reference and _may_be_as_fast(c, reference)]
        return [reference, *mixes, *close]

    def _tune(
        self, field: list[Candidate], reference: Candidate | None, champion: Candidate | None
    ) -> Candidate | None:
        """Propose from corrected costs and race, again and again; returns the fastest found."""
        random = np.random.default_rng(self._options.seed)

        def more(tried: Sequence[Candidate]) -> list[Candidate]:
            observed = [Observation(c.assignment, c.seconds) for c in tried if len(c.samples)]
            corrected = self._problem.at(corrected_table(self._problem.table, observed))
            return self._fresh(corrected, tried, random)

        standing = [c for c in (reference, champion) if c is not None]
        return self._race_on(field, standing, more, self._seconds, _CONFIRMATION)

    def _race_on(
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
        reference, champion = standing[:-1], standing[-1] if standing else None
        while self._budget.free > kept * seconds:
            fresh = more(field)
            if not fresh:
                break
            field += fresh
            others = list(dict.fromkeys(c for c in (*reference, champion) if c is not None))
            self._bench.keep_only(others)
            share = min(1.0, _TUNING_RACE * seconds / max(self._budget.free, 1e-9))
            champion = self._race([*others, *fresh], share) or champion
        return champion

    def _fresh(
        self, problem: Problem, field: Sequence[Candidate], random: np.random.Generator
    ) -> list[Candidate]:
        """The most promising placements that were not run yet.

        Solved for the corrected costs, and for costs that are wrong by as much as profiles usually are:
        each such table has its own exact optimum, and the true one is likely to be among them.
        """
        known = {c.plan.key for c in field if len(c.samples) or c.dropped}
        found: dict[Hashable, Candidate] = {}
        first = [name for name in self._source.solvers if name != POLICY_NAME][:1]
        source = replace(self._source, solvers=first, policy=None)
        for trial in range(_TRIALS):
            wrong = problem if trial == 0 else problem.at(perturbed_table(problem.table, random))
            for candidate in propose(wrong, source):
                if not candidate.is_single and candidate.plan.key not in {*known, *found}:
                    candidate.name = f"tuned {len(field) + len(found)}"
                    candidate.predicted_seconds = simulate(
                        problem.table, candidate.assignment
                    ).latency_seconds
                    found[candidate.plan.key] = candidate
        return sorted(found.values(), key=lambda c: c.promised_seconds)[:_FINALISTS]

    def _race(self, candidates: list[Candidate], share: float) -> Candidate | None:
        """Run ``candidates`` in turns, keep their samples, and return the fastest that stayed.

        Those that fail are marked and left out; with one left there is nothing to run.

        Args:
            candidates: Whom to run; the first ones matter most, and those that the budget has no time for are
                left out, beginning with the last.
            share: Of the budget that is left, compilations included.
        """
        end = self._budget.free * (1 - share)
        if np.isfinite(self._problem.table.memory_capacity).any():
            self._bench.keep_only(candidates)  # devices cannot hold everything at once

        def is_affordable(candidate: Candidate, entered: list[Candidate]) -> bool:
            if self._bench.is_compiled(candidate):
                return True
            left = self._budget.free - end
            if len(entered) < 2:
                return left > 0
            # What must be run to prove something comes after the compilations.
            rounds = CONVINCING_ROUNDS * sum(c.promised_seconds for c in [candidate, *entered])
            return left > self._bench.compile_seconds(candidate) + rounds

        entered = self._bench.enter(candidates, is_affordable)
        if not entered:
            return None
        if len(entered) == 1 and len(entered[0].samples):
            return entered[0]
        try:
            result = self._bench.race(
                entered,
                max(0.0, self._budget.free - end),
                min_rounds=CONVINCING_ROUNDS,  # also of those that are dropped as hopeless
                **sampling(divided=any(c.plan.is_divided for c in entered)),
            )
        except ProfilingError as cause:
            for candidate in entered:
                if not len(candidate.samples):  # what was measured before is as true as it was
                    candidate.dropped = str(cause)
            return None
        for candidate, entry in zip(entered, result.entries, strict=True):
            candidate.samples, candidate.dropped = entry.samples, entry.dropped
        return entered[result.best]


def sampling(*, divided: bool, quota: Quota | None = None) -> dict[str, Any]:
    """How candidates are timed wherever they are compared: to choose one, to confirm it, and in tables.

    Args:
        divided: Whether one of them runs on a part of a CPU's threads or on lanes. Threads that others'
            samples let fall asleep wake up within the first of several inferences, so samples are longer.
        quota: Of processor time, for tables; whole periods of it were what chose such a one.

    Returns:
        Arguments of :meth:`ProfilingSession.race`.
    """
    seconds = _STEADY_SECONDS if quota is None else turn_seconds(quota)
    return {"min_sample_seconds": seconds} if divided else {}


def must_win_after_pauses(options: PlacerOptions, *, has_lanes: bool) -> bool:
    """Whether a candidate has to be faster after idle gaps too, to be the answer.

    Args:
        options: Say when requests arrive.
        has_lanes: Waking a lane takes longer than many an op.
    """
    return has_lanes and options.arrivals != "STEADY"


def _right(candidate: Candidate) -> tuple[Finding, ...]:
    return (Finding.of(Kind.RIGHT_OUTPUTS, candidate.name),)


def _back_to_back_only(
    verdict: Verdict, field: Sequence[Candidate], champion: Candidate, after_pauses: Sequence[Finding]
) -> Verdict:
    """The verdict that stands when a challenger was better, but not after pauses."""
    found = verdict.noting(Finding.of(Kind.STEADY_ONLY, champion.name), *after_pauses)
    disturbed = verdict.disturbed or were_disturbed(c.paused_samples for c in (champion, verdict.winner))
    return replace(found, candidates=field, disturbed=disturbed)


def _proven_anew(
    field: Sequence[Candidate], reference: Candidate, champion: Candidate, ran: Sequence[Candidate]
) -> Verdict:
    """What a race of two that were compiled anew says; those that did not run in it prove nothing."""
    failed = [c for c in (champion, reference) if c not in ran]
    if not failed:
        return measured(field, reference, champion)
    because = next((f"{c.name} {c.dropped}" for c in failed if c.dropped), "")
    return unconfirmed(field, reference, champion, because=because)


def _has_failed(candidate: Candidate) -> bool:
    """Whether a candidate left its latest race for another reason than being slower."""
    return bool(candidate.dropped) and (not len(candidate.samples) or candidate.dropped.startswith("failed"))


def _may_be_as_fast(candidate: Candidate, best: Candidate) -> bool:
    """Whether an inference came close to the best one's median: a disturbance makes many long, none short."""
    return bool(len(candidate.samples)) and float(candidate.samples.min()) <= _CLOSE * best.seconds
