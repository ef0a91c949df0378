"""The native library in a program's own Core: annotated models are followed, all others are left alone."""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import extension_checks
import zoo
from ov_autoplace import annotate, extension_path
from ov_autoplace._base.releases import facts
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from random_dynamic_models import random_dynamic_model

DEVICES = ("XCPU", "CPU")
HETERO = "HETERO:XCPU,CPU"
MODELS = {
    "mobilenet_v2": zoo.build,
    "lstm_lm": zoo.build,
    "decoder": zoo.build,
    "control_flow": zoo.build,
    "rnnlm": zoo.build,
}


@pytest.fixture(scope="module")
def both() -> tuple[ov.Core, ov.Core]:
    return extension_checks.cores()


@pytest.fixture
def chain() -> ov.Model:
    """Softmax and ReLU."""
    x = ops.parameter([2, 8], name="x")
    softmax = ops.softmax(x, axis=1, name="softmax")
    return ov.Model([ops.result(ops.relu(softmax, name="relu"), name="y")], [x], "chain")


def save(model: ov.Model, device_of: dict[str, str], folder: Path) -> Path:
    annotate(
        model,
        {op.get_friendly_name(): device_of.get(op.get_friendly_name(), "CPU") for op in model.get_ops()},
    )
    ov.save_model(model, folder / "model.xml", compress_to_fp16=False)
    return folder / "model.xml"


def affinities(model: ov.Model) -> dict[str, str]:
    return {
        op.get_friendly_name(): op.get_rt_info()["affinity"].astype(str)
        for op in model.get_ordered_ops()
        if "affinity" in op.get_rt_info()
    }


def submodels(core: ov.Core, model: ov.Model | Path) -> int:
    return int(core.compile_model(model, HETERO).get_property("HETERO_NUMBER_OF_SUBMODELS"))


def faults(outcomes: Counter[str]) -> list[str]:
    return [text for text in outcomes if text.split(":")[0] in extension_checks.OUTCOMES[-3:]]


@pytest.mark.seeds(tuple(MODELS), argument="name", cost=10)
def test_mixes_of_known_networks_run_as_annotated(both, name: str, tmp_path: Path) -> None:
    outcomes = extension_checks.check_mix(both, MODELS[name](name), {}, 0, 901, tmp_path)
    assert not faults(outcomes)
    assert outcomes["as intended"] == 3


def test_mixes_of_random_dynamic_models_run_as_annotated(both, tmp_path: Path) -> None:
    outcomes: Counter[str] = Counter()
    for seed in range(6100, 6104):
        model, shapes = random_dynamic_model(seed)
        outcomes += extension_checks.check_mix(both, model, shapes, seed % 3, seed, tmp_path)
    assert not faults(outcomes)
    assert outcomes["as intended"] > 7


def test_foreign_models_are_read_as_without_it(both, tmp_path: Path) -> None:
    for name, path in extension_checks.foreign_models(4, 88, tmp_path):
        assert not extension_checks.check_foreign(both, path, 88), name


def test_python_sees_the_classes_that_it_knows(both, chain, tmp_path: Path) -> None:
    model = both[1].read_model(save(chain, {"softmax": "XCPU", "x": "XCPU"}, tmp_path))
    assert str(model.outputs[0].node.layout) == "[...]"
    assert {type(op).__name__ for op in model.get_ops()} == {"Parameter", "Node", "Result"}
    assert submodels(both[1], model) == 2


def test_every_op_is_marked_inputs_that_nothing_reads_too(both, tmp_path: Path) -> None:
    x, unused = ops.parameter([2, 8], name="x"), ops.parameter([3], name="unused")
    softmax = ops.softmax(x, axis=1, name="softmax")
    results = [ops.result(softmax, name="y"), ops.result(x, name="same"), ops.result(softmax, name="again")]
    path = save(ov.Model(results, [x, unused], "ends"), {"unused": "XCPU"}, tmp_path)

    model = both[1].read_model(path)

    assert set(affinities(model)) == {op.get_friendly_name() for op in model.get_ops()}
    assert affinities(model)["unused"] == "XCPU"
    answer = both[1].compile_model(model, HETERO)([np.eye(2, 8, dtype=np.float32), np.zeros(3, np.float32)])
    np.testing.assert_array_equal(answer[1], np.eye(2, 8))
    np.testing.assert_array_equal(answer[0], answer[2])


def test_outputs_keep_their_names_behind_a_loop(both, tmp_path: Path) -> None:
    plain, extended = both
    for seed in range(40):
        model, _ = random_dynamic_model(seed)
        ends = {result.input_value(0).get_node().get_type_name() for result in model.get_results()}
        if ends & {"Loop", "If", "Parameter"}:
            break
    else:
        pytest.fail("no random model ends in a Loop, an If or an input")
    for i, port in enumerate(model.outputs):
        port.tensor.set_names({f"output{i}", f"also{i}"})
    path = save(model, {}, tmp_path)

    names = [[port.names for port in core.read_model(path).outputs] for core in (plain, extended)]

    assert names[0] == names[1]


def test_ops_that_are_added_by_hand_get_the_device_of_their_producer(both, chain, tmp_path: Path) -> None:
    model = both[1].read_model(save(chain, {"softmax": "XCPU", "x": "XCPU"}, tmp_path))
    relu = next(op for op in model.get_ops() if op.get_friendly_name() == "relu")
    middle = ops.multiply(relu.input_value(0), ops.constant(np.float32(2)), name="added")
    relu.input(0).replace_source_output(middle.output(0))
    last = model.get_results()[0]
    last.input(0).replace_source_output(ops.sigmoid(relu, name="tail").output(0))

    clone = model.clone()

    assert affinities(clone)["added"] == "XCPU"
    assert affinities(clone)["tail"] == "CPU"
    assert len(affinities(clone)) == len(clone.get_ops())
    assert submodels(both[1], model) == 2


def test_a_file_that_lost_marks_is_filled_up_from_the_others(both, chain, tmp_path: Path) -> None:
    annotated = both[0].read_model(save(chain, {"softmax": "XCPU", "x": "XCPU"}, tmp_path))
    for op in annotated.get_ops():
        if op.get_friendly_name() in ("x", "y"):
            del op.get_rt_info()["user_data:autoplace"]
    ov.save_model(annotated, tmp_path / "edited.xml", compress_to_fp16=False)
    processor = ov.preprocess.PrePostProcessor(both[1].read_model(tmp_path / "edited.xml"))
    processor.input(0).tensor().set_element_type(ov.Type.u8)
    processor.input(0).preprocess().convert_element_type(ov.Type.f32).scale(2.0)

    clone = processor.build().clone()

    assert affinities(clone)["x"] == "XCPU"
    assert len(affinities(clone)) == len(clone.get_ops())
    assert submodels(both[1], clone) == 2


def test_affinities_of_the_user_stay(both, chain, tmp_path: Path) -> None:
    model = both[1].read_model(save(chain, {"softmax": "XCPU", "x": "XCPU"}, tmp_path))
    for op in model.get_ops():
        op.get_rt_info()["affinity"] = "CPU"
    model.reshape([4, 8])
    assert submodels(both[1], model) == 1


def test_a_model_that_lost_its_annotation_is_not_followed(both, chain, tmp_path: Path) -> None:
    model = both[1].read_model(save(chain, {"softmax": "XCPU", "x": "XCPU"}, tmp_path))
    for op in model.get_ops():
        del op.get_rt_info()["affinity"]
        del op.get_rt_info()["user_data:autoplace"]
    model.reshape([4, 8])
    assert not affinities(model.clone())


def test_an_annotated_model_is_saved_with_its_annotation(both, chain, tmp_path: Path) -> None:
    path = save(chain, {"softmax": "XCPU", "x": "XCPU"}, tmp_path)
    ov.save_model(both[1].read_model(path), tmp_path / "again.xml", compress_to_fp16=False)
    lines = (tmp_path / "again.xml").read_text().splitlines()
    assert [line for line in lines if "autoplace_compiled" not in line] == path.read_text().splitlines()
    assert submodels(both[1], tmp_path / "again.xml") == submodels(both[1], path)


def test_threads_may_read_and_compile_at_once(both, tmp_path: Path) -> None:
    model = zoo.build("mobilenet_v2")
    path = save(
        model,
        {op.get_friendly_name(): DEVICES[i % 40 < 20] for i, op in enumerate(model.get_ordered_ops())},
        tmp_path,
    )
    shared = both[1].read_model(path)
    # Ops that were added and never validated are looked for while the model is cloned.
    processor = ov.preprocess.PrePostProcessor(shared)
    processor.input(0).tensor().set_element_type(ov.Type.f16)
    processor.output(0).tensor().set_element_type(ov.Type.f64)
    shared = processor.build()

    def work(_: int) -> set[int]:
        return {submodels(both[1], model) for model in (both[1].read_model(path), shared)}

    with ThreadPoolExecutor(4) as pool:
        found = [*pool.map(work, range(4))]
    assert found == [{submodels(both[1], path)}] * 4


def test_a_cache_that_was_filled_without_the_library_is_filled_anew(tmp_path: Path, capfd) -> None:
    for name in ("mobilenet_v2", "control_flow"):
        model = zoo.build(name)
        ops_of = model.get_ordered_ops()
        group_of = coarsen(extract(model)).group_of
        half = int(group_of.max() + 1) // 2
        path = save(
            model,
            {o.get_friendly_name(): DEVICES[int(g >= half)] for o, g in zip(ops_of, group_of, strict=True)},
            tmp_path,
        )
        found = []
        for extended in (False, True, True, False):
            core = extension_checks.cores()[extended]
            compiled = core.compile_model(path, HETERO, {"CACHE_DIR": str(tmp_path / name)})
            count = int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"))
            found.append((count, compiled.get_property("LOADED_FROM_CACHE")))
        wanted = submodels(extension_checks.cores()[1], path)
        assert found[0][1] is False
        read = facts().imports_mixes
        assert found[1:] == [(wanted, False), (wanted, read), (wanted if read else found[0][0], read)]
        assert capfd.readouterr().out.count("is compiled anew") == 1


_MISSING = """
import sys
import openvino as ov
core = ov.Core()
core.add_extension(sys.argv[1])
for _ in range(2):
    model = core.read_model(sys.argv[2])
print("DEVICES", sorted({op.get_rt_info()["affinity"].astype(str) for op in model.get_ops()}))
print("SUBMODELS", core.compile_model(model, "HETERO:CPU").get_property("HETERO_NUMBER_OF_SUBMODELS"))
"""


def test_a_device_that_this_machine_lacks_is_replaced_and_told_once(chain, tmp_path: Path) -> None:
    if any(device.startswith("NPU") for device in ov.Core().available_devices):
        pytest.skip("this machine has an NPU")
    path = save(chain, {"softmax": "NPU.3", "x": "NPU.3"}, tmp_path)
    command = [sys.executable, "-c", _MISSING, extension_path(), str(path)]

    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)

    assert "DEVICES ['CPU']" in done.stdout
    assert "SUBMODELS 1" in done.stdout
    assert (done.stdout + done.stderr).count("annotated for NPU.3, which this machine does not have") == 1
