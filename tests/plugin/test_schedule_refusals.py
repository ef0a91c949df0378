"""Files come from strangers: what is wrong with a schedule is said in one sentence, and never crashes."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from ov_autoplace import extension_path
from schedule_ops import CPU_LANES, DATA, Part, compile_op, core_with_op, data, relu_part, schedule, tower

SHAPE = [4, 8]
INPUTS = [(SHAPE, np.float32)]
GOOD = {
    "format": 1,
    "data_inputs": 1,
    "lanes": ["CPU", "CPU"],
    "lane_properties": [";", "NUM_STREAMS=0"],
    "submodels": ["a", "b"],
    "lane_of": [0, 1],
    "rank": [0, 1],
    "sources": [1, DATA, 0, 1, 0, 0],
    "results": [1, 0],
    "output_types": ["f32"],
    "input_shapes": [2, 4, 8],
    "output_shapes": [2, 4, 8],
}


def chain(**attributes: object) -> ov.Model:
    parts = [relu_part("a"), relu_part("b", (0, 0))]
    return schedule(INPUTS, parts, [(1, 0)], attributes=GOOD | attributes)


def refused(error: pytest.ExceptionInfo[RuntimeError]) -> str:
    """The sentence without what OpenVINO and Python put around it."""
    lines = [line for line in str(error.value).splitlines() if line and not line.startswith("Exception from")]
    assert len(lines) == 1, lines
    return lines[0]


def test_the_attributes_of_these_tests_are_good() -> None:
    np.testing.assert_array_equal(compile_op(chain())([data(1)])[0], np.maximum(data(1), 0))


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"format": 2}, "has format 2 and this library knows format 1"),
        ({"format": 0}, "has format 0"),
        ({"data_inputs": -1}, "'data_inputs' is -1"),
        ({"data_inputs": 10**15}, "'data_inputs' is 1000000000000000"),
        (
            {"data_inputs": 2, "input_shapes": [-1, -1]},
            "2 data inputs and 2 submodels needs 6 inputs and has 5",
        ),
        ({"lanes": []}, "'lane_properties' has 2 values where 0 are expected"),
        ({"lanes": [], "lane_properties": []}, "needs a lane"),
        ({"lanes": ["CPU", "%"]}, "'lanes' has a '%' without two hexadecimal digits"),
        ({"lanes": ["CPU", "%4"]}, "'lanes' has a '%' without two hexadecimal digits"),
        ({"lane_properties": [";"]}, "'lane_properties' has 1 values where 2 are expected"),
        (
            {"lane_properties": [";", "NUM_STREAMS"]},
            "KEY=VALUE joined by ';', which this is not: NUM_STREAMS",
        ),
        ({"lane_properties": [";", "=0"]}, "KEY=VALUE joined by ';', which this is not: =0"),
        ({"lane_properties": [";", "A=%zz"]}, "'lane_properties' has a '%' without two hexadecimal digits"),
        ({"submodels": ["a"]}, "'lane_of' has 2 values where 1 are expected"),
        ({"submodels": [], "lane_of": [], "rank": [], "sources": []}, "needs a submodel"),
        ({"lane_of": [0, 2]}, "submodel 'b' is on lane 2, but there are 2"),
        ({"lane_of": [0, -1]}, "'lane_of' has the lane -1"),
        ({"rank": [0]}, "'rank' has 1 values where 2 are expected"),
        ({"sources": [1, DATA, 0, 1, 0]}, "'sources' ends after 5 numbers, too early"),
        ({"sources": [1, DATA, 0, 1, 0, 0, 7]}, "'sources' has 7 numbers, of which 1 are too many"),
        ({"sources": [-1, DATA, 0, 1, 0, 0]}, "'sources' has -1 where a count is expected"),
        ({"sources": [10**12, DATA, 0, 1, 0, 0]}, "'sources' has 1000000000000 where a count is expected"),
        ({"sources": [1, DATA, 1, 1, 0, 0]}, "submodel 'a' reads data input 1, but there are 1"),
        ({"sources": [1, 1, 0, 1, 0, 0]}, "submodel 'a' reads submodel 1, which does not come before it"),
        ({"sources": [1, DATA, 0, 1, 1, 0]}, "submodel 'b' reads submodel 1, which does not come before it"),
        ({"sources": [1, DATA, 0, 1, 5, 0]}, "submodel 'b' reads submodel 5, but there are 2"),
        ({"sources": [1, DATA, 0, 1, -2, 0]}, "submodel 'b' reads submodel -2, but there are 2"),
        ({"sources": [1, DATA, 0, 1, 0, -1]}, "'sources' has the port -1"),
        ({"results": [2, 0]}, "output reads submodel 2, but there are 2"),
        ({"results": [1]}, "'results' ends after 1 numbers, too early"),
        ({"results": [], "output_types": [], "output_shapes": []}, "needs an output"),
        ({"output_types": ["f32", "f32"]}, "'output_types' has 2 values where 1 are expected"),
        ({"output_types": ["i64"]}, "'output_types' has 'i64', and only f32"),
        ({"input_shapes": [2, 4]}, "'input_shapes' ends after 2 numbers, too early"),
        ({"input_shapes": [2, 4, 8, 8]}, "'input_shapes' has 4 numbers, of which 1 are too many"),
        ({"input_shapes": [-2]}, "'input_shapes' has the rank -2"),
        ({"input_shapes": [10**12]}, "'input_shapes' has the rank 1000000000000"),
        ({"input_shapes": [2, 4, -3]}, "'input_shapes' has the dimension -3"),
        (
            {"input_shapes": [2, 4, 9]},
            "for input 0 of shape [4,9] and cannot run [4,8]; compile the original",
        ),
    ],
    ids=str,
)
def test_a_malformed_plan_is_refused_when_the_model_is_made(attributes: dict, sentence: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(sentence)) as error:
        chain(**attributes)
    assert refused(error).startswith("a schedule")


@pytest.mark.parametrize(
    ("attributes", "sentence"),
    [
        ({"sources": [1, DATA, 0, 1, 0, 3]}, "submodel 'b' on CPU reads output 3 of submodel 0, which has 1"),
        (
            {"sources": [1, DATA, 0, 2, 0, 0, 0, 0]},
            "submodel 'b' on CPU has 1 inputs, but the schedule names 2",
        ),
        ({"results": [1, 1]}, "an output reads output 1 of submodel 1, which has 1"),
        ({"output_types": ["i32"]}, "output 0 is i32, and its submodels write f32"),
        ({"lanes": ["CPU", "NO%20SUCH"]}, "submodel 'b' on NO SUCH cannot be compiled: "),
        ({"lane_properties": ["NUM_STREAMS=many", ";"]}, "submodel 'a' on CPU cannot be compiled: "),
        ({"lane_properties": ["NO_SUCH_KEY=1", ";"]}, "submodel 'a' on CPU cannot be compiled: "),
        ({"output_shapes": [2, 4, 9]}, "output 0 is declared as [4,9], and its submodels write [4,8]"),
    ],
    ids=str,
)
def test_a_plan_that_does_not_fit_its_submodels_is_refused_when_the_model_is_compiled(
    attributes: dict, sentence: str
) -> None:
    model = chain(**attributes)
    with pytest.raises(RuntimeError, match=re.escape(sentence)) as error:
        compile_op(model)
    refused(error)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda xml, weights: (xml[: len(xml) // 2], weights), "cannot be compiled: "),
        (lambda xml, weights: (b"\0", weights), "cannot be compiled: "),
        (lambda xml, weights: (b"/etc/passwd", weights), "cannot be compiled: "),
        (lambda xml, weights: (xml, weights[:100]), "cannot be compiled: "),
        (lambda xml, weights: (xml.replace(b"MatMul", b"MatMul2"), weights), "cannot be compiled: "),
    ],
    ids=["half a text", "no text", "a path", "short weights", "an unknown op"],
)
def test_a_broken_submodel_is_named(change, sentence: str, tmp_path: Path) -> None:
    parts = [Part(tower("broken one", 2, 8, 0), [(DATA, 0)])]
    model = schedule([([1, 8], np.float32)], parts, [(0, 0)])
    op = next(op for op in model.get_ops() if op.get_type_name() == "Schedule")
    files = [op.input_value(i).get_node() for i in (1, 2)]
    changed = change(*(bytes(np.asarray(file.data).tobytes()) for file in files))
    for i, new in enumerate(changed):
        op.input(1 + i).replace_source_output(ov.opset13.constant(np.frombuffer(new, np.uint8)).output(0))
    ov.save_model(model, tmp_path / "broken.xml")
    core = core_with_op()
    read = core.read_model(tmp_path / "broken.xml")
    with pytest.raises(RuntimeError, match="submodel 'broken one' on CPU " + re.escape(sentence)) as error:
        core.compile_model(read, "CPU")
    refused(error)


def test_types_that_cannot_cross_are_refused() -> None:
    with pytest.raises(RuntimeError, match="input 0 is i64, and only f32, i32, i8 and u8"):
        schedule([(SHAPE, np.int64)], [relu_part("a")], [(0, 0)])


def test_a_submodel_that_reads_another_type_is_refused() -> None:
    with pytest.raises(RuntimeError, match="input 0 is i32, and its submodels read f32"):
        compile_op(schedule([(SHAPE, np.int32)], [relu_part("a")], [(0, 0)]))


@pytest.mark.parametrize("shape", [[5, 8], [-1, 8], [4, 8, 1]])
def test_a_reshape_is_refused(shape: list[int]) -> None:
    model = chain()
    with pytest.raises(RuntimeError, match=r"made for input 0 of shape \[4,8\] and cannot run"):
        model.reshape(shape)


def test_submodels_that_are_no_constants_are_refused() -> None:
    model = chain()
    op = next(op for op in model.get_ops() if op.get_type_name() == "Schedule")
    bytes_of = ov.opset13.parameter([5], np.uint8)
    op.input(2).replace_source_output(bytes_of.output(0))
    model.add_parameters([bytes_of])
    with pytest.raises(RuntimeError, match="submodel 'a' is no u8 constant, but Parameter"):
        compile_op(model)


@pytest.mark.seeds(4)
def test_files_that_are_damaged_at_random_are_read_or_refused(seed: int, tmp_path: Path) -> None:
    """In a process of its own, 60 files with up to 4 changes to the numbers and texts of the op."""
    import subprocess
    import sys

    program = Path(__file__).with_name("damaged_schedules.py")
    ov.save_model(chain(), tmp_path / "good.xml")
    command = [sys.executable, program, extension_path(), tmp_path / "good.xml", seed]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    ran, refused_files = map(int, done.stdout.split())
    assert ran + refused_files == 60
    assert refused_files > 0


def test_lanes_without_properties_survive_in_a_file(tmp_path: Path) -> None:
    model = schedule(INPUTS, [relu_part("a")], [(0, 0)], [("CPU", {}), CPU_LANES[0], ("CPU", {})])
    ov.save_model(model, tmp_path / "model.xml")
    np.testing.assert_array_equal(compile_op(tmp_path / "model.xml")([data(1)])[0], np.maximum(data(1), 0))
