"""Counting what the nodes of a model take on each device, which compiles it there whole or in pieces."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace._base.budget import Budget
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.measure.attribution import Attribution, attribute
from ov_autoplace.measure.node_counts import NodeCount, count_nodes
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.timing import FEWEST_RUNS, MOST_RUNS, SECONDS
from ov_autoplace.plan.lane import Form
from ov_autoplace.plan.plan import WholePlan, plan_of_groups

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable

__all__ = ["Column", "CountedDevices", "count_devices", "count_width"]

_log = logging.getLogger("ov_autoplace")

# Counting is repeated while other work makes the mean inference this many times as long as the median one;
# where that does not help, the second figure is worth a warning.
_QUIET, _BUSY, _TRIES = 1.3, 2.0, 3


@dataclass(frozen=True, eq=False)
class Column:
    """Node times of one device, and of the very inferences in which they were counted.

    Attributes:
        attribution: Of what ran on the device, by op.
        counted_seconds: Mean latency of the inferences; where the device got the model in pieces, their sum.
        subgraphs: How many subgraphs these ran, on all devices.
        other_seconds: Time of their nodes that is not in ``attribution``: of other devices, or of no op.
        other_nodes: Number of those nodes.
    """

    attribution: Attribution
    counted_seconds: float
    subgraphs: int = 1
    other_seconds: float = 0.0
    other_nodes: int = 0

    def dispatch_seconds(self, subgraph_seconds: float) -> float:
        """What a node took beyond the time that is told of it.

        Node times are cut off to whole microseconds and leave out the dispatch between nodes. Both are the
        same for every node whatever its size.

        Args:
            subgraph_seconds: Part of the latency per subgraph that belongs to no node.
        """
        nodes = int(self.attribution.nodes_run.sum()) + self.other_nodes
        told = float(self.attribution.op_seconds.sum()) + self.other_seconds
        return max(self.counted_seconds - self.subgraphs * subgraph_seconds - told, 0.0) / max(nodes, 1)


@dataclass(frozen=True, eq=False)
class CountedDevices:
    """What each of D devices took for the nodes of one model: some compilations and inferences each.

    Attributes:
        columns: Node times of each device, led back to ops.
        samples: Latencies of the whole model on each device alone while its nodes were counted,
            ``float64[n]`` in seconds; devices that cannot run or hold all of it are missing.
        compile_seconds: Of all compilations.
        disturbance: Mean over median latency, on the device where it is largest; see ``NodeCount``.
        capacity: Bytes that each device may hold, ``float64[D]``; ``inf`` where it can hold the whole model.
        emulation: Which devices' times are made up, as :func:`ov_autoplace.devices.names.emulation` says it.
    """

    columns: tuple[Column, ...]
    samples: Mapping[str, FloatArray]
    compile_seconds: float
    disturbance: float
    capacity: FloatArray
    emulation: str = ""

    def only(self, indices: Sequence[int], devices: Sequence[str]) -> CountedDevices:
        """What some of the devices took.

        Args:
            indices: Their positions among the D devices.
            devices: Their names.
        """
        return replace(
            self,
            columns=tuple(self.columns[d] for d in indices),
            samples={device: self.samples[device] for device in devices if device in self.samples},
            capacity=frozen_array(self.capacity[list(indices)], np.float64),
        )

    def in_turns(self, samples: Mapping[str, FloatArray]) -> CountedDevices:
        """The same with latencies of devices that ran in turns, which alone say who is faster.

        Where another one is fastest then, the counts were disturbed by as much as that.

        Args:
            samples: Of the whole model, ``float64[n]`` in seconds by device.
        """
        before = {device: float(np.median(self.samples[device])) for device in samples}
        after = {device: float(np.median(own)) for device, own in samples.items()}
        first, best = min(before, key=before.__getitem__), min(after, key=after.__getitem__)
        wrong = 1.0 if first == best else (before[best] / before[first]) * (after[first] / after[best])
        return replace(self, samples={**self.samples, **samples}, disturbance=max(self.disturbance, wrong))

    @property
    def was_disturbed(self) -> bool:
        """Whether other work kept a device so busy that its times are worth little."""
        return self.disturbance > _QUIET


@dataclass(frozen=True, eq=False)
class _Piece:
    """Counted nodes of one placement.

    Attributes:
        here: Ops that ran on the device that this is about, ``bool[N]``.
        count: The nodes, of all devices.
        subgraphs: Into how many HETERO cut the placement.
        compile_seconds: Of one compilation.
    """

    here: BoolArray
    count: NodeCount
    subgraphs: int
    compile_seconds: float


def count_devices(
    session: ProfilingSession,
    budget: Budget | None = None,
    *,
    is_firm: bool = True,
) -> CountedDevices | None:
    """Compile the model for each device of a session and count what its nodes take there.

    A device that cannot hold the whole model (``session.feasibility``) gets it piece by piece, the rest being
    elsewhere; what no piece could measure is taken to be as much slower than elsewhere as the rest.

    Args:
        session: The model and its D devices.
        budget: How long counts that were disturbed may be repeated; ``None`` = as often as it helps.
        is_firm: Stop when the budget ends. Otherwise every device is counted once.

    Returns:
        ``None`` when a firm budget ended before every device was counted.

    Raises:
        ProfilingError: A device fails on the model; its ``device`` says which.
    """
    feasibility = session.feasibility
    graph, supported = feasibility.graph, feasibility.supported
    columns, measured, samples, compile_seconds, disturbance = [], [], {}, 0.0, 1.0
    for d, device in enumerate(session.devices):
        if d and is_firm and budget is not None and budget.left <= 0:
            return None
        pieces = _count_pieces(session, graph, feasibility.covering(d), d, budget)
        columns.append(_column(graph, pieces))
        measured.append(np.logical_or.reduce([piece.here for piece in pieces]))
        if supported[:, d].all() and feasibility.holds_all(device):
            samples[device] = frozen_array(pieces[0].count.latencies, np.float64)
        compile_seconds += sum(piece.compile_seconds for piece in pieces)
        disturbance = max(disturbance, *(piece.count.disturbance for piece in pieces))
    if Cores.of_this_process().quota is not None:
        disturbance = 1.0  # what makes inferences long is the quota
    completed = _completed(columns, np.stack(measured, axis=1), supported)
    return CountedDevices(
        completed, samples, compile_seconds, disturbance, feasibility.capacity, session.emulation
    )


def count_width(
    session: ProfilingSession,
    counted: CountedDevices,
    device: str,
    width: Width,
    budget: Budget | None = None,
) -> CountedDevices:
    """What a model takes where one of the devices, a CPU, runs it on a part of its threads.

    Args:
        session: The model and its devices.
        counted: What they take as OpenVINO runs them by itself.
        device: The CPU, which can run and hold the whole model.
        width: The part.
        budget: How long counts that were disturbed may be repeated.

    Raises:
        ProfilingError: The model cannot be timed so.
    """
    graph, d = session.feasibility.graph, session.devices.index(device)
    everything = np.ones(len(graph), dtype=np.bool_)
    piece = _count_piece(
        partial(WholePlan(device, width).compile, session.counting),
        everything,
        f"{device} on {width.label}",
        budget,
        _ignore,
    )
    columns = [_column(graph, [piece]) if c == d else column for c, column in enumerate(counted.columns)]
    return replace(
        counted,
        columns=tuple(columns),
        samples={**counted.samples, device: frozen_array(piece.count.latencies, np.float64)},
        compile_seconds=piece.compile_seconds,
        disturbance=piece.count.disturbance,
    )


def _count_pieces(
    session: ProfilingSession,
    graph: ComputationGraph,
    assignments: Sequence[IntArray],
    d: int,
    budget: Budget | None,
) -> list[_Piece]:
    """Count the nodes of placements that bring parts of the model onto device ``d``.

    At least one of them; as many as the budget allows, and as run.

    Raises:
        ProfilingError: None of them runs.
    """
    device = session.devices[d]
    pieces: list[_Piece] = []
    failure = ProfilingError(f"{device} may hold too little to measure any part of the model there", device)
    for assignment in assignments:
        if pieces and budget is not None and not budget.allows(pieces[-1].compile_seconds + SECONDS):
            break
        plan = plan_of_groups(session.devices, graph.names, assignment)
        try:
            compile_it = partial(plan.compile, session.counting)
            here = assignment == d
            note = partial(_note_outputs, session, device) if here.all() else _ignore
            pieces.append(_count_piece(compile_it, here, device, budget, note))
        except ProfilingError as cause:
            # Where other devices help out, it is this one's turn all the same.
            failure = ProfilingError(str(cause), device)
            failure.__cause__ = cause
            _log.debug("a piece of the model cannot be counted on %s: %s", device, cause)
    if not pieces:
        raise failure
    return pieces


def _count_piece(
    compile_it: Callable[[], Executable],
    here: BoolArray,
    device: str,
    budget: Budget | None,
    note: Callable[[Executable], None],
) -> _Piece:
    """Count one compilation, again where other work disturbed it; ``note`` gets each."""
    tries: list[_Piece] = []
    while not tries or (tries[-1].count.disturbance > _QUIET and len(tries) < _TRIES):
        if tries and budget is not None and not budget.allows(tries[-1].compile_seconds + SECONDS):
            break
        try:
            tries.append(_counted_once(compile_it, here, note))
        except ProfilingError:
            if not tries:
                raise
            break
        if Cores.of_this_process().quota is not None:
            return tries[-1]  # a quota stops inferences, however often they are tried
    best = min(tries, key=attrgetter("count.disturbance"))
    if best.count.disturbance > _BUSY:
        _log.warning(
            "other work disturbed the profile on %s: the mean of its inferences was %.1f times their median; "
            "profile again on an idle machine if the placement matters",
            device,
            best.count.disturbance,
        )
    return best


def _ignore(executable: Executable) -> None:
    pass


def _note_outputs(session: ProfilingSession, device: str, executable: Executable) -> None:
    """Compare what the whole model on one device computes with others."""
    if session.outputs is not None:
        session.outputs.note(device, executable, session.makes[device], is_warm=True)


def _counted_once(
    compile_it: Callable[[], Executable], here: BoolArray, note: Callable[[Executable], None]
) -> _Piece:
    """Compile and count; plugins never forget what they counted, so each try is compiled anew.

    What was compiled is dropped on return: a device may have room for one piece at a time.
    """
    started = time.perf_counter()
    executable = compile_it()
    compile_seconds = time.perf_counter() - started
    count = count_nodes(executable, SECONDS, FEWEST_RUNS, MOST_RUNS)
    note(executable)
    return _Piece(here, count, executable.subgraphs, compile_seconds)


def _column(graph: ComputationGraph, pieces: Sequence[_Piece]) -> Column:
    """One device's times from all pieces; an op that is in several counts where it was first."""
    N = len(graph)
    op_seconds, nodes_run = np.zeros(N), np.zeros(N, dtype=np.int32)
    fused: list[tuple[str, ...]] = []
    forms: dict[str, Form] = {}
    done = np.zeros(N, dtype=np.bool_)
    unassigned = counted = told = 0.0
    nodes = 0
    for piece in pieces:
        found = attribute(graph, piece.count.nodes, piece.count.seconds)
        fresh = piece.here & ~done
        op_seconds[fresh], nodes_run[fresh] = found.op_seconds[fresh], found.nodes_run[fresh]
        parts = (tuple(name for name in group if fresh[graph.index[name]]) for group in found.fused)
        fused += [part for part in parts if len(part) > 1]
        forms |= found.forms
        done |= fresh
        unassigned += found.unassigned_seconds
        counted += float(np.mean(piece.count.latencies))
        told += float(found.op_seconds.sum()) + found.unassigned_seconds
        nodes += int(found.nodes_run.sum())
    attribution = Attribution(
        frozen_array(op_seconds, np.float64),
        frozen_array(nodes_run, np.int32),
        tuple(fused),
        unassigned,
        forms,
    )
    return Column(
        attribution,
        counted,
        sum(piece.subgraphs for piece in pieces),
        told - float(op_seconds.sum()),
        nodes - int(nodes_run.sum()),
    )


def _completed(columns: Sequence[Column], measured: BoolArray, supported: BoolArray) -> tuple[Column, ...]:
    """The columns with estimates for what no piece measured.

    Such an op is taken to be as many times slower than on the device that measured most, as those ops are
    that both measured.

    Args:
        columns: Of D devices.
        measured: Which op was counted on which device, ``bool[N, D]``.
        supported: Which op can run on which device, ``bool[N, D]``.
    """
    known = int(measured.sum(axis=0).argmax())
    reference = columns[known].attribution
    result = []
    for d, column in enumerate(columns):
        own = column.attribution
        missing = supported[:, d] & ~measured[:, d] & measured[:, known]
        both = measured[:, d] & measured[:, known]
        total = float(reference.op_seconds[both].sum())
        if missing.any() and total > 0:
            ratio = float(own.op_seconds[both].sum()) / total
            seconds = np.where(missing, ratio * reference.op_seconds, own.op_seconds)
            nodes_run = np.where(missing, reference.nodes_run, own.nodes_run)
            column = replace(
                column,
                attribution=replace(
                    own,
                    op_seconds=frozen_array(seconds, np.float64),
                    nodes_run=frozen_array(nodes_run, np.int32),
                ),
                other_seconds=column.other_seconds - float(seconds[missing].sum()),
                other_nodes=column.other_nodes - int(nodes_run[missing].sum()),
            )
        result.append(column)
    return tuple(result)
