"""The profiled cost table: a model is compiled once per device and its nodes are timed there."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.measure.attribution import Attribution, attribute
from ov_autoplace.measure.crossings import probe_assignments, with_crossing_costs
from ov_autoplace.measure.session import NodeCount, ProfilingSession, count_nodes, failing_on
from ov_autoplace.measure.transfers import measure_transfers

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["CountedDevices", "Profile", "count_devices", "counted_profile", "profile", "profile_session"]

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
_PROBE = "probe "  # begins the names of placements that are run for what crossings cost


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


@dataclass(frozen=True, eq=False)
class _Column:
    """Node times of one device, and the mean latency of the very inferences in which they were counted."""

    attribution: Attribution
    counted_seconds: float


@dataclass(frozen=True, eq=False)
class CountedDevices:
    """What each of D devices took for the nodes of one model: one compilation and some inferences each.

    Attributes:
        columns: Node times of each device, led back to ops.
        samples: Latencies of the whole model on each device alone while its nodes were counted,
            ``float64[n]`` in seconds; devices that cannot run all of it are missing.
        compile_seconds: Of all D compilations.
        disturbance: Mean over median latency, on the device where it is largest; see ``NodeCount``.
    """

    columns: tuple[_Column, ...]
    samples: Mapping[str, FloatArray]
    compile_seconds: float
    disturbance: float

    @property
    def was_disturbed(self) -> bool:
        """Whether other work kept a device so busy that its times are worth little."""
        return self.disturbance > _QUIET


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
        isolation: Compile and run in a child process; see ``AUTOPLACE_ISOLATION``.

    Raises:
        DeviceError: A device does not exist.
        ModelError: An op runs on none of the devices.
        ProfilingError: A device fails on the model.
    """
    from ov_autoplace.devices.names import core_with_extra_devices, device_properties, resolve_devices
    from ov_autoplace.devices.support import supported_ops

    core = core or core_with_extra_devices()
    devices = resolve_devices(core, devices)
    settings = device_properties(core, devices, properties)
    # As `place` and `annotate` do: a table of groups that may be cut everywhere.
    model = model.clone()
    make_names_unique(model)
    fold_static_shapes(model)
    with ProfilingSession(core, model, devices, settings, shapes, seed, isolation=isolation) as session:
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
    counted: CountedDevices | None = None,
) -> Profile:
    """Profile the model of an open session; the session keeps the compiled models for later races.

    Args:
        session: The model and its devices.
        graph: The graph of the model that the session was opened with, N ops. The session's own may lack
            some of them, whose values its static shapes tell.
        supported: Which op can run on which device, ``bool[N, D]``.
        pins: Device by pattern of op names.
        transfers: Costs of launches and hand-overs; measured when ``None``.
        probe: Compile and run some placements that cross devices often, to see what crossings cost in this
            model; most of the time goes into that.
        counted: What :func:`count_devices` gave, when it was asked before.

    Raises:
        ProfilingError: A device fails on the model.
    """
    devices = session.devices
    if transfers is None:
        transfers = measure_transfers(session.profiler, devices)
    transfers = transfers.for_devices(devices)
    counted = counted or count_devices(session, graph, supported)
    assert counted is not None  # without a budget, every device is counted
    coarse = _groups(graph, supported, counted, pins, transfers)
    raw_seconds = _group_seconds(
        coarse, supported, [column.attribution.op_seconds for column in counted.columns]
    )

    timed = {
        device: session.compile_device(device) for d, device in enumerate(devices) if supported[:, d].all()
    }
    probes: list[IntArray] = []
    raw = assemble_table(coarse, devices, raw_seconds, transfers, source="profiled")
    for assignment in probe_assignments(raw, seed=session.seed) if probe else ():
        try:
            timed[f"{_PROBE}{len(probes)}"] = session.compile_placement(
                _device_of(coarse, assignment, devices)
            )
        except ProfilingError as cause:
            _log.info("a placement that was to show the cost of crossings is left out: %s", cause)
        else:
            probes.append(assignment)
    turns = _time_in_turns(timed)
    samples = {
        device: frozen_array(np.concatenate(turns[device]), np.float64)
        for device in devices
        if device in turns
    }
    drift = _drift([turns[device] for device in samples])
    ran = [i for i in range(len(probes)) if f"{_PROBE}{i}" in turns]
    probed = [_without_drift(turns[f"{_PROBE}{i}"], drift) for i in ran]
    table = _table(coarse, devices, supported, counted, samples, transfers)
    return Profile(with_crossing_costs(table, [probes[i] for i in ran], probed), coarse, samples)


def counted_profile(
    devices: Sequence[str],
    graph: ComputationGraph,
    supported: BoolArray,
    counted: CountedDevices,
    pins: Mapping[str, str] | None,
    transfers: TransferFit,
) -> Profile:
    """The profile as far as it follows from the counted nodes, without another compilation or inference.

    Args:
        devices: Device names, D.
        graph: The graph of the model, N ops.
        supported: Which op can run on which device, ``bool[N, D]``.
        counted: What :func:`count_devices` gave for these devices.
        pins: Device by pattern of op names.
        transfers: Costs of launches and hand-overs.
    """
    coarse = _groups(graph, supported, counted, pins, transfers)
    table = _table(coarse, devices, supported, counted, counted.samples, transfers)
    return Profile(table, coarse, counted.samples)


def count_devices(
    session: ProfilingSession,
    graph: ComputationGraph,
    supported: BoolArray,
    budget: Budget | None = None,
    *,
    is_firm: bool = True,
) -> CountedDevices | None:
    """Compile the model for each device of a session and count what its nodes take there.

    Args:
        session: The model and its D devices.
        graph: The graph of ``session.model``, N ops.
        supported: Which op can run on which device, ``bool[N, D]``.
        budget: How long counts that were disturbed may be repeated; ``None`` = as often as it helps.
        is_firm: Stop when the budget ends. Otherwise every device is counted once.

    Returns:
        ``None`` when a firm budget ended before every device was counted.

    Raises:
        ProfilingError: A device fails on the model; its ``device`` says which.
    """
    columns, samples, compile_seconds, disturbance = [], {}, 0.0, 1.0
    for d, device in enumerate(session.devices):
        if d and is_firm and budget is not None and budget.left <= 0:
            return None
        column, count, seconds = _profile_device(session, graph, supported, d, budget)
        columns.append(column)
        if supported[:, d].all():
            samples[device] = frozen_array(count.latencies, np.float64)
        compile_seconds += seconds
        disturbance = max(disturbance, count.disturbance)
    return CountedDevices(tuple(columns), samples, compile_seconds, disturbance)


def _groups(
    graph: ComputationGraph,
    supported: BoolArray,
    counted: CountedDevices,
    pins: Mapping[str, str] | None,
    transfers: TransferFit,
) -> CoarseGraph:
    """The groups that may be placed: what a device fuses, and what could pay for a hand-over, stays apart."""
    fused = [group for column in counted.columns for group in column.attribution.fused]
    op_seconds = [column.attribution.op_seconds for column in counted.columns]
    fine = coarsen(graph, fused=fused, pins=pins, light_ops=False)
    moves = _worth_moving(_group_seconds(fine, supported, op_seconds), transfers)
    return coarsen(graph, fused=fused, pins=pins, heavy=moves[fine.group_of])


def _table(
    coarse: CoarseGraph,
    devices: Sequence[str],
    supported: BoolArray,
    counted: CountedDevices,
    samples: Mapping[str, FloatArray],
    transfers: TransferFit,
) -> CostTable:
    """Costs of the groups; each device's add up to what it takes for the whole model."""
    calibrated = [
        _calibrated(column, float(np.median(samples[device])) if device in samples else None, float(launch))
        for device, column, launch in zip(devices, counted.columns, transfers.launch_seconds, strict=True)
    ]
    seconds = _group_seconds(coarse, supported, calibrated)
    return assemble_table(coarse, devices, seconds, transfers, source="profiled")


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
    session: ProfilingSession,
    graph: ComputationGraph,
    supported: BoolArray,
    d: int,
    budget: Budget | None = None,
) -> tuple[_Column, NodeCount, float]:
    """Node times of the ops that device ``d`` supports; others run on the first device that can.

    Returns:
        Besides them, the count that they are from, and the seconds that one compilation took.
    """
    chosen = np.where(supported[:, d], d, supported.argmax(axis=1))
    device_of = {name: session.devices[c] for name, c in zip(graph.names, chosen.tolist(), strict=True)}
    counts: list[NodeCount] = []
    compile_seconds = 0.0
    while not counts or (counts[-1].disturbance > _QUIET and len(counts) < _TRIES):
        if counts and budget is not None and not budget.allows(compile_seconds + _SECONDS):
            break
        # Plugins never forget what they counted, so each try is compiled anew.
        started = time.perf_counter()
        try:
            executable = session.compile_placement(device_of, count_nodes=True)
            compile_seconds = time.perf_counter() - started
            counts.append(count_nodes(executable, _SECONDS, _MIN_RUNS, _MAX_RUNS))
        except ProfilingError as cause:
            # Where other devices help out, it is this one's turn all the same.
            raise ProfilingError(str(cause), session.devices[d]) from cause
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
    attribution = attribute(graph, [nodes[i] for i in kept], seconds[kept])
    return _Column(attribution, float(np.mean(best.latencies))), best, compile_seconds


def _subgraphs_of_device(nodes: Sequence[Any], device_of: Mapping[str, str], device: str) -> set[int]:
    """Submodels that ran on ``device``, told by the ops that their nodes list."""
    return {node.subgraph for node in nodes for name in node.original_names if device_of.get(name) == device}


def _time_in_turns(executables: Mapping[str, Executable]) -> dict[str, list[FloatArray]]:
    """Latencies of each executable, by round; the machine is shared, so they take turns.

    Probes that fail are missing.

    Raises:
        ProfilingError: A device fails.
    """
    running = dict(executables)
    parts: dict[str, list[FloatArray]] = {name: [] for name in executables}
    runs, warmup = {}, {}

    def run(name: str, count: int, cold: int) -> FloatArray | None:
        try:
            with failing_on(name):
                return np.asarray(executables[name].run(count, warmup=cold))
        except ProfilingError as cause:
            if not name.startswith(_PROBE):
                raise
            _log.info("a placement that was to show the cost of crossings is left out: %s", cause)
            del running[name]
            return None

    for name in executables:
        first = run(name, 2, 1)
        if first is not None:
            once = float(first.min())
            runs[name] = int(np.clip(_SECONDS / once, _MIN_RUNS, _MAX_RUNS))
            # Refilling the caches and waking the threads after another's turn is lost in a long inference.
            warmup[name] = int(once < _LONG)
    for _ in range(_ROUNDS):
        for name in list(running):
            samples = run(name, -(-runs[name] // _ROUNDS), warmup[name])
            if samples is not None:
                parts[name].append(samples)
    return {name: parts[name] for name in running}


def _drift(alone: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """How slow the machine was in each round, ``float64[rounds]``: 1 where as in the median of all rounds.

    The clock of a shared or a hot processor falls to half for seconds at a time. Single devices are timed in
    every round, so they tell (by their geometric mean) how much of a latency is the machine's mood.

    Args:
        alone: Latencies of each single device by round; none leaves every round as it is.
    """
    if not alone:
        return np.ones(_ROUNDS)
    rounds = np.array([[np.median(part) for part in parts] for parts in alone])
    whole = np.array([[np.median(np.concatenate(parts))] for parts in alone])
    return np.asarray(np.exp(np.log(rounds / whole).mean(axis=0)), dtype=np.float64)


def _without_drift(parts: Sequence[FloatArray], drift: FloatArray) -> float:
    """Median over rounds of the latency, each round as if the machine had been as in the median round."""
    return float(
        np.median([np.median(part) / slow for part, slow in zip(parts, drift.tolist(), strict=True)])
    )


def _calibrated(column: _Column, alone_seconds: float | None, launch_seconds: float) -> FloatArray:
    """Op times that, with one launch, add up to the latency of the whole model, ``float64[N]``.

    Node times are cut off to whole microseconds and leave out the dispatch between nodes. Both are the same
    for every node whatever its size, so what the counted inferences took longer than their nodes is spread
    evenly over the nodes that were run. How much that is must come from those inferences themselves: when
    the model is timed again, the machine may be slower by half, and so is every node, the longest most.

    Args:
        column: Of one device.
        alone_seconds: Latency of the whole model there; ``None`` where the device does not run all of it.
        launch_seconds: Part of both latencies that belongs to no op.
    """
    seconds, nodes_run = column.attribution.op_seconds, column.attribution.nodes_run
    count = int(nodes_run.sum())
    if alone_seconds is None or count == 0:
        return seconds
    dispatch = max(column.counted_seconds - launch_seconds - float(seconds.sum()), 0.0) / count
    spread = seconds + nodes_run * dispatch
    target = max(alone_seconds - launch_seconds, 0.0)
    total = float(spread.sum())
    # A device whose nodes take no time that it tells: evenly is all that can be said.
    return np.asarray(spread * (target / total) if total > 0 else nodes_run * (target / count))
