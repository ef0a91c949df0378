"""The affinity file holds for the model as it was given, whose shape computations nobody folds."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest

import transformers_models
from command_line import Command
from model_checks import open_shapes, outputs_of, random_inputs, random_regions, relative_error
from ov_autoplace._base import releases
from ov_autoplace.decide.place import place
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.passes import FOLDED, formed
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.plan.annotation import annotate
from ov_autoplace.plan.fitting import count_subgraphs
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.annotated_files import save_annotated
from places import CPU_PLUGIN

DEVICES = ("XCPU", "CPU")
LAYERS, WIDTH = 6, 8


@pytest.fixture(scope="module")
def core() -> ov.Core:
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    for device in DEVICES:
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32", "SNIPPETS_MODE": "DISABLE"})
    return core


def layers(shared_chain: bool, static: bool = True) -> ov.Model:
    """Blocks that reshape to heads and back, as traced networks do.

    Args:
        shared_chain: One measurement of the input decides the shapes in all blocks, else each has its own.
        static: Whether the input's shape is known.
    """
    random = np.random.default_rng(5)
    x = ops.parameter([2, 3, WIDTH] if static else [-1, 3, WIDTH], np.float32, name="x")
    value, batch = x, None
    for i in range(LAYERS):
        if batch is None or not shared_chain:
            shape = ops.shape_of(value, name=f"shape{i}")
            batch = ops.gather(shape, np.array([0]), np.int64(0), name=f"batch{i}")
        weights = ops.constant(random.standard_normal((WIDTH, WIDTH)).astype(np.float32), name=f"weights{i}")
        product = ops.matmul(value, weights, False, False, name=f"product{i}")
        pattern = ops.concat([batch, np.array([3, 2, WIDTH // 2])], 0, name=f"pattern{i}")
        heads = ops.softmax(ops.reshape(product, pattern, False, name=f"heads{i}"), 3, name=f"softmax{i}")
        back = ops.concat([batch, np.array([3, WIDTH])], 0, name=f"back{i}")
        value = ops.add(value, ops.reshape(heads, back, False, name=f"joined{i}"), name=f"sum{i}")
    return ov.Model([ops.result(value, name="y")], [x], "layers")


def folded(model: ov.Model) -> ov.Model:
    folded = PreparedModel.of(model).then(FOLDED)
    assert folded.is_folded
    return folded.model


def of_blocks(model: ov.Model, first_on: dict[int, str]) -> dict[str, str]:
    """Whole blocks on devices: ``first_on`` names the blocks at which the device changes."""
    device_of, device = {}, first_on[0]
    for op in model.get_ordered_ops():
        digits = "".join(c for c in op.get_friendly_name() if c.isdigit())
        block = int(digits) if digits and not op.get_friendly_name().startswith("Constant") else None
        if block is not None:
            device = first_on[max(b for b in first_on if b <= block)]
        device_of[op.get_friendly_name()] = device
    return device_of


def run(core: ov.Core, model: ov.Model, inputs) -> tuple[int, list]:
    compiled = core.compile_model(model, "HETERO:XCPU,CPU")
    return int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")), outputs_of(compiled, inputs)


def run_file(core: ov.Core, model: ov.Model, file: Path, inputs) -> tuple[int, list]:
    """As OpenVINO's own sample does: affinities by friendly name on every op of the model as it is."""
    affinities = json.loads(file.read_text())
    for op in model.get_ordered_ops():
        op.get_rt_info()["affinity"] = affinities[op.get_friendly_name()]
    return run(core, model, inputs)


def check(core: ov.Core, model: ov.Model, placement: Placement, folder: Path) -> tuple[int, int]:
    """One answer to how many submodels, right outputs of both files; returns both files' numbers."""
    inputs = random_inputs(model, seed=0)
    expected = outputs_of(core.compile_model(model, "CPU"), inputs)
    before = count_subgraphs(model, placement)
    annotated = model.clone()
    annotate(annotated, placement)
    submodels, outputs = run(core, annotated, inputs)
    assert before == submodels == count_subgraphs(annotated, placement)
    assert relative_error(outputs, expected) <= 1e-4
    files = save_annotated(model, placement, folder, "m")
    predicted = count_subgraphs(model, Placement.load(files.affinities))
    found, outputs = run_file(core, model.clone(), files.affinities, inputs)
    assert found == predicted
    assert relative_error(outputs, expected) <= 1e-4
    return submodels, found


def test_shape_computations_go_with_their_readers_where_that_cuts_nothing(core, tmp_path):
    model = layers(shared_chain=False)
    placement = Placement.from_dict(of_blocks(folded(model), {0: "XCPU", 3: "CPU"}))
    assert check(core, model, placement, tmp_path) == (2, 2)
    on = json.loads((tmp_path / "m.affinity.json").read_text())
    assert on["softmax2"] == on["shape2"] == on["pattern2"] == "XCPU"
    assert on["softmax3"] == on["shape3"] == on["pattern3"] == "CPU"


@pytest.mark.seeds(3)
def test_what_hetero_could_not_run_on_the_given_model_is_placed_otherwise(core, tmp_path, seed):
    model = layers(shared_chain=True)
    inner = folded(model)
    random = np.random.default_rng(seed)
    first = int(random.integers(1, LAYERS))
    placement = Placement.from_dict(of_blocks(inner, {0: DEVICES[seed % 2], first: DEVICES[1 - seed % 2]}))
    annotated, file = check(core, model, placement, tmp_path)
    assert annotated == 2
    assert file <= 2


@pytest.mark.seeds(4)
def test_one_answer_for_a_random_placement_of_every_op(core, seed):
    random = np.random.default_rng(seed)
    model = layers(shared_chain=bool(seed % 2))
    inputs = random_inputs(model, seed=0)
    expected = outputs_of(core.compile_model(model, "CPU"), inputs)
    for share in (0.0, 0.1, 0.4):
        device_of = of_blocks(model, {0: "XCPU", int(random.integers(1, LAYERS)): "CPU"})
        for name in device_of:
            if random.random() < share:
                device_of[name] = DEVICES[int(random.integers(2))]
        annotated = model.clone()
        try:
            before = count_subgraphs(model, device_of)
        except PlacementError:
            with pytest.raises(PlacementError, match="HETERO cannot run this placement"):
                annotate(annotated, device_of)
            continue
        annotate(annotated, device_of)
        submodels, outputs = run(core, annotated, inputs)
        assert before == submodels == count_subgraphs(annotated, device_of), (share, device_of)
        assert relative_error(outputs, expected) <= 1e-4


def test_a_parted_shape_that_no_folding_mends_is_refused_with_the_reason(monkeypatch):
    monkeypatch.setattr(releases, "installed", lambda: "2026.3.0")  # before, three submodels run
    model = layers(shared_chain=False, static=False)
    device_of = of_blocks(model, {0: "XCPU"}) | {"pattern2": "CPU"}
    for refused in (count_subgraphs, annotate):
        with pytest.raises(PlacementError, match=r"HETERO cannot run this placement: .*'pattern0'"):
            refused(model.clone(), device_of)
    assert not any("affinity" in op.get_rt_info() for op in model.get_ops())


def test_a_parted_variable_is_refused_with_the_reason():
    x = ops.parameter([1, 4], np.float32, name="x")
    zero = ops.constant(np.zeros((1, 4), np.float32), name="zero")
    read = ops.read_value(zero, "state", np.float32, [1, 4])
    total = ops.add(x, read, name="total")
    write = ops.assign(total, "state")
    for op, name in ((read, "read"), (write, "write")):
        op.set_friendly_name(name)
    model = ov.Model([ops.result(total, name="y")], [write], [x], "stateful")
    device_of = {op.get_friendly_name(): "CPU" for op in model.get_ops()} | {"write": "XCPU"}
    for refused in (count_subgraphs, annotate):
        with pytest.raises(PlacementError, match=r"'read' and Assign 'write' are on different devices"):
            refused(model.clone(), device_of)


def test_placing_a_model_saves_what_holds_for_it(core, tmp_path):
    model = layers(shared_chain=True)
    pins = {"softmax0": "XCPU", "softmax5": "CPU"}
    placement = place(model, DEVICES, "ZERO_SHOT", core, pins=pins)
    assert set(placement.to_dict()) == {op.get_friendly_name() for op in model.get_ops()}
    submodels, _ = check(core, model, placement, tmp_path)
    assert submodels == placement.decision.candidate(placement.decision.chosen).subgraphs >= 2
    placement.save(tmp_path / "saved.json")
    assert json.loads((tmp_path / "saved.json").read_text()) == json.loads(
        (tmp_path / "m.affinity.json").read_text()
    )


def test_annotate_says_what_the_file_holds(core: ov.Core, cli: Command, tmp_path: Path) -> None:
    ov.save_model(layers(shared_chain=True), tmp_path / "m.xml", compress_to_fp16=False)
    arguments = ("-d", "XCPU,CPU", "--mode", "zero-shot", "--pin", "softmax0=XCPU", "--pin", "softmax5=CPU")
    report = cli("annotate", tmp_path / "m.xml", *arguments, "--json").json()
    model = core.read_model(tmp_path / "m.xml")
    inputs = random_inputs(model, seed=0)
    found, _ = run_file(core, model, Path(report["affinity_file"]), inputs)
    assert found == report["affinity_subgraphs"]
    assert report["subgraphs"] == 2
    outcome = cli("annotate", tmp_path / "m.xml", *arguments)
    said = "the affinity file is for" in " ".join(outcome.out.split())
    assert said == (report["affinity_subgraphs"] != report["subgraphs"])


@pytest.mark.torch
@pytest.mark.seeds(transformers_models.NAMES, argument="name", cost=10)
def test_files_of_networks_that_nobody_here_wrote_hold(name: str, core: ov.Core, tmp_path: Path) -> None:
    model = transformers_models.build(name)
    inner = formed(model, FOLDED)
    shapes = open_shapes(model, random_inputs(model, seed=0))
    check(core, model, Placement.from_dict(random_regions(inner, DEVICES, 4, 11, shapes)), tmp_path)
