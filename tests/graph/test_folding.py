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
    assert fold_static_shapes(model) == 0


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


def test_results_do_not_change():
    data = np.random.default_rng(0).normal(size=(4, 32)).astype(np.float32)
    model = _model(4)
    before = ov.Core().compile_model(model, "CPU")(data)[0]
    fold_static_shapes(model)
    np.testing.assert_allclose(ov.Core().compile_model(model, "CPU")(data)[0], before, rtol=1e-5)


def test_ops_that_share_a_shape_can_stand_apart_once_it_is_folded():
    model = _model(4)
    assert _group_of(model, "reshape0") == _group_of(model, "matmul1")
    fold_static_shapes(model)
    assert _group_of(model, "reshape0") != _group_of(model, "matmul1")


def _group_of(model: ov.Model, name: str) -> int:
    coarse = coarsen(extract(model))
    return int(coarse.group_of[coarse.ops.index[name]])
