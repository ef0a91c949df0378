from __future__ import annotations

import json

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.errors import OutputError, PlacementError
from ov_autoplace.placement.annotation import annotate, annotated_placement, save_annotated, set_affinities
from ov_autoplace.placement.placement import Placement


def _model() -> ov.Model:
    x = ops.parameter([1, 4], np.float32, name="x")
    weights = ops.constant(np.eye(4, dtype=np.float32), name="weights")
    product = ops.matmul(x, weights, False, False, name="product")
    return ov.Model([ops.result(ops.relu(product, name="relu"), name="y")], [x], "tiny")


def _mixed(model: ov.Model) -> Placement:
    device = {"relu": "CPU", "y": "CPU"}
    return Placement.from_dict(
        {op.get_friendly_name(): device.get(op.get_friendly_name(), "XCPU") for op in model.get_ops()}
    )


def test_every_op_gets_an_affinity_that_hetero_obeys(unequal_pair):
    model = _model()
    annotate(model, _mixed(model))
    compiled = unequal_pair.compile_model(model, "HETERO:XCPU,CPU")
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == 2
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}


def test_the_annotation_survives_saving_and_reading(tmp_path):
    model = _model()
    placement = _mixed(model)
    annotate(model, placement)
    ov.save_model(model, tmp_path / "m.xml", compress_to_fp16=False)
    again = ov.Core().read_model(tmp_path / "m.xml")
    assert annotated_placement(again).to_dict() == placement.to_dict()
    assert again.get_rt_info(["autoplace", "devices"]).value == "XCPU,CPU"


def test_constants_that_saving_compresses_stay_with_their_op(tmp_path):
    model = _model()
    annotate(model, _mixed(model))
    ov.save_model(model, tmp_path / "m.xml", compress_to_fp16=True)
    device_of = annotated_placement(ov.Core().read_model(tmp_path / "m.xml")).to_dict()
    assert device_of["weights_compressed"] == device_of["product"] == "XCPU"


def test_a_model_without_annotation_has_no_placement():
    assert annotated_placement(_model()) is None


def test_ops_added_after_the_annotation_take_a_neighbours_device(tmp_path):
    model = _model()
    annotate(model, _mixed(model))
    wrapped = ov.preprocess.PrePostProcessor(model)
    wrapped.input().tensor().set_element_type(ov.Type.u8)
    wrapped.input().preprocess().convert_element_type(ov.Type.f32).mean(1.0)
    wrapped = wrapped.build()
    device_of = annotated_placement(wrapped).to_dict()
    assert len(device_of) == len(wrapped.get_ops()) > len(_model().get_ops())
    assert device_of["product"] == "XCPU"
    assert device_of["relu"] == "CPU"


def test_a_missing_op_is_named():
    model = _model()
    incomplete = {"x": "CPU", "product": "CPU"}
    with pytest.raises(PlacementError, match="3 of 5 ops have no device"):
        set_affinities(model, incomplete)
    assert all("affinity" not in op.get_rt_info() for op in model.get_ops())


def test_an_op_that_the_model_does_not_have_is_named():
    model = _model()
    with pytest.raises(PlacementError, match="'stranger'"):
        annotate(model, {**_mixed(model).to_dict(), "stranger": "CPU"})


def test_shape_computations_that_hetero_would_cut_off_become_constants(unequal_pair):
    x = ops.parameter([2, 6], np.float32, name="x")
    pattern = ops.concat([ops.shape_of(x, name="shape"), np.int64([1])], 0, name="pattern")
    reshaped = ops.reshape(ops.relu(x, name="first"), pattern, False, name="reshaped")
    model = ov.Model([ops.result(ops.exp(reshaped, name="last"), name="y")], [x])
    on_cpu = ("shape", "pattern", "last", "y")
    device_of = {
        name: "CPU" if name in on_cpu else "XCPU"
        for name in (op.get_friendly_name() for op in model.get_ops())
    }
    annotate(model, device_of)
    assert "ShapeOf" not in {op.get_type_name() for op in model.get_ops()}
    data = np.ones((2, 6), np.float32)
    result = unequal_pair.compile_model(model, "HETERO:XCPU,CPU")(data)[0]
    np.testing.assert_allclose(result, np.exp(data)[..., None], rtol=1e-5)


def test_duplicate_names_are_renamed_when_annotating():
    x = ops.parameter([1, 4], np.float32, name="x")
    first = ops.relu(x)
    second = ops.relu(first)
    for op in (first, second):
        op.set_friendly_name("twin")
    model = ov.Model([ops.result(second, name="y")], [x])
    annotate(model, {"x": "CPU", "twin": "XCPU", "twin_1": "CPU", "y": "CPU"})
    assert [op.get_friendly_name() for op in model.get_ordered_ops()] == ["x", "twin", "twin_1", "y"]


def test_the_files_hold_the_flat_object_and_the_annotated_model(tmp_path):
    model = _model()
    placement = _mixed(model)
    files = save_annotated(model, placement, tmp_path, "tiny")
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "tiny.affinity.json",
        "tiny.autoplace.bin",
        "tiny.autoplace.xml",
    ]
    assert json.loads(files.affinities.read_text()) == placement.to_dict()
    assert annotated_placement(ov.Core().read_model(files.model)).to_dict() == placement.to_dict()
    assert annotated_placement(model) is None, "the caller's model must stay as it was"


def test_a_folder_that_cannot_be_written_is_one_error(tmp_path):
    model = _model()
    with pytest.raises(OutputError, match="cannot write to"):
        save_annotated(model, _mixed(model), tmp_path / "missing", "tiny")
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="not a directory"):
        save_annotated(model, _mixed(model), tmp_path / "file", "tiny")


def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, monkeypatch):
    def cut_short(model, path, **_):
        path.write_text("<?xml version='1.0'?><net name=")
        path.with_suffix(".bin").write_bytes(b"")

    monkeypatch.setattr(ov, "save_model", cut_short)
    model = _model()
    with pytest.raises(OutputError, match="is the disk full"):
        save_annotated(model, _mixed(model), tmp_path, "tiny")
    assert list(tmp_path.iterdir()) == []
