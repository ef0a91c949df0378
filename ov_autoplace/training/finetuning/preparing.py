"""From a model to what tuning works on: an open session and the model's costs."""

from __future__ import annotations

import logging
from dataclasses import dataclass

import openvino as ov

from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.costs import CostSource
from ov_autoplace.decide.machine import Machine
from ov_autoplace.errors import ModelError, ProfilingError, TrainingError
from ov_autoplace.graph.model_hash import model_hash
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.measure.profiled import profile_session
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.training.finetuning.budget import TuningBudget

__all__ = ["ProfiledModel", "profiled_model"]

_log = logging.getLogger("ov_autoplace")

# What profiling a model takes beside compiling it: seconds of each timing, or inferences if they are long. A
# device is timed twice; a probe is a mix of devices, which may be slower than each of them.
_PROFILE_SECONDS = 0.35
_DEVICE_RUNS, _PROBE_RUNS = 15, 12
_PROBES = 3


@dataclass(frozen=True, eq=False)
class ProfiledModel:
    """A model that is ready to be raced.

    Attributes:
        machine: The devices that can run it, and what the user wants of them.
        prepared: The model.
        digest: Hash of everything that placements of it depend on.
        session: Compiles it on ``session.devices``; each of them has compiled it alone, where it can and may.
        table: Its costs on these devices.
        compile_seconds: How long one compilation took.
    """

    machine: Machine
    prepared: PreparedModel
    digest: str
    session: ProfilingSession
    table: CostTable
    compile_seconds: float


def profiled_model(
    model: ov.Model, machine: Machine, budget: TuningBudget, known: CostTable | None = None
) -> ProfiledModel:
    """Compile a model on each device alone and profile it.

    Where profiling would not end within the budget, costs are estimated instead; races correct them.

    Args:
        model: Is not modified.
        machine: The devices; those that cannot compile the model are left out.
        budget: The time that all may take.
        known: Costs that an earlier run measured, on the devices that it could use.

    Raises:
        TrainingError: The budget does not allow it.
        ProfilingError: No device can compile the model.
        ModelError: An op runs on none of the devices.
    """
    prepared = prepare(model, machine.options.shapes)
    if known is not None:
        machine = machine.only(known.devices)
    while True:
        budget.check()
        session = machine.open(prepared)
        try:
            failed, compile_seconds, once = _try_devices(session, budget)
            if not failed:
                table = known or _cost_table(prepared, machine, session, budget, compile_seconds, once)
                digest = model_hash(prepared.model)
                return ProfiledModel(machine, prepared, digest, session, table, compile_seconds)
        except BaseException:
            session.close()
            raise
        session.close()
        remaining = machine.without(failed)
        if not remaining.devices:
            raise next(reversed(failed.values()))
        if len(remaining.devices) < 2:
            cause = next(reversed(failed.values()))
            raise ModelError(
                f"only {remaining.devices[0]} can run the model, so there is nothing to tune: {cause}"
            )
        machine = remaining


def _try_devices(
    session: ProfilingSession, budget: TuningBudget
) -> tuple[dict[str, ProfilingError], float, float]:
    """Compile the model on each device that supports and can hold all of it, and run it once.

    Returns:
        What those that fail say; the longest compilation; the longest inference.
    """
    failed: dict[str, ProfilingError] = {}
    longest, once = 0.0, 0.0
    for device in session.devices:
        if not (session.feasibility.supports_all(device) and session.feasibility.holds_all(device)):
            continue
        budget.check()
        if not budget.allows(longest + once):
            raise TrainingError(
                f"the budget of {budget.seconds:g} s does not suffice to compile the model for each device; "
                f"{budget.spent:.0f} s were spent, and {device} needs about {longest:.0f} s more"
            )
        before = budget.spent
        try:
            executable = session.compile_device(device)
            longest = max(longest, budget.spent - before)
            first = float(executable.run(1, warmup=0)[0])
            # The first inference is often the slowest by far.
            warm = float(executable.run(1, warmup=0)[0]) if budget.allows(first) else first
            once = max(once, min(first, warm))
        except ProfilingError as cause:
            failed[device] = cause
        except RuntimeError as cause:
            failed[device] = ProfilingError(f"the model cannot be run on {device}: {cause}")
    return failed, longest, once


def _cost_table(
    prepared: PreparedModel,
    machine: Machine,
    session: ProfilingSession,
    budget: TuningBudget,
    compile_seconds: float,
    once: float,
) -> CostTable:
    """Profiled costs, without probes where the budget is short, or estimated ones where it is shorter still.

    What a profile tells that no race does is which light operations are worth moving, so that they become
    groups of their own; what crossings cost is corrected by the races too.
    """
    costs, D = CostSource(machine, budget), len(machine.devices)
    for probes in (_PROBES, 0):
        compilations, timings = D + 2 * probes, 2 * D + probes
        needed = timings * _PROFILE_SECONDS + compilations * compile_seconds
        needed += (_DEVICE_RUNS * D + _PROBE_RUNS * probes) * once
        # Costs that no time is left to correct are of little use.
        if budget.allows(2 * needed):
            # Races correct what crossings cost, so a rough fit does.
            transfers, _ = costs.transfers(session, thorough=False)
            if budget.allows(needed):
                return profile_session(session, machine.options.pins, transfers, probe=probes > 0).table
    _log.warning("the budget is too short to profile the model: its costs are estimated instead")
    return costs.estimate(prepared, session.feasibility.supported)
