"""Reading an ``ov.Model`` into a :class:`ComputationGraph`.

The model is walked once and never modified.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array, offsets_of, rows_of
from ov_autoplace._base.collector import collection_paused
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.foldable import foldable_ops
from ov_autoplace.graph.names import unique_names
from ov_autoplace.graph.op_costs import op_costs
from ov_autoplace.graph.records import ModelReader, OpRecord
from ov_autoplace.graph.shape_values import deciding_tensors, shape_links
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.graph.wanted_sizes import wanted_size_edges

__all__ = ["extract", "extract_structure"]

_flat = chain.from_iterable


@collection_paused()
def extract(
    model: ov.Model,
    shapes: Mapping[str, Sequence[int]] | None = None,
    records: Sequence[OpRecord] | None = None,
) -> ComputationGraph:
    """The computation graph of a model's top-level ops.

    Sizes of dynamic models are those of a clone with static input shapes (see
    :func:`~ov_autoplace.graph.shapes.with_static_shapes`). A dimension that is unknown even so, because
    it depends on data, counts as 1 when it leads other dimensions and as 64 otherwise, within its
    bounds; what only moves or resizes a tensor is assumed to keep its elements. ``output_shapes`` says -1
    for such a dimension.

    A constant counts as weight of the ops that read it when they run: the source bytes of a foldable
    chain (a compressed weight with its decompression) belong to the chain's consumer, and the chain's
    own ops cost nothing. A Gather therefore carries its whole table, of which it reads a few rows.

    If, Loop and TensorIterator are one op each that costs what their bodies cost: the dearer branch of
    an If, and every iteration of a loop (``op_costs.DEFAULT_TRIP_COUNT`` when the count is not static).

    Args:
        model: Any model; duplicate friendly names are reported as ``make_names_unique`` would set them.
        shapes: Input shapes to take sizes from, see ``with_static_shapes``.
        records: What :class:`~ov_autoplace.graph.records.ModelReader` reads of the ops, where that is known.

    Raises:
        OptionError: ``shapes`` does not fit the model.
        ModelError: A dynamic input cannot be given a size.
    """
    records = ModelReader().read(model.get_ordered_ops()) if records is None else records
    if not shapes and all(p.get_output_partial_shape(0).is_static for p in model.get_parameters()):
        return _assemble(model, records)
    # Made only when the links are known, for which more clones are made and dropped.
    return _assemble(model, records, lambda marks: _with_sizes(model, shapes, marks))


@collection_paused()
def extract_structure(model: ov.Model, records: Sequence[OpRecord] | None = None) -> ComputationGraph:
    """The computation graph of a model for questions about its structure, such as where HETERO cuts it.

    The same as :func:`extract`, but dynamic inputs keep their shapes, so that sizes mean nothing there.
    """
    return _assemble(model, ModelReader().read(model.get_ordered_ops()) if records is None else records)


def _with_sizes(
    model: ov.Model, shapes: Mapping[str, Sequence[int]] | None, marks: Sequence[OpRecord]
) -> list[OpRecord]:
    """The ops of a clone whose inputs have static shapes, in the order of the model's, ``marks``."""
    return ModelReader().read_again(with_static_shapes(model, shapes).get_ordered_ops(), marks)


def _assemble(
    model: ov.Model,
    marks: Sequence[OpRecord],
    sized: Callable[[Sequence[OpRecord]], Sequence[OpRecord]] = lambda marks: marks,
) -> ComputationGraph:
    """The graph of a model: dynamic marks from ``marks``, and sizes from what ``sized`` makes of them."""
    op_types = tuple(record.op_type for record in marks)
    input_offsets = offsets_of([len(r.sources) for r in marks])
    edges = np.fromiter(_flat(_flat(r.sources for r in marks)), np.int32, 2 * input_offsets[-1])
    input_sources, ports = np.ascontiguousarray(edges.reshape(-1, 2).T)
    foldable = foldable_ops(op_types, [[source for source, _ in r.sources] for r in marks])
    deciding = deciding_tensors(marks, foldable)
    links = shape_links(model, marks, deciding, foldable)
    records = sized(marks)
    output_offsets = offsets_of([len(r.bytes) for r in records])
    bytes_per_output = np.fromiter(_flat(r.bytes for r in records), np.float64, output_offsets[-1])
    flops, weights, steps = op_costs(records, foldable)
    dynamic = np.fromiter((s.dynamic for r in marks for s in r.shapes), np.float64, output_offsets[-1])
    edge_bytes = bytes_per_output[output_offsets[input_sources] + ports]
    edge_bytes[foldable[input_sources]] = 0.0
    return ComputationGraph(
        names=tuple(unique_names(record.name for record in marks)),
        op_types=op_types,
        precisions=tuple((r.types or records[r.sources[0][0]].types or ("dynamic",))[0] for r in records),
        flops=frozen_array(flops, np.float64),
        weight_bytes=frozen_array(weights, np.float64),
        steps=frozen_array(steps, np.int32),
        output_bytes=frozen_array(_row_sums(bytes_per_output, output_offsets), np.float64),
        input_bytes=frozen_array(_row_sums(edge_bytes, input_offsets), np.float64),
        output_shapes=tuple(r.shapes[0].known if r.shapes else () for r in records),
        assumed_shapes=tuple(r.shapes[0].dims if r.shapes else () for r in records),
        is_constant=_mark(op_types, "Constant"),
        is_parameter=_mark(op_types, "Parameter"),
        is_result=_mark(op_types, "Result"),
        is_dynamic=frozen_array(_row_sums(dynamic, output_offsets) > 0, np.bool_),
        **_tensors(records, marks, input_offsets, input_sources, ports, deciding),
        input_offsets=frozen_array(input_offsets, np.int32),
        input_sources=frozen_array(input_sources, np.int32),
        variables=_variables(marks),
        hard_edges=_edges_of(marks, lambda op, port: bool(foldable[op]) and (op, port) in deciding),
        bounded_edges=_edges_of(marks, lambda op, port: marks[op].shapes[port].bounded),
        wanted_size_edges=frozen_array(wanted_size_edges(marks), np.int32).reshape(-1, 2),
        shape_links=frozen_array(links, np.int32).reshape(-1, 3),
    )


def _tensors(
    records: Sequence[OpRecord],
    marks: Sequence[OpRecord],
    input_offsets: IntArray,
    input_sources: IntArray,
    ports: IntArray,
    deciding: set[tuple[int, int]],
) -> dict[str, Any]:
    """The ``tensor_*`` fields: one tensor per output port that somebody reads, by producer and port."""
    consumers = rows_of(input_offsets)
    consumer_ports = np.arange(len(input_sources)) - input_offsets[consumers]
    keys = input_sources.astype(np.int64) << 32 | ports
    order = np.argsort(keys, kind="stable")
    tensors, counts = np.unique(keys, return_counts=True)
    producer, port = tensors >> 32, tensors & 0xFFFFFFFF
    outputs = list(zip(producer.tolist(), port.tolist(), strict=True))
    return {
        "tensor_producer": frozen_array(producer, np.int32),
        "tensor_port": frozen_array(port, np.int32),
        "tensor_bytes": frozen_array([records[i].bytes[p] for i, p in outputs], np.float64),
        "tensor_offsets": frozen_array(offsets_of(counts), np.int32),
        "tensor_consumers": frozen_array(consumers[order], np.int32),
        "tensor_consumer_port": frozen_array(consumer_ports[order], np.int32),
        "tensor_uncuttable": frozen_array([(i, p) in deciding for i, p in outputs], np.bool_),
    }


def _edges_of(records: Sequence[OpRecord], wanted: Callable[[int, int], bool]) -> IntArray:
    """Producer and consumer of every edge from an output that is ``wanted``, ``int32[K, 2]``."""
    edges = [
        (producer, consumer)
        for consumer, record in enumerate(records)
        if record.op_type != "Result"
        for producer, port in record.sources
        if wanted(producer, port)
    ]
    return frozen_array(edges, np.int32).reshape(-1, 2)


def _variables(records: Sequence[OpRecord]) -> tuple[tuple[int, ...], ...]:
    """Positions of the ops of each state variable, by first appearance."""
    found: dict[str, list[int]] = {}
    for i, record in enumerate(records):
        if record.op_type in ("ReadValue", "Assign"):
            found.setdefault(str(record.node.get_attributes()["variable_id"]), []).append(i)
    return tuple(map(tuple, found.values()))


def _row_sums(values: FloatArray, offsets: IntArray) -> FloatArray:
    """Sum of each CSR row."""
    return np.bincount(rows_of(offsets), weights=values, minlength=len(offsets) - 1).astype(np.float64)


def _mark(op_types: tuple[str, ...], wanted: str) -> BoolArray:
    return frozen_array([op_type == wanted for op_type in op_types], np.bool_)
