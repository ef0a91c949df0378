"""Models that nobody here wrote give the same answers on AUTOPLACE and on any mix of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import openvino as ov
import pytest
from numpy.typing import NDArray

import light_onnx
import ov_autoplace
import transformers_models
from model_checks import open_shapes, outputs_of, random_inputs, random_regions, relative_error
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target
from places import CPU_PLUGIN

DEVICES = ("XCPU", "CPU")
PAIR = "AUTOPLACE:XCPU,CPU"
F32 = {"INFERENCE_PRECISION_HINT": "f32"}
# Of the largest value, when both answers are computed in f32.
TOLERANCE = 1e-4
REGIONS = 4
# Hundreds of megabytes of weights, which a profiling session writes to disk: placed by estimate.
HEAVY = ("light_bvlc_alexnet", "light_vgg19", "light_zfnet512")


class Case(NamedTuple):
    """A model with inputs and the outputs of the CPU alone."""

    model: ov.Model
    inputs: dict[str | int, NDArray]
    expected: list[NDArray]


def builders() -> Iterator[tuple[str, Callable[[str], ov.Model], list[pytest.MarkDecorator]]]:
    for name in light_onnx.NAMES:
        yield name, light_onnx.build, []
    for name in transformers_models.NAMES:
        yield name, transformers_models.build, [pytest.mark.torch]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param((build, name), id=f"{build.__module__}-{name}", marks=marks)
        for name, build, marks in builders()
    ],
)
def case(request: pytest.FixtureRequest) -> Case:
    build, name = request.param
    model = build(name)
    inputs = random_inputs(model, seed=0)
    expected = outputs_of(ov.Core().compile_model(model, "CPU", F32), inputs)
    return Case(model, inputs, expected)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A profile of both devices, so that no model has to wait for a measurement of the transfers."""
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    path = tmp_path_factory.mktemp("target") / "pair.json"
    save_target(generic_target(core, DEVICES), path)
    return str(path)


def test_autoplace_gives_the_outputs_of_one_device(case: Case, unequal_pair: ov.Core, target: str) -> None:
    config = F32 | {
        "AUTOPLACE_MODE": "ZERO_SHOT" if case.model.friendly_name in HEAVY else "PROFILE",
        "AUTOPLACE_TIME_BUDGET_MS": 200,
        "AUTOPLACE_SHAPES": open_shapes(case.model, case.inputs),
        "AUTOPLACE_TARGET": target,
    }
    compiled = unequal_pair.compile_model(case.model, PAIR, config)
    assert relative_error(outputs_of(compiled, case.inputs), case.expected) <= TOLERANCE


def test_a_mixed_placement_gives_the_outputs_of_one_device(case: Case, unequal_pair: ov.Core) -> None:
    mixed = case.model.clone()
    ov_autoplace.annotate(
        mixed, random_regions(case.model, DEVICES, REGIONS, 7, open_shapes(case.model, case.inputs))
    )
    compiled = unequal_pair.compile_model(mixed, PAIR, F32)
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") >= REGIONS - 1
    assert relative_error(outputs_of(compiled, case.inputs), case.expected) <= TOLERANCE
