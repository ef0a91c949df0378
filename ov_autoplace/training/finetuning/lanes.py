"""One model of a fine-tuning run whose placements are schedules on the lanes of one CPU."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.costs import CostSource
from ov_autoplace.decide.divisions import divisions
from ov_autoplace.decide.lane_costs import LaneCosts, executor_table, lane_costs
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import OptionError, PlacementError, TrainingError
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.counting import count_devices, count_width
from ov_autoplace.plan.fitting import fit_prepared
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.plan.schedulable import reason_not_schedulable
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.pooling import copies_of
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.preparing import ProfiledModel
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.finetuning.trials import ReferenceRaces, Trial

__all__ = ["DividedModel", "LanesTask", "canonical", "divided_model", "lanes_to_tune"]


@dataclass(frozen=True, eq=False)
class DividedModel(ProfiledModel):
    """A model whose lanes are to be tuned; ``table`` has a column per lane.

    Attributes:
        whole: The same costs with one column, of a lane that runs everything.
        costs: The lanes behind the columns.
        width: On which the whole model is fastest; ``None`` = as OpenVINO runs it by itself.
    """

    whole: CostTable
    costs: LaneCosts
    width: Width | None


def lanes_to_tune(machine: Machine) -> int:
    """Into how many lanes the CPU of a machine is divided for tuning.

    Raises:
        OptionError: There is not one CPU alone, or it cannot be divided.
    """
    if len(machine.devices) != 1:
        raise OptionError(
            f"schedules are tuned on the lanes of one device, not on {', '.join(machine.devices) or 'none'}; "
            "name one CPU, or set executor to HETERO"
        )
    found = [count for count, _ in machine.options.lanes] or [
        lanes.count for lanes in Cores.of_this_process().lanes
    ]
    found = [count for count in found if count > 1]
    if not found:
        raise OptionError(
            f"{machine.devices[0]} cannot be divided into lanes here; set lanes to what it has, such as 2x1"
        )
    return found[0]


def divided_model(
    model: ov.Model, machine: Machine, budget: TuningBudget, known: CostTable | None = None
) -> DividedModel:
    """Count what a model takes on a lane, and find the width that schedules have to beat.

    Args:
        model: Is not modified.
        machine: One CPU.
        budget: The time that all may take.
        known: Costs on the lanes that an earlier run measured.

    Raises:
        TrainingError: The executor cannot run the model, or the budget does not suffice to profile it.
        OptionError: The CPU cannot be divided as it was asked for.
        ProfilingError: The model cannot be run.
    """
    prepared = prepare(model, machine.options.shapes)
    obstacle = reason_not_schedulable(prepared.model)
    if obstacle is not None:
        raise TrainingError(f"the executor cannot run the model on lanes: {obstacle}")
    count = lanes_to_tune(machine)
    division = next(
        (d for d in divisions(machine, prepared.model) if d.lanes and d.lanes.count == count), None
    )
    if division is None or division.lanes is None or division.device is None:
        raise OptionError(
            f"{machine.devices[0]} cannot be divided into {count} lanes for this model; set lanes to others"
        )
    session = machine.open(prepared)
    try:
        counted = count_devices(session, budget)
        if counted is None:
            raise TrainingError(f"the budget of {budget.seconds:g} s does not suffice to profile the model")
        default_seconds = float(np.median(counted.samples[division.device]))
        counted = count_width(session, counted, division.device, division.lanes.width, budget)
        transfers = CostSource(machine, budget).assumed_transfers()
        whole = executor_table(session.feasibility, counted, machine.options.pins, transfers)
        costs = lane_costs(whole, counted, division)
        if known is not None:
            costs = replace(costs, table=known)
        lane_seconds = float(np.median(counted.samples[division.device]))
        return DividedModel(
            machine=machine,
            prepared=prepared,
            digest=model_hash(prepared.model),
            session=session,
            table=costs.table,
            compile_seconds=counted.compile_seconds,
            whole=whole,
            costs=costs,
            width=division.lanes.width if lane_seconds < default_seconds else None,
        )
    except BaseException:
        session.close()
        raise


class LanesTask(TuningTask):
    """A model whose trials are schedules; the reference is the whole model on its fastest width.

    Which of several equal lanes is which has no meaning, so placements are told apart by what runs together.
    Of a schedule it is known what its submodels took together, not what each of them did, so measurements
    correct one factor on all predictions.
    """

    def __init__(self, name: str, divided: DividedModel, races: ReferenceRaces) -> None:
        self._divided = divided
        self._factor = 1.0
        super().__init__(name, divided, races, divided.machine.problem(divided.table, "overlap"))

    def groups_of(self, units: IntArray) -> IntArray:
        """Lane of each group, equal lanes in the order in which they are first used."""
        return self.problem.units.to_groups(canonical(self.problem, units))

    def predicted(self, assignment: IntArray) -> float:
        """Simulated latency times the factor that measured schedules have shown, in seconds."""
        return self._factor * simulate(self.table, assignment, objective="overlap").latency_seconds

    def simulated(self, units: IntArray) -> FloatArray:
        """The same of k placements of units, ``int32[k, N]``."""
        return self._factor * super().simulated(units)

    @property
    def single_seconds(self) -> float:
        """Latency of the reference, which is no schedule."""
        return self.reference.known_seconds

    def correct(self) -> None:
        """Fit the factor to all schedules that were run."""
        ratios = [
            trial.ratio.median * self.reference_seconds / trial.simulated_seconds
            for trial in self.trials.values()
            if trial.plan.lane_count and len(trial.samples) and trial.simulated_seconds > 0
        ]
        if ratios:
            self._factor = float(np.median(ratios))

    def trial(self, name: str, assignment: IntArray, predicted_seconds: float | None = None) -> Trial:
        """As in :class:`TuningTask`, with its plan; one that the executor cannot run is dropped already.

        ``predicted_seconds`` is not used: the factor is fitted to latencies as they were simulated without
        it, so every trial is simulated here.
        """
        simulated = simulate(self.table, assignment, objective="overlap").latency_seconds
        trial = Trial(
            name,
            WholePlan(self._divided.whole.devices[0]),
            self._factor * simulated,
            subgraphs=0,
            assignment=np.zeros_like(assignment),
            choice=assignment,
            simulated_seconds=simulated,
        )
        try:
            plan = self._divided.costs.plan(Placement.of_groups(self.table, assignment))
        except PlacementError as cause:
            trial.dropped = str(cause)
        else:
            trial.plan, trial.subgraphs = plan, len(plan.lane_of)
        return trial

    def placement(self, trial: Trial) -> Placement:
        """What ``annotate`` writes into a model: the plan, or the width."""
        placement = replace(
            Placement.of_groups(self._divided.whole, trial.assignment, solver=trial.name),
            plan=trial.plan,
        )
        prepared = self.profiled.prepared
        if not prepared.is_folded:
            return placement
        return unfolded(fit_prepared(prepared, placement))

    def _singles(self) -> list[Trial]:
        plan = WholePlan(self._divided.whole.devices[0], self._divided.width)
        nothing = np.zeros(len(self.table), dtype=np.int32)
        seconds = float(self._divided.whole.op_seconds.sum())
        return [Trial(plan.name, plan, seconds, assignment=nothing)]


def canonical(problem: Problem, device: IntArray) -> IntArray:
    """The same placement with copies of a device in the order in which the units' order comes upon them.

    Which of several copies is which has no meaning, so equal placements become the same one.
    """
    units = problem.units
    renamed = np.arange(units.num_devices, dtype=np.int32)
    _, first = np.unique(device[units.order], return_index=True)
    in_order = device[units.order][np.sort(first)].tolist()
    for members in copies_of(units):
        used = [d for d in in_order if d in members]
        renamed[[*used, *(d for d in members if d not in used)]] = members
    return np.asarray(renamed[device], dtype=np.int32)
