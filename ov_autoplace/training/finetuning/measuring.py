"""Measuring placements of one model: always in a race against the fastest single device, within a budget."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import Interval, paired_ratio
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.proposals import Proposal
from ov_autoplace.decide.verdict import Contest, Entrant, verdict
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.session import ProfilingSession, reported_failure
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.training.finetuning.budget import Interruption

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["Record", "Workbench"]

_FIRST_ROUND = 6  # inferences of each placement before a race looks at its clock
_FEWEST_ROUNDS = 6  # as many as a proof needs
_SHORTEST_RACE = 0.1
_LARGEST_SHARE = 0.08  # of the whole budget, for one race
_LONG = 0.05  # an inference so long that one of them tells a hopeless placement
_HOPELESS = 3.0


@dataclass(eq=False)
class Record:
    """A placement with all that was measured of it, in races against the reference.

    Attributes:
        assignment: Device of each group, ``int32[G]``.
        source: Who proposed it.
        predicted_seconds: Simulated latency when it was proposed.
        number: Which placement of its model was measured as the how manieth; 0 = not measured.
        samples: Seconds per inference, ``float64[n]``.
        reference: Seconds of the reference in the same rounds, ``float64[n]``.
        subgraphs: HETERO's subgraphs, 0 = not known.
        failure: Why it cannot be run, or an empty text.
        refuted: Whether it looked faster than every device, but was not when it was compiled again.
        proposed: Whether the log says that the policy proposed it too, after it had been measured.
    """

    assignment: IntArray
    source: str
    predicted_seconds: float
    number: int = 0
    samples: FloatArray = field(default_factory=lambda: np.empty(0))
    reference: FloatArray = field(default_factory=lambda: np.empty(0))
    subgraphs: int = 0
    failure: str = ""
    refuted: bool = False
    proposed: bool = False

    @property
    def key(self) -> bytes:
        """Equal for equal placements."""
        return self.assignment.tobytes()

    @property
    def is_single(self) -> bool:
        """Whether all groups stand on one device."""
        return bool((self.assignment == self.assignment[0]).all()) if len(self.assignment) else True

    @property
    def ratio(self) -> Interval:
        """Latency over the reference's in the same rounds; infinite when it was never run."""
        if not len(self.samples):
            return Interval(np.inf, np.inf, np.inf)
        return paired_ratio(self.samples, self.reference)

    def add(self, samples: FloatArray, reference: FloatArray) -> None:
        """Take the rounds of a race in which both ran."""
        rounds = min(len(samples), len(reference))
        self.samples = np.concatenate([self.samples, samples[:rounds]])
        self.reference = np.concatenate([self.reference, reference[:rounds]])


class Workbench:
    """Compiles and races placements of one model, and starts nothing that would not end in time.

    Args:
        session: The model on its devices.
        table: Names the groups and the devices.
        budget: The time that all may take.
        interruption: Aborts a race.
        inferences: Rounds of a race, at most.
        seed: Of the order in each round.
    """

    def __init__(
        self,
        session: ProfilingSession,
        table: CostTable,
        budget: Budget,
        interruption: Interruption,
        inferences: int,
        seed: int,
    ) -> None:
        self.session = session
        self.table = table
        self.races = 0
        self._budget = budget
        self._interruption = interruption
        self._inferences = inferences
        self._seed = seed
        self._executables: dict[bytes, Executable] = {}
        self._compile_seconds: list[float] = []
        self._forgot = False  # until then the session holds the model on each device

    def seconds_to_run(self, record: Record, again: bool = False) -> float:
        """Estimate of compiling a placement, unless that is done, and of the first round of its race."""
        compiled = record.key in self._executables or (record.is_single and not self._forgot)
        compiling = 0.0 if compiled and not again else self.compile_seconds
        return compiling + _FIRST_ROUND * self.seconds_of(record)

    @property
    def compile_seconds(self) -> float:
        """Estimate of one compilation: the longest of the last ones."""
        return max(self._compile_seconds[-5:], default=0.0)

    def note_compilation(self, seconds: float) -> None:
        """A compilation of the model took so long."""
        self._compile_seconds.append(seconds)

    def seconds_of(self, record: Record) -> float:
        """Latency of a placement as far as it is known."""
        return float(np.median(record.samples)) if len(record.samples) else record.predicted_seconds

    def race_singles(self, singles: Sequence[Record]) -> list[Record]:
        """Run all single devices, in turns.

        Returns:
            Those that were run or that failed; the first one is the fastest, to which the ratios of all of
            them refer. Nothing where the budget does not suffice, or no device runs.
        """
        entered, failed = self._enter(singles, None)
        if not entered:
            return []
        samples = dict(zip([record for record, _ in entered], self._run(entered), strict=True))
        medians = {record: float(np.median(own)) for record, own in samples.items() if len(own)}
        if not medians:
            return []
        fastest = min(medians, key=medians.__getitem__)
        for record, executable in entered:
            record.subgraphs = executable.subgraphs
            record.add(samples[record], samples[fastest])
        self.races += 1
        return [fastest, *(record for record in samples if record is not fastest), *failed]

    def race(self, reference: Record, others: Sequence[Record]) -> list[Record]:
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
        entered, done = self._enter([reference, *others], reference)
        if len(entered) < 2:
            return done
        first, *samples = self._run(entered)
        self.races += 1
        reference.add(first, first)
        for (record, executable), own in zip(entered[1:], samples, strict=True):
            record.subgraphs = executable.subgraphs
            record.add(own, first)
            done.append(record)
        return done

    def confirm(self, record: Record, single: Record, champion: Record) -> Contest | None:
        """Compile a placement that looks fastest again, and race it against those it has to beat.

        Where a compiled model happens to lie in memory can make it faster or slower by several percent for as
        long as it lives, which no number of runs shows.

        Args:
            record: The placement.
            single: The fastest single device.
            champion: The best placement so far; may be ``single``.

        Returns:
            The verdict against the single device, in which the placement lost also when it is not faster than
            the champion; ``None`` when the budget does not allow to ask.
        """
        field = list(dict.fromkeys([record, single, champion]))
        if not self._budget.allows(sum(self.seconds_to_run(r, again=True) for r in field)):
            return None
        self.forget()
        try:
            self._executable(record)
        except ProfilingError as cause:
            record.failure = str(cause)
            return Contest(self._entrant(single, single.samples), f"{record.source} failed: {cause}", ())
        samples = dict(zip(field, self._run([(r, self._executable(r)) for r in field]), strict=True))
        entrants = {r: self._entrant(r, samples[r]) for r in field}
        contest = verdict(list(entrants.values()), entrants[single], entrants[record])
        beaten = contest.winner is entrants[record]
        if beaten and champion is not single:
            ratio = paired_ratio(samples[record], samples[champion])
            if ratio.high >= 1:
                reason = f"{record.source} is not faster than the best mix so far ({ratio.median:.3f})"
                return Contest(entrants[champion], reason, contest.entrants)
        return contest

    def is_convincing(self, record: Record, single: Record) -> bool:
        """Whether a placement looks faster than the best single device by more than the noise."""
        limit = (1 - MINIMAL_GAIN) * single.ratio.median
        return record.ratio.high < single.ratio.median and record.ratio.median <= limit

    def forget(self) -> None:
        """Drop what was compiled."""
        self._executables.clear()
        self._forgot = True
        self.session.forget()

    def keep_only(self, records: Sequence[Record]) -> None:
        """Drop what was compiled for other placements than these."""
        kept = {record.key for record in records}
        self._executables = {key: value for key, value in self._executables.items() if key in kept}

    def _enter(
        self, records: Sequence[Record], reference: Record | None
    ) -> tuple[list[tuple[Record, Executable]], list[Record]]:
        """Compile placements as far as the budget allows.

        Returns:
            Those that can be raced, and those that are done with: they fail or are hopeless.
        """
        entered: list[tuple[Record, Executable]] = []
        done: list[Record] = []
        for record in records:
            self._interruption.check()
            first_round = _FIRST_ROUND * sum(self.seconds_of(r) for r, _ in entered)
            if not self._budget.allows(self.seconds_to_run(record) + first_round):
                if record is reference:
                    return [], []
                continue
            try:
                executable = self._executable(record)
                new = record is not reference and not len(record.samples)
                if reference is not None and new and self._is_hopeless(record, executable, entered[0]):
                    done.append(record)
                else:
                    entered.append((record, executable))
            except ProfilingError as cause:
                if record is reference:
                    raise
                record.failure = str(cause)
                done.append(record)
        return entered, done

    def _run(self, entered: Sequence[tuple[Record, Executable]]) -> list[FloatArray]:
        """Samples of each, one per round."""
        once = sum(self.seconds_of(record) for record, _ in entered)
        budget = max(_SHORTEST_RACE, self._inferences * once)
        budget = min(budget, _LARGEST_SHARE * self._budget.seconds, self._budget.free)
        result = self.session.race(
            [executable for _, executable in entered],
            budget,
            seed=self._seed + self.races,
            min_rounds=_FEWEST_ROUNDS,
            max_rounds=self._inferences,
            names=[record.source for record, _ in entered],
            progress=lambda *_: self._interruption.check(),
        )
        for (record, _), entry in zip(entered, result.entries, strict=True):
            if entry.dropped.startswith("failed"):
                record.failure = entry.dropped
        return [np.array(entry.samples) for entry in result.entries]

    def _executable(self, record: Record) -> Executable:
        if record.key not in self._executables:
            placement = Placement.of_groups(self.table, record.assignment)
            before = self._budget.spent
            self._executables[record.key] = self.session.compile_placement(placement.to_dict())
            self.note_compilation(self._budget.spent - before)
        return self._executables[record.key]

    def _is_hopeless(
        self, record: Record, executable: Executable, reference: tuple[Record, Executable]
    ) -> bool:
        """Run a placement once or twice, when that takes long, and tell whether to leave it at that."""
        usual = self.seconds_of(reference[0])
        if usual < _LONG:
            return False
        first = _run_once(executable)
        if first < _HOPELESS * usual or not self._budget.allows(first + usual):
            return False
        beside, again = _run_once(reference[1]), _run_once(executable)
        if again < _HOPELESS * beside:
            return False
        record.subgraphs = executable.subgraphs
        record.add(np.array([again]), np.array([beside]))
        return True

    def _entrant(self, record: Record, samples: FloatArray) -> Entrant:
        predicted = simulate(self.table, record.assignment).latency_seconds
        return Entrant(Proposal(record.source, record.assignment, predicted), samples)


def _run_once(executable: Executable) -> float:
    with reported_failure("the placement cannot be run"):
        return float(executable.run(1, warmup=0)[0])
