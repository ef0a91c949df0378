"""Integer inputs that index a table are bounded by that table."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.graph.inputs import input_ranges

TABLE = np.zeros((30, 4), np.float32)


def ranges(*results: ov.Node, inputs: list[ov.Node]) -> dict[str, int]:
    return input_ranges(ov.Model([ops.result(node) for node in results], inputs))


@pytest.fixture
def ids() -> ov.Node:
    return ops.parameter([1, 5], np.int64, name="ids")


def test_indices_of_a_gather_are_bounded_by_the_length_of_its_axis(ids: ov.Node) -> None:
    for axis, length in ((0, 30), (1, 4), (-1, 4)):
        node = ops.gather(ops.constant(TABLE), ids, ops.constant(axis))
        assert ranges(node, inputs=[ids]) == {"ids": length}


def test_indices_are_followed_through_ops_that_keep_their_values(ids: ov.Node) -> None:
    node = ops.unsqueeze(ops.reshape(ops.convert(ids, "i32"), ops.constant([5]), False), ops.constant(0))
    assert ranges(ops.gather(ops.constant(TABLE), node, ops.constant(0)), inputs=[ids]) == {"ids": 30}


def test_what_is_added_on_the_way_shrinks_the_range(ids: ov.Node) -> None:
    node = ops.add(ids, ops.constant(np.int64(10)))
    assert ranges(ops.gather(ops.constant(TABLE), node, ops.constant(0)), inputs=[ids]) == {"ids": 20}


def test_the_smallest_of_several_tables_decides(ids: ov.Node) -> None:
    first = ops.gather(ops.constant(TABLE), ids, ops.constant(0))
    second = ops.gather(ops.constant(TABLE[:7]), ids, ops.constant(0))
    assert ranges(first, second, inputs=[ids]) == {"ids": 7}


def test_embedding_bags_one_hots_and_index_tuples_bound_their_indices() -> None:
    flat = ops.parameter([5], np.int64, name="flat")
    bag = ops.embedding_bag_offsets_sum(ops.constant(TABLE), flat, ops.constant([0, 2]))
    assert ranges(bag, inputs=[flat]) == {"flat": 30}
    hot = ops.one_hot(
        flat, ops.constant(np.int64(9)), ops.constant(np.float32(1)), ops.constant(np.float32(0)), -1
    )
    assert ranges(hot, inputs=[flat]) == {"flat": 9}
    tuples = ops.parameter([5, 2], np.int64, name="tuples")
    assert ranges(ops.gather_nd(ops.constant(TABLE), tuples), inputs=[tuples]) == {"tuples": 4}


def test_inputs_that_index_nothing_are_left_out() -> None:
    mask = ops.parameter([1, 5], np.int64, name="mask")
    data = ops.parameter([1, 5], np.float32, name="data")
    masked = ops.multiply(data, ops.convert(mask, "f32"))
    assert ranges(masked, inputs=[mask, data]) == {}
