"""From a model to what tuning works on: its cost table, the devices that run it, and an open session."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import openvino as ov

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target import Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.names import device_properties
from ov_autoplace.devices.support import supported_ops
from ov_autoplace.errors import ModelError, ProfilingError, TrainingError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.measure.profiled import profile_session
from ov_autoplace.measure.room import Room, memory_capacity
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.transfers import measure_transfers
from ov_autoplace.plugin.model_hash import model_hash
from ov_autoplace.training.finetuning.budget import TuningBudget

__all__ = ["Machine", "PreparedModel", "prepare"]

_log = logging.getLogger("ov_autoplace")

# What profiling a model takes beside compiling it: seconds of each timing, or inferences if they are long. A
# device is timed twice; a probe is a mix of devices, which may be slower than each of them.
_PROFILE_SECONDS = 0.35
_DEVICE_RUNS, _PROBE_RUNS = 15, 12
_PROBES = 3
# Bytes of the tensors that are handed over to measure what that costs: fewer than for a target profile,
# because what is measured afterwards corrects these costs.
_SIZES = (1 << 10, 64 << 10, 1 << 20)
_LARGEST_SHARE = 0.2  # of the free time may go into that


@dataclass
class Machine:
    """The devices of one run, with what is measured of them once for all models.

    Attributes:
        core: Where they are registered.
        devices: Their names.
        options: How models are placed on them.
        target: A target profile that knows what crossing devices costs, which is then not measured.
        transfers: Costs of launches and hand-overs by devices, once they were measured; ``None`` = that
            takes too long.
    """

    core: ov.Core
    devices: tuple[str, ...]
    options: PlacerOptions = field(default_factory=PlacerOptions)
    target: Target | None = None
    transfers: dict[tuple[str, ...], TransferFit | None] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class PreparedModel:
    """A model that is ready to be raced.

    Attributes:
        model: All of it, with unique names.
        digest: Hash of everything that placements of it depend on.
        session: Compiles it on ``session.devices``; each of them has compiled it alone, where it can and may.
        table: Its costs on these devices.
        compile_seconds: How long one compilation took.
        is_folded: Whether the session's model has shape computations of ``model`` folded.
    """

    model: ov.Model
    digest: str
    session: ProfilingSession
    table: CostTable
    compile_seconds: float
    is_folded: bool = False


def prepare(
    model: ov.Model,
    machine: Machine,
    budget: TuningBudget,
    known: CostTable | None = None,
) -> PreparedModel:
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
    whole = model.clone()
    make_names_unique(whole)
    folded = whole.clone()
    is_folded = fold_static_shapes(folded) > 0
    digest = model_hash(folded)
    options = machine.options
    graph = extract(folded, options.shapes)
    devices = machine.devices if known is None else known.devices
    while True:
        budget.check()
        properties = device_properties(machine.core, devices, options.properties)
        supported = supported_ops(machine.core, folded, graph.names, devices, properties)
        memory = memory_capacity(machine.core, devices, options.memory_limits, machine.target)
        session = ProfilingSession(
            machine.core,
            folded,
            devices,
            properties,
            options.shapes,
            options.seed,
            isolation=options.isolation,
            room=Room(tuple(devices), graph, supported, memory),
        )
        try:
            failed, compile_seconds, once = _try_devices(session, supported, budget)
            if not failed:
                table = known or _cost_table(
                    session, folded, graph, supported, machine, budget, compile_seconds, once
                )
                return PreparedModel(whole, digest, session, table, compile_seconds, is_folded)
        except BaseException:
            session.close()
            raise
        session.close()
        devices = _without(devices, failed)


def _try_devices(
    session: ProfilingSession, supported: BoolArray, budget: TuningBudget
) -> tuple[dict[str, ProfilingError], float, float]:
    """Compile the model on each device that supports and can hold all of it, and run it once.

    Returns:
        What those that fail say; the longest compilation; the longest inference.
    """
    failed: dict[str, ProfilingError] = {}
    longest, once = 0.0, 0.0
    for d, device in enumerate(session.devices):
        if not supported[:, d].all() or (session.room and not session.room.holds_all(device)):
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


def _without(devices: Sequence[str], failed: Mapping[str, ProfilingError]) -> tuple[str, ...]:
    """The devices that did not fail, of which there must be two for there to be a choice."""
    remaining = tuple(device for device in devices if device not in failed)
    for device, cause in failed.items():
        if not remaining:
            raise cause
        if len(remaining) < 2:
            raise ModelError(f"only {remaining[0]} can run the model, so there is nothing to tune: {cause}")
        _log.warning("%s is left out: %s", device, cause)
    return remaining


def _cost_table(
    session: ProfilingSession,
    model: ov.Model,
    graph: ComputationGraph,
    supported: BoolArray,
    machine: Machine,
    budget: TuningBudget,
    compile_seconds: float,
    once: float,
) -> CostTable:
    """Profiled costs, without probes where the budget is short, or estimated ones where it is shorter still.

    What a profile tells that no race does is which light operations are worth moving, so that they become
    groups of their own; what crossings cost is corrected by the races too.
    """
    D = len(session.devices)
    target = machine.target or generic_target(machine.core, session.devices)
    for probes in (_PROBES, 0):
        compilations, timings = D + 2 * probes, 2 * D + probes
        needed = timings * _PROFILE_SECONDS + compilations * compile_seconds
        needed += (_DEVICE_RUNS * D + _PROBE_RUNS * probes) * once
        # Costs that no time is left to correct are of little use.
        if budget.allows(2 * needed):
            transfers = _transfers(session, machine, budget) or target.transfers
            if budget.allows(needed):
                profile = profile_session(
                    session, graph, supported, machine.options.pins, transfers, probe=probes > 0
                )
                return profile.table
    _log.warning("the budget is too short to profile the model: its costs are estimated instead")
    return analytic_table(coarsen(graph, pins=machine.options.pins), target, session.devices, supported)


class _TooLongError(Exception):
    """Measuring was given up."""


def _transfers(session: ProfilingSession, machine: Machine, budget: TuningBudget) -> TransferFit | None:
    """Costs of launches and hand-overs, measured once per run; ``None`` when that takes too long."""
    if machine.target is not None:
        return machine.target.transfers
    if session.devices not in machine.transfers:
        end = budget.spent + _LARGEST_SHARE * budget.free

        def check(done: int, total: int, text: str) -> None:
            budget.check()
            if budget.spent > end:
                raise _TooLongError

        try:
            machine.transfers[session.devices] = measure_transfers(
                session.profiler, session.devices, sizes=_SIZES, progress=check
            )
        except _TooLongError:
            _log.warning("measuring what crossing devices costs takes too long: it is estimated instead")
            machine.transfers[session.devices] = None
    return machine.transfers[session.devices]
