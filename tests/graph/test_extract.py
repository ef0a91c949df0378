"""The extracted graph says what the model is, op by op and tensor by tensor."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from graph_models import bounded_dimension, decompression, split_and_topk, state, static_shape_chain
from openvino import opset13 as ops

import zoo
from ov_autoplace.errors import ModelError, OptionError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract


def edges_by_name(graph: ComputationGraph) -> set[tuple[str, int, str, int]]:
    """(producer, its port, consumer, its port) of every edge, read from the tensors' side."""
    found = set()
    for t, producer in enumerate(graph.tensor_producer):
        for e in range(graph.tensor_offsets[t], graph.tensor_offsets[t + 1]):
            consumer = graph.names[graph.tensor_consumers[e]]
            found.add(
                (
                    graph.names[producer],
                    int(graph.tensor_port[t]),
                    consumer,
                    int(graph.tensor_consumer_port[e]),
                )
            )
    return found


@pytest.mark.parametrize("name", zoo.NAMES)
def test_ops_and_edges_are_those_of_the_model(name: str) -> None:
    model = zoo.build(name)
    graph = extract(model)
    nodes = model.get_ordered_ops()
    assert graph.names == tuple(node.get_friendly_name() for node in nodes)
    assert graph.op_types == tuple(node.get_type_name() for node in nodes)
    expected = {
        (value.get_node().get_friendly_name(), value.get_index(), node.get_friendly_name(), port)
        for node in nodes
        for port, value in enumerate(node.input_values())
    }
    assert edges_by_name(graph) == expected
    assert graph.num_edges == len(expected)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_every_edge_leads_forward_and_both_directions_agree(name: str) -> None:
    graph = extract(zoo.build(name))
    assert (graph.tensor_producer[graph.edge_tensor] < graph.tensor_consumers).all()
    by_consumer = [
        (graph.names[source], graph.names[op])
        for op in range(len(graph))
        for source in graph.input_sources[graph.input_offsets[op] : graph.input_offsets[op + 1]]
    ]
    assert sorted(by_consumer) == sorted((p, c) for p, _, c, _ in edges_by_name(graph))


def test_bytes_follow_shapes_and_element_types() -> None:
    graph = extract(split_and_topk())
    of = graph.index
    assert graph.output_bytes[of["first"]] == 2 * 8 * 4
    assert graph.output_bytes[of["halves"]] == 2 * (2 * 4 * 4)
    assert graph.precisions[of["indices"]] == "f32"
    assert graph.output_bytes[of["top"]] == 2 * 2 * 4 + 2 * 2 * 4
    assert graph.input_bytes[of["first"]] == 2 * 8 * 4, "the weight is a constant and not counted"
    assert graph.output_shapes[of["left"]] == (2, 4)


def test_packed_types_take_less_than_a_byte() -> None:
    weight = ops.constant(np.ones((4, 8), np.float32))
    x = ops.parameter([2, 8], np.float32, name="x")
    low = ops.convert(ops.convert(weight, "u4"), "f32")
    graph = extract(ov.Model([ops.result(ops.matmul(x, low, False, True))], [x]))
    assert graph.output_bytes[graph.op_types.index("Convert")] == 4 * 8 / 2


def test_a_decompression_chain_costs_nothing_and_weighs_its_source() -> None:
    graph = extract(decompression())
    of = graph.index
    for op in ("half", "centred", "scaled"):
        assert (graph.flops[of[op]], graph.weight_bytes[of[op]], graph.input_bytes[of[op]]) == (0, 0, 0)
    assert graph.weight_bytes[of["use_half"]] == 8 * 8 * 2
    assert graph.weight_bytes[of["use_second"]] == 8 * 8 * 1 + 4 + 4
    assert graph.weight_bytes[graph.is_constant].sum() == 0


def test_a_filled_weight_weighs_what_it_becomes() -> None:
    x = ops.parameter([2, 8], np.float32)
    weight = ops.broadcast(ops.constant(np.float32(1)), ops.constant([8, 5]))
    graph = extract(ov.Model([ops.result(ops.matmul(x, weight, False, False))], [x]))
    assert graph.weight_bytes.sum() == 8 * 5 * 4


def test_sizes_of_a_dynamic_model_come_from_the_given_shapes_and_marks_from_the_model() -> None:
    x = ops.parameter([-1, 8], np.float32, name="x")
    model = ov.Model([ops.result(ops.relu(x))], [x])
    graph = extract(model, {"x": [5, 8]})
    relu = graph.op_types.index("Relu")
    assert graph.output_shapes[relu] == (5, 8)
    assert graph.output_bytes[relu] == 5 * 8 * 4
    assert graph.is_dynamic.all()
    assert model.is_dynamic(), "the caller's model is not reshaped"


def test_a_data_dependent_dimension_is_unknown_and_counts_as_64() -> None:
    x = ops.parameter([100], np.float32)
    graph = extract(ov.Model([ops.result(ops.non_zero(x))], [x]))
    found = graph.op_types.index("NonZero")
    assert graph.output_shapes[found] == (1, -1)
    assert graph.output_bytes[found] == 64 * 8
    assert graph.is_dynamic[found]


def test_what_moves_or_resizes_a_tensor_of_unknown_size_keeps_its_elements() -> None:
    x = ops.parameter([1, 8, 4, 4], np.float32)
    sides = ops.squeeze(ops.slice(ops.non_zero(x), [0], [2], [1], [1]), ops.constant([1]))
    resized = ops.interpolate(x, ops.slice(sides, [0], [2], [1], [0]), "nearest", "sizes", axes=[2, 3])
    moved = ops.transpose(resized, ops.constant([0, 2, 3, 1]))
    graph = extract(ov.Model([ops.result(moved)], [x]))
    shapes = dict(zip(graph.op_types, graph.assumed_shapes, strict=True))
    assert graph.output_shapes[graph.op_types.index("Interpolate")] == (1, 8, -1, -1)
    assert shapes["Interpolate"] == (1, 8, 4, 4)
    assert shapes["Transpose"] == (1, 4, 4, 8)
    assert graph.output_bytes[graph.op_types.index("Transpose")] == 8 * 4 * 4 * 4


def test_edges_with_bounded_dimensions_above_zero_are_found() -> None:
    graph = extract(bounded_dimension())
    edges = {(graph.names[a], graph.names[b]) for a, b in graph.bounded_edges}
    assert edges == {("x", "bounded0"), ("bounded0", "bounded1"), ("bounded1", "bounded2")}


@pytest.mark.parametrize("dimension", [ov.Dimension(-1), ov.Dimension(0, 4)])
def test_dimensions_that_may_be_zero_may_be_cut(dimension: ov.Dimension) -> None:
    x = ops.parameter(ov.PartialShape([dimension, 8]), np.float32)
    graph = extract(ov.Model([ops.result(ops.relu(x))], [x]))
    assert not graph.tensor_uncuttable.any()
    assert not len(graph.bounded_edges)


def test_a_shape_chain_may_not_be_cut_but_what_it_measures_may() -> None:
    graph = extract(static_shape_chain())
    uncuttable = {graph.names[i] for i in graph.tensor_producer[graph.tensor_uncuttable]}
    assert uncuttable == {"shape", "rows", "pattern"}


def test_a_pattern_of_which_nothing_is_known_may_be_cut() -> None:
    x = ops.parameter([-1, -1], np.float32, name="x")
    y = ops.parameter([-1], np.float32, name="y")
    model = ov.Model([ops.result(ops.reshape(y, ops.shape_of(x), False))], [x, y])
    assert not extract(model, {"x": [2, 3], "y": [6]}).tensor_uncuttable.any()


def test_the_accesses_of_a_variable_are_found() -> None:
    graph = extract(state())
    assert [[graph.names[i] for i in accesses] for accesses in graph.variables] == [["read", "write"]]


def test_shapes_that_are_wrong_or_missing_are_refused() -> None:
    x = ops.parameter(ov.PartialShape("..."), np.float32, name="x")
    model = ov.Model([ops.result(ops.relu(x))], [x])
    with pytest.raises(ModelError, match="no known number of dimensions"):
        extract(model)
    with pytest.raises(OptionError, match="no input"):
        extract(model, {"y": [1]})
