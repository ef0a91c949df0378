"""Ops that devices compile only where they know a size, although the model does not tell it.

A device may find such a size out by simplifying what leads to the op; from which ops is its own affair. So
everything of unknown shape before the op has to stay with it, which is more than some devices need.
"""

from __future__ import annotations

from collections.abc import Sequence

from ov_autoplace.graph.records import OpRecord

__all__ = ["wanted_size_edges"]

# Input port and dimension: the corners of a box.
_WANTED = {"MatrixNms": (0, 2), "MulticlassNms": (0, 2), "NonMaxSuppression": (0, 2)}
_INTEGERS = ("i32", "i64", "u32", "u64")


def wanted_size_edges(records: Sequence[OpRecord]) -> list[tuple[int, int]]:
    """Edges, as producer and consumer, without which a device may not know a size that it wants."""
    pending = [
        (records[op].sources[_WANTED[record.op_type][0]][0], op)
        for op, record in enumerate(records)
        if record.op_type in _WANTED and not _is_told(records, op)
    ]
    edges, seen = [], set()
    while pending:
        producer, consumer = pending.pop()
        edges.append((producer, consumer))
        if producer not in seen and records[producer].op_type != "ShapeOf":
            seen.add(producer)
            pending += [
                (source, producer)
                for source, port in records[producer].sources
                if records[source].op_type not in ("Constant", "Parameter")
                and (records[source].shapes[port].dynamic or records[source].types[port] in _INTEGERS)
            ]
    return edges


def _is_told(records: Sequence[OpRecord], op: int) -> bool:
    """Whether the model tells the size that op ``op`` wants."""
    port, dimension = _WANTED[records[op].op_type]
    producer, output = records[op].sources[port]
    known = records[producer].shapes[output].known
    return dimension < len(known) and known[dimension] >= 0
