"""One model of a fine-tuning run: what was measured of it, and what is believed of it because of that."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.errors import TrainingError
from ov_autoplace.measure.corrections import Observation, corrected_table
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve_problem
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.finetuning.exploration import Exploration
from ov_autoplace.training.finetuning.measuring import Record, Workbench
from ov_autoplace.training.finetuning.preparing import PreparedModel

__all__ = ["AFTER", "ZERO_SHOT", "Event", "TuningTask", "placement_text"]

ZERO_SHOT = "policy before tuning"
"""Source, or note, of the placement that the policy proposed before it was tuned."""

AFTER = "policy after tuning"
"""The same for the tuned policy."""


@dataclass(frozen=True)
class Event:
    """One line of the measurement log, beside the record that it is about.

    Attributes:
        kind: ``measured`` (a placement for the first time), ``again`` (more runs of a known one),
            ``proposed`` (the policy proposed a known one, and nothing was run), ``confirmed`` or ``refuted``
            (compiled again and raced again).
        record: The placement.
        samples, reference: Seconds of this race alone.
        note: Why.
    """

    kind: str
    record: Record
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
        records: All placements that were measured or tried, by key.
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
        prepared: PreparedModel,
        bench: Workbench,
        memory_limits: Mapping[str, float],
        pins: Mapping[str, str],
    ) -> None:
        self.name = name
        self.prepared = prepared
        self.bench = bench
        self.table = prepared.table
        self.problem = Problem.of(prepared.table, memory_limits, pins)
        self.records: dict[bytes, Record] = {}
        self.before: Record | None = None
        self.after: Record | None = None
        self.rounds = 0
        self.seconds = 0.0
        self.exploration = Exploration()
        self.temperature = 1.0
        self.singles = self._singles()
        self.reference = min(self.singles, key=lambda record: record.predicted_seconds)
        self._confirmed: list[Record] = []
        self._use(self.table)

    @property
    def measurements(self) -> int:
        """How many placements were measured, the single devices included."""
        return sum(record.number > 0 for record in self.records.values())

    @property
    def reference_seconds(self) -> float:
        """Latency of the reference, all races together."""
        return self.bench.seconds_of(self.reference)

    @property
    def champion(self) -> Record:
        """The best placement that is proven, which is what is on disk.

        The last mix of devices that was confirmed and not refuted since: each of them beat the one before.
        """
        proven = [record for record in self._confirmed if not record.refuted]
        return proven[-1] if proven else self.best_single

    def confirm(self, record: Record) -> None:
        """A placement won, compiled anew, against the best single device and against the champion."""
        if record not in self._confirmed:
            self._confirmed.append(record)

    @property
    def best_single(self) -> Record:
        """The fastest single device as far as measured; what stands for it where none may run everything."""
        return min(self.singles, key=lambda record: (record.ratio.median, record.predicted_seconds))

    def single_name(self, record: Record) -> str:
        """Name of the device of a placement on one device, else of who proposed it."""
        return self.table.devices[int(record.assignment[0])] if record.is_single else record.source

    def relative(self, record: Record) -> float:
        """Measured latency over that of the best single device; infinite when it was never run."""
        return record.ratio.median / self.best_single.ratio.median

    def relative_high(self, record: Record) -> float:
        """Upper end of the interval of :meth:`relative`."""
        return record.ratio.high / self.best_single.ratio.median

    def known(self, assignment: IntArray) -> Record | None:
        """The record of a placement that was measured, or that failed."""
        return self.records.get(assignment.tobytes())

    def adopt(self, record: Record) -> None:
        """Count a placement that was just measured or tried for the first time."""
        if record.key not in self.records:
            self.records[record.key] = record
            record.number = self.measurements + 1

    def adopt_singles(self, raced: Sequence[Record]) -> None:
        """Count the single devices that were raced in turns; the first one, the fastest, is the reference."""
        for record in raced:
            self.adopt(record)
        self.reference = next(iter(raced), self.reference)

    def remembered(self, count: int) -> list[Record]:
        """The best placements measured so far."""
        run = [record for record in self.records.values() if len(record.samples)]
        return sorted(run, key=lambda record: record.ratio.median)[:count]

    def correct(self) -> None:
        """Fit the costs to everything that was measured.

        Ratios times one latency of the reference stand for latencies, so that a machine that became slower
        meanwhile does not look like slower ops.
        """
        seconds = self.reference_seconds
        observed = [
            Observation(record.assignment, record.ratio.median * seconds)
            for record in self.records.values()
            if len(record.samples)
        ]
        if observed:
            self._use(corrected_table(self.table, observed))

    def assignment_of(self, units: IntArray) -> IntArray:
        """Device of each group, ``int32[G]``, from that of each unit."""
        return self.problem.units.to_groups(units)

    def units_of(self, assignment: IntArray) -> IntArray:
        """Device of each unit, ``int32[N]``, from that of each group."""
        return self.problem.units.from_groups(assignment)

    def predicted(self, assignment: IntArray) -> float:
        """Simulated latency with the corrected costs, in seconds."""
        return simulate(self.corrected, assignment).latency_seconds

    def score(self, assignment: IntArray) -> float:
        """Latency over the best single device's: as measured, else as predicted.

        What was faster by the luck of one compilation counts as no faster than what is proven.
        """
        record = self.known(assignment)
        if record is not None:
            measured = self.relative(record)
            return max(measured, self.relative(self.champion)) if record.refuted else measured
        return self.predicted(assignment) / self.predicted(self.best_single.assignment)

    def placement(self, record: Record) -> Placement:
        """A device for every op of the model, also for those that were folded away."""
        placement = Placement.of_groups(self.table, record.assignment)
        if not self.prepared.is_folded:
            return placement
        placement = replace(placement, given={})
        return unfolded(self.prepared.model, placement, self.problem.at(self.corrected))

    def line(self, event: Event) -> dict[str, Any]:
        """An event as a line of the measurement log; all that is known of the task is in its lines."""
        record = event.record
        return {
            "model": self.name,
            "kind": event.kind,
            "measurement": record.number,
            "round": self.rounds,
            "temperature": self.temperature,
            "source": record.source,
            "reference": self.single_name(self.reference),
            "predicted_ms": 1e3 * record.predicted_seconds,
            "relative": self.relative(record) if len(record.samples) else None,
            "best": self.relative(self.champion) if len(self.champion.samples) else None,
            "subgraphs": record.subgraphs,
            "failure": record.failure,
            "note": event.note,
            "ms": [1e3 * seconds for seconds in event.samples],
            "reference_ms": [1e3 * seconds for seconds in event.reference],
            "placement": placement_text(record),
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
        record = self.records.get(assignment.tobytes())
        if record is None:
            single = next((r for r in self.singles if r.key == assignment.tobytes()), None)
            record = single or Record(assignment, line["source"], _seconds(line["predicted_ms"]))
            self.records[record.key] = record
        record.number = line["measurement"]
        record.subgraphs, record.failure = line["subgraphs"], line["failure"]
        if line["ms"] and line["kind"] != "refuted" and line["kind"] != "confirmed":
            record.add(np.array(line["ms"]) / 1e3, np.array(line["reference_ms"]) / 1e3)
        record.proposed |= line["kind"] == "proposed"
        if ZERO_SHOT in (line["source"], line["note"]):
            self.before = record
        self.reference = self._single_called(line["reference"])
        if line["kind"] == "confirmed":
            self.confirm(record)
        record.refuted |= line["kind"] == "refuted"
        self.rounds = line["round"]

    def _single_called(self, name: str) -> Record:
        for record in self.singles:
            if self.single_name(record) == name:
                return record
        raise TrainingError(
            f"the measurement log compares {self.name!r} with {name[:60]!r}, which cannot run all of it here"
        )

    def _use(self, table: CostTable) -> None:
        self.corrected = table
        problem = self.problem.at(table)
        self.graph = policy_graph(problem)
        self.environment = Environment([problem])

    def _singles(self) -> list[Record]:
        """The legal placements on one device; where there is none, the solver's answer in their place."""
        records = []
        for d, units in self.problem.evaluator.singles().items():
            device, assignment = self.table.devices[d], self.problem.units.to_groups(units)
            seconds = simulate(self.table, assignment).latency_seconds
            records.append(Record(assignment, device, seconds))
        records = [record for record in records if np.isfinite(record.predicted_seconds)]
        if not records:
            records.append(self._solved())
        return records

    def _solved(self) -> Record:
        answer = solve_problem(self.problem, "auto", SolverOptions())
        assert answer.latency_seconds is not None
        return Record(answer.assignment, answer.solver, answer.latency_seconds)


def placement_text(record: Record) -> str:
    """A placement as text: one character per group, ``0`` for the first device."""
    return (record.assignment + ord("0")).astype(np.uint32).tobytes().decode("utf-32-le")


def _assignment(text: str) -> IntArray:
    """What :func:`placement_text` made into text; of anything else, numbers that no device has."""
    codes = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    return np.ascontiguousarray(codes.astype(np.int32) - ord("0"), dtype=np.int32)


def _seconds(milliseconds: float | None) -> float:
    """A latency of the log, where ``null`` stands for one that is not finite."""
    return np.inf if milliseconds is None else milliseconds / 1e3
