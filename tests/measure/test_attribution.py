"""Whose time is whose: the nodes of a compiled model led back to ops."""

from __future__ import annotations

import numpy as np
import openvino as ov
from compiled_nodes import Node
from openvino import opset13 as opset

from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.attribution import attribute


def conv_relu_softmax() -> ComputationGraph:
    data = opset.parameter([1, 4, 8, 8], np.float32, name="data")
    kernel = opset.constant(np.ones((4, 4, 3, 3), np.float32), name="kernel")
    conv = opset.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1], name="conv")
    half = opset.constant(np.array(0.5, np.float32), name="half")
    scaled = opset.multiply(conv, half, name="scale")
    relu = opset.relu(scaled, name="relu")
    out = opset.result(opset.softmax(relu, 1, name="softmax"), name="out")
    return extract(ov.Model([out], [data], "small"))


def test_times_go_to_the_heaviest_op_of_a_fused_node_and_reorders_to_the_node_that_they_feed() -> None:
    graph = conv_relu_softmax()
    nodes = [
        Node("data", ["data"], ["in_reorder"], type="Parameter"),
        Node("in_reorder", [], ["conv"], type="Reorder"),
        Node("conv", ["conv", "relu"], ["mid_reorder"]),
        Node("mid_reorder", [], ["softmax"], type="Reorder"),
        Node("softmax", ["softmax"], ["out_reorder"]),
        Node("out_reorder", [], ["out"], type="Reorder"),
        Node("out", ["out"], [], type="Result"),
        Node("relu", [], [], layout="", status="NOT_RUN"),  # what is left of a node that was fused away
    ]
    seconds = np.array([0.0, 1.0, 10.0, 2.0, 20.0, 4.0, 0.0, 0.0])
    answer = attribute(graph, nodes, seconds)
    found = {graph.names[i]: answer.op_seconds[i] for i in np.flatnonzero(answer.op_seconds)}
    assert found == {"conv": 11.0, "softmax": 26.0}
    assert {graph.names[i]: answer.nodes_run[i] for i in np.flatnonzero(answer.nodes_run)} == {
        "conv": 2,
        "softmax": 3,
    }
    assert answer.unassigned_seconds == 0


def test_copies_at_the_ends_go_to_their_neighbours_and_optimised_out_nodes_were_not_run() -> None:
    """As the GPU plugin reports them: inputs and outputs take time, and what is fused away has a layout."""
    graph = conv_relu_softmax()
    nodes = [
        Node("data", ["data"], ["conv"], type="Parameter"),
        Node("conv", ["conv", "relu"], ["softmax"]),
        Node("softmax", ["softmax"], ["view"]),
        Node("view", [], ["out"], type="Reshape", status="OPTIMIZED_OUT"),
        Node("out", ["out"], [], type="Result"),
    ]
    answer = attribute(graph, nodes, np.array([3.0, 10.0, 20.0, 0.0, 5.0]))
    found = {graph.names[i]: answer.op_seconds[i] for i in np.flatnonzero(answer.op_seconds)}
    assert found == {"conv": 13.0, "softmax": 25.0}
    assert answer.nodes_run.sum() == 4


def test_an_op_that_the_runtime_model_shows_as_an_output_keeps_its_time() -> None:
    """As the GPU plugin reports the last op where it writes straight into the output."""
    graph = conv_relu_softmax()
    nodes = [
        Node("conv", ["conv", "relu"], ["out"]),
        Node("softmax", [], [], layout=""),
        Node("out", ["softmax"], ["out_result"], type="Result", status="OPTIMIZED_OUT"),
    ]
    answer = attribute(graph, nodes, np.array([10.0, 7.0, 0.0]))
    assert answer.op_seconds[graph.index["softmax"]] == 7.0
    assert answer.nodes_run[graph.index["softmax"]] == 1


def test_an_op_that_no_node_lists_joins_the_group_of_its_readers() -> None:
    """The Multiply is folded into the weights: nobody lists it, and relu, its only reader, is conv's."""
    graph = conv_relu_softmax()
    nodes = [Node("conv", ["conv", "relu"], ["softmax"]), Node("softmax", ["softmax"])]
    (group,) = attribute(graph, nodes, np.zeros(2)).fused
    assert set(group) == {"conv", "scale", "relu"}


def test_time_that_belongs_to_no_op_is_reported() -> None:
    graph = conv_relu_softmax()
    answer = attribute(graph, [Node("mystery", ["no such op"])], np.array([3.0]))
    assert answer.unassigned_seconds == 3.0
    assert answer.op_seconds.sum() == 0
