"""Flops, weight bytes and steps of every op of a model, bodies of If, Loop and TensorIterator included."""

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

_SEQUENCE_RANK = 4
# Foldable ops whose value has another size than what they read, such as the filled weights of a model
# whose weights were stripped. Other chains (decompression, transposition) count what they read.
_RESIZING = frozenset({"Broadcast", "Gather", "ShapeOf", "Tile"})


def op_costs(records: Sequence[OpRecord], foldable: BoolArray) -> tuple[list[float], list[float], list[int]]:
    """Flops, weight bytes and steps of each op; foldable ops have none of them.

    Steps are what an op has to do one after the other: the ops of a loop's body that run, each as often as
    the body does, and the time steps of a recurrent sequence; 1 for any other op.

    Args:
        records: All ops of a model in topological order, N.
        foldable: Marks of :func:`~ov_autoplace.graph.foldable.foldable_ops`, ``bool[N]``.
    """
    folded = foldable.tolist()
    constant_bytes = [0.0] * len(records)
    flops = [0.0] * len(records)
    weights = [0.0] * len(records)
    steps = [1] * len(records)
    for i, record in enumerate(records):
        if folded[i]:
            steps[i] = 0
            if not record.sources or record.op_type in _RESIZING:
                constant_bytes[i] = sum(record.bytes)
            else:
                constant_bytes[i] = sum(constant_bytes[source] for source, _ in record.sources)
            continue
        weights[i] = sum(constant_bytes[source] for source, _ in record.sources)
        if bodies := bodies_of(record.node):
            flops[i], body_weights, steps[i] = _bodies_cost(record.node, bodies)
            weights[i] += body_weights
        else:
            flops[i] = flops_of(record.op_type, OpSizes(record, records))
            steps[i] = _time_steps(record)
    return flops, weights, steps


def _time_steps(record: OpRecord) -> int:
    """Of a recurrent sequence, whose first output is ``[batch, directions, time, hidden]``."""
    if not record.op_type.endswith("Sequence") or len(record.shapes[0].dims) != _SEQUENCE_RANK:
        return 1
    _, directions, time, _ = record.shapes[0].dims
    return max(directions * time, 1)


def _bodies_cost(op: Any, bodies: Sequence[ov.Model]) -> tuple[float, float, int]:
    """Flops, weight bytes and steps of an op with bodies; weights count once however often a body runs."""
    costs = [_body_cost(body) for body in bodies]
    flops, weights = max(flops for flops, _, _ in costs), sum(weights for _, weights, _ in costs)
    trips = 1 if op.get_type_name() == "If" else op.get_num_iterations()
    trips = trips if trips >= 0 else DEFAULT_TRIP_COUNT
    return flops * trips, weights, max(1, trips * max(steps for _, _, steps in costs))


def _body_cost(body: ov.Model) -> tuple[float, float, int]:
    """Flops, weight bytes and steps of one run of a body."""
    records = ModelReader().read(body.get_ordered_ops())
    sources = [[source for source, _ in record.sources] for record in records]
    flops, weights, steps = op_costs(records, foldable_ops([record.op_type for record in records], sources))
    computing = (record.op_type not in ("Parameter", "Result") for record in records)
    return sum(flops), sum(weights), sum(n for n, runs in zip(steps, computing, strict=True) if runs)
