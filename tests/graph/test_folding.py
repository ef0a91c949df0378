from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes


def _model(batch: int) -> ov.Model:
    """Two heavy ops, each followed by a Reshape whose target is computed from the shape of the input."""
    x = ops.parameter([batch, 32], np.float32, name="x")
    shape = ops.shape_of(x, name="shape")
    rows = ops.gather(shape, np.int64([0]), np.int64(0), name="rows")
    node = x
    for i in range(2):
        weights = np.full((32, 32), 0.1, dtype=np.float32)
        node = ops.matmul(node, ops.constant(weights, name=f"w{i}"), False, False, name=f"matmul{i}")
        target = ops.concat([rows, np.int64([4, 8])], 0, name=f"target{i}")
        node = ops.reshape(node, target, False, name=f"reshape{i}")
        node = ops.reshape(node, np.int64([-1, 32]), False, name=f"back{i}")
    return ov.Model([ops.result(node, name="y")], [x])


def test_a_static_shape_becomes_a_constant_of_the_same_name():
    model = _model(4)
    assert fold_static_shapes(model) == 4
    types = {op.get_friendly_name(): op.get_type_name() for op in model.get_ops()}
    assert types["target0"] == types["target1"] == "Constant"
    assert not {"ShapeOf", "Gather", "Concat"} & set(types.values())


def test_names_that_remain_are_a_subset_of_those_before():
    model = _model(4)
    before = {op.get_friendly_name() for op in model.get_ops()}
    fold_static_shapes(model)
    assert {op.get_friendly_name() for op in model.get_ops()} < before


@pytest.mark.parametrize("columns", [2, 64])
def test_weights_stay_with_their_decompression(columns):
    x = ops.parameter([1, 64], np.float32, name="x")
    weights = ops.convert(ops.constant(np.ones((64, columns), np.float16)), np.float32, name="decompressed")
    model = ov.Model([ops.result(ops.matmul(x, weights, False, False))], [x])
    assert fold_static_shapes(model) == 0


def test_a_dynamic_shape_stays():
    assert fold_static_shapes(_model(-1)) == 0


def test_ops_that_share_a_shape_can_stand_apart_once_it_is_folded():
    model = _model(4)
    assert _group_of(model, "reshape0") == _group_of(model, "matmul1")
    fold_static_shapes(model)
    assert _group_of(model, "reshape0") != _group_of(model, "matmul1")


def _group_of(model: ov.Model, name: str) -> int:
    coarse = coarsen(extract(model))
    return int(coarse.group_of[coarse.ops.index[name]])


def _resized(factor: ov.Node) -> ov.Model:
    """A Reshape whose target is a size, scaled as floats and taken back to whole numbers."""
    x = ops.parameter([4, 32], np.float32, name="x")
    node = ops.matmul(x, ops.constant(np.eye(32, dtype=np.float32)), False, False, name="matmul")
    sizes = ops.split(ops.shape_of(node, name="shape"), np.int64(0), 2, name="sizes")
    rows = ops.convert(sizes.output(0), np.float32, name="float_rows")
    scaled = ops.multiply(rows, factor, name="scaled")
    rounded = ops.convert(ops.ceiling(scaled, name="ceiling"), np.int64, name="rounded")
    columns = ops.squeeze(sizes.output(1), np.int64([0]), name="columns")
    halved = ops.divide(columns, np.int64(2), name="halved")
    target = ops.concat([rounded, ops.unsqueeze(halved, np.int64(0), name="again")], 0, name="target")
    return ov.Model([ops.result(ops.reshape(node, target, False, name="reshape"))], [x])


@pytest.mark.parametrize("stored", [np.float32, np.float16])
def test_a_size_that_goes_through_floats_and_lists_is_known(stored):
    factor = ops.constant(stored([2.0]))
    model = _resized(factor if stored is np.float32 else ops.convert(factor, np.float32, name="factor"))
    fold_static_shapes(model)
    kinds = {op.get_friendly_name(): op.get_type_name() for op in model.get_ops()}
    assert kinds["target"] == "Constant"
    assert not {"ShapeOf", "Split", "Squeeze", "Ceiling"} & set(kinds.values())
    assert not extract(model).tensor_uncuttable.any()
    assert ov.Core().compile_model(model, "CPU")(np.ones((4, 32), np.float32))[0].shape == (8, 16)


@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.float16])
def test_a_small_weight_is_never_decompressed_in_advance(kind):
    x = ops.parameter([1, 4], np.float32, name="x")
    stored = ops.constant(np.arange(16, dtype=kind).reshape(4, 4))
    centred = ops.subtract(ops.convert(stored, np.float32), ops.convert(ops.constant(kind(3)), np.float32))
    weight = ops.multiply(centred, np.float32([0.25]))
    model = ov.Model([ops.result(ops.matmul(x, weight, False, True))], [x])
    assert fold_static_shapes(model) == 0


def test_a_weight_that_is_quantized_in_the_graph_is_left_to_the_device():
    x = ops.parameter([1, 4], np.float32, name="x")
    limits = [ops.constant(np.float32(value)) for value in (-1, 1, -1, 1)]
    weight = ops.fake_quantize(ops.constant(np.ones((4, 4), np.float32)), *limits, 256)
    model = ov.Model([ops.result(ops.matmul(x, weight, False, True))], [x])
    assert fold_static_shapes(model) == 0


def test_random_numbers_are_not_drawn_once_and_for_all():
    x = ops.parameter([4, 4], np.float32, name="x")
    bounds = (ops.constant(np.float32(0)), ops.constant(np.float32(1)))
    noise = ops.random_uniform(ops.constant(np.int64([4, 4])), *bounds, "f32")
    model = ov.Model([ops.result(ops.add(x, noise))], [x])
    fold_static_shapes(model)
    assert "RandomUniform" in {op.get_type_name() for op in model.get_ops()}
