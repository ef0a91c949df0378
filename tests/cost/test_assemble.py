"""From a coarse graph to a cost table."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import TargetError
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.extract import extract

FIT = TransferFit(
    devices=("CPU", "GPU"),
    latency=np.array([[1.0, 2.0], [3.0, 4.0]]),
    seconds_per_byte=np.array([[5.0, 6.0], [7.0, 8.0]]),
    launch_seconds=np.array([9.0, 10.0]),
)


@pytest.fixture
def coarse() -> CoarseGraph:
    """x -> double = x + x -> {square = double * double, out}, with every op its own group."""
    x = op.parameter([2, 3], np.float32, name="x")
    double = op.add(x, x, name="double")
    square = op.multiply(double, double, name="square")
    results = [op.result(double, name="out0"), op.result(square, name="out1")]
    graph = extract(ov.Model(results, [x], "squares"))
    return CoarseGraph(
        graph=graph,
        ops=graph,
        group_of=np.arange(len(graph), dtype=np.int32),
        tensor_is_constant=np.zeros(len(graph.tensor_producer), dtype=np.bool_),
    )


def test_a_consumer_that_reads_twice_stands_once(coarse):
    table = assemble_table(coarse, ("GPU", "CPU"), np.ones((len(coarse), 2)), FIT)
    consumers = {}
    for t, producer in enumerate(table.tensor_producer):
        reached = table.tensor_consumers[table.tensor_offsets[t] : table.tensor_offsets[t + 1]]
        consumers[table.names[producer]] = [table.names[g] for g in reached]
    assert consumers["x"] == ["double"]
    assert sorted(consumers["double"]) == ["out0", "square"]
    assert consumers["square"] == ["out1"]


def test_costs_stand_in_the_order_of_the_devices_asked_for(coarse):
    table = assemble_table(coarse, ("GPU", "CPU"), np.ones((len(coarse), 2)), FIT, source="profiled")
    assert table.transfer_latency.tolist() == [[4.0, 3.0], [2.0, 1.0]]
    assert table.transfer_seconds_per_byte.tolist() == [[8.0, 7.0], [6.0, 5.0]]
    assert table.launch_seconds.tolist() == [10.0, 9.0]
    assert np.isinf(table.memory_capacity).all()
    assert table.source == "profiled"
    assert table.memory_bytes[table.index["double"]] == 2 * 3 * 4  # no weights, one f32 result


def test_a_device_without_transfer_costs_is_refused(coarse):
    with pytest.raises(TargetError, match="NPU"):
        assemble_table(coarse, ("NPU",), np.ones((len(coarse), 1)), FIT)
