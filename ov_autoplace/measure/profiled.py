"""The profiled cost table: a model is compiled for each device and its nodes are timed there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.device_config import config_for
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.counting import Column, CountedDevices, count_devices
from ov_autoplace.measure.crossings import PROBES, probe_assignments, with_crossing_costs
from ov_autoplace.measure.feasibility import Feasibility
from ov_autoplace.measure.opening import open_session
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.timing import mood_of, time_in_turns
from ov_autoplace.measure.transfers import measure_transfers
from ov_autoplace.plan.plan import plan_of_groups

__all__ = ["Profile", "calibrated", "counted_profile", "profile", "profile_session"]

_log = logging.getLogger("ov_autoplace")

# An op is placed on its own where its times on two devices differ by more than this share of a transfer.
_FEW = 0.25
_LESS = 1 - 1e-6  # than the whole model, by more than sums are rounded
_PROBE = "probe "  # begins the names of placements that are run for what crossings cost


@dataclass(frozen=True, eq=False)
class Profile:
    """What profiling a model on D devices gives.

    Attributes:
        table: Costs of the groups of ``coarse``.
        coarse: The groups; what any device fuses is one group.
        samples: Latencies of the whole model on each device alone while the machine was undisturbed,
            ``float64[n]`` in seconds; devices that cannot run or hold all of it are missing.
    """

    table: CostTable
    coarse: CoarseGraph
    samples: Mapping[str, FloatArray]


def profile(
    model: ov.Model,
    devices: str | Sequence[str] | None = None,
    core: ov.Core | None = None,
    *,
    shapes: Mapping[str, Sequence[int]] | None = None,
    properties: Mapping[str, Any] | None = None,
    pins: Mapping[str, str] | None = None,
    transfers: TransferFit | None = None,
    seed: int = 0,
    isolation: bool = True,
    memory_limits: Mapping[str, float] | None = None,
) -> CostTable:
    """Measure what every group of ops costs on every device.

    Args:
        model: Any model; it is not modified.
        devices: Device names, ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
        core: Where the devices are registered; a new Core when ``None``.
        shapes: Shape by input name, for dynamic models.
        properties: OpenVINO properties, as for ``compile_model``.
        pins: Device by pattern of op names; see :func:`ov_autoplace.graph.coarsen.coarsen`.
        transfers: Costs of launches and transfers, for example of a :class:`Target`; measured when ``None``.
        seed: Of the input data.
        isolation: Compile and run in a child process; see ``AUTOPLACE_ISOLATION``.
        memory_limits: Bytes by device, where that is less than it has. The model is never compiled as a whole
            for a device that cannot hold it.

    Raises:
        DeviceError: A device does not exist.
        OptionError: A property that no device knows, or a value that one refuses.
        ModelError: An op runs on none of the devices.
        ProfilingError: A device fails on the model.
    """
    from ov_autoplace.devices.names import resolve_devices

    core = core or own_core()
    devices = resolve_devices(core, devices)
    with open_session(
        core,
        prepare(model, shapes),
        devices,
        properties=config_for(core, devices, properties or {}),
        memory_limits=memory_limits,
        seed=seed,
        isolation=isolation,
    ) as session:
        return profile_session(session, pins, transfers).table


def profile_session(
    session: ProfilingSession,
    pins: Mapping[str, str] | None = None,
    transfers: TransferFit | None = None,
    *,
    probe: bool = True,
    counted: CountedDevices | None = None,
) -> Profile:
    """Profile the model of an open session; the session keeps the compiled models for later races.

    Args:
        session: The model and its devices.
        pins: Device by pattern of op names.
        transfers: Costs of launches and transfers; measured when ``None``.
        probe: Compile and run some placements that cross devices often, to see what crossings cost in this
            model; most of the time goes into that.
        counted: What :func:`~ov_autoplace.measure.counting.count_devices` gave, when it was asked before.

    Raises:
        ProfilingError: A device fails on the model.
    """
    devices, graph, supported = session.devices, session.feasibility.graph, session.feasibility.supported
    if transfers is None:
        transfers = measure_transfers(session.profiler, devices)
    transfers = transfers.for_devices(devices)
    counted = counted or count_devices(session)
    assert counted is not None  # without a budget, every device is counted
    coarse = _groups(graph, supported, counted, pins, transfers)
    raw_seconds = _group_seconds(
        coarse, supported, [column.attribution.op_seconds for column in counted.columns]
    )

    timed = {
        device: session.compile_device(device)
        for d, device in enumerate(devices)
        if supported[:, d].all() and np.isinf(counted.capacity[d])
    }
    probes: dict[str, IntArray] = {}
    # All probes are compiled at the same time, so they share what a device can hold.
    raw = assemble_table(coarse, devices, raw_seconds, transfers, counted.capacity / PROBES, "profiled")
    with ExitStack() as processes:
        for i, assignment in enumerate(probe_assignments(raw, seed=session.seed) if probe else ()):
            apart = processes.enter_context(session.apart())
            try:
                plan = plan_of_groups(devices, coarse.ops.names, assignment[coarse.group_of])
                executable = plan.compile(apart)
            except ProfilingError as cause:
                _log.info("a placement that was to show the cost of crossings is left out: %s", cause)
            else:
                name = f"{_PROBE}{i}"
                timed[name], probes[name] = executable, assignment
        turns = time_in_turns(timed, dispensable=probes)
    alone = [device for device in devices if device in turns]
    ran = [name for name in probes if name in turns]
    mood = mood_of([turns[name] for name in alone or ran]) if turns else None
    samples = {device: mood.samples(turns[device]) for device in alone} if mood else {}
    probed = [mood.seconds(turns[name]) for name in ran] if mood else []
    table = _table(coarse, devices, supported, counted, samples, transfers)
    return Profile(with_crossing_costs(table, [probes[name] for name in ran], probed), coarse, samples)


def counted_profile(
    feasibility: Feasibility,
    counted: CountedDevices,
    pins: Mapping[str, str] | None,
    transfers: TransferFit,
    *,
    separable: bool = False,
) -> Profile:
    """The profile as far as it follows from the counted nodes, without another compilation or inference.

    Args:
        feasibility: The model's ops, and the devices that support them.
        counted: What :func:`~ov_autoplace.measure.counting.count_devices` gave for these devices.
        pins: Device by pattern of op names.
        transfers: Costs of launches and transfers.
        separable: Every op that runs is a group, for lanes of one device, on which all ops take equally long.
    """
    if separable:
        coarse = coarsen(feasibility.graph, fused=_fused(counted), pins=pins, light_ops=False)
    else:
        coarse = _groups(feasibility.graph, feasibility.supported, counted, pins, transfers)
    table = _table(coarse, feasibility.devices, feasibility.supported, counted, counted.samples, transfers)
    return Profile(table, coarse, counted.samples)


def _groups(
    graph: ComputationGraph,
    supported: BoolArray,
    counted: CountedDevices,
    pins: Mapping[str, str] | None,
    transfers: TransferFit,
) -> CoarseGraph:
    """The groups that may be placed: what a device fuses, and what could pay for a transfer, stays apart."""
    fused = _fused(counted)
    op_seconds = [column.attribution.op_seconds for column in counted.columns]
    fine = coarsen(graph, fused=fused, pins=pins, light_ops=False)
    moves = _worth_moving(_group_seconds(fine, supported, op_seconds), transfers)
    return coarsen(graph, fused=fused, pins=pins, heavy=moves[fine.group_of])


def _fused(counted: CountedDevices) -> list[tuple[str, ...]]:
    """Ops that some device runs as one kernel."""
    return [group for column in counted.columns for group in column.attribution.fused]


def _table(
    coarse: CoarseGraph,
    devices: Sequence[str],
    supported: BoolArray,
    counted: CountedDevices,
    samples: Mapping[str, FloatArray],
    transfers: TransferFit,
) -> CostTable:
    """Costs of the groups; each device's add up to what it takes for the whole model."""
    others = ~np.eye(len(devices), dtype=bool)
    # Beside its nodes, a mix pays for each subgraph and for what is transferred to it.
    crossing = float(transfers.launch_seconds.mean())
    crossing += float(transfers.latency[others].mean()) if len(devices) > 1 else 0.0
    of_devices = []
    for device, column, launch in zip(
        devices, counted.columns, transfers.launch_seconds.tolist(), strict=True
    ):
        if device in samples:
            of_devices.append(calibrated(column, float(np.median(samples[device])), launch))
        else:
            of_devices.append(_dispatched(column, crossing))
    seconds = _group_seconds(coarse, supported, of_devices)
    table = assemble_table(
        coarse, devices, seconds, transfers, counted.capacity, "profiled" + counted.emulation
    )
    # These groups may seem to need less at once than those by which devices were found to be too small.
    whole = held_bytes(table, np.zeros(len(table), dtype=np.int32))[0] * _LESS
    capacity = np.where(np.isinf(counted.capacity), np.inf, np.minimum(counted.capacity, whole))
    return replace(table, memory_capacity=frozen_array(capacity, np.float64))


def _worth_moving(seconds: FloatArray, transfers: TransferFit) -> BoolArray:
    """Groups of which a few in a row, on the device that suits them, could pay for a transfer, ``bool[G]``.

    Args:
        seconds: Of groups of ops that devices fuse, ``float64[G, D]``; ``inf`` where one cannot run. What a
            device does not run at all, such as a Concat whose inputs are written where it would put them,
            is paid for by its neighbours there, and follows one.
        transfers: Costs of launches and transfers between the D devices.
    """
    slowest = np.where(np.isfinite(seconds), seconds, 0.0).max(axis=1)
    fastest = seconds.min(axis=1)
    others = ~np.eye(seconds.shape[1], dtype=bool)
    crossing = (transfers.latency + transfers.launch_seconds[None, :])[others].min(initial=np.inf)
    return np.asarray((fastest > 0) & (slowest - fastest > _FEW * crossing))


def _group_seconds(coarse: CoarseGraph, supported: BoolArray, op_seconds: Sequence[FloatArray]) -> FloatArray:
    """Times of groups from times of ops, ``float64[G, D]``; ``inf`` where a member cannot run."""
    result = np.empty((len(coarse), len(op_seconds)))
    for d, seconds in enumerate(op_seconds):
        result[:, d] = np.bincount(coarse.group_of, weights=seconds, minlength=len(coarse))
        result[coarse.group_of[~supported[:, d]], d] = np.inf
    return frozen_array(result, np.float64)


def _dispatched(column: Column, subgraph_seconds: float) -> FloatArray:
    """Op times of a device with the dispatch of their nodes, ``float64[N]``.

    Args:
        column: Of the device.
        subgraph_seconds: Part of the latency per subgraph that belongs to no op.
    """
    attribution = column.attribution
    dispatch = column.dispatch_seconds(subgraph_seconds)
    return np.asarray(attribution.op_seconds + attribution.nodes_run * dispatch)


def calibrated(column: Column, alone_seconds: float, launch_seconds: float) -> FloatArray:
    """Op times that, with one launch, add up to the latency of the whole model, ``float64[N]``.

    What the counted inferences took longer than their nodes is spread evenly over the nodes that were run.
    How much that is must come from those inferences themselves: when the model is timed again, the
    machine may be slower by half, and so is every node, the longest most.

    Args:
        column: Of a device that ran the whole model.
        alone_seconds: Latency of the whole model there.
        launch_seconds: Part of both latencies that belongs to no op.
    """
    nodes_run = column.attribution.nodes_run
    count = int(nodes_run.sum())
    if count == 0:
        return column.attribution.op_seconds
    spread = _dispatched(column, launch_seconds)
    target = max(alone_seconds - launch_seconds, 0.0)
    total = float(spread.sum())
    # A device whose nodes take no time that it tells: evenly is all that can be said.
    return np.asarray(spread * (target / total) if total > 0 else nodes_run * (target / count))
