"""Models that cannot be read or placed, and those that are read with a note."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from onnx import TensorProto, helper
from openvino import opset13 as ops
from refusals import DEVICES, FAST, assert_refused, files_in, in_child

from command_line import Command, Outcome, two_layers


def test_a_missing_model_is_named(cli: Command, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.xml"
    for command in ("annotate", "bench", "explain"):
        assert_refused(cli(command, missing, *DEVICES), missing)


@pytest.mark.parametrize(
    ("suffix", "cut"), [(".xml", 0), (".xml", 1), (".xml", 200), (".xml", -200), (".bin", 100)]
)
def test_a_truncated_ir_is_refused(cli: Command, small_ir: Path, suffix: str, cut: int) -> None:
    part = small_ir.with_suffix(suffix)
    part.write_bytes(part.read_bytes()[:cut])
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, *FAST), small_ir)
    assert files_in(small_ir.parent) == before


@pytest.mark.parametrize("suffix", [".xml", ".onnx", ".bin"])
def test_random_bytes_are_no_model(cli: Command, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"garbage{suffix}"
    path.write_bytes(np.random.default_rng(5).bytes(4096))

    assert_refused(cli("annotate", path, *FAST), path)
    assert list(files_in(tmp_path)) == [path.name]


def test_deeply_nested_xml_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "deep.xml"
    path.write_text("<net>" + "<layers>" * 100_000 + "</layers>" * 100_000 + "</net>")

    done = in_child("annotate", path, *FAST)  # a stack overflow would take the test run with it

    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), path)


def test_an_ir_that_promises_more_data_than_it_has_is_refused(cli: Command, small_ir: Path) -> None:
    text = small_ir.read_text()
    assert 'shape="4, 3, 3, 3"' in text
    small_ir.write_text(text.replace('shape="4, 3, 3, 3"', 'shape="4000000000, 3000000000, 3, 3"'))

    assert_refused(cli("annotate", small_ir, *FAST), small_ir)


def test_an_onnx_operator_that_openvino_does_not_know_is_named(cli: Command, tmp_path: Path) -> None:
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 4])
    node = helper.make_node("Transmogrify", ["x"], ["y"], domain="com.example")
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("com.example", 1)]
    path = tmp_path / "strange.onnx"
    onnx.save(helper.make_model(helper.make_graph([node], "g", [x], [y]), opset_imports=opsets), str(path))

    assert_refused(cli("annotate", path, *FAST), path, "Transmogrify")


class Transmogrify(ov.Op):
    """An op of a custom extension that no plugin implements."""

    def __init__(self, inputs: list[ov.Output] | None = None) -> None:
        super().__init__(self)
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: list[ov.Output]) -> ov.Node:
        return Transmogrify(inputs)

    def visit_attributes(self, visitor: object) -> bool:
        return True


def test_ops_that_no_device_supports_are_named(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_core = ov.Core.__init__

    def make_core_with_extension(core: ov.Core) -> None:
        make_core(core)
        core.add_extension(Transmogrify)

    x = ops.parameter([1, 4], name="x")
    strange = Transmogrify([x.output(0)])
    strange.set_friendly_name("strange")
    path = tmp_path / "extended.xml"
    ov.save_model(ov.Model([ops.result(strange)], [x], "extended"), path, compress_to_fp16=False)
    before = files_in(tmp_path)
    monkeypatch.setattr(ov.Core, "__init__", make_core_with_extension)

    assert_refused(cli("annotate", path, *FAST), "'strange'", "Transmogrify", "XCPU, CPU")
    assert files_in(tmp_path) == before


def test_duplicate_names_are_renamed_with_a_note(cli: Command, tmp_path: Path) -> None:
    twins = two_layers([1, 3, 16, 16])
    for op in twins.get_ops():
        if op.get_friendly_name() in {"first", "second"}:
            op.set_friendly_name("twin")
    path = tmp_path / "twins.xml"
    ov.save_model(twins, path, compress_to_fp16=False)

    outcome = cli("annotate", path, *FAST, "--json")

    assert "1 op of" in outcome.err
    assert str(path) in outcome.err
    names = json.loads(Path(outcome.json()["affinity_file"]).read_text())
    assert len(names) == len(twins.get_ops())


def test_a_dynamic_shape_without_a_size_is_assumed_with_a_warning(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "dynamic.xml"
    ov.save_model(two_layers(ov.PartialShape([-1, 3, -1, -1])), path, compress_to_fp16=False)

    outcome = cli("annotate", path, *FAST, "--json")
    given = cli("annotate", path, *FAST, "--json", "--shape", "image=[1,3,32,32]")

    assert outcome.json()["chosen"]
    assert "'image'" in outcome.err
    assert given.json()["chosen"]
    assert "'image'" not in given.err


def test_an_unknown_number_of_dimensions_asks_for_a_shape(cli: Command, tmp_path: Path) -> None:
    path = tmp_path / "rankless.xml"
    x = ops.parameter(ov.PartialShape.dynamic(), name="x")
    ov.save_model(ov.Model([ops.result(ops.relu(x))], [x], "rankless"), path, compress_to_fp16=False)

    assert_refused(cli("annotate", path, *FAST), "'x'", "shape")


@pytest.mark.parametrize(
    "shape", ["image=[1,3]", "image=[1,4,16,16]", "ghost=[1,3,8,8]", "image", "image=[a]"]
)
def test_shapes_that_do_not_fit_are_refused(cli: Command, tmp_path: Path, shape: str) -> None:
    path = tmp_path / "dynamic.xml"
    ov.save_model(two_layers(ov.PartialShape([-1, 3, -1, -1])), path, compress_to_fp16=False)

    assert_refused(cli("annotate", path, *FAST, "--shape", shape))
