"""Fine-tuning one policy for each kind of machine: proposals are raced on whichever machines of it are free.

It is the run of :mod:`ov_autoplace.training.finetuning` in the driver, with two things elsewhere: the costs
are medians of the machines, and a race of new placements is divided among them. Each machine runs its share
in turns with the fastest device alone, so every ratio is of one machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.progress import Progress
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import table_of_text
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.models import read_model
from ov_autoplace.errors import FleetError, ProfilingError, TrainingError
from ov_autoplace.fleet.annotate import request_for
from ov_autoplace.fleet.kinds import Kind
from ov_autoplace.fleet.measurement import Measurement
from ov_autoplace.fleet.merging import merge
from ov_autoplace.fleet.models import SharedModel, share_model
from ov_autoplace.fleet.run import FleetRun, Group
from ov_autoplace.fleet.units import Unit
from ov_autoplace.fleet.workers import Workers
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.placement import Placement
from ov_autoplace.plugin.model_hash import model_hash
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.preparing import ProfiledModel
from ov_autoplace.training.finetuning.request import FinetuneRequest, Source
from ov_autoplace.training.finetuning.result import FinetuneResult
from ov_autoplace.training.finetuning.run import run as tune
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.finetuning.trials import ReferenceRaces, Trial

__all__ = ["KindMachine", "finetune_kind"]

_RACE = "ov_autoplace.fleet.racing:race"
_COSTS, _COUNT = "ov_autoplace.fleet.on_machine:costs", "ov_autoplace.fleet.on_machine:count"


@dataclass(frozen=True, eq=False)
class KindMachine(Machine):
    """The machines of one kind, as if they were one that is here.

    Attributes:
        kind: What they are.
    """

    kind: Kind | None = None

    def with_progress(self, progress: Progress) -> KindMachine:
        """The same, telling how far it is."""
        return replace(self, options=replace(self.options, progress=progress))

    @property
    def fingerprint(self) -> str:
        """The facts of the kind."""
        return "; ".join(self.kind.facts if self.kind is not None else ())

    @property
    def device_settings(self) -> Mapping[str, Mapping[str, Any]]:
        """None beside the facts of the kind, which have them."""
        return {}


def finetune_kind(run: FleetRun, group: Group, request: FinetuneRequest) -> FinetuneResult:
    """Tune a policy for one kind of machine.

    Args:
        run: The machines.
        group: Those of the kind.
        request: What to do; its machine is a :class:`KindMachine` of it.

    Raises:
        FleetError: No machine of the kind could measure.
    """
    options = _option_values(request)
    workers = Workers(
        lambda: run.fleet.places([group.kind.name]),
        limit_seconds=run.limit_seconds,
        duplicate_slow=False,
        stay=True,
    )
    with workers:
        load = _Loader(run, group, workers, options)
        return tune(request, load=load)


class _Loader:
    """Has the machines of a kind profile a model; see ``training.finetuning.run.Load``."""

    def __init__(self, run: FleetRun, group: Group, workers: Workers, options: Mapping[str, Any]) -> None:
        self._run = run
        self._group = group
        self._workers = workers
        self._options = options

    def __call__(
        self,
        name: str,
        source: Source,
        request: FinetuneRequest,
        budget: TuningBudget,
        known: CostTable | None,
    ) -> TuningTask:
        machine = request.machine
        model = source if isinstance(source, ov.Model) else read_model(machine.core, Path(source))
        model = model.clone()
        make_names_unique(model)
        shared = share_model(model)
        asked = request_for(self._group, shared, self._options)
        compile_seconds = 0.0
        if known is None:
            known, compile_seconds = self._costs(name, asked, shared)
        budget.check()
        machine = machine.only(known.devices)
        prepared = prepare(model, machine.options.shapes)
        nothing = SimpleNamespace(close=lambda: None)  # what is open is open elsewhere
        profiled = ProfiledModel(
            machine, prepared, model_hash(prepared.model), cast("Any", nothing), known, compile_seconds
        )
        races = FleetRaces(
            self._workers,
            self._group,
            shared,
            asked | {"devices": list(known.devices)},
            known,
            budget,
            request.settings.inferences,
            request.options.seed,
            compile_seconds,
        )
        return TuningTask(name, profiled, races)

    def _costs(self, name: str, asked: Mapping[str, Any], shared: SharedModel) -> tuple[CostTable, float]:
        kind = self._group.kind.name
        answers = self._run.on_each("count", _COUNT, {kind: asked}, shared.data).get(kind, {})
        if not answers:
            reasons = "; ".join(self._group.missing)
            raise FleetError(f"no machine of the kind {kind} could measure {name}: {reasons}")
        merged = merge({m: Measurement.from_dict(a, m) for m, a in answers.items()})
        if len(merged.measurement.costs.devices) < 2:
            raise TrainingError(
                f"only {merged.measurement.costs.devices[0]} of the kind {kind} can run {name}, so there is "
                "nothing to tune"
            )
        for machine, what in merged.outliers.items():
            self._group.notes.append(f"{machine} is an outlier: {what}")
        requests = {kind: {**asked, "measurement": merged.measurement.to_dict()}}
        outcome = self._run.on_one("costs", _COSTS, requests, shared.data, {kind: merged.to_avoid})[kind]
        if outcome.failure:
            raise ProfilingError(f"{name}: {outcome.failure}")
        table = table_of_text(outcome.answer["table"], f"the cost table of {outcome.machine}")
        return table, float(outcome.answer["compile_seconds"])


class FleetRaces(ReferenceRaces):
    """Races of one model on the machines of a kind.

    Args:
        workers: The machines; processes that have the model open stay.
        group: The kind.
        shared: The model.
        request: What a machine is told of it.
        table: Names the groups and the devices.
        budget: The time that all may take.
        inferences: Rounds of a race, at most.
        seed: Of the order in each round.
        compile_seconds: What compiling the model took.
    """

    def __init__(
        self,
        workers: Workers,
        group: Group,
        shared: SharedModel,
        request: Mapping[str, Any],
        table: CostTable,
        budget: TuningBudget,
        inferences: int,
        seed: int,
        compile_seconds: float,
    ) -> None:
        self._budget = budget
        self._inferences = inferences
        self._workers = workers
        self._group = group
        self._shared = shared
        self._request = request
        self._table = table
        self._seed = seed
        self._races = 0
        self._anew = False
        self._away = _Away(compile_seconds, self._forget)
        self.bench = cast("Workbench", self._away)

    def _forget(self) -> None:
        self._anew = True

    def _run(self, trials: Sequence[Trial]) -> list[FloatArray]:
        return self._ran([trials])[0] or self._refused(trials)

    def _refused(self, trials: Sequence[Trial]) -> list[FloatArray]:
        raise ProfilingError(
            f"no machine of the kind {self._group.kind.name} runs {trials[0].name}: {self._group.missing[-1]}"
        )

    def _run_against(self, reference: Trial, racing: Sequence[Trial]) -> list[Trial]:
        """The same, divided among the machines, each of which runs the reference beside its share."""
        shares = min(max(len(self._group.machines), 1), len(racing))
        parts = [racing[i::shares] for i in range(shares)]
        done: list[Trial] = []
        for part, samples in zip(parts, self._ran([[reference, *part] for part in parts]), strict=True):
            if not samples:
                continue  # that machine is gone, and no other was there: the policy may propose them again
            first, *own = samples
            reference.add(first, first)
            for trial, seconds in zip(part, own, strict=True):
                trial.add(seconds, first)
            done += part
        if not done:
            self._refused([reference])
        return done

    def _is_hopeless(self, trial: Trial, reference: Trial) -> bool:
        return False  # a race on a machine that nobody waits for may be as long as the others

    def _ran(self, races: Sequence[Sequence[Trial]]) -> list[list[FloatArray]]:
        """Samples of each placement of each race; nothing of a race that no machine ran."""
        self._races += 1
        units = [
            Unit(
                f"race {self._races}.{i}",
                _RACE,
                {
                    **self._request,
                    "placements": [Placement.of_groups(self._table, t.assignment).to_dict() for t in trials],
                    "seconds": self._race_seconds(trials),
                    "rounds": self._inferences,
                    "seed": self._seed + self._races,
                    "anew": self._anew,
                },
                self._shared.data,
                kind=self._group.kind.name,
            )
            for i, trials in enumerate(races)
        ]
        self._anew = False
        outcomes = self._workers.run(units, progress=lambda *_: self._budget.check())
        result: list[list[FloatArray]] = []
        for unit, trials in zip(units, races, strict=True):
            outcome = outcomes[unit.name]
            self._group.notes += [f"race: {fault}" for fault in outcome.faults]
            if outcome.failure:
                self._group.missing.append(f"race: {outcome.failure}")
                result.append([])
                continue
            self._away.note(float(outcome.answer["compile_seconds"]))
            samples = []
            for trial, entry in zip(trials, outcome.answer["entries"], strict=True):
                trial.subgraphs = int(entry["subgraphs"]) or trial.subgraphs
                trial.dropped = entry["dropped"] or trial.dropped
                samples.append(np.array(entry["samples"], dtype=np.float64))
            result.append(samples)
        return result


class _Away:
    """What a :class:`~ov_autoplace.decide.workbench.Workbench` tells, of compilations elsewhere."""

    def __init__(self, compile_seconds: float, forget: Callable[[], None]) -> None:
        self.longest_compilation = compile_seconds
        self.forget = forget

    def note(self, seconds: float) -> None:
        """A compilation took so long."""
        self.longest_compilation = max(self.longest_compilation, seconds)

    def is_compiled(self, candidate: Candidate) -> bool:
        """Nobody knows on which machine it will run."""
        return False

    def executable(self, candidate: Candidate) -> None:
        """Is compiled where it is run."""

    def keep_only(self, candidates: Sequence[Candidate]) -> None:
        """Machines keep what the next race has in common with the last one."""

    def enter(
        self,
        candidates: Sequence[Trial],
        allowed: Callable[[Trial, list[Trial]], bool],
        beside: Sequence[Trial] = (),
    ) -> list[Trial]:
        """Those for which there is time."""
        entered: list[Trial] = []
        for candidate in candidates:
            if not candidate.dropped and allowed(candidate, [*beside, *entered]):
                entered.append(candidate)
        return entered


def _option_values(request: FinetuneRequest) -> dict[str, Any]:
    """What a machine needs to know of the options."""
    options = request.options
    return {
        "pins": dict(options.pins),
        "memory_limits": dict(options.memory_limits),
        "shapes": {name: list(sizes) for name, sizes in options.shapes.items()},
        "seed": options.seed,
        "isolation": options.isolation,
        "properties": dict(options.properties),
    }
