"""Running candidates against each other on the devices, again and again while the budget lasts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import was_disturbed
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import POLICY_NAME, Proposal, ProposalSource, propose
from ov_autoplace.decide.verdict import CONVINCING_ROUNDS, Contest, Entrant, unconfirmed, verdict
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.corrections import Observation, corrected_table
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.problem.problem import Problem

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["Race"]


_FINALISTS = 3
# A prediction this much above the best single device's is not worth compiling.
_HOPELESS = 1.15
# Shares of the time that is left: of the first race of PROFILE and of TUNE, and of each race of TUNE's
# rounds; TUNE ends when less than the last of them is left of all, which is for the race that confirms.
_FIRST_RACE, _FIRST_TUNING_RACE, _TUNING_RACE, _CONFIRMATION = 0.5, 0.3, 0.15, 0.2
# How many perturbed cost tables TUNE solves for one round of proposals.
_TRIALS = 8
# Single devices of which an inference came this close to the best one's median are raced with it, instead of
# trusting the profile run, which other work may have disturbed.
_CLOSE = 1.25
# Where a compiled model happens to lie in memory makes it faster or slower by some percent for as long as it
# lives, which no number of runs shows. Short models compile quickly, so their last contenders do it again
# several times.
_SHORT, _COMPILATIONS = 5e-3, 3


class Race:
    """Races proposals for one profiled model in what is left of a budget of wall-clock time."""

    def __init__(
        self,
        session: ProfilingSession,
        problem: Problem,
        samples: Mapping[str, FloatArray],
        source: ProposalSource,
        options: PlacerOptions,
        budget: Budget,
    ) -> None:
        self._session = session
        self._problem = problem
        self._samples = samples
        self._source = source
        self._options = options
        self._budget = budget
        self._seconds = budget.left  # when the races began
        self._executables: dict[bytes, Executable] = {}
        self._compile_seconds: dict[bytes, float] = {}

    def run(self, proposals: Sequence[Proposal]) -> Contest:
        """Race the best of ``proposals``; ``TUNE`` goes on with corrected costs until its budget ends."""
        entrants = [Entrant(p, self._samples.get(p.name, np.empty(0))) for p in proposals]
        singles = [e for e in entrants if e.proposal.is_single and len(e.samples)]
        reference = self._fastest(singles)
        tuning = self._options.mode == "TUNE"
        finalists = self._finalists(entrants, singles, reference)
        share = _FIRST_TUNING_RACE if tuning else _FIRST_RACE
        champion = self._race(finalists, share) or reference
        if tuning:
            champion = self._tune(entrants, reference, champion)
        contest = verdict(entrants, self._fastest(singles), champion)
        contenders = self._contenders(contest.winner, singles)
        compilations = self._compilations(contenders)
        is_mix = not contest.winner.proposal.is_single
        if is_mix and len(contenders) > 1 and not compilations:
            return unconfirmed(entrants, self._fastest(singles), contest.winner)
        if compilations:
            self._race_anew(contenders, compilations)
            still = is_mix and len(contest.winner.samples)
            contest = verdict(
                entrants, self._fastest(singles), contest.winner if still else self._fastest(singles)
            )
        disturbed = any(was_disturbed(e.samples) for e in contenders)
        return replace(contest, disturbed=disturbed)

    def _contenders(self, winner: Entrant, singles: list[Entrant]) -> list[Entrant]:
        """The winner, and the single devices that may be as fast; the best one always."""
        best = self._fastest(singles)
        others = [e for e in singles if _may_be_as_fast(e, best)] if best is not None else []
        return list(dict.fromkeys([winner, *others]))

    def _compilations(self, contenders: list[Entrant]) -> int:
        """How often the contenders are compiled anew; a mix always has to win twice.

        Short models are compiled several times. All as far as the budget goes.
        """
        if len(contenders) < 2:
            return 0
        # A single device that was close may not have been compiled yet; it takes no longer than the longest.
        longest = max(self._compile_seconds.values(), default=0.0)
        keys = [e.proposal.assignment.tobytes() for e in contenders]
        once = sum(self._compile_seconds.get(key, longest) for key in keys)
        # Each compilation is followed by a race that is as long as it must be to prove something.
        once += CONVINCING_ROUNDS * sum(e.seconds for e in contenders)
        affordable = int(self._budget.left / max(once, 1e-9))
        if min(e.seconds for e in contenders) >= _SHORT:
            affordable = min(affordable, 0 if contenders[0].proposal.is_single else 1)
        return min(affordable, _COMPILATIONS)

    def _race_anew(self, contenders: list[Entrant], compilations: int) -> None:
        """Compile and race several times; what was measured before counts no more, because it chose them."""
        parts: dict[Entrant, list[FloatArray]] = {e: [] for e in contenders}
        for compilation in range(compilations):
            self._executables.clear()
            self._session.forget()
            for entrant in contenders:
                entrant.samples = np.empty(0)
            # Who is compiled first tends to be slower, so they take turns.
            share = 1 / (compilations - compilation)
            self._race(contenders if compilation % 2 == 0 else contenders[::-1], share)
            # Whoever was dropped as slower has fewer samples. Pairs stay pairs, and no compilation outweighs
            # the others by much, when all end where the first one did.
            rounds = min((len(e.samples) for e in contenders if len(e.samples)), default=0)
            for entrant in contenders:
                parts[entrant].append(entrant.samples[:rounds])
        for entrant, found in parts.items():
            entrant.samples = frozen_array(np.concatenate(found), np.float64)

    @staticmethod
    def _fastest(singles: list[Entrant]) -> Entrant | None:
        return min(singles, key=lambda e: e.seconds, default=None)

    def _finalists(
        self, entrants: list[Entrant], singles: list[Entrant], reference: Entrant | None
    ) -> list[Entrant]:
        """The best single device, the mixes that promise most, and single devices close to the best."""
        promised = min((e.proposal.predicted_seconds for e in singles), default=np.inf)
        mixes = sorted((e for e in entrants if e not in singles), key=lambda e: e.proposal.predicted_seconds)
        mixes = [e for e in mixes if e.proposal.predicted_seconds <= _HOPELESS * promised][:_FINALISTS]
        if reference is None:
            return mixes
        close = [e for e in singles if e is not reference and _may_be_as_fast(e, reference)]
        return [reference, *mixes, *close]

    def _tune(
        self, entrants: list[Entrant], reference: Entrant | None, champion: Entrant | None
    ) -> Entrant | None:
        """Propose from corrected costs and race, again and again; returns the fastest found."""
        random = np.random.default_rng(self._options.seed)
        while self._budget.left > _CONFIRMATION * self._seconds:
            observed = [Observation(e.proposal.assignment, e.seconds) for e in entrants if len(e.samples)]
            corrected = self._problem.at(corrected_table(self._problem.table, observed))
            fresh = self._fresh(corrected, entrants, random)
            if not fresh:
                break  # the neighbourhood of the optimum is exhausted
            entrants += fresh
            others = [e for e in (reference, champion) if e is not None]
            contestants = list(dict.fromkeys([*others, *fresh]))
            share = min(1.0, _TUNING_RACE * self._seconds / max(self._budget.left, 1e-9))
            champion = self._race(contestants, share) or champion
        return champion

    def _fresh(self, problem: Problem, entrants: list[Entrant], random: np.random.Generator) -> list[Entrant]:
        """The most promising placements that were not run yet.

        Solved for the corrected costs, and for costs that are wrong by as much as profiles usually are:
        each such table has its own exact optimum, and the true one is likely to be among them.
        """
        known = {e.proposal.assignment.tobytes() for e in entrants if len(e.samples) or e.dropped}
        found: dict[bytes, Entrant] = {}
        first = [name for name in self._source.solvers if name != POLICY_NAME][:1]
        source = replace(self._source, solvers=first, policy=None)
        for trial in range(_TRIALS):
            wrong = problem if trial == 0 else problem.at(_perturbed(problem.table, random))
            for proposal in propose(wrong, source):
                key = proposal.assignment.tobytes()
                if not proposal.is_single and key not in known:
                    seconds = simulate(problem.table, proposal.assignment).latency_seconds
                    name = f"tuned {len(entrants) + len(found)}"
                    found.setdefault(key, Entrant(replace(proposal, name=name, predicted_seconds=seconds)))
        ranked = sorted(found.values(), key=lambda e: e.proposal.predicted_seconds)
        return ranked[:_FINALISTS]

    def _race(self, entrants: list[Entrant], share: float) -> Entrant | None:
        """Run ``entrants`` in turns, keep their samples, and return the fastest that stayed.

        Those that fail are marked and left out; with one left there is nothing to run.

        Args:
            entrants: Whom to run; the first ones matter most, and those that the budget has no time for are
                left out, beginning with the last.
            share: Of the budget that is left, compilations included.
        """
        end = self._budget.left * (1 - share)
        self._make_room(entrants)
        runnable: list[tuple[Entrant, Executable]] = []
        longest = 0.0
        for entrant in entrants:
            is_known = entrant.proposal.assignment.tobytes() in self._executables
            # What must be run to prove something comes after the compilations.
            rivals = [entrant, *(e for e, _ in runnable)]
            needed = longest + CONVINCING_ROUNDS * sum(e.proposal.predicted_seconds for e in rivals)
            if not is_known and self._budget.left - end <= (needed if len(runnable) > 1 else 0.0):
                continue
            if not self._fit_together(rivals):
                continue
            before = self._budget.left
            try:
                runnable.append((entrant, self._executable(entrant.proposal)))
            except ProfilingError as cause:
                entrant.dropped = f"cannot be run: {cause}"
            longest = max(longest, before - self._budget.left)
        if not runnable:
            return None
        if len(runnable) == 1 and len(runnable[0][0].samples):
            return runnable[0][0]
        try:
            result = self._session.race(
                [executable for _, executable in runnable],
                max(0.0, self._budget.left - end),
                seed=self._options.seed,
                min_rounds=CONVINCING_ROUNDS,  # also of those that are dropped as hopeless
                names=[entrant.name for entrant, _ in runnable],
            )
        except ProfilingError as cause:
            for entrant, _ in runnable:
                entrant.samples, entrant.dropped = np.empty(0), str(cause)
            return None
        for (entrant, _), entry in zip(runnable, result.entries, strict=True):
            entrant.samples, entrant.dropped = entry.samples, entry.dropped
        return runnable[result.best][0]

    def _make_room(self, entrants: list[Entrant]) -> None:
        """Drop what was compiled for others where devices cannot hold everything at once."""
        if np.isfinite(self._problem.table.memory_capacity).any():
            keys = {entrant.proposal.assignment.tobytes() for entrant in entrants}
            self._executables = {key: e for key, e in self._executables.items() if key in keys}

    def _fit_together(self, entrants: list[Entrant]) -> bool:
        """Whether devices can hold all of these at the same time, as a race needs it."""
        table = self._problem.table
        if len(entrants) < 2 or np.isinf(table.memory_capacity).all():
            return True
        held = sum(held_bytes(table, entrant.proposal.assignment) for entrant in entrants)
        return bool((held <= table.memory_capacity).all())

    def _executable(self, proposal: Proposal) -> Executable:
        key = proposal.assignment.tobytes()
        if key not in self._executables:
            placement = Placement.of_groups(self._problem.table, proposal.assignment)
            before = self._budget.left
            executable = self._session.compile_placement(placement.to_dict())
            self._compile_seconds[key] = max(executable.compile_seconds, before - self._budget.left)
            self._executables[key] = executable
        return self._executables[key]


def _may_be_as_fast(entrant: Entrant, best: Entrant) -> bool:
    """Whether an inference came close to the best one's median: a disturbance makes many long, none short."""
    return bool(len(entrant.samples)) and float(entrant.samples.min()) <= _CLOSE * best.seconds


def _perturbed(table: CostTable, random: np.random.Generator) -> CostTable:
    """The table with every op time off by about 20 %, and crossing devices by up to a factor of two."""
    noise = random.lognormal(sigma=0.2, size=table.op_seconds.shape)
    crossing = 2.0 ** random.uniform(-1, 1)
    return replace(
        table,
        op_seconds=frozen_array(table.op_seconds * noise, np.float64),
        launch_seconds=frozen_array(table.launch_seconds * crossing, np.float64),
        mix_seconds=table.mix_seconds * crossing,
        transfer_latency=frozen_array(table.transfer_latency * crossing, np.float64),
        transfer_seconds_per_byte=frozen_array(table.transfer_seconds_per_byte * crossing, np.float64),
    )
