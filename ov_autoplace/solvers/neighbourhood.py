"""The placements around one: small moves, many of them at a time in arrays.

Whole subgraphs, blocks, single units and runs of units change their device. There are thousands of such moves
for a placement, and the simulator takes microseconds for each, so none of them may be an object of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray, offsets_of, rows_of
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.evaluator import Evaluator

__all__ = ["Moves", "Neighbourhood"]


@dataclass(frozen=True, eq=False)
class Moves:
    """M moves, each of some units to a device each.

    Attributes:
        units: The units of all moves, one move after the other, ``int32[K]``; of a unit that a move names
            twice, the last device holds.
        targets: The device that each of them changes to, ``int32[K]``.
        lengths: How many units each move has, ``int64[M]``.
    """

    units: IntArray
    targets: IntArray
    lengths: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.lengths)

    def chosen(self, numbers: NDArray[np.integer]) -> Moves:
        """Some of the moves, in this order."""
        ends = np.cumsum(self.lengths)
        lengths = self.lengths[numbers]
        entry = _ranges((ends - self.lengths)[numbers], lengths)
        return Moves(self.units[entry], self.targets[entry], lengths)

    def each(self, device: IntArray) -> IntArray:
        """What each move alone makes of an assignment, ``int32[M, U]``."""
        changed = np.repeat(device[None], len(self), axis=0)
        changed[np.repeat(np.arange(len(self)), self.lengths), self.units] = self.targets
        return changed

    def together(self, device: IntArray) -> IntArray:
        """What all moves make of an assignment; where several touch a unit, the first one counts."""
        changed: IntArray = device.copy()
        backwards = self.chosen(np.arange(len(self))[::-1])
        changed[backwards.units] = backwards.targets
        return changed

    @staticmethod
    def joined(parts: Sequence[Moves]) -> Moves:
        """All moves of several."""
        fields = ("units", "targets", "lengths")
        return Moves(*(np.concatenate([getattr(part, field) for part in parts]) for field in fields))


class Neighbourhood:
    """Moves around the placements of a problem.

    Args:
        evaluator: Scores assignments of U units.
        blocks: Units that are worth moving together, each ``int32[n]``: chains, branches, groups.
    """

    def __init__(self, evaluator: Evaluator, blocks: Sequence[IntArray] = ()) -> None:
        self._evaluator, self._units = evaluator, evaluator.units
        self._may_run = np.isfinite(self._units.op_seconds)
        self._targets = np.array(self._units.usable_devices, dtype=np.int32)
        self._block_units = np.concatenate([*blocks, np.empty(0, dtype=np.int32)]).astype(np.int32)
        self._block_ends = offsets_of([len(block) for block in blocks])

    def listed(self, device: IntArray, rng: np.random.Generator) -> Moves:
        """Subgraphs to each device, small ones first; then blocks, then units at a boundary, shuffled."""
        subgraphs = self._to_each(*self._subgraphs(device))
        others = Moves.joined([self._to_each(self._block_units, self._block_ends), self._boundary(device)])
        blocks = (len(self._block_ends) - 1) * len(self._targets)
        order = [rng.permutation(blocks), blocks + rng.permutation(len(others) - blocks)]
        return Moves.joined([subgraphs, others.chosen(np.concatenate(order))])

    def drawn(self, device: IntArray, count: int, rng: np.random.Generator) -> Moves:
        """Random moves, ``count`` of each kind: runs of units, and units or blocks that change places."""
        U, D = len(self._units), len(self._targets)
        length = np.exp2(rng.uniform(0.0, np.log2(U + 1), count)).astype(np.int64)
        run = _ranges(rng.integers(U - length + 1), length)
        kinds = [self._allowed(run, np.repeat(self._targets[rng.integers(D, size=count)], length), length)]
        pair = rng.integers(U, size=(count, 2))
        kinds.append(self._allowed(pair.ravel(), device[pair[:, ::-1]].ravel(), np.full(count, 2)))
        if blocks := len(self._block_ends) - 1:
            # One to where another is, and that one anywhere.
            chosen = rng.integers(blocks, size=(count, 2))
            there = device[self._block_units[self._block_ends[chosen[:, 1]]]]
            anywhere = self._targets[rng.integers(D, size=count)]
            lengths = np.diff(self._block_ends)[chosen].astype(np.int64)
            units = self._block_units[_ranges(self._block_ends[chosen].ravel(), lengths.ravel())]
            targets = np.repeat(np.stack([there, anywhere], axis=1).ravel(), lengths.ravel())
            kinds.append(self._allowed(units, targets, lengths.sum(axis=1)))
        # The kinds take turns.
        turns = np.arange(count * len(kinds)).reshape(len(kinds), count).T.ravel()
        return Moves.joined(kinds).chosen(turns)

    def _allowed(
        self, units: NDArray[np.integer], targets: NDArray[np.integer], lengths: NDArray[np.int64]
    ) -> Moves:
        """Moves without the units that may not run where they would go."""
        keep = self._may_run[units, targets]
        number = np.repeat(np.arange(len(lengths)), lengths)[keep]
        kept = np.bincount(number, minlength=len(lengths))
        return Moves(units[keep].astype(np.int32), targets[keep].astype(np.int32), kept)

    def _to_each(self, units: IntArray, offsets: IntArray) -> Moves:
        """Every set of units, as CSR, to every device."""
        devices, sets = len(self._targets), len(offsets) - 1
        of_device = self._allowed(
            np.tile(units, devices),
            np.repeat(self._targets, len(units)),
            np.tile(np.diff(offsets), devices).astype(np.int64),
        )
        return of_device.chosen(np.arange(devices * sets).reshape(devices, sets).T.ravel())

    def _subgraphs(self, device: IntArray) -> tuple[IntArray, IntArray]:
        """The units of each subgraph that runs, small subgraphs first, as CSR."""
        units, table = self._units, self._evaluator.table
        placement = Placement.of_groups(table, units.to_groups(device))
        subgraph_of = simulate(table, placement, self._evaluator.objective).subgraph_of
        runs = np.flatnonzero(subgraph_of >= 0)
        size = np.bincount(subgraph_of[runs])
        rank = np.empty(len(size), dtype=np.int64)
        rank[np.argsort(size, kind="stable")] = np.arange(len(size))
        pair = np.unique(rank[subgraph_of[runs]] * len(units) + units.unit_of[runs])
        subgraph, unit = np.divmod(pair, len(units))
        return unit.astype(np.int32), offsets_of(np.bincount(subgraph, minlength=len(size)))

    def _boundary(self, device: IntArray) -> Moves:
        """Each unit at a boundary between two devices to the device on the other side."""
        units = self._units
        producer = units.producer[rows_of(units.offsets)]
        crosses = device[producer] != device[units.consumers]
        before, behind = producer[crosses], units.consumers[crosses]
        ends = np.concatenate([before, behind]).astype(np.int64)
        other_side = np.concatenate([device[behind], device[before]])
        pair = np.unique(ends * units.num_devices + other_side)
        unit, target = np.divmod(pair, units.num_devices)
        return self._allowed(unit, target, np.ones(len(unit), dtype=np.int64))


def _ranges(starts: NDArray[np.integer], lengths: NDArray[np.int64]) -> NDArray[np.int64]:
    """All numbers of ranges, one range after the other, ``int64[K]``."""
    before = np.cumsum(lengths) - lengths
    return np.asarray(np.arange(int(lengths.sum())) + np.repeat(starts - before, lengths), dtype=np.int64)
