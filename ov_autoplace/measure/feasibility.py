"""What devices can run and hold of one model, and how one that cannot hold all of it is profiled: in pieces.

A model that is larger than an accelerator must never be compiled for it as a whole, not even to be measured.
Such a device gets one piece of the model at a time, through HETERO, as large as it can hold, while the rest
is on other devices.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.generic_target import memory_of
from ov_autoplace.cost.liveness import MEMORY_TOLERANCE, held_bytes, liveness_of, static_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target import Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.plan.simulator import simulator_of

__all__ = ["Feasibility", "feasibility_of", "memory_capacity"]

# More compilations than this are not worth it: what lies between the pieces is then estimated.
_MOST_PIECES = 16
# HETERO may cut what must stay together at the end of a piece, which then ends some groups earlier.
_EARLIER_ENDS = 20


def memory_capacity(
    core: ov.Core, devices: Sequence[str], limits: Mapping[str, float], target: Target | None = None
) -> FloatArray:
    """Bytes that models may fill on each device, ``float64[D]``: what the user allows and what there is.

    Args:
        core: Where the devices are, which say how much memory they have unless ``target`` does.
        devices: Device names, D.
        limits: The user's, by device.
        target: A profile that knows the devices.
    """
    memory = [memory_of(core, d)[0] if target is None else target.device(d).memory_bytes for d in devices]
    allowed = [min(m, limits.get(d, np.inf)) for d, m in zip(devices, memory, strict=True)]
    return frozen_array(allowed, np.float64)


def feasibility_of(
    core: ov.Core,
    model: ov.Model,
    devices: Sequence[str],
    shapes: Mapping[str, Sequence[int]] | None = None,
    limits: Mapping[str, float] | None = None,
    target: Target | None = None,
) -> Feasibility:
    """What devices that are taken to support everything can hold of a model.

    Args:
        core: Where the devices are.
        model: Is not modified.
        devices: Device names.
        shapes: For dynamic inputs.
        limits: The user's, by device; see :func:`memory_capacity`.
        target: A profile that says how much memory the devices have; else they are asked.
    """
    graph = extract(model, shapes)
    supported = np.ones((len(graph), len(devices)), dtype=np.bool_)
    return Feasibility(tuple(devices), graph, supported, memory_capacity(core, devices, limits or {}, target))


@dataclass(frozen=True, eq=False)
class Feasibility:
    """What D devices can hold of a model of N ops.

    Attributes:
        devices: Device names.
        graph: The ops of the model.
        supported: Which op can run on which device, ``bool[N, D]``.
        memory: Bytes that each device may hold of weights and of results at one moment, ``float64[D]``.
    """

    devices: tuple[str, ...]
    graph: ComputationGraph
    supported: BoolArray
    memory: FloatArray

    def holds_all(self, device: str) -> bool:
        """Whether the whole model fits on a device."""
        return bool(np.isinf(self.capacity[self.devices.index(device)]))

    def supports_all(self, device: str) -> bool:
        """Whether a device can run every op."""
        return bool(self.supported[:, self.devices.index(device)].all())

    def refusal(self, device: str) -> str:
        """Why the whole model must not be compiled for a device; empty where it may be.

        Args:
            device: A device, or a virtual one with the names behind a colon that it may choose from.
        """
        for name in device.partition(":")[2].split(",") if ":" in device else [device]:
            if name in self.devices and not self.holds_all(name):
                memory = self.memory[self.devices.index(name)]
                return (
                    f"the model holds {self._whole_bytes:.0f} bytes of weights and results at once, and "
                    f"{name} may hold {memory:.0f}, so the whole of it is not compiled there"
                )
        return ""

    @cached_property
    def capacity(self) -> FloatArray:
        """``memory`` where it is too little for the whole model and ``inf`` elsewhere, ``float64[D]``."""
        # No device ever holds more than everything at once, which needs no groups to be found.
        everything = float(self.graph.weight_bytes.sum() + self.graph.output_bytes.sum())
        if (everything <= self.memory).all():
            return frozen_array(np.full(len(self.devices), np.inf), np.float64)
        fits = self._whole_bytes <= self.memory * MEMORY_TOLERANCE
        return frozen_array(np.where(fits, np.inf, self.memory), np.float64)

    def covering(self, d: int) -> list[IntArray]:
        """Placements that together bring everything that device ``d`` supports onto it.

        Returns:
            Device of each op, ``int32[N]`` each. No device holds more than it can in any of them. What fits
            into no piece is missing: groups that are larger than the device, and those beyond
            a limit on the number of pieces, which are then spread evenly.
        """
        if np.isinf(self.capacity).all():
            elsewhere = self.supported.argmax(axis=1)
            return [np.where(self.supported[:, d], d, elsewhere).astype(np.int32)]
        wanted = np.flatnonzero(self._table.supported[:, d]).astype(np.int32)
        nowhere = np.full(len(self._table), -1, dtype=np.int32)
        found: list[IntArray] = []
        begin = 0
        for piece in range(_MOST_PIECES):
            begin = max(begin, piece * len(wanted) // _MOST_PIECES)
            # What is larger than the device is passed over.
            while begin < len(wanted) and self._longest(wanted[begin : begin + 1], d, nowhere) == 0:
                begin += 1
            if begin == len(wanted):
                break
            end = begin + self._longest(wanted[begin:], d, nowhere)
            for last in range(end, max(end - _EARLIER_ENDS, begin), -1):
                assignment = self._completed(wanted[begin:last], d)
                if assignment is not None:
                    found.append(assignment[self._coarse.group_of])
                    end = last
                    break
            begin = end
        return found

    @cached_property
    def _coarse(self) -> CoarseGraph:
        return coarsen(self.graph)

    @cached_property
    def _table(self) -> CostTable:
        """The groups and what they hold; nothing takes time but where it cannot run."""
        seconds = np.zeros((len(self._coarse), len(self.devices)))
        op, d = np.nonzero(~self.supported)
        seconds[self._coarse.group_of[op], d] = np.inf
        nothing = frozen_array(np.zeros((len(self.devices),) * 2), np.float64)
        free = TransferFit(self.devices, nothing, nothing, nothing.diagonal().copy())
        return assemble_table(self._coarse, self.devices, seconds, free)

    @cached_property
    def _whole_bytes(self) -> float:
        table = self._table
        return float(held_bytes(table, np.zeros(len(table), dtype=np.int32))[0])

    def _holds(self, assignment: IntArray, d: int) -> bool:
        """Whether device ``d`` can hold what ``assignment`` gives it; -1 marks groups without a device."""
        here = np.where(assignment == d, 0, 1)
        liveness = liveness_of(self._table)
        assert liveness is not None  # tables of graphs know their results
        held = static_bytes(self._table)[here == 0].sum() + liveness.peak_bytes(here, 2)[0]
        return bool(held <= self.capacity[d] * MEMORY_TOLERANCE)

    def _longest(self, groups: IntArray, d: int, assignment: IntArray) -> int:
        """How many of ``groups``, from the first one on, device ``d`` has room for beside ``assignment``."""
        low, high = 0, len(groups)
        while low < high:
            middle = (low + high + 1) // 2
            trial = assignment.copy()
            trial[groups[:middle]] = d
            low, high = (middle, high) if self._holds(trial, d) else (low, middle - 1)
        return low

    def _completed(self, piece: IntArray, d: int) -> IntArray | None:
        """A placement with ``piece`` on device ``d`` and the rest where there is room; ``None`` = no way."""
        assignment = np.full(len(self._table), -1, dtype=np.int32)
        assignment[piece] = d
        others = [e for e in np.argsort(-self.capacity, kind="stable").tolist() if e != d]
        for e in [*others, d]:
            rest = np.flatnonzero((assignment < 0) & self._table.supported[:, e]).astype(np.int32)
            assignment[rest[: self._longest(rest, e, assignment)]] = e
        if (assignment < 0).any() or not np.isfinite(simulator_of(self._table).simulate(assignment)):
            return None
        return assignment
