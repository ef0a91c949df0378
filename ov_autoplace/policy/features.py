"""What the networks of the papers see of a problem: structure, types of ops, and where each may run."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import offsets_of
from ov_autoplace.policy.structure import structural_features
from ov_autoplace.policy.vocabulary import op_type_indices
from ov_autoplace.problem.unit_costs import UnitCosts

__all__ = ["PolicyGraph"]


class PolicyGraph(UnitCosts):
    """N units, as policies see them. Neither of the two papers reads costs; explorations and searches do."""

    @cached_property
    def op_type(self) -> NDArray[np.int64]:
        """Vocabulary index of each unit's heaviest group, ``int64[N]``."""
        table = self.problem.table
        return op_type_indices(table.op_types, len(table))[self._heaviest]

    @cached_property
    def node_features(self) -> NDArray[np.float32]:
        """Structure, ``float32[N, F]``; columns are named by ``policy.structure.NODE_FEATURES``."""
        shapes = self.problem.table.output_shapes
        return structural_features(
            self.edge_source,
            self.edge_target,
            len(self),
            () if shapes is None else tuple(shapes[g] for g in self._heaviest),
            self.output_bytes,
        )

    @cached_property
    def output_bytes(self) -> NDArray[np.float64]:
        """Bytes that each unit sends to others, ``float64[N]``."""
        units = self.problem.units
        return np.bincount(units.producer, units.tensor_bytes, len(self)).astype(np.float64)

    @cached_property
    def _heaviest(self) -> NDArray[np.int64]:
        """Of each unit the group that takes longest, ``int64[N]``."""
        table, units = self.problem.table, self.problem.units
        if len(units) == len(table):
            return np.arange(len(table))
        seconds = np.where(table.supported, table.op_seconds, 0.0).max(axis=1)
        order = np.lexsort((seconds, units.unit_of))
        last = offsets_of(np.bincount(units.unit_of, minlength=len(units)))[1:] - 1
        return np.asarray(order[last], dtype=np.int64)
