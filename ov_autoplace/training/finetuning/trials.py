"""Measuring placements of one model: always in a race against the fastest single device, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.statistics import MINIMAL_GAIN, Interval, paired_ratio
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.verdict import Verdict, measured
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.training.finetuning.budget import TuningBudget

__all__ = ["ReferenceRaces", "Trial"]

_FIRST_ROUND = 6  # inferences of each placement before a race looks at its clock
_SHORTEST_RACE = 0.1
_LARGEST_SHARE = 0.08  # of the whole budget, for one race
_LONG = 0.05  # an inference so long that one of them tells a hopeless placement
_HOPELESS = 3.0


@dataclass(eq=False)
class Trial(Candidate):
    """A candidate with all that was measured of it, in races against the reference.

    ``samples`` and ``reference`` are pairs; ``dropped`` says why it cannot be run.

    Attributes:
        number: Position among the measured placements of its model, from 1; 0 = not measured.
        reference: Seconds of the reference in the same rounds, ``float64[n]``.
        refuted: Whether it looked faster than every device, but was not when it was compiled again.
        proposed: Whether the log says that the policy proposed it too, after it had been measured.
        choice: Column of each group in the table that is tuned, ``int32[G]``: lanes, where ``assignment`` has
            their device; empty where the two are the same.
        simulated_seconds: Latency of a schedule before any correction.
    """

    number: int = 0
    reference: FloatArray = field(default_factory=lambda: np.empty(0))
    refuted: bool = False
    proposed: bool = False
    choice: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32), repr=False)
    simulated_seconds: float = 0.0

    @property
    def chosen(self) -> IntArray:
        """What the policy decides, ``int32[G]``."""
        return self.choice if len(self.choice) else self.assignment

    @property
    def key(self) -> bytes:
        """Equal for equal decisions."""
        return self.chosen.tobytes()

    @property
    def ratio(self) -> Interval:
        """Latency over the reference's in the same rounds; infinite when it was never run."""
        if not len(self.samples):
            return Interval(np.inf, np.inf, np.inf)
        return paired_ratio(self.samples, self.reference)

    @property
    def known_seconds(self) -> float:
        """Latency as far as it is known: measured, else predicted."""
        return self.seconds if len(self.samples) else self.expected_seconds

    def add(self, samples: FloatArray, reference: FloatArray) -> None:
        """Take the rounds of a race in which both ran."""
        rounds = min(len(samples), len(reference))
        self.times[Load.STEADY] = np.concatenate([self.samples, samples[:rounds]])
        self.reference = np.concatenate([self.reference, reference[:rounds]])


class ReferenceRaces:
    """Races trials of one model against its fastest device, and starts nothing that would not end in time.

    Args:
        session: The model on its devices.
        table: Names the groups and the devices.
        budget: The time that all may take; aborts a race when it is asked to stop.
        inferences: Rounds of a race, at most.
        seed: Of the order in each round.
        compile_seconds: What compiling the model took, before anything is compiled here.
    """

    def __init__(
        self,
        session: ProfilingSession,
        table: CostTable,
        budget: TuningBudget,
        inferences: int,
        seed: int,
        compile_seconds: float = 0.0,
    ) -> None:
        self.bench = Workbench(session, table, budget, seed, compile_seconds)
        self._budget = budget
        self._inferences = inferences

    def seconds_to_run(self, trial: Trial, again: bool = False) -> float:
        """Estimate of compiling a placement, unless that is done, and of the first round of its race."""
        compiling = self.bench.longest_compilation if again or not self.bench.is_compiled(trial) else 0.0
        return compiling + _FIRST_ROUND * trial.known_seconds

    def race_singles(self, singles: Sequence[Trial]) -> list[Trial]:
        """Run all single devices, in turns.

        Returns:
            Those that were run or that failed; the first one is the fastest, to which the ratios of all of
            them refer. Nothing where the budget does not suffice, or no device runs.
        """
        entered = self._enter(singles, [])
        if not entered:
            return []
        samples = self._run(entered)
        medians = {trial: float(np.median(own)) for trial, own in samples.items() if len(own)}
        if not medians:
            return []
        fastest = min(medians, key=medians.__getitem__)
        for trial in entered:
            trial.add(samples[trial], samples[fastest])
        others = [trial for trial in entered if trial is not fastest]
        return [fastest, *others, *(trial for trial in singles if trial.dropped and trial not in entered)]

    def race(self, reference: Trial, others: Sequence[Trial]) -> list[Trial]:
        """Run placements against the reference, in turns.

        What would not end within the budget is left out. Those that fail are marked.

        Args:
            reference: A placement that runs.
            others: Placements; those that were measured before get more samples.

        Returns:
            Those of ``others`` that were run, or that failed.

        Raises:
            ProfilingError: The reference fails.
        """
        self._budget.check()
        if not self._budget.allows(self.seconds_to_run(reference)):
            return []
        self.bench.executable(reference)
        entered = self._enter(others, [reference])
        hopeless = [
            trial for trial in entered if not len(trial.samples) and self._is_hopeless(trial, reference)
        ]
        racing = [trial for trial in entered if trial not in hopeless]
        done = [*(trial for trial in others if trial not in entered and trial.dropped), *hopeless]
        if not racing:
            return done
        samples = self._run([reference, *racing])
        for trial in (reference, *racing):
            trial.add(samples[trial], samples[reference])
        return [*done, *racing]

    def confirm(self, trial: Trial, single: Trial, champion: Trial) -> Verdict | None:
        """Compile a placement that looks fastest again, and race it against those it has to beat.

        Args:
            trial: The placement.
            single: The fastest single device.
            champion: The best placement so far; may be ``single``.

        Returns:
            The verdict against the single device, in which the placement lost also when it is not faster than
            the champion; ``None`` when the budget does not allow to ask.
        """
        contenders = list(dict.fromkeys([trial, single, champion]))
        if not self._budget.allows(sum(self.seconds_to_run(c, again=True) for c in contenders)):
            return None
        self.bench.forget()
        try:
            self.bench.executable(trial)
        except ProfilingError as cause:
            trial.dropped = str(cause)
            return Verdict(single, (Finding.of(Kind.UNCONFIRMED, single.name, trial.name, detail=cause),), ())
        samples = self._run(contenders)
        # Of this race alone.
        fresh = {c: replace(c, times={Load.STEADY: samples[c]}) for c in contenders}
        verdict = measured(list(fresh.values()), fresh[single], fresh[trial])
        if verdict.winner is fresh[trial] and champion is not single:
            ratio = paired_ratio(fresh[trial].samples, fresh[champion].samples)
            if ratio.high >= 1:
                finding = Finding.of(
                    Kind.NOT_FASTER,
                    champion.name,
                    trial.name,
                    ratio=ratio.median,
                    low=ratio.low,
                    high=ratio.high,
                    least=0.0,
                )
                return replace(verdict, winner=fresh[champion], findings=(finding,))
        return verdict

    def is_convincing(self, trial: Trial, single: Trial) -> bool:
        """Whether a placement looks faster than the best single device by more than the noise."""
        limit = (1 - MINIMAL_GAIN) * single.ratio.median
        return trial.ratio.high < single.ratio.median and trial.ratio.median <= limit

    def _enter(self, trials: Sequence[Trial], beside: list[Trial]) -> list[Trial]:
        """Compile trials as far as the budget allows a race of them with those beside them."""

        def is_affordable(trial: Trial, entered: list[Trial]) -> bool:
            self._budget.check()
            first_round = _FIRST_ROUND * sum(rival.known_seconds for rival in entered)
            return self._budget.allows(self.seconds_to_run(trial) + first_round)

        return self.bench.enter(trials, is_affordable, beside)

    def _run(self, trials: Sequence[Trial]) -> dict[Trial, FloatArray]:
        """Samples of each, one per round."""
        raced = self.bench.race(
            trials,
            Load.STEADY,
            self._race_seconds(trials),
            max_rounds=self._inferences,
            progress=lambda *_: self._budget.check(),
        )
        for trial in trials:
            if raced.timings[trial].has_failed:
                trial.dropped = raced.timings[trial].dropped
        return {trial: raced.samples(trial) for trial in trials}

    def _race_seconds(self, trials: Sequence[Trial]) -> float:
        """How long placements may race each other."""
        once = sum(trial.known_seconds for trial in trials)
        seconds = max(_SHORTEST_RACE, self._inferences * once)
        return min(seconds, _LARGEST_SHARE * self._budget.seconds, self._budget.free)

    def _is_hopeless(self, trial: Trial, reference: Trial) -> bool:
        """Run a placement once or twice, when that takes long, and tell whether to leave it at that."""
        usual = reference.known_seconds
        if usual < _LONG:
            return False
        try:
            first = self.bench.shortest_seconds(trial, 1)
            if first < _HOPELESS * usual or not self._budget.allows(first + usual):
                return False
            beside, again = self.bench.shortest_seconds(reference, 1), self.bench.shortest_seconds(trial, 1)
        except ProfilingError as cause:
            trial.dropped = str(cause)
            return True
        if again < _HOPELESS * beside:
            return False
        trial.add(np.array([again]), np.array([beside]))
        return True
