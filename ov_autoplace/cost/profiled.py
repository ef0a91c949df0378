"""The profiled cost table: a model is compiled once per device and its nodes are timed there."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from ov_autoplace._arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.attribution import Attribution, attribute
from ov_autoplace.cost.crossings import probe_assignments, with_crossing_costs
from ov_autoplace.cost.profiling import NodeCount, ProfilingSession, count_nodes, reported_failure
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit, measure_transfers
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique

if TYPE_CHECKING:
    from ov_autoplace._core import Executable

__all__ = ["Profile", "profile", "profile_session"]

_log = logging.getLogger("ov_autoplace")

# Time to spend on running each device's model, and the fewest and most inferences of one measurement.
_SECONDS = 0.3
_MIN_RUNS, _MAX_RUNS = 5, 300
_LONG = 0.02  # an inference that is its own warm-up
# Counting is repeated while other work makes the mean inference this many times as long as the median one;
# where that does not help, the second figure is worth a warning.
_QUIET, _BUSY, _TRIES = 1.3, 2.0, 3
# An op is placed on its own where its times on two devices differ by more than this share of a hand-over.
_FEW = 0.25
# Devices are timed in turns, so that a slow second of the machine hits them all.
_ROUNDS = 5


@dataclass(frozen=True, eq=False)
class Profile:
    """What profiling a model on D devices gives.

    Attributes:
        table: Costs of the groups of ``coarse``.
        coarse: The groups; what any device fuses is one group.
        samples: Latencies of the whole model on each device alone, ``float64[n]`` in seconds; devices
            that cannot run all of it are missing.
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
) -> CostTable:
    """Measure what every group of ops costs on every device.

    Args:
        model: Any model; it is not modified.
        devices: Device names, ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
        core: Where the devices are registered; a new Core when ``None``.
        shapes: Shape by input name, for dynamic models.
        properties: OpenVINO properties, as for ``compile_model``.
        pins: Device by pattern of op names; see :func:`ov_autoplace.graph.coarsen.coarsen`.
        transfers: Costs of launches and hand-overs, for example of a :class:`Target`; measured when ``None``.
        seed: Of the input data.

    Raises:
        DeviceError: A device does not exist.
        ModelError: An op runs on none of the devices.
        ProfilingError: A device fails on the model.
    """
    from ov_autoplace.devices import core_with_extra_devices, device_properties, resolve_devices
    from ov_autoplace.support import supported_ops

    core = core or core_with_extra_devices()
    devices = resolve_devices(core, devices)
    settings = device_properties(core, devices, properties)
    # As `place` and `annotate` do: a table of groups that may be cut everywhere.
    model = model.clone()
    make_names_unique(model)
    fold_static_shapes(model)
    with ProfilingSession(core, model, devices, settings, shapes, seed) as session:
        graph = extract(session.model)
        supported = supported_ops(core, session.model, graph.names, devices, settings)
        return profile_session(session, graph, supported, pins, transfers).table


def profile_session(
    session: ProfilingSession,
    graph: ComputationGraph,
    supported: BoolArray,
    pins: Mapping[str, str] | None = None,
    transfers: TransferFit | None = None,
    *,
    probe: bool = True,
) -> Profile:
    """Profile the model of an open session; the session keeps the compiled models for later races.

    Args:
        session: The model and its devices.
        graph: The graph of ``session.model``, N ops.
        supported: Which op can run on which device, ``bool[N, D]``.
        pins: Device by pattern of op names.
        transfers: Costs of launches and hand-overs; measured when ``None``.
        probe: Compile and run some placements that cross devices often, to see what crossings cost in this
            model; most of the time goes into that.

    Raises:
        ProfilingError: A device fails on the model.
    """
    devices = session.devices
    if transfers is None:
        transfers = measure_transfers(session.profiler, devices)
    transfers = transfers.for_devices(devices)
    columns = [_profile_device(session, graph, supported, d) for d in range(len(devices))]
    fused = [group for column in columns for group in column.fused]
    op_seconds = [column.op_seconds for column in columns]
    fine = coarsen(graph, fused=fused, pins=pins, light_ops=False)
    moves = _worth_moving(_group_seconds(fine, supported, op_seconds), transfers)
    coarse = coarsen(graph, fused=fused, pins=pins, heavy=moves[fine.group_of])
    raw_seconds = _group_seconds(coarse, supported, op_seconds)

    timed = {
        device: session.compile_device(device) for d, device in enumerate(devices) if supported[:, d].all()
    }
    probes: list[IntArray] = []
    for assignment in probe_assignments(raw_seconds, seed=session.seed) if probe else ():
        try:
            timed[f"probe {len(probes)}"] = session.compile_placement(_device_of(coarse, assignment, devices))
        except ProfilingError as cause:
            _log.info("a placement that was to show the cost of crossings is left out: %s", cause)
        else:
            probes.append(assignment)
    samples, failed = _time_in_turns(timed)
    for name, failure in failed.items():
        if name in devices:
            raise ProfilingError(str(failure), name) from failure
        _log.info("a placement that was to show the cost of crossings is left out: %s", failure)

    calibrated = [
        _calibrated(column, float(np.median(samples[device])) - float(launch) if device in samples else None)
        for device, column, launch in zip(devices, columns, transfers.launch_seconds, strict=True)
    ]
    table = assemble_table(
        coarse, devices, _group_seconds(coarse, supported, calibrated), transfers, source="profiled"
    )
    ran = [i for i in range(len(probes)) if f"probe {i}" in samples]
    probed = [float(np.median(samples.pop(f"probe {i}"))) for i in ran]
    probes = [probes[i] for i in ran]
    return Profile(with_crossing_costs(table, probes, probed), coarse, samples)


def _worth_moving(seconds: FloatArray, transfers: TransferFit) -> BoolArray:
    """Groups of which a few in a row, on the device that suits them, could pay for a hand-over, ``bool[G]``.

    Args:
        seconds: Of groups of ops that devices fuse, ``float64[G, D]``; ``inf`` where one cannot run. What a
            device does not run at all, such as a Concat whose inputs are written where it would put them,
            is paid for by its neighbours there, and follows one.
        transfers: Costs of launches and hand-overs between the D devices.
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


def _device_of(coarse: CoarseGraph, assignment: IntArray, devices: Sequence[str]) -> dict[str, str]:
    """Device of every op by friendly name."""
    chosen = assignment[coarse.group_of].tolist()
    return {name: devices[d] for name, d in zip(coarse.ops.names, chosen, strict=True)}


def _profile_device(
    session: ProfilingSession, graph: ComputationGraph, supported: BoolArray, d: int
) -> Attribution:
    """Node times of the ops that device ``d`` supports; others run on the first device that can."""
    chosen = np.where(supported[:, d], d, supported.argmax(axis=1))
    device_of = {name: session.devices[c] for name, c in zip(graph.names, chosen.tolist(), strict=True)}
    counts: list[NodeCount] = []
    while not counts or (counts[-1].disturbance > _QUIET and len(counts) < _TRIES):
        # Plugins never forget what they counted, so each try is compiled anew.
        try:
            executable = session.compile_placement(device_of, count_nodes=True)
            counts.append(count_nodes(executable, _SECONDS, _MIN_RUNS, _MAX_RUNS))
        except ProfilingError as cause:
            raise ProfilingError(f"{session.devices[d]}: {cause}", session.devices[d]) from cause
    best = min(counts, key=attrgetter("disturbance"))
    if best.disturbance > _BUSY:
        _log.warning(
            "other work disturbed the profile on %s: its inferences took %.1f times the median in the mean; "
            "profile again on an idle machine if the placement matters",
            session.devices[d],
            best.disturbance,
        )
    nodes, seconds = best.nodes, best.seconds
    here = _subgraphs_of_device(nodes, device_of, session.devices[d])
    kept = [i for i, node in enumerate(nodes) if node.subgraph in here]
    return attribute(graph, [nodes[i] for i in kept], seconds[kept])


def _subgraphs_of_device(nodes: Sequence[Any], device_of: Mapping[str, str], device: str) -> set[int]:
    """Submodels that ran on ``device``, told by the ops that their nodes list."""
    return {node.subgraph for node in nodes for name in node.original_names if device_of.get(name) == device}


def _time_in_turns(
    executables: Mapping[str, Executable],
) -> tuple[dict[str, FloatArray], dict[str, ProfilingError]]:
    """Latencies of each that runs, and what the others say; the machine is shared, so they take turns."""
    runs, warmup = {}, {}
    failed: dict[str, ProfilingError] = {}
    parts: dict[str, list[FloatArray]] = {device: [] for device in executables}
    for turn in range(1 + _ROUNDS):
        for device in list(parts):
            executable = executables[device]
            try:
                with reported_failure(f"the model fails when it is run on {device}"):
                    if turn == 0:
                        once = float(executable.run(2, warmup=1).min())
                        runs[device] = int(np.clip(_SECONDS / once, _MIN_RUNS, _MAX_RUNS))
                        # Refilling the caches and waking the threads after another's turn is lost in a long
                        # inference.
                        warmup[device] = int(once < _LONG)
                    else:
                        share = -(-runs[device] // _ROUNDS)
                        parts[device].append(executable.run(share, warmup=warmup[device]))
            except ProfilingError as cause:
                failed[device] = cause
                del parts[device]
    samples = {device: frozen_array(np.concatenate(found), np.float64) for device, found in parts.items()}
    return samples, failed


def _calibrated(column: Attribution, target: float | None) -> FloatArray:
    """Op times that add up to ``target`` seconds, ``float64[N]``.

    Node times are cut off to whole microseconds and leave out the dispatch between nodes. Both are the same
    for every node whatever its size, so what is missing is spread evenly over the nodes that were run.
    Where nodes add up to too much (counting slows them down), all shrink by the same factor.
    """
    total = float(column.op_seconds.sum())
    count = int(column.nodes_run.sum())
    if target is None or count == 0:
        return column.op_seconds
    target = max(target, 0.0)
    if target < total:
        return column.op_seconds * (target / total)
    return column.op_seconds + column.nodes_run * ((target - total) / count)
