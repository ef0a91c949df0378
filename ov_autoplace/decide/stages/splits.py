"""Mixes of devices: proposed by the costs of the model, and raced with the best device alone."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.bounds import cheap_transfers, unbeatable_device
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.race import CONFIRMATION, FIRST_RACE
from ov_autoplace.decide.verdict import (
    Verdict,
    measured,
    predicted,
    proven,
    proven_anew,
    unconfirmed,
    were_disturbed,
)
from ov_autoplace.measure.corrections import Observation, corrected_table, perturbed_table
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem

__all__ = ["Splits"]

_FINALISTS = 3
# A prediction this much above the best single device's is not worth compiling.
_TOO_SLOW = 1.15
_FIRST_TUNING_RACE = 0.3  # share of the time that is left, of the first race of TUNE
# How many perturbed cost tables TUNE solves for one round of proposals.
_TRIALS = 8
# Single devices of which an inference came this close to the best one's median are raced with it, instead of
# trusting the profile run, which other work may have disturbed.
_CLOSE = 1.25


class Splits(Stage):
    """Each op on one device, in turns."""

    def estimate(self, context: Context) -> Verdict:
        """What is predicted to be fastest."""
        return predicted(propose(context.problem, context.source))

    def propose(self, context: Context) -> list[Candidate]:
        """Everybody whom the costs propose; none where a bound proves that no mix can win."""
        with context.phase("solve"):
            proof = _proven(context, context.problem)  # in which crossings cost nothing
        if proof is None:
            with context.phase("transfers"):
                transfers, are_known = context.costs.transfers(context.session)
            # TUNE corrects what crossings cost, so that they prove nothing there.
            if are_known and context.options.mode == "PROFILE":
                with context.phase("solve"):
                    profile = context.costs.counted(context.known, cheap_transfers(transfers))
                    proof = _proven(context, context.machine.problem(profile.table), transfers)
        if proof is not None:
            context.verdict = proof
            return []
        with context.phase("profile"):
            profile = context.costs.profile(context.known, transfers)
        with context.phase("solve"):
            context.problem = context.machine.problem(profile.table)
            candidates = propose(context.problem, context.source)
        for candidate in candidates:
            if candidate.name in profile.samples:
                candidate.times[Load.STEADY] = profile.samples[candidate.name]
        return candidates

    def decide(self, context: Context, candidates: Sequence[Candidate]) -> Verdict:
        """Race the best of them; ``TUNE`` goes on with corrected costs until its budget ends."""
        if not candidates:
            return context.verdict
        with context.phase("measure"):
            return self._raced(context, list(candidates))

    @staticmethod
    def _raced(context: Context, field: list[Candidate]) -> Verdict:
        race, began = context.race, context.budget.free
        if context.session.outputs is not None:
            context.session.outputs.mark(field)
        singles = [c for c in field if c.is_single and len(c.samples)]
        is_tuned = context.options.mode == "TUNE"
        raced = race.once(
            _finalists(field, singles, _fastest(singles)), _FIRST_TUNING_RACE if is_tuned else FIRST_RACE
        )
        winner = _fastest(singles) if raced is None else raced.best
        if is_tuned:
            random = np.random.default_rng(context.options.seed)
            standing = [c for c in (_fastest(singles), winner) if c is not None]
            winner = race.tune(
                field, standing, lambda tried: _corrected(context, tried, random), began, CONFIRMATION
            )
        why = context.problem.why_no_single
        if singles and _fastest(singles) is None:
            why = "no device alone computes the right outputs"
            # There is still an answer where nobody is right, and the decision says so.
            winner = winner or min(singles, key=lambda c: c.seconds)
        found = _confirmed(context, measured(field, _fastest(singles), winner, why), singles, why)
        return replace(found, disturbed=found.disturbed or context.known.counted.was_disturbed)


def _confirmed(context: Context, verdict: Verdict, singles: Sequence[Candidate], why: str) -> Verdict:
    """The verdict after its winner, and devices that are as fast, were compiled anew and raced again.

    Args:
        context: The decision.
        verdict: By what chose the winner, which counts no more then.
        singles: Devices that ran the model.
        why: No device can be the answer, where none can.
    """
    race, field, winner = context.race, verdict.candidates, verdict.winner
    contenders = _contenders(winner, singles)
    compilations = race.compilations(contenders)
    if not winner.is_single and len(contenders) > 1 and not compilations:
        return unconfirmed(field, _fastest(singles), winner, why)
    if compilations:
        ran = race.anew(contenders, compilations)
        best = _fastest([c for c in singles if c in ran]) or _fastest(singles)
        if winner.is_single or best is None:
            verdict = measured(field, best, best or winner, why)
        else:
            verdict = proven_anew(field, best, winner, ran)
    return replace(verdict, disturbed=were_disturbed(c.samples for c in contenders))


def _proven(context: Context, favourable: Problem, shown: TransferFit | None = None) -> Verdict | None:
    """The best device, where no mix can be faster even if crossings cost very little; or the only one.

    Args:
        context: The decision; goes on with the costs of the answer.
        favourable: Costs in which crossings are as cheap as they can be.
        shown: What they cost, for the table of the answer; assumed by kind of device when ``None``.
    """
    known, machine, costs = context.known, context.machine, context.costs
    if known.counted.was_disturbed and len(machine.devices) > 1:
        return None
    samples, outputs = known.counted.samples, context.session.outputs
    best = unbeatable_device(favourable, samples, context.options.seed)
    if best is None or (outputs is not None and outputs.is_wrong(best.name)):
        return None
    context.problem = machine.problem(costs.counted(known, shown or costs.assumed_transfers()).table)
    verdict = proven(propose(context.problem, ProposalSource(solvers=())), samples, best.name)
    return replace(verdict, disturbed=known.counted.was_disturbed)


def _corrected(context: Context, tried: Sequence[Candidate], random: np.random.Generator) -> list[Candidate]:
    """The most promising placements that were not run yet, by costs that what was measured corrects.

    Solved for the corrected costs, and for costs that are wrong by as much as profiles usually are: each such
    table has its own exact optimum, and the true one is likely to be among them.
    """
    observed = [Observation(c.assignment, c.seconds) for c in tried if len(c.samples)]
    problem: Problem = context.problem.at(corrected_table(context.problem.table, observed))
    known = {c.plan.key for c in tried if len(c.samples) or c.dropped}
    found: dict[Hashable, Candidate] = {}
    source = replace(context.source, solvers=context.source.solvers[:1])
    for trial in range(_TRIALS):
        wrong = problem if trial == 0 else problem.at(perturbed_table(problem.table, random))
        for candidate in propose(wrong, source):
            if not candidate.is_single and candidate.plan.key not in {*known, *found}:
                candidate.name = f"tuned {len(tried) + len(found)}"
                candidate.predicted_seconds = simulate(problem.table, candidate.assignment).latency_seconds
                found[candidate.plan.key] = candidate
    return sorted(found.values(), key=lambda c: c.expected_seconds)[:_FINALISTS]


def _finalists(
    field: Sequence[Candidate], singles: Sequence[Candidate], reference: Candidate | None
) -> list[Candidate]:
    """The best single device, the mixes that are predicted fastest, and single devices close to the best."""
    alone = min((c.expected_seconds for c in singles if not c.is_wrong), default=np.inf)
    mixes = sorted((c for c in field if c not in singles), key=lambda c: c.expected_seconds)
    mixes = [c for c in mixes if c.expected_seconds <= _TOO_SLOW * alone][:_FINALISTS]
    if reference is None:
        return mixes
    close = [c for c in singles if c is not reference and _may_be_as_fast(c, reference)]
    return [reference, *mixes, *close]


def _contenders(winner: Candidate, singles: Sequence[Candidate]) -> list[Candidate]:
    """The winner, and the single devices that may be as fast; the best one always."""
    best = _fastest(singles)
    others = [c for c in singles if _may_be_as_fast(c, best)] if best is not None else []
    return list(dict.fromkeys([winner, *others]))


def _fastest(singles: Sequence[Candidate]) -> Candidate | None:
    """Of those whose outputs are not wrong."""
    return min((c for c in singles if not c.is_wrong), key=lambda c: c.seconds, default=None)


def _may_be_as_fast(candidate: Candidate, best: Candidate) -> bool:
    """Whether an inference came close to the best one's median: a disturbance makes many long, none short."""
    return bool(len(candidate.samples)) and float(candidate.samples.min()) <= _CLOSE * best.seconds
