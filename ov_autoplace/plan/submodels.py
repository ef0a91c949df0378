"""What the objective ``overlap`` cuts into submodels: pieces that no cut may part, and what they wait for.

The executor of lanes has none of HETERO's rules. A submodel is a union of whole groups; the model's inputs
are there from the start on every lane, constants are part of every submodel that reads them, and outputs are
taken where they are made. So a group of inputs, constants or outputs alone is in no submodel, and nobody
waits for it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array, offsets_of, rows_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.wiring import CONSTANT, PARAMETER, RESULT, Wiring

__all__ = ["SubmodelParts", "submodel_parts"]


@dataclass(frozen=True, eq=False)
class SubmodelParts:
    """P pieces in topological order that exchange T tensors.

    Attributes:
        piece_of: Piece of each group, ``int32[G]``: groups that must share a submodel, and all between them.
        runs: Which pieces are in a submodel at all, ``bool[P]``.
        maker: Group that makes each tensor, ``int32[T]``.
        producer: Piece that makes each tensor, ``int32[T]``.
        tensor_bytes: ``float64[T]``.
        offsets, consumers: CSR of the pieces that wait for each tensor, ``int32[T + 1]``, ``int32[E]``, each
            named once per tensor.
    """

    piece_of: IntArray
    runs: BoolArray
    maker: IntArray
    producer: IntArray
    tensor_bytes: FloatArray
    offsets: IntArray
    consumers: IntArray

    def __len__(self) -> int:
        return len(self.runs)


def submodel_parts(table: CostTable, wiring: Wiring) -> SubmodelParts:
    """The parts of a table whose ops, or whose groups in their place, are wired like this."""
    G = len(table)
    kind, group = wiring.node_kind, wiring.node_group
    works = ~np.isin(kind, (PARAMETER, CONSTANT, RESULT))
    # What the table charges for is run, whatever it is.
    costs = (np.isfinite(table.op_seconds) & (table.op_seconds > 0)).any(axis=1)
    group_runs = costs | (np.bincount(group, works, G) > 0)

    tensor = rows_of(wiring.tensor_offsets)
    maker, reader = wiring.tensor_producer[tensor], wiring.tensor_consumers
    is_waited_for = works[maker] & (kind[reader] != RESULT) & (group[maker] != group[reader])
    tensor, reader = tensor[is_waited_for], reader[is_waited_for]
    source, target = group[wiring.tensor_producer[tensor]], group[reader]

    joined = _core.connected_labels(G, _pairs(*_bound_groups(table, wiring)))
    piece_of = frozen_array(_core.merge_cycles(joined, _pairs(source, target)), np.int32)
    P = int(piece_of.max(initial=-1)) + 1
    crosses = piece_of[source] != piece_of[target]
    key = np.unique(tensor[crosses] * P + piece_of[target[crosses]])
    tensor, consumers = key // max(1, P), key % max(1, P)
    sent, lengths = np.unique(tensor, return_counts=True)
    makers = group[wiring.tensor_producer[sent]]
    return SubmodelParts(
        piece_of=piece_of,
        runs=frozen_array(np.bincount(piece_of, group_runs, P) > 0, np.bool_),
        maker=frozen_array(makers, np.int32),
        producer=frozen_array(piece_of[makers], np.int32),
        tensor_bytes=frozen_array(wiring.tensor_bytes[sent], np.float64),
        offsets=frozen_array(offsets_of(lengths), np.int32),
        consumers=frozen_array(consumers, np.int32),
    )


def _bound_groups(table: CostTable, wiring: Wiring) -> tuple[IntArray, IntArray]:
    """Pairs of groups that fail in different submodels: ends of bonds, and of tensors that cannot be cut."""
    glued = np.repeat(table.tensor_uncuttable, np.diff(table.tensor_offsets))
    first = table.tensor_producer[rows_of(table.tensor_offsets)[glued]]
    ends = wiring.node_group[wiring.bonds]
    return np.concatenate([first, ends[:, 0]]), np.concatenate([table.tensor_consumers[glued], ends[:, 1]])


def _pairs(first: NDArray[np.integer], second: NDArray[np.integer]) -> IntArray:
    return np.ascontiguousarray(np.stack([first, second], axis=1), dtype=np.int32)
