"""The C++ example in tools/cpp: built with the system's compiler, run on annotated IRs."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from cpp_programs import build_cpp
from ov_autoplace.placement import Placement
from ov_autoplace.plugin.annotated_files import save_annotated

SOURCE = Path(__file__).resolve().parents[2] / "tools" / "cpp"
CPU_PLUGIN = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"

Example = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Example:
    """The example program with our library as its first argument."""
    build = tmp_path_factory.mktemp("cpp")
    build_cpp(SOURCE, build)

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        command = [build / "autoplace_example", ov_autoplace.extension_path(), *map(str, arguments)]
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    return run


def four_ops() -> ov.Model:
    """Softmax, a matrix product, a sum that reads both, and ReLU."""
    rng = np.random.default_rng(7)
    x = ops.parameter([2, 8], name="x")
    softmax = ops.softmax(x, axis=1, name="softmax")
    product = ops.matmul(
        softmax, ops.constant(rng.normal(size=(8, 8)).astype(np.float32), name="weights"), False, False
    )
    product.set_friendly_name("product")
    total = ops.add(product, softmax, name="total")
    relu = ops.relu(total, name="relu")
    result = ops.result(relu, name="result")
    return ov.Model([result], [x], "four_ops")


def cpu_checksum(model: ov.Model) -> float:
    """Sum of the outputs on the plain CPU device for the input that the example fills in."""
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    x = (np.arange(16) % 7).reshape(2, 8).astype(np.float32)
    return float(sum(value.astype(np.float64).sum() for value in compiled([x]).values()))


def printed(done: subprocess.CompletedProcess[str]) -> dict[str, str]:
    assert done.returncode == 0, done.stderr
    return dict(line.split(" ", 1) for line in done.stdout.splitlines())


def placed(model: ov.Model, **device_of: str) -> Placement:
    return Placement.from_dict(
        {op.get_friendly_name(): device_of.get(op.get_friendly_name(), "CPU") for op in model.get_ops()}
    )


def test_a_placement_on_two_devices_runs_in_as_many_submodels_as_it_has_parts(
    example: Example, tmp_path: Path
) -> None:
    model = four_ops()
    # XCPU: x, softmax | CPU: product | XCPU: total | CPU: relu
    placement = placed(model, x="XCPU", softmax="XCPU", total="XCPU")
    files = save_annotated(model, placement, tmp_path, "net")

    answer = printed(example(files.model, f"XCPU={CPU_PLUGIN}"))

    assert set(answer["EXECUTION_DEVICES"].split()) == {"XCPU", "CPU"}
    assert answer["HETERO_NUMBER_OF_SUBMODELS"] == "4"
    assert float(answer["CHECKSUM"]) == pytest.approx(cpu_checksum(model), rel=1e-5)


def test_a_placement_on_one_device_runs_on_it_alone(example: Example, tmp_path: Path) -> None:
    model = four_ops()
    files = save_annotated(model, placed(model), tmp_path, "net")

    answer = printed(example(files.model))

    assert answer["EXECUTION_DEVICES"] == "CPU"
    assert answer["HETERO_NUMBER_OF_SUBMODELS"] == "1"
    assert float(answer["CHECKSUM"]) == pytest.approx(cpu_checksum(model), rel=1e-5)


def test_an_op_that_lost_its_mark_takes_the_device_of_a_neighbour(example: Example, tmp_path: Path) -> None:
    model = four_ops()
    files = save_annotated(model, placed(model, x="XCPU", softmax="XCPU"), tmp_path, "net")
    core = ov.Core()
    annotated = core.read_model(files.model)
    for op in annotated.get_ops():
        if op.get_friendly_name() in {"relu", "result"}:
            del op.get_rt_info()["user_data:autoplace"]
    ov.save_model(annotated, tmp_path / "gaps.xml", compress_to_fp16=False)

    answer = printed(example(tmp_path / "gaps.xml", f"XCPU={CPU_PLUGIN}"))

    assert answer["HETERO_NUMBER_OF_SUBMODELS"] == "2"


def test_a_model_without_annotation_is_refused_with_a_sentence(example: Example, tmp_path: Path) -> None:
    ov.save_model(four_ops(), tmp_path / "plain.xml", compress_to_fp16=False)

    done = example(tmp_path / "plain.xml")

    assert done.returncode == 1
    assert "'four_ops' carries no annotation" in done.stderr
