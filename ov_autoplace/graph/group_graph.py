"""The graph of the groups: the same arrays as the graph of the ops, contracted."""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array, offsets_of
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.rules import GraphView
from ov_autoplace.graph.rules.light_ops import is_light

__all__ = ["group_graph"]


def group_graph(view: GraphView, labels: IntArray) -> tuple[ComputationGraph, BoolArray]:
    """Contract a graph.

    A group is named after its heaviest op (one that is not light, then most flops, then most bytes), whose
    type, precision and shape it takes. Flops, weights and steps are the sums over the members; input and
    output bytes are the sums over the members that run. A tensor is what one output port sends to other
    groups: every reading group is named once, and ports are numbered anew within each group.

    Args:
        view: The graph of the ops, N.
        labels: Group of each op, ``int32[N]``, dense and in topological order.

    Returns:
        The graph of G groups, and which of its tensors are Constants, ``bool[T]``.
    """
    graph = view.graph
    num_groups = int(labels.max(initial=-1)) + 1
    running = ~view.foldable
    heaviest = _heaviest_members(view, labels, num_groups)
    tensors, consumers, counts = _crossing_tensors(view, labels)
    producer = labels[graph.tensor_producer[tensors]]
    sources = np.repeat(producer, counts)
    order = np.argsort(consumers, kind="stable")
    consumer_ports = np.empty(len(consumers), dtype=np.int32)
    consumer_ports[order] = _position_in_row(consumers[order], num_groups)

    def sums(values: FloatArray) -> FloatArray:
        return frozen_array(np.bincount(labels, weights=values, minlength=num_groups), np.float64)

    def marked(marks: BoolArray) -> BoolArray:
        return frozen_array(np.bincount(labels, weights=marks, minlength=num_groups) > 0, np.bool_)

    contracted = ComputationGraph(
        names=tuple(graph.names[i] for i in heaviest),
        op_types=tuple(graph.op_types[i] for i in heaviest),
        precisions=tuple(graph.precisions[i] for i in heaviest),
        flops=sums(graph.flops),
        weight_bytes=sums(graph.weight_bytes),
        steps=frozen_array(sums(graph.steps.astype(np.float64)), np.int32),
        output_bytes=sums(graph.output_bytes * running),
        input_bytes=sums(graph.input_bytes * running),
        output_shapes=tuple(graph.output_shapes[i] for i in heaviest),
        assumed_shapes=tuple(graph.assumed_shapes[i] for i in heaviest),
        is_constant=frozen_array(~marked(~graph.is_constant), np.bool_),
        is_parameter=marked(graph.is_parameter),
        is_result=marked(graph.is_result),
        is_dynamic=marked(graph.is_dynamic),
        tensor_producer=frozen_array(producer, np.int32),
        tensor_port=frozen_array(_position_in_row(producer, num_groups), np.int32),
        tensor_bytes=frozen_array(graph.tensor_bytes[tensors], np.float64),
        tensor_offsets=frozen_array(offsets_of(counts), np.int32),
        tensor_consumers=frozen_array(consumers, np.int32),
        tensor_consumer_port=frozen_array(consumer_ports, np.int32),
        tensor_uncuttable=frozen_array(graph.tensor_uncuttable[tensors], np.bool_),
        input_offsets=frozen_array(offsets_of(np.bincount(consumers, minlength=num_groups)), np.int32),
        input_sources=frozen_array(sources[order], np.int32),
    )
    return contracted, frozen_array(graph.is_constant[graph.tensor_producer[tensors]], np.bool_)


def _heaviest_members(view: GraphView, labels: IntArray, num_groups: int) -> list[int]:
    """Position of the heaviest op of each group; the first one among equals."""
    graph = view.graph
    moved = graph.input_bytes + graph.output_bytes + graph.weight_bytes
    positions = np.arange(len(graph))
    order = np.lexsort((-positions, moved, graph.flops, ~is_light(view), ~view.foldable, labels))
    last = offsets_of(np.bincount(labels, minlength=num_groups))[1:] - 1
    return [int(i) for i in order[last]]


def _crossing_tensors(view: GraphView, labels: IntArray) -> tuple[IntArray, IntArray, IntArray]:
    """Tensors that other groups read, their reading groups, and how many these are.

    Tensors are ordered by producing group, then by producing op and port; the groups that read one ascend.
    """
    graph = view.graph
    producer, consumer = labels[view.edge_source], labels[view.edge_target]
    crossing = producer != consumer
    num_groups = int(labels.max(initial=-1)) + 1
    keys = np.unique(graph.edge_tensor[crossing].astype(np.int64) * num_groups + consumer[crossing])
    tensor, reader = keys // max(1, num_groups), keys % max(1, num_groups)
    order = np.lexsort((reader, tensor, labels[graph.tensor_producer[tensor]]))
    tensor, reader = tensor[order], reader[order]
    first = np.flatnonzero(np.diff(tensor, prepend=-1))
    counts = np.diff(np.append(first, len(tensor)))
    return tensor[first].astype(np.int32), reader.astype(np.int32), counts.astype(np.int32)


def _position_in_row(rows: IntArray, num_rows: int) -> IntArray:
    """Running number of each entry within its row; rows ascend."""
    starts = offsets_of(np.bincount(rows, minlength=num_rows))
    return (np.arange(len(rows)) - starts[rows]).astype(np.int32)
