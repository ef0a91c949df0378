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
from ov_autoplace.plan.placement import Placement
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


# The first of them: x, softmax on XCPU | product | total on XCPU | relu.
@pytest.mark.parametrize(
    ("others", "unmarked", "submodels"),
    [
        (("x", "softmax", "total"), (), 4),
        ((), (), 1),
        (("x", "softmax"), ("relu", "result"), 2),  # these take the device of a neighbour
    ],
)
def test_a_placement_runs_in_as_many_submodels_as_it_has_parts(
    example: Example, tmp_path: Path, others: tuple[str, ...], unmarked: tuple[str, ...], submodels: int
) -> None:
    model = four_ops()
    files = save_annotated(model, placed(model, **dict.fromkeys(others, "XCPU")), tmp_path, "net")
    path = files.model
    if unmarked:
        annotated, path = ov.Core().read_model(path), tmp_path / "gaps.xml"
        for op in annotated.get_ops():
            if op.get_friendly_name() in unmarked:
                del op.get_rt_info()["user_data:autoplace"]
        ov.save_model(annotated, path, compress_to_fp16=False)

    answer = printed(example(path, *([f"XCPU={CPU_PLUGIN}"] if others else [])))

    assert set(answer["EXECUTION_DEVICES"].split()) == ({"XCPU", "CPU"} if others else {"CPU"})
    assert answer["HETERO_NUMBER_OF_SUBMODELS"] == str(submodels)
    assert float(answer["CHECKSUM"]) == pytest.approx(cpu_checksum(model), rel=1e-5)


def test_a_model_without_annotation_is_refused_with_a_sentence(example: Example, tmp_path: Path) -> None:
    ov.save_model(four_ops(), tmp_path / "plain.xml", compress_to_fp16=False)

    done = example(tmp_path / "plain.xml")

    assert done.returncode == 1
    assert "'four_ops' carries no annotation" in done.stderr
