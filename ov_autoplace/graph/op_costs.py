"""Flops and weight bytes of every op of a model, bodies of If, Loop and TensorIterator included."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openvino as ov

from ov_autoplace._base.arrays import BoolArray
from ov_autoplace.graph.flops import OpSizes, flops_of
from ov_autoplace.graph.foldable import foldable_ops
from ov_autoplace.graph.records import ModelReader, OpRecord, bodies_of

__all__ = ["DEFAULT_TRIP_COUNT", "op_costs"]

DEFAULT_TRIP_COUNT = 10
"""How often the body of a loop is assumed to run when its trip count is not static."""

# Foldable ops whose value has another size than what they read, such as the filled weights of a model
# whose weights were stripped. Other chains (decompression, transposition) count what they read.
_RESIZING = frozenset({"Broadcast", "Gather", "ShapeOf", "Tile"})


def op_costs(records: Sequence[OpRecord], foldable: BoolArray) -> tuple[list[float], list[float]]:
    """Flops and weight bytes of each op; foldable ops have neither.

    Args:
        records: All ops of a model in topological order, N.
        foldable: Marks of :func:`~ov_autoplace.graph.foldable.foldable_ops`, ``bool[N]``.
    """
    folded = foldable.tolist()
    constant_bytes = [0.0] * len(records)
    flops = [0.0] * len(records)
    weights = [0.0] * len(records)
    for i, record in enumerate(records):
        if folded[i]:
            if not record.sources or record.op_type in _RESIZING:
                constant_bytes[i] = sum(record.bytes)
            else:
                constant_bytes[i] = sum(constant_bytes[source] for source, _ in record.sources)
            continue
        weights[i] = sum(constant_bytes[source] for source, _ in record.sources)
        if bodies := bodies_of(record.node):
            flops[i], body_weights = _bodies_cost(record.node, bodies)
            weights[i] += body_weights
        else:
            flops[i] = flops_of(record.op_type, OpSizes(record, records))
    return flops, weights


def _bodies_cost(op: Any, bodies: Sequence[ov.Model]) -> tuple[float, float]:
    """Flops and weight bytes of an op with bodies; weights count once however often a body runs."""
    costs = [_body_cost(body) for body in bodies]
    flops, weights = max(flops for flops, _ in costs), sum(weights for _, weights in costs)
    trips = 1 if op.get_type_name() == "If" else op.get_num_iterations()
    return flops * (trips if trips >= 0 else DEFAULT_TRIP_COUNT), weights


def _body_cost(body: ov.Model) -> tuple[float, float]:
    """Flops and weight bytes of one run of a body."""
    records = ModelReader().read(body.get_ordered_ops())
    sources = [[source for source, _ in record.sources] for record in records]
    flops, weights = op_costs(records, foldable_ops([record.op_type for record in records], sources))
    return sum(flops), sum(weights)
