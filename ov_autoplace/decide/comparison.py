"""A placement beside everything that it could be replaced with, run in turns: the rows of a benchmark."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import openvino as ov

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.progress import Progress
from ov_autoplace._base.statistics import median_interval
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.pools import able_devices, hinted, without_hint
from ov_autoplace.decide.rate_rule import Pair
from ov_autoplace.decide.stages.rates import enter_pools, run_pools
from ov_autoplace.decide.verdict import CONVINCING_ROUNDS
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.names import device_properties, is_emulated
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.isolation.interface import Executable
from ov_autoplace.measure.loads import run_in_turns
from ov_autoplace.measure.outputs import OutputCheck
from ov_autoplace.measure.room import room_of
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.sustained import turn_seconds
from ov_autoplace.placement.decision import Candidate, Decision, Load
from ov_autoplace.placement.fitting import fit
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import ModelPlan, PoolPlan, WholePlan

__all__ = ["Comparison", "compared_rates", "comparison"]

_MOST_SAMPLES = 1000
_ANSWER = "AUTOPLACE"
_PAUSED_SHARE = 0.5  # of the time to measure


@dataclass(frozen=True, eq=False)
class Comparison:
    """A placement that is ready to be run beside its rivals.

    Attributes:
        machine: The devices.
        placement: What is compared.
        session: The model, in the form that the placement fits.
        plan: How that form runs.
    """

    machine: Machine
    placement: Placement
    session: ProfilingSession
    plan: ModelPlan

    @cached_property
    def plans(self) -> dict[str, ModelPlan]:
        """What is compared, by row: the plan, its rivals, and of the losers the best one on lanes."""
        devices, decision = self.machine.devices, _decision_of(self.placement)
        alone = [WholePlan(device) for device in devices]
        for device in devices:
            widths = widths_for(self.machine, device, self.session.model)
            alone += [WholePlan(device, width) for width in widths]
        plans: dict[str, ModelPlan] = {plan.name: plan for plan in alone}
        plans |= {virtual: WholePlan(f"{virtual}:{','.join(devices)}") for virtual in ("AUTO", "HETERO")}
        if not self.plan.lane_count:
            schedules = [c for c in decision.candidates if c.plan.lane_count]
            best = min(schedules, key=lambda c: (c.seconds, c.promised_seconds), default=None)
            if best is not None:
                plans[best.name] = best.plan.one_model
        return {**plans, _ANSWER: self.plan}

    def rows(self, seconds: float, progress: Progress) -> list[dict[str, Any]]:
        """Devices alone, a CPU's widths, AUTO, default HETERO and the placement, as JSON values.

        Args:
            seconds: How long to measure, all together.
            progress: Called as the work goes on.
        """
        plans = self.plans
        how: dict[str, Any] = {"seed": self.machine.options.seed}
        # What was chosen by longer samples is shown by them.
        how["divided"] = any(plan.is_divided for plan in plans.values())
        if how["divided"] and self.machine.quota is not None:
            how["min_sample_seconds"] = turn_seconds(self.machine.quota)
        outputs = self.session.compare_outputs(self.machine.options.output_tolerance, Budget(seconds))
        rows = _measure(self.session, plans, self.placement, seconds, progress, how, outputs)
        for row in rows:
            row["output_difference"] = outputs.difference(row["name"])
            if outputs.is_wrong(row["name"]):
                row["note"] = "; ".join(filter(None, (row["note"], outputs.refusal(row["name"]))))
        _mark_emulated(rows, self.machine, plans)
        return rows


@contextmanager
def comparison(machine: Machine, model: ov.Model, placement: Placement) -> Iterator[Comparison]:
    """Open a model to compare a placement of it.

    Args:
        machine: The devices, and what the user asked for.
        model: Is not modified.
        placement: Covers its ops; was decided.
    """
    options, fitted = machine.options, fit(model, placement)
    limits, target = options.memory_limits, machine.target
    with ProfilingSession(
        core=machine.core,
        model=fitted.model,
        devices=machine.devices,
        properties=device_properties(machine.core, machine.devices, options.properties),
        shapes=options.shapes,
        seed=options.seed,
        isolation=options.isolation,
        room=room_of(machine.core, fitted.model, machine.devices, options.shapes, limits, target),
    ) as session:
        yield Comparison(machine, placement, session, placement.plan.one_model)


def compared_rates(
    machine: Machine, prepared: PreparedModel, plan: PoolPlan, seconds: float
) -> tuple[Candidate, ...]:
    """Run a plan and everything that OpenVINO offers in turns; the plan comes last.

    Args:
        machine: Its options carry the hint.
        prepared: The model.
        plan: The answer.
        seconds: For all of it.

    Raises:
        ProfilingError: The plan cannot be run.
    """
    bare = without_hint(machine)
    base = pool = Candidate(_ANSWER, PoolPlan(_ANSWER, plan.base))
    if plan.members:
        pool = Candidate(f"{_ANSWER} for waiting threads", plan)
    with bare.open(prepared, Budget(seconds)) as opened:
        session = opened.untied() or opened
        bench = Workbench(session, None, Budget(math.inf), machine.options.seed)
        hints = hinted(able_devices(bare, session), prepared)
        field = list(dict.fromkeys([*hints, base, pool]))
        enter_pools(bench, field)
        bench.executable(base)
        bench.executable(pool)
        for candidate in field:  # those that compute wrong outputs are shown, too
            candidate.dropped = "" if candidate.is_wrong else candidate.dropped
        run_pools(bench, field, seconds, keep_all=True)
    return (*hints, replace(Pair(base, pool).candidate(), name=_ANSWER))


def _decision_of(placement: Placement) -> Decision:
    if placement.decision is None:
        raise PlacementError("this placement does not say how it was decided")
    return placement.decision


def _measure(
    session: ProfilingSession,
    plans: Mapping[str, ModelPlan],
    placement: Placement,
    seconds: float,
    progress: Progress,
    how: Mapping[str, Any],
    outputs: OutputCheck,
) -> list[dict[str, Any]]:
    """Rows of the result; a candidate that cannot be compiled has a note and no samples.

    Args:
        session: Compiles and runs them.
        plans: What each row runs.
        placement: Which one is the answer.
        seconds: How long to measure.
        progress: Called as the work goes on.
        how: Further arguments of the races.
        outputs: Compares them.
    """
    decision = _decision_of(placement)
    predicted = _predicted(placement)
    submodels = {c.name: c.subgraphs for c in decision.candidates if c.plan.lane_count}
    if decision.chosen in submodels:
        submodels[_ANSWER] = submodels[decision.chosen]
    ours = session.untied() or session
    rows: list[dict[str, Any]] = []
    executables: dict[str, Executable] = {}
    for done, (name, plan) in enumerate(plans.items()):
        progress(done, len(plans), f"compile {name}")
        row: dict[str, Any] = {"name": name, "median_ms": None, "ci95_ms": None, "samples": 0}
        row |= {"paused_median_ms": None, "paused_ci95_ms": None, "paused_samples": 0}
        row |= {"predicted_ms": _to_ms(predicted.get(name)), "subgraphs": None, "note": ""}
        rows.append(row)
        try:
            executables[name] = plan.compile(ours if name == _ANSWER else session)
        except (PlacementError, ProfilingError) as cause:
            row["note"] = str(cause)
        else:
            outputs.note(
                name, executables[name], name if name == _ANSWER else plan.computes_like(session.makes)
            )
    by_name = {row["name"]: row for row in rows}
    parts = (("", Load.STEADY, 1 - _PAUSED_SHARE), ("paused_", Load.PAUSED, _PAUSED_SHARE))
    for prefix, load, share in parts:
        running = {name: e for name, e in executables.items() if not by_name[name]["note"]}
        what = "measure after pauses" if load is Load.PAUSED else "measure"
        part = seconds * share

        def show(rounds: int, _: int, spent: float, what: str = what, part: float = part) -> None:
            progress(int(10 * spent), int(10 * part), f"{what}, round {rounds}")

        result = run_in_turns(
            session,
            list(running.values()),
            load,
            part,
            min_rounds=_MOST_SAMPLES,  # nobody is dropped: the table shows them all
            max_rounds=_MOST_SAMPLES,
            names=list(running),
            **how,
            progress=show,
        )
        for name, timing in zip(running, result.timings, strict=True):
            by_name[name]["subgraphs"] = submodels.get(name, running[name].subgraphs)
            by_name[name]["note"] = timing.dropped
            by_name[name] |= _latency(timing.samples, prefix)
    return rows


def _mark_emulated(rows: list[dict[str, Any]], machine: Machine, plans: Mapping[str, ModelPlan]) -> None:
    """Say of rows that may run on a device whose times are made up that they are emulated."""
    emulated = {device for device in machine.devices if is_emulated(machine.core, device)}
    for row in rows:
        if emulated.intersection(plans[row["name"]].devices):
            row["note"] = "; ".join(filter(None, (row["note"], "emulated")))


def _predicted(placement: Placement) -> dict[str, float | None]:
    """Simulated latencies by row."""
    decision = _decision_of(placement)
    predicted = {c.name: c.predicted_seconds for c in decision.candidates}
    predicted[_ANSWER] = predicted.get(decision.chosen, placement.latency_seconds)
    return predicted


def _latency(samples: FloatArray, prefix: str) -> dict[str, Any]:
    """Fields of a row; none without samples."""
    if not len(samples):
        return {}
    median, low, high = median_interval(samples)
    proves = len(samples) >= CONVINCING_ROUNDS
    return {
        f"{prefix}median_ms": median * 1e3,
        f"{prefix}ci95_ms": [low * 1e3, high * 1e3] if proves else None,
        f"{prefix}samples": len(samples),
    }


def _to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
