"""One model of a fine-tuning run: what was measured of it, and what is believed of it because of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.errors import TrainingError
from ov_autoplace.measure.corrections import Observation, corrected_table
from ov_autoplace.plan.fitting import fit_prepared
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import ModelPlan, plan_of_groups
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve_problem
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.finetuning.exploration import Exploration
from ov_autoplace.training.finetuning.preparing import ProfiledModel
from ov_autoplace.training.finetuning.trials import ReferenceRaces, Trial

__all__ = ["AFTER", "ZERO_SHOT", "Event", "TuningTask", "placement_text"]

ZERO_SHOT = "policy before tuning"
"""Source, or note, of the placement that the policy proposed before it was tuned."""

AFTER = "policy after tuning"
"""The same for the tuned policy."""


@dataclass(frozen=True)
class Event:
    """One line of the measurement log, beside the trial that it is about.

    Attributes:
        kind: ``measured`` (a placement for the first time), ``again`` (more runs of a known one),
            ``proposed`` (the policy proposed a known one, and nothing was run), ``confirmed`` or ``refuted``
            (compiled again and raced again).
        trial: The placement.
        samples, reference: Seconds of this race alone.
        note: Why.
    """

    kind: str
    trial: Trial
    samples: tuple[float, ...] = ()
    reference: tuple[float, ...] = ()
    note: str = ""


class TuningTask:
    """A model, its table, and the state of its tuning.

    Attributes:
        name: Unique among the models of the run.
        table: Costs as they were profiled.
        corrected: The same, corrected by what was measured.
        environment: The simulator of ``corrected``, with ``graph`` as its only graph.
        trials: All placements that were measured or tried, by key.
        reference: The placement in every race: the fastest single device of the first race.
        before: The greedy answer of the policy as it was at the start.
        after: That of the tuned policy.
        rounds: Rounds made.
        seconds: Time spent on this model.
        exploration: How far the proposals stray from the policy.
        temperature: That of the last round's proposals.
    """

    def __init__(
        self,
        name: str,
        profiled: ProfiledModel,
        races: ReferenceRaces,
        problem: Problem | None = None,
    ) -> None:
        self.name = name
        self.profiled = profiled
        self.races = races
        self.table = profiled.table
        self.problem = profiled.machine.problem(profiled.table) if problem is None else problem
        self.trials: dict[bytes, Trial] = {}
        self.before: Trial | None = None
        self.after: Trial | None = None
        self.rounds = 0
        self.seconds = 0.0
        self.exploration = Exploration()
        self.temperature = 1.0
        self.singles = self._singles()
        self.reference = min(self.singles, key=lambda trial: trial.expected_seconds)
        self._confirmed: list[Trial] = []
        self._use(self.table)

    @property
    def measurements(self) -> int:
        """How many placements were measured, the single devices included."""
        return sum(trial.number > 0 for trial in self.trials.values())

    @property
    def reference_seconds(self) -> float:
        """Latency of the reference, all races together."""
        return self.reference.known_seconds

    @property
    def champion(self) -> Trial:
        """The best placement that is proven, which is what is on disk.

        The last mix of devices that was confirmed and not refuted since: each of them beat the one before.
        """
        proven = [trial for trial in self._confirmed if not trial.refuted]
        return proven[-1] if proven else self.best_single

    def confirm(self, trial: Trial) -> None:
        """A placement won, compiled anew, against the best single device and against the champion."""
        if trial not in self._confirmed:
            self._confirmed.append(trial)

    @property
    def best_single(self) -> Trial:
        """The fastest single device as far as measured; its substitute where none may run everything."""
        return min(self.singles, key=lambda trial: (trial.ratio.median, trial.expected_seconds))

    def single_name(self, trial: Trial) -> str:
        """Name of the device of a placement on one device, else of who proposed it."""
        return trial.plan.devices[0] if trial.plan.is_default else trial.name

    def relative(self, trial: Trial) -> float:
        """Measured latency over that of the best single device; infinite when it was never run."""
        return trial.ratio.median / self.best_single.ratio.median

    def relative_high(self, trial: Trial) -> float:
        """Upper end of the interval of :meth:`relative`."""
        return trial.ratio.high / self.best_single.ratio.median

    def known(self, assignment: IntArray) -> Trial | None:
        """The trial of a placement that was measured, or that failed."""
        return self.trials.get(assignment.tobytes())

    def adopt(self, trial: Trial) -> None:
        """Count a placement that was just measured or tried for the first time."""
        if trial.key not in self.trials:
            self.trials[trial.key] = trial
            trial.number = self.measurements + 1

    def adopt_singles(self, raced: Sequence[Trial]) -> None:
        """Count the single devices that were raced in turns; the first one, the fastest, is the reference."""
        for trial in raced:
            self.adopt(trial)
        self.reference = next(iter(raced), self.reference)

    def remembered(self, count: int) -> list[Trial]:
        """The best placements measured so far."""
        run = [trial for trial in self.trials.values() if len(trial.samples)]
        return sorted(run, key=lambda trial: trial.ratio.median)[:count]

    def correct(self) -> None:
        """Fit the costs to everything that was measured.

        Ratios times one latency of the reference are taken for latencies: a machine that became slower
        meanwhile must not look like slower ops.
        """
        seconds = self.reference_seconds
        observed = [
            Observation(trial.chosen, trial.ratio.median * seconds)
            for trial in self.trials.values()
            if len(trial.samples)
        ]
        if observed:
            self._use(corrected_table(self.table, observed))

    def groups_of(self, units: IntArray) -> IntArray:
        """A placement of units as one of groups, ``int32[G]``."""
        return self.problem.units.to_groups(units)

    @property
    def single_seconds(self) -> float:
        """Simulated latency of the best single device with the corrected costs."""
        return self.predicted(self.best_single.assignment)

    def predicted(self, assignment: IntArray) -> float:
        """Simulated latency with the corrected costs, in seconds."""
        return simulate(self.corrected, assignment).latency_seconds

    def simulated(self, units: IntArray) -> FloatArray:
        """Simulated latencies of k placements of units ``int32[k, N]`` with the corrected costs."""
        return np.asarray(self.environment.latencies([units])[0])

    def score(self, assignment: IntArray) -> float:
        """Latency over the best single device's: as measured, else as predicted.

        What was faster by the luck of one compilation counts as no faster than what is proven.
        """
        trial = self.known(assignment)
        if trial is not None:
            measured = self.relative(trial)
            return max(measured, self.relative(self.champion)) if trial.refuted else measured
        return self.predicted(assignment) / self.single_seconds

    def trial(self, name: str, assignment: IntArray, predicted_seconds: float | None = None) -> Trial:
        """A placement that was not measured yet.

        Args:
            name: Who proposed it.
            assignment: Device of each group, ``int32[G]``.
            predicted_seconds: Simulated with the corrected costs, unless that is to be done.
        """
        seconds = self.predicted(assignment) if predicted_seconds is None else predicted_seconds
        return Trial(name, self._plan(assignment), seconds, subgraphs=0, assignment=assignment)

    def _plan(self, assignment: IntArray) -> ModelPlan:
        table = self.table
        return plan_of_groups(table.devices, table.names, assignment, table.members)

    def placement(self, trial: Trial) -> Placement:
        """A device for every op of the model, also for those that were folded away."""
        placement = Placement.of_groups(self.table, trial.assignment)
        if not self.profiled.prepared.is_folded:
            return placement
        return unfolded(fit_prepared(self.profiled.prepared, placement), self.problem.at(self.corrected))

    def line(self, event: Event) -> dict[str, Any]:
        """An event as a line of the measurement log; all that is known of the task is in its lines."""
        trial = event.trial
        return {
            "model": self.name,
            "kind": event.kind,
            "measurement": trial.number,
            "round": self.rounds,
            "temperature": self.temperature,
            "source": trial.name,
            "reference": self.single_name(self.reference),
            "predicted_ms": 1e3 * trial.expected_seconds,
            "relative": self.relative(trial) if len(trial.samples) else None,
            "best": self.relative(self.champion) if len(self.champion.samples) else None,
            "subgraphs": trial.subgraphs,
            "failure": trial.dropped,
            "note": event.note,
            "ms": [1e3 * seconds for seconds in event.samples],
            "reference_ms": [1e3 * seconds for seconds in event.reference],
            "placement": placement_text(trial.chosen),
        }

    def restore(self, lines: Sequence[Mapping[str, Any]]) -> None:
        """Continue where a run stopped, from its lines of the measurement log.

        Raises:
            TrainingError: They are of another model.
        """
        for line in lines:
            self._replay(line)
        if lines:
            self.correct()

    def _replay(self, line: Mapping[str, Any]) -> None:
        assignment = _assignment(line["placement"])
        known = (assignment >= 0) & (assignment < self.table.num_devices)
        if len(assignment) != len(self.table) or not known.all():
            raise TrainingError(f"the measurement log holds placements of another model than {self.name!r}")
        trial = self.trials.get(assignment.tobytes())
        if trial is None:
            single = next((r for r in self.singles if r.key == assignment.tobytes()), None)
            seconds = _seconds(line["predicted_ms"])
            trial = single or self.trial(line["source"], assignment, seconds)
            self.trials[trial.key] = trial
        trial.number = line["measurement"]
        trial.subgraphs, trial.dropped = line["subgraphs"], line["failure"]
        if line["ms"] and line["kind"] != "refuted" and line["kind"] != "confirmed":
            trial.add(np.array(line["ms"]) / 1e3, np.array(line["reference_ms"]) / 1e3)
        trial.proposed |= line["kind"] == "proposed"
        if ZERO_SHOT in (line["source"], line["note"]):
            self.before = trial
        self.reference = self._single_called(line["reference"])
        if line["kind"] == "confirmed":
            self.confirm(trial)
        trial.refuted |= line["kind"] == "refuted"
        self.rounds = line["round"]

    def _single_called(self, name: str) -> Trial:
        for trial in self.singles:
            if self.single_name(trial) == name:
                return trial
        raise TrainingError(
            f"the measurement log compares {self.name!r} with {name[:60]!r}, which cannot run all of it here"
        )

    def _use(self, table: CostTable) -> None:
        self.corrected = table
        problem = self.problem.at(table)
        self.graph = PolicyGraph.of(problem)
        self.environment = Environment([problem])

    def _singles(self) -> list[Trial]:
        """The legal placements on one device; where there is none, the solver's answer in their place."""
        trials = []
        for d, units in self.problem.evaluator.singles().items():
            device, assignment = self.table.devices[d], self.problem.units.to_groups(units)
            schedule = simulate(self.table, assignment)
            plan = self._plan(assignment)
            trials.append(
                Trial(device, plan, schedule.latency_seconds, schedule.subgraphs, assignment=assignment)
            )
        trials = [trial for trial in trials if np.isfinite(trial.expected_seconds)]
        if not trials:
            trials.append(self._solved())
        return trials

    def _solved(self) -> Trial:
        answer = solve_problem(self.problem, "portfolio", SolverOptions())
        return self.trial(answer.solver, answer.assignment, answer.latency_seconds)


def placement_text(assignment: IntArray) -> str:
    """A placement as text: one character per group, ``0`` for the first device."""
    return (assignment + ord("0")).astype(np.uint32).tobytes().decode("utf-32-le")


def _assignment(text: str) -> IntArray:
    """What :func:`placement_text` made into text; of anything else, numbers that no device has."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.ascontiguousarray(codes.astype(np.int32) - ord("0"), dtype=np.int32)


def _seconds(milliseconds: float | None) -> float:
    """A latency of the log, where ``null`` is one that is not finite."""
    return np.inf if milliseconds is None else milliseconds / 1e3
