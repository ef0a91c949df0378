"""The last race of the section ``finetune``: placements of all runs, compiled and raced beside each other."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from harness.environment import PAIRS, core_of, executor_of
from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.devices.names import device_properties
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.measure.isolation.interface import Executable
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.partition import completed
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import WholePlan
from ov_autoplace.placement.planning import lane_plan
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.lanes import divided_model
from ov_autoplace.training.teachers import canonical

__all__ = ["Entry", "LanesRace", "LastRace"]

_FASTEST = 6  # placements to be compiled again
_COMPILATIONS = 2
_ROUNDS = 400
_OPENING_SECONDS = 60.0


@dataclass(frozen=True, eq=False)
class Entry:
    """A placement of a model.

    Attributes:
        table: Names the groups and the columns.
        assignment: Column of each group, ``int32[G]``.
    """

    table: CostTable
    assignment: IntArray

    @classmethod
    def of(cls, table: CostTable, assignment: IntArray) -> Entry:
        """Equal lanes in the order in which they are first used."""
        if table.lane_devices is None:
            return cls(table, assignment)
        problem = Problem.of(table, objective="overlap")
        units = problem.units
        return cls(table, units.to_groups(canonical(problem, units.from_groups(assignment))))

    @classmethod
    def of_line(cls, table: CostTable, line: Mapping[str, Any]) -> Entry:
        """The placement of a line of a log."""
        codes = [ord(c) - ord("0") for c in line["placement"]]
        return cls.of(table, np.array(codes, dtype=np.int32))

    @cached_property
    def device_of(self) -> dict[str, str]:
        """Column of each op."""
        return Placement.of_groups(self.table, self.assignment).to_dict()

    @cached_property
    def text(self) -> str:
        """The same for the same placement, whatever groups it was made of."""
        return " ".join(self.device_of[name] for name in sorted(self.device_of))


class LastRace:
    """Races of placements of one model, relative to the pair's last device alone, which is the CPU.

    Attributes:
        session: The model, which is run as it is.
        singles: Text of each device alone, by its name.
        ratios: Latency over the reference's, by text: of the last races that each was in.
    """

    session: ProfilingSession

    def __init__(self, pair: str, model: str, entries: Sequence[Entry], seconds: float) -> None:
        self._seconds = seconds
        self._entries = {entry.text: entry for entry in entries}
        self.singles = self._open(pair, model, entries[0])
        self._reference = list(self.singles.values())[-1]
        self.ratios: dict[str, float] = {}
        self._race(list(dict.fromkeys([*self.singles.values(), *self._entries])), 1)
        fastest = sorted(self.ratios, key=self.ratios.__getitem__)[:_FASTEST]
        self._final = dict.fromkeys([*self.singles.values(), *fastest])
        self._race(list(self._final), _COMPILATIONS)

    def _open(self, pair: str, model: str, entry: Entry) -> dict[str, str]:
        """Open the session; what :attr:`singles` is."""
        core, devices = core_of(pair), PAIRS[pair]
        read = core.read_model(model)
        self.session = ProfilingSession(core, read, devices, device_properties(core, devices, {}))
        alone = {device: " ".join([device] * len(entry.device_of)) for device in devices}
        self._alone = {text: dict.fromkeys(entry.device_of, device) for device, text in alone.items()}
        return alone

    def _compiled(self, text: str) -> Executable:
        """A placement that was entered, or a device alone.

        Raises:
            ProfilingError: It cannot be timed.
        """
        device_of = self._alone[text] if text in self._alone else self._entries[text].device_of
        placement = Placement.from_dict(completed(self.session.model, device_of))
        return placement.plan.one_model.compile(self.session)

    def text_of(self, entry: Entry, best_single: str) -> str:
        """What a placement is called here, where the fastest single device of its run had that name."""
        return entry.text

    @property
    def best(self) -> str:
        """The fastest placement of those that were compiled again."""
        return min(self._final, key=lambda text: self.ratios.get(text, np.inf))

    @property
    def best_single(self) -> float:
        """Ratio of the fastest device alone, of those that can run the model."""
        return min(self.ratios.get(text, np.inf) for text in self.singles.values())

    def check(self, entries: Mapping[str, Entry]) -> None:
        """Race more placements beside the best one."""
        self._entries |= entries
        self._race([*self.singles.values(), self.best, *entries], _COMPILATIONS, set(entries))

    def _race(self, texts: Sequence[str], compilations: int, about: set[str] | None = None) -> None:
        """Compile and race placements; note the ratios of some of them, which are all if not said."""
        logs: dict[str, list[float]] = {}
        for _ in range(compilations):
            self.session.forget()
            executables = {}
            for text in dict.fromkeys(texts):
                try:
                    executables[text] = self._compiled(text)
                except (PlacementError, ProfilingError) as cause:
                    print(f"left out of the last race: {cause}", file=sys.stderr)
            raced = list(executables.values())
            result = self.session.race(raced, self._seconds, max_rounds=_ROUNDS, confidence=0.9999)
            samples = {text: e.samples for text, e in zip(executables, result.entries, strict=True)}
            reference = samples[self._reference]
            for text, own in samples.items():
                if len(own):
                    logs.setdefault(text, []).append(float(np.log(paired_ratio(own, reference).median)))
        for text, values in logs.items():
            if about is None or text in about:
                self.ratios[text] = float(np.exp(np.mean(values)))


class LanesRace(LastRace):
    """The same of schedules on lanes; alone is the whole model on one of the CPU's widths."""

    def _open(self, pair: str, model: str, entry: Entry) -> dict[str, str]:
        (device,) = PAIRS[pair]
        machine = Machine(core_of(pair), PAIRS[pair], PlacerOptions(executor=executor_of(pair)))
        divided = divided_model(machine.core.read_model(model), machine, TuningBudget(_OPENING_SECONDS))
        self.session, self._costs = divided.session, divided.costs
        # TUNE also tries one thread that is the caller's.
        widths = *widths_for(machine, device, self.session.model), Width(1, in_caller=True)
        self._widths = {plan.name: plan for plan in (WholePlan(device, width) for width in widths)}
        return {name: name for name in (*self._widths, device)}

    def _compiled(self, text: str) -> Executable:
        if text not in self.singles.values():
            entry = self._entries[text]
            plan = lane_plan(entry.table, entry.assignment, self._costs.lanes, self._costs.forms)
            return plan.compile(self.session)
        return self._widths.get(text, WholePlan(text)).compile(self.session)

    def text_of(self, entry: Entry, best_single: str) -> str:
        """See :meth:`LastRace.text_of`; on the first lane alone is the whole model on one width."""
        return entry.text if entry.assignment.any() else best_single
