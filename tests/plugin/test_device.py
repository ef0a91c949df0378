"""The device name AUTOPLACE, on real devices: the CPU plugin twice, with one thread and with two."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from measuring_faults import Inject
from ov_autoplace._base import releases
from ov_autoplace.errors import DeviceError, ModelError, OptionError, PlacementError

QUICK = {"AUTOPLACE_TIME_BUDGET_MS": 50}
# Pinned to both devices, so that the answer is a mix whatever the measurements say.
MIXED = {**QUICK, "AUTOPLACE_PINS": {"first": "XCPU", "second": "CPU"}}
PAIR = "AUTOPLACE:XCPU,CPU"


@pytest.fixture
def model() -> ov.Model:
    random = np.random.default_rng(0)
    x = ops.parameter([1, 64], np.float32, name="x")
    weights = [random.normal(size=(64, 64)).astype(np.float32) for _ in range(2)]
    first = ops.matmul(x, ops.constant(weights[0], name="w1"), False, False, name="first")
    middle = ops.softmax(first, 1, name="middle")
    second = ops.matmul(middle, ops.constant(weights[1], name="w2"), False, False, name="second")
    return ov.Model([ops.result(second, name="y")], [x], "pair")


@pytest.fixture
def expected(model) -> np.ndarray:
    """What the fixture's CPU gives, in f32: some processors compute in bf16 unless told otherwise."""
    return ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})(_input())[0]


def _input() -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(1).normal(size=(1, 64)).astype(np.float32)}


def _check(compiled: ov.CompiledModel, expected: np.ndarray) -> None:
    assert isinstance(compiled, ov.CompiledModel)
    np.testing.assert_allclose(compiled(_input())[0], expected, rtol=1e-4, atol=1e-6)


def test_without_a_list_all_devices_are_taken(unequal_pair, model, expected):
    compiled = unequal_pair.compile_model(model, "AUTOPLACE", MIXED)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}
    _check(compiled, expected)


def test_with_one_device_autoplace_is_that_device(unequal_pair, model, expected):
    compiled = unequal_pair.compile_model(model, "AUTOPLACE:XCPU")
    assert compiled.get_property("EXECUTION_DEVICES") == ["XCPU"]
    assert compiled.get_property("INFERENCE_NUM_THREADS") == 1
    _check(compiled, expected)


def test_what_the_only_device_may_not_hold_is_not_compiled_for_it(unequal_pair, model):
    """The weights are 32 KiB."""
    for device in ("XCPU", "CPU"):
        limited = {**QUICK, "AUTOPLACE_MEMORY_LIMITS": {device: 10_000}}
        with pytest.raises(PlacementError, match=f"10000 bytes that {device} may hold"):
            unequal_pair.compile_model(model, f"AUTOPLACE:{device}", limited)
        room = {**QUICK, "AUTOPLACE_MEMORY_LIMITS": {device: 10_000_000}}
        assert unequal_pair.compile_model(model, f"AUTOPLACE:{device}", room)


def test_the_module_level_function_works(model, expected):
    _check(ov.compile_model(model, "AUTOPLACE:CPU", {"INFERENCE_PRECISION_HINT": "f32"}), expected)


def test_a_core_made_before_the_import_knows_the_name():
    code = (
        "import openvino as ov, numpy as np; core = ov.Core();"
        "from openvino import opset13 as ops; x = ops.parameter([1, 4], np.float32);"
        "model = ov.Model([ops.relu(x)], [x]); import ov_autoplace;"
        "print(core.compile_model(model, 'AUTOPLACE')(np.full((1, 4), -1, np.float32))[0].tolist())"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[[0.0, 0.0, 0.0, 0.0]]"


def test_unregistering_undoes_the_import(unequal_pair, model):
    ov_autoplace.unregister()
    try:
        assert ov.Core.compile_model.__module__ == "openvino._ov_api"
        assert "get_property" not in vars(ov.Core)
        with pytest.raises(RuntimeError, match="AUTOPLACE"):
            unequal_pair.compile_model(model, PAIR)
    finally:
        ov_autoplace.register()
    assert unequal_pair.compile_model(model, "AUTOPLACE:CPU") is not None


def test_other_devices_are_untouched(unequal_pair, model, expected):
    _check(unequal_pair.compile_model(model, "HETERO:XCPU,CPU"), expected)
    _check(unequal_pair.compile_model(model, "CPU"), expected)
    assert unequal_pair.compile_model(model).get_property("EXECUTION_DEVICES")


@pytest.mark.parametrize(
    ("given", "device", "config", "error", "sentence"),
    [
        (None, PAIR, {"AUTOPLACE_TIME_BUDGET": 3}, OptionError, "did you mean AUTOPLACE_TIME_BUDGET_MS"),
        (None, "AUTOPLACE:GPU.7,CPU", {}, DeviceError, r"no device 'GPU\.7'"),
        ("nowhere.xml", PAIR, {}, ModelError, r"no model file nowhere\.xml"),
    ],
)
def test_what_is_not_there_is_named(unequal_pair, model, given, device, config, error, sentence):
    with pytest.raises(error, match=sentence):
        unequal_pair.compile_model(given or model, device, config)


def test_a_release_that_imports_no_mix_exports_none_and_caches_its_decision_alone(
    unequal_pair, model, tmp_path, monkeypatch
):
    facts = releases.facts
    monkeypatch.setattr(releases, "facts", lambda release=None: facts(release or "2026.3.1"))
    for _ in range(2):
        compiled = unequal_pair.compile_model(model, PAIR, {**MIXED, "CACHE_DIR": str(tmp_path)})
        assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == 2
    assert {path.suffix for path in tmp_path.iterdir()} <= {".json", ".lock"}
    for ask in (compiled.export_model, lambda: unequal_pair.import_model(b"<hetero name", PAIR)):
        with pytest.raises(ModelError, match=r"cannot import .* takes 2026\.4\.0 or later"):
            ask()


def test_models_that_differ_in_a_constant_alone_are_told_apart_in_the_cache(tmp_path):
    def scaled(factor: float) -> ov.Model:
        x = ops.parameter([8], name="x")
        product = ops.multiply(x, ops.constant(np.full(8, factor, np.float32), name="w"), name="product")
        result = ops.result(product)
        result.set_friendly_name("result")
        return ov.Model([result], [x], "net")

    core, x = ov.Core(), np.ones(8, np.float32)
    for how in ({"CACHE_DIR": str(tmp_path / "given")}, {}):
        if not how:
            core.set_property("CPU", {"CACHE_DIR": str(tmp_path / "set")})
        for factor in (1.0, 2.0, 1.0):
            compiled = core.compile_model(scaled(factor), "AUTOPLACE:CPU", how)
            np.testing.assert_allclose(compiled(x)[0], factor)
        assert compiled.get_property("LOADED_FROM_CACHE")


@pytest.mark.skipif(not releases.facts().imports_mixes, reason="this OpenVINO cannot import a mix")
def test_a_mix_can_be_exported_when_its_core_is_gone(tmp_path, model):
    path = tmp_path / "model.xml"
    ov.save_model(model, path)
    # In a process of its own, since a mistake here ends the process.
    program = """
import gc, sys
import conftest, ov_autoplace
config = {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_PINS": {"first": "XCPU", "second": "CPU"}}
compiled = conftest.unequal_pair.__wrapped__().compile_model(sys.argv[1], "AUTOPLACE:XCPU,CPU", config)
gc.collect()
exported = compiled.export_model().getvalue()
again = conftest.unequal_pair.__wrapped__().import_model(exported, "AUTOPLACE:XCPU,CPU")
gc.collect()
print(len(again.export_model().getvalue()))
"""
    command = [sys.executable, "-c", program, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=Path(__file__).parents[1])
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 0


def test_a_foreign_blob_is_refused_in_one_sentence(unequal_pair):
    with pytest.raises(ModelError, match="none of XCPU, CPU can import"):
        unequal_pair.import_model(b"not a blob", PAIR)


def test_options_are_properties_that_can_be_set_and_read(unequal_pair, model):
    assert unequal_pair.get_property("AUTOPLACE", "AUTOPLACE_MODE") == "PROFILE"
    unequal_pair.set_property("AUTOPLACE", {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_TIME_BUDGET_MS": "500"})
    assert unequal_pair.get_property("AUTOPLACE", "AUTOPLACE_MODE") == "ZERO_SHOT"
    assert unequal_pair.get_property(PAIR, "AUTOPLACE_TIME_BUDGET_MS") == 500
    assert ov.Core().get_property("AUTOPLACE", "AUTOPLACE_MODE") == "PROFILE", (
        "one Core's options are its own"
    )
    with pytest.raises(OptionError, match="ZERO_SHOT, PROFILE, TUNE"):
        unequal_pair.set_property("AUTOPLACE", {"AUTOPLACE_MODE": "WARP"})


def test_the_supported_properties_name_ours_and_heteros(unequal_pair):
    supported = unequal_pair.get_property(PAIR, "SUPPORTED_PROPERTIES")
    assert supported["AUTOPLACE_PINS"] == "RW"
    assert "MULTI_DEVICE_PRIORITIES" in supported
    assert unequal_pair.get_property(PAIR, "MULTI_DEVICE_PRIORITIES") == "XCPU,CPU"


def test_openvino_properties_reach_the_devices(unequal_pair, model):
    config = {**MIXED, "DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}, "PERF_COUNT": True}
    compiled = unequal_pair.compile_model(model, PAIR, config)
    request = compiled.create_infer_request()
    request.infer(_input())
    assert any(info.real_time.total_seconds() >= 0 for info in request.profiling_info)


@pytest.mark.parametrize(("device", "named_by_caller"), [(PAIR, True), ("AUTOPLACE", False)])
def test_an_annotation_for_other_devices_is_left_aside_with_a_warning(
    unequal_pair, model, expected, caplog, device, named_by_caller
):
    ov_autoplace.annotate(model, {op.get_friendly_name(): "GPU" for op in model.get_ops()})
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        _check(unequal_pair.compile_model(model, device, QUICK), expected)
    assert "annotated for GPU" in caplog.text
    assert ("devices of this machine" in caplog.text) is not named_by_caller


def test_duplicate_names_do_not_confuse_the_placement(unequal_pair, model, expected):
    for op in model.get_ops():
        if op.get_type_name() == "MatMul":
            op.set_friendly_name("twin")
    config = {**QUICK, "AUTOPLACE_PINS": {"twin": "XCPU", "twin_1": "CPU"}}
    compiled = unequal_pair.compile_model(model, PAIR, config)
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == 2
    _check(compiled, expected)


def test_an_onnx_file_is_compiled(unequal_pair):
    import onnx

    folder = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
    compiled = unequal_pair.compile_model(folder / "light_squeezenet.onnx", "AUTOPLACE:CPU")
    assert compiled.outputs


def test_a_device_that_fails_on_the_model_is_left_out_with_a_warning(
    unequal_pair, model, expected, inject: Inject, caplog
):
    inject("compile:XCPU*:error")
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        compiled = unequal_pair.compile_model(model, PAIR, QUICK)
    assert compiled.get_property("EXECUTION_DEVICES") == ["CPU"]
    assert "XCPU is left out: the model cannot be timed on XCPU: out of resources" in caplog.text
    _check(compiled, expected)
