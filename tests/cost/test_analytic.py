"""The roofline, against numbers worked out by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as op

from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.target import DeviceProfile, Rate, Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import TargetError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.extract import extract

# Rates in operations, or bytes, per second.
RATES = {"matmul": 1e9, "convolution": 2e9, "depthwise": 1e8, "elementwise": 1e7, "copy": 4e6}
OVERHEAD = 1e-5


def make_target(**rates: float) -> Target:
    known = {**RATES, **rates}
    device = DeviceProfile(
        name="CPU",
        full_name="a round machine",
        precision="f32",
        rates=tuple(Rate(c, "f32", np.ones(1), np.array([v]), "test") for c, v in known.items()),
        op_overhead_seconds=OVERHEAD,
        memory_bytes=1e6,
        sources={"op_overhead_seconds": "test", "memory_bytes": "test"},
    )
    zeros = np.zeros((1, 1))
    return Target(
        "round", "", "", "", (device,), TransferFit(("CPU",), zeros, zeros, np.array([3.0])), "test"
    )


def ungrouped(model: ov.Model) -> CoarseGraph:
    """Every op its own group."""
    graph = extract(model)
    return CoarseGraph(
        graph=graph,
        ops=graph,
        group_of=np.arange(len(graph), dtype=np.int32),
        tensor_is_constant=graph.is_constant[graph.tensor_producer],
    )


@pytest.fixture
def chain() -> ov.Model:
    """input [4, 8] -> matmul with [8, 16] -> relu -> reshape -> output."""
    data = op.parameter([4, 8], np.float32, name="input")
    product = op.matmul(data, op.constant(np.ones((8, 16), np.float32)), False, False, name="product")
    relu = op.relu(product, name="relu")
    shaped = op.reshape(relu, op.constant(np.array([64], np.int64)), False, name="shaped")
    return ov.Model([op.result(shaped, name="output")], [data], "chain")


def test_a_matmul_is_bound_by_its_memory_or_by_its_arithmetic(chain):
    # 2 x 4 x 8 x 16 = 1024 flop; weights 512 bytes, read 128, written 256. The ReLU, of 64 flop, is fused.
    table = analytic_table(ungrouped(chain), make_target(), ("CPU",))
    assert table.op_seconds[table.index["product"], 0] == pytest.approx(896 / 4e6 + OVERHEAD)
    table = analytic_table(ungrouped(chain), make_target(matmul=1e6), ("CPU",))
    assert table.op_seconds[table.index["product"], 0] == pytest.approx(1024 / 1e6 + 64 / 1e7 + OVERHEAD)


def test_weights_come_from_as_far_as_all_weights_together_put_them(chain):
    near_and_far = Rate("copy", "f32", np.array([128.0, 512.0]), np.array([4e6, 1e6]), "test")
    target = make_target()
    kept = tuple(rate for rate in target.devices[0].rates if rate.op_class != "copy")
    device = replace(target.devices[0], rates=(*kept, near_and_far))
    table = analytic_table(ungrouped(chain), replace(target, devices=(device,)), ("CPU",))
    # 512 bytes of weights at 1e6 bytes/s. 384 exchanged ones lie between the two sizes: log(384 / 128) of
    # log(512 / 128) on the way from 4e6 to 1e6, which is proportional to 1 / size.
    exchanged = 384 / (4e6 * 128 / 384)
    assert table.op_seconds[table.index["product"], 0] == pytest.approx(512 / 1e6 + exchanged + OVERHEAD)


def test_elementwise_ops_are_bound_by_memory():
    data = op.parameter([4, 16], np.float32, name="input")
    model = ov.Model([op.result(op.relu(data, name="relu"), name="output")], [data], "alone")
    table = analytic_table(ungrouped(model), make_target(), ("CPU",))
    assert table.op_seconds[table.index["relu"], 0] == pytest.approx(512 / 4e6 + OVERHEAD)


def test_an_elementwise_op_costs_its_arithmetic_where_its_operand_is_made(chain):
    table = analytic_table(ungrouped(chain), make_target(), ("CPU",))
    assert table.op_seconds[table.index["relu"], 0] == 0.0


def test_an_elementwise_op_is_a_kernel_where_others_read_its_operand_too(chain):
    product = next(node for node in chain.get_ops() if node.get_friendly_name() == "product")
    both = ov.Model([chain.get_results()[0], op.result(product)], chain.get_parameters(), "both")
    table = analytic_table(ungrouped(both), make_target(), ("CPU",))
    assert table.op_seconds[table.index["relu"], 0] == pytest.approx(512 / 4e6 + OVERHEAD)


@pytest.mark.parametrize(("length", "steps"), [(1, 1), (5, 5)])
def test_a_recurrent_sequence_takes_as_many_steps_as_it_has_times(length, steps):
    x, h = op.parameter([1, length, 4], np.float32), op.parameter([1, 1, 4], np.float32)
    w = op.constant(np.ones((1, 12, 4), np.float32))
    b = op.constant(np.ones((1, 12), np.float32))
    lengths = op.constant(np.array([length], np.int32))
    sequence = op.gru_sequence(x, h, lengths, w, w, b, 4, "forward", name="sequence")
    model = ov.Model([op.result(sequence.output(0))], [x, h], "recurrent")
    table = analytic_table(ungrouped(model), make_target(**dict.fromkeys(RATES, 1e15)), ("CPU",))
    assert table.op_seconds[table.index["sequence"], 0] == pytest.approx(steps * OVERHEAD)


def test_what_only_renames_a_tensor_costs_nothing(chain):
    table = analytic_table(ungrouped(chain), make_target(), ("CPU",))
    for name in ("input", "shaped", "output"):
        assert table.op_seconds[table.index[name], 0] == 0
    assert table.source == "analytic"
    assert table.launch_seconds.tolist() == [3.0]
    assert table.memory_capacity.tolist() == [1e6]


def test_a_group_adds_its_arithmetic_but_keeps_its_inner_tensors_to_itself(chain):
    coarse = coarsen(extract(chain))
    table = analytic_table(coarse, make_target(matmul=1e6, elementwise=1e5), ("CPU",))
    # Wherever the groups' borders lie, the arithmetic is that of both ops.
    arithmetic = 1024 / 1e6 + 64 / 1e5
    groups = int((table.op_seconds[:, 0] > 0).sum())
    assert table.op_seconds.sum() == pytest.approx(arithmetic + groups * OVERHEAD)


@pytest.mark.parametrize(
    ("groups", "kernel", "rate", "flop"),
    [(1, (8, 4, 3, 3), "convolution", 2 * 36 * 8 * 100), (4, (4, 1, 1, 3, 3), "depthwise", 2 * 9 * 4 * 100)],
    ids=["dense", "depthwise"],
)
def test_convolutions_have_their_own_rates(groups, kernel, rate, flop):
    data = op.parameter([1, 4, 10, 10], np.float32, name="input")
    weights = op.constant(np.ones(kernel, np.float32))
    make = op.convolution if groups == 1 else op.group_convolution
    node = make(data, weights, [1, 1], [1, 1], [1, 1], [1, 1], name="convolution")
    model = ov.Model([op.result(node)], [data], "convolution")
    table = analytic_table(ungrouped(model), make_target(**{rate: 1e3}), ("CPU",))
    assert table.op_seconds[table.index["convolution"], 0] == pytest.approx(flop / 1e3 + OVERHEAD)


def test_a_group_runs_only_where_all_its_ops_do(chain):
    coarse = coarsen(extract(chain))
    supported = np.ones((len(coarse.ops), 1), dtype=bool)
    supported[coarse.ops.index["relu"], 0] = False
    table = analytic_table(coarse, make_target(), ("CPU",), supported)
    group = coarse.group_of[coarse.ops.index["relu"]]
    assert np.flatnonzero(np.isinf(table.op_seconds[:, 0])).tolist() == [group]


def test_a_device_that_the_target_lacks_is_named(chain):
    with pytest.raises(TargetError, match="has no device 'GPU'"):
        analytic_table(ungrouped(chain), make_target(), ("GPU",))


def test_an_integer_op_takes_the_integer_rate_where_there_is_one():
    data = op.parameter([4, 8], np.int8, name="input")
    product = op.matmul(data, op.constant(np.ones((8, 16), np.int8)), False, False, name="product")
    model = ov.Model([op.result(product)], [data], "integers")
    target = make_target(copy=1e12)
    fast = Rate("matmul", "i8", np.ones(1), np.array([4e9]), "test")
    device = replace(target.devices[0], rates=(*target.devices[0].rates, fast))
    table = analytic_table(ungrouped(model), replace(target, devices=(device,)), ("CPU",))
    assert table.op_seconds[table.index["product"], 0] == pytest.approx(1024 / 4e9 + OVERHEAD)


@pytest.mark.parametrize(
    ("precision", "threads", "by_reference"), [("f16", 2, True), ("f32", 2, False), ("f16", 0, False)]
)
def test_a_cpu_transposes_convolutions_along_one_dimension_by_its_reference_in_f16(
    precision, threads, by_reference
):
    data = op.parameter([1, 4, 100], np.float32, name="input")
    weights = op.constant(np.ones((4, 8, 2), np.float32))
    node = op.convolution_backprop_data(data, weights, [2], name="up")
    model = ov.Model([op.result(node)], [data], "vocoder")
    target = make_target(copy=1e12)
    rates = tuple(replace(rate, precision=precision) for rate in target.devices[0].rates)
    device = replace(target.devices[0], precision=precision, threads=threads, rates=rates)
    table = analytic_table(ungrouped(model), replace(target, devices=(device,)), ("CPU",))
    flop = 2 * 4 * 8 * 2 * 100
    rate = 2 * 4e7 if by_reference else 0.7 * RATES["convolution"]
    assert table.op_seconds[table.index["up"], 0] == pytest.approx(flop / rate + OVERHEAD)
