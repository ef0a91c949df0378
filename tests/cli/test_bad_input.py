"""Every kind of bad input: exit code 2, one sentence that names the culprit, nothing half-written."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import openvino as ov
import pytest
from onnx import TensorProto, helper
from openvino import opset13 as ops

from command_line import EXTRA_DEVICES, Command, Outcome, two_layers
from ov_autoplace.cli import request
from ov_autoplace.cli.outputs import made_folder
from ov_autoplace.devices.names import core_with_extra_devices
from ov_autoplace.errors import OutputError

DEVICES = ("-d", "XCPU,CPU")
FAST = (*DEVICES, "--mode", "zero-shot")


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def assert_refused(outcome: Outcome, *words: object) -> None:
    """Exit code 2 and exactly one line, which holds all of ``words``."""
    lines = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert outcome.code == 2, outcome.err
    assert len(lines) == 1, outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    for word in words:
        assert str(word) in lines[0]


def in_child(
    *arguments: object, before: Callable[[], None] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command as the shell runs it."""
    environment = {**os.environ, "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES, **variables}
    command = [sys.executable, "-m", "ov_autoplace", *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=120, check=False, preexec_fn=before
    )


def test_a_missing_model_is_named(cli: Command, tmp_path: Path) -> None:
    missing = tmp_path / "nowhere.xml"
    for command in ("annotate", "bench", "explain"):
        assert_refused(cli(command, missing, *DEVICES), missing)


def test_a_usage_error_leaves_with_2(cli: Command) -> None:
    for arguments in (["annotate"], ["annotate", "x.xml", "--mode", "psychic"], ["no-such-command"]):
        outcome = cli(*arguments)
        assert outcome.code == 2
        assert outcome.out == ""


@pytest.mark.parametrize("cut", [0, 1, 200, -200])
def test_a_truncated_ir_is_refused(cli: Command, small_ir: Path, cut: int) -> None:
    small_ir.write_bytes(small_ir.read_bytes()[:cut])
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, *FAST), small_ir)
    assert files_in(small_ir.parent) == before


def test_weights_that_are_too_short_are_refused(cli: Command, small_ir: Path) -> None:
    weights = small_ir.with_suffix(".bin")
    weights.write_bytes(weights.read_bytes()[:100])
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
    def core_with_extension() -> ov.Core:
        core = core_with_extra_devices()
        core.add_extension(Transmogrify)
        return core

    x = ops.parameter([1, 4], name="x")
    strange = Transmogrify([x.output(0)])
    strange.set_friendly_name("strange")
    path = tmp_path / "extended.xml"
    ov.save_model(ov.Model([ops.result(strange)], [x], "extended"), path, compress_to_fp16=False)
    before = files_in(tmp_path)
    monkeypatch.setattr(request, "core_with_extra_devices", core_with_extension)

    assert_refused(cli("annotate", path, *FAST), "'strange'", "Transmogrify", "XCPU, CPU")
    assert files_in(tmp_path) == before


@pytest.mark.parametrize(
    "devices", ["FOO", "CPU,FOO", "xcpu", "CPU,,XCPU", "CPU,CPU", "AUTO", "HETERO:CPU", "CPU.7"]
)
def test_devices_that_are_not_there_are_refused(cli: Command, small_ir: Path, devices: str) -> None:
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, "-d", devices, "--mode", "zero-shot"))
    assert files_in(small_ir.parent) == before


def test_an_extra_device_that_does_not_parse_is_refused(
    cli: Command, small_ir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", "XCPU")

    assert_refused(cli("devices"), "AUTOPLACE_EXTRA_DEVICES", "XCPU")


def affinities(small_ir: Path) -> dict[str, str]:
    return {op.get_friendly_name(): "CPU" for op in ov.Core().read_model(small_ir).get_ops()}


@pytest.mark.parametrize(
    ("content", "word"),
    [
        (lambda full: {**full, "ghost": "CPU"}, "'ghost'"),
        (lambda full: {k: v for k, v in full.items() if k != "relu"}, "'relu'"),
        (lambda full: {**full, "relu": "FPGA"}, "'FPGA'"),
        (lambda full: {**full, "relu": 3}, "'relu'"),
        (lambda full: {**full, "relu": ""}, "'relu'"),
        (lambda full: [full], "list"),
    ],
    ids=["unknown op", "missing op", "unknown device", "number", "empty", "list"],
)
def test_an_affinity_file_that_does_not_fit_is_refused(
    cli: Command, small_ir: Path, tmp_path: Path, content: Callable[[dict[str, str]], object], word: str
) -> None:
    path = tmp_path / "given.json"
    path.write_text(json.dumps(content(affinities(small_ir))))
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, *DEVICES, "--affinity", path), word)
    assert files_in(small_ir.parent) == before


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe", b"[" * 100_000])
def test_an_affinity_file_that_is_no_json_is_refused(
    cli: Command, small_ir: Path, tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "given.json"
    path.write_bytes(content)

    assert_refused(cli("annotate", small_ir, *DEVICES, "--affinity", path), path)


def test_duplicate_names_are_renamed_with_a_note(cli: Command, tmp_path: Path) -> None:
    twins = two_layers([1, 3, 16, 16])
    for op in twins.get_ops():
        if op.get_friendly_name() in {"first", "second"}:
            op.set_friendly_name("twin")
    path = tmp_path / "twins.xml"
    ov.save_model(twins, path, compress_to_fp16=False)

    outcome = cli("annotate", path, *FAST, "--json")

    assert "1 ops" in outcome.err
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


def test_a_folder_that_cannot_be_written_is_refused_before_the_search(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    a_file = tmp_path / "file"
    a_file.write_text("")
    before = files_in(tmp_path)
    # /proc refuses new files even to the superuser, whom permissions do not stop.
    for culprit in (a_file, Path("/proc")):
        for folder in (culprit, culprit / "new" / "newer"):
            assert_refused(cli("annotate", small_ir, *FAST, "-o", folder), culprit)
            for command in ("annotate", "bench", "explain"):
                assert_refused(cli(command, small_ir, *FAST, "--trace", folder / "trace.json"), culprit)
            assert_refused(cli("calibrate", *DEVICES, "-o", folder / "target.json"), culprit)
    assert files_in(tmp_path) == before


def test_a_folder_in_the_place_of_a_file_is_refused_before_the_search(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    assert_refused(cli("explain", small_ir, *FAST, "--trace", tmp_path), tmp_path, "name of a file")
    assert_refused(cli("calibrate", *DEVICES, "-o", tmp_path), tmp_path, "name of a file")


def test_a_request_that_fails_makes_no_folder(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    out = tmp_path / "a" / "b"
    assert_refused(cli("annotate", small_ir, *FAST, "--pin", "ghost*=CPU", "-o", out), "ghost*")
    assert not (tmp_path / "a").exists()


def test_what_fails_while_it_is_written_takes_the_folders_that_it_made_away(tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    made = tmp_path / "old" / "a" / "b"

    def write() -> None:
        with made_folder(made):
            assert made.is_dir()
            raise OutputError("the disk is full")

    with pytest.raises(OutputError, match="full"):
        write()
    assert list((tmp_path / "old").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(small_ir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    size = small_ir.with_suffix(".bin").stat().st_size

    def no_space() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size // 2, size // 2))

    done = in_child("annotate", small_ir, *FAST, "-o", folder, before=no_space, PYTHONDONTWRITEBYTECODE="1")

    assert_refused(Outcome(done.returncode, done.stdout, done.stderr), folder)
    assert files_in(folder) == {}


def test_a_target_of_another_schema_is_refused(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    path = tmp_path / "target.json"
    path.write_text(json.dumps({"schema": "somebody-elses/7", "devices": []}))

    assert_refused(cli("annotate", small_ir, "--mode", "zero-shot", "--target", path), path)
    assert_refused(cli("devices", "--target", path), path)


def test_an_unknown_target_names_the_catalogue(cli: Command, small_ir: Path) -> None:
    assert_refused(cli("annotate", small_ir, *FAST, "--target", "abacus"), "'abacus'")


@pytest.mark.parametrize(
    ("option", "value", "word"),
    [
        ("--config", '{"AUTOPLACE_MODUS": "TUNE"}', "AUTOPLACE_MODE"),
        ("--config", '{"AUTOPLACE_TIME_BUDGET_MS": -1}', "AUTOPLACE_TIME_BUDGET_MS"),
        ("--config", "{broken", "--config"),
        ("--config", "/no/such/file.json", "/no/such/file.json"),
        ("--pin", "nothing-like-this*=CPU", "nothing-like-this*"),
        ("--pin", "relu=FPGA", "FPGA"),
        ("--pin", "relu", "--pin"),
        ("--memory-limit", "CPU=much", "CPU"),
        ("--memory-limit", "FPGA=1GB", "FPGA"),
        ("--time-budget-ms", "-5", "TIME_BUDGET_MS"),
        ("--seed", "-1", "SEED"),
        ("--solvers", "auto,gredy", "greedy"),
        ("--shape", "image=1,,16,16", "--shape"),
    ],
)
def test_an_option_with_a_bad_value_is_named(
    cli: Command, small_ir: Path, option: str, value: str, word: str
) -> None:
    before = files_in(small_ir.parent)

    assert_refused(cli("annotate", small_ir, *FAST, option, value), word)
    assert files_in(small_ir.parent) == before


def test_an_op_pattern_that_matches_nothing_is_refused(cli: Command, small_ir: Path) -> None:
    assert_refused(cli("explain", small_ir, *FAST, "--op", "ghost*"), "'ghost*'")


def test_names_of_ops_are_not_taken_for_markup(cli: Command, tmp_path: Path) -> None:
    loud = two_layers([1, 3, 16, 16])
    for op in loud.get_ops():
        if op.get_friendly_name() == "second":
            op.set_friendly_name("[bold red]boo[/] [/nonsense]")
    path = tmp_path / "loud.xml"
    ov.save_model(loud, path, compress_to_fp16=False)

    outcome = cli("explain", path, *FAST)

    assert outcome.code == 0, outcome.err
    assert "[bold red]boo[/] [/nonsense]" in outcome.out


def test_a_failure_nobody_foresaw_is_one_sentence_and_exit_code_1(
    cli: Command, fail_with: Callable[[BaseException], None]
) -> None:
    fail_with(KeyError("the unforeseen"))

    plain, debugged = cli("fail"), cli("--debug", "fail")

    assert plain.code == debugged.code == 1
    assert "the unforeseen" in plain.err
    assert "--debug" in plain.err
    assert "Traceback" not in plain.err
    assert "Traceback" in debugged.err
