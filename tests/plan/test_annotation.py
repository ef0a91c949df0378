from __future__ import annotations

import json
import os

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino._offline_transformations import apply_moc_transformations

from full_disk import full_disk
from ov_autoplace.errors import OutputError, PlacementError
from ov_autoplace.plan.annotation import annotate, annotated_placement, set_affinities
from ov_autoplace.plan.fitting import count_subgraphs
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.annotated_files import save_annotated


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
    with pytest.raises(PlacementError, match="there is no device for 3 of 5 ops"):
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


def _with_tied_weights():
    """Two products with one weight, one of them with its transpose; each is read on another device."""
    x, y = (ops.parameter([4, 16], np.float32, name=name) for name in "xy")
    weight = ops.constant(np.eye(16, k=1, dtype=np.float32), name="weight")
    first = ops.relu(ops.matmul(x, weight, False, False, name="xw"), name="last x")
    second = ops.exp(ops.matmul(y, weight, False, True, name="yw"), name="last y")
    return ov.Model([ops.result(first, name="to x"), ops.result(second, name="to y")], [x, y])


def _with_bounded_batch():
    x = ops.parameter(ov.PartialShape([ov.Dimension(1, 4), 4]), np.float32, name="x")
    weight = ops.constant(np.eye(4, dtype=np.float32), name="weight")
    return ov.Model([ops.result(ops.relu(ops.matmul(x, weight, False, False), name="last"), name="to")], [x])


@pytest.mark.parametrize(("build", "submodels"), [(_with_tied_weights, 4), (_with_bounded_batch, 2)])
def test_hetero_cuts_as_predicted_before_and_after_ops_were_added(build, submodels, unequal_pair):
    model = build()
    names = [op.get_friendly_name() for op in model.get_ops()]
    device_of = {name: "CPU" if name.startswith(("last", "to")) else "XCPU" for name in names}
    before = count_subgraphs(model, device_of)
    annotate(model, device_of)
    assert len(model.get_ops()) > len(names)
    compiled = unequal_pair.compile_model(model, "HETERO:XCPU,CPU")
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == before == submodels
    assert count_subgraphs(model, device_of) == before
    number = len(model.get_ops())
    annotate(model, device_of)
    assert len(model.get_ops()) == number
    with pytest.raises(PlacementError, match="there is no device for 1 of"):
        annotate(model, {name: device for name, device in device_of.items() if name != "x"})


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


def _with_weights():
    x = ops.parameter([1, 64], np.float32, name="x")
    weights = np.random.default_rng(3).normal(size=(64, 64)).astype(np.float32)
    return ov.Model([ops.result(ops.matmul(x, ops.constant(weights), False, False))], [x], "weighty")


def test_the_files_are_those_of_save_model(tmp_path):
    model = _with_weights()
    apply_moc_transformations(model, False)  # leaves notes that save_model does not write
    placement = Placement.from_dict({op.get_friendly_name(): "CPU" for op in model.get_ops()})
    files = save_annotated(model, placement, tmp_path, "ours")
    annotate(model, placement)
    ov.save_model(model, tmp_path / "theirs.xml", compress_to_fp16=False)
    ours, theirs = (path.read_bytes().splitlines() for path in (files.model, tmp_path / "theirs.xml"))
    # Older releases do not say in a file who wrote it; ours always does.
    assert [line for line in ours if b'"OpenVINO Runtime"' not in line or line in theirs] == theirs
    assert files.model.with_suffix(".bin").read_bytes() == (tmp_path / "theirs.bin").read_bytes()


@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("suffix", [".xml", ".bin"])
def test_a_file_that_is_cut_short_leaves_nothing_behind(tmp_path, monkeypatch, suffix, share):
    whole = ov.serialize

    def cut_short(model, xml, weights):
        whole(model, xml, weights)
        file = xml.with_suffix(suffix)
        os.truncate(file, int(share * file.stat().st_size))
        with pytest.raises(RuntimeError):  # what the refusal stands for
            ov.Core().compile_model(ov.Core().read_model(xml), "CPU")

    monkeypatch.setattr(ov, "serialize", cut_short)
    model = _with_weights()
    placement = {op.get_friendly_name(): "CPU" for op in model.get_ops()}
    with pytest.raises(OutputError, match="is the disk full"):
        save_annotated(model, Placement.from_dict(placement), tmp_path, "tiny")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("limit", [0, 1024, 4096, 16000])
def test_a_disk_that_is_full_leaves_nothing_behind(tmp_path, limit):
    model = _with_weights()
    placement = Placement.from_dict({op.get_friendly_name(): "CPU" for op in model.get_ops()})
    with full_disk(limit), pytest.raises(OutputError, match="cannot write"):
        save_annotated(model, placement, tmp_path, "tiny")
    assert list(tmp_path.iterdir()) == []


def test_annotating_with_an_op_left_out_leaves_the_model_as_it_was():
    x = ops.parameter([1, 2, 3], np.float32, name="x")
    y = ops.reshape(x, ops.shape_of(ops.relu(x)), False)
    model = ov.Model([ops.result(y, name="y")], [x])
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    placed = {op.get_friendly_name(): "CPU" for op in model.get_ops() if op.get_type_name() != "Reshape"}
    with pytest.raises(PlacementError, match="there is no device for 1 of 4 ops"):
        annotate(model, placed)
    assert [op.get_friendly_name() for op in model.get_ordered_ops()] == names
    assert not any("affinity" in op.get_rt_info() for op in model.get_ops())
