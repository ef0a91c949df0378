"""Models that nobody here wrote give the same answers on AUTOPLACE and on any mix of devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import NamedTuple

import numpy as np
import openvino as ov
import pytest
from numpy.typing import NDArray

import light_onnx
import ov_autoplace
import transformers_models
from conftest import CPU_PLUGIN
from models import random_inputs
from ov_autoplace.graph.coarsen import coarsen

DEVICES = "XCPU,CPU"
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


def outputs_of(compiled: ov.CompiledModel, inputs: dict[str | int, NDArray]) -> list[NDArray]:
    answer = compiled.create_infer_request().infer(inputs)
    return [answer[output].copy() for output in compiled.outputs]


def assert_same(actual: list[NDArray], expected: list[NDArray]) -> None:
    assert [a.shape for a in actual] == [e.shape for e in expected]
    for a, e in zip(actual, expected, strict=True):
        scale = np.abs(e).max()
        assert scale > 0
        assert np.abs(a - e).max() <= TOLERANCE * scale


def builders() -> Iterator[tuple[str, Callable[[str], ov.Model], list[pytest.MarkDecorator]]]:
    for name in light_onnx.NAMES:
        yield name, light_onnx.build, []
    absent = find_spec("torch") is None or find_spec("transformers") is None
    marks = [pytest.mark.torch, pytest.mark.skipif(absent, reason="torch or transformers is not installed")]
    for name in transformers_models.NAMES:
        yield name, transformers_models.build, marks


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
    inputs = random_inputs(model, seed=0, default_size=4)
    expected = outputs_of(ov.Core().compile_model(model, "CPU", F32), inputs)
    return Case(model, inputs, expected)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A profile of both devices, so that no model has to wait for a measurement of the hand-overs."""
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    path = tmp_path_factory.mktemp("target") / "pair.json"
    ov_autoplace.Target.generic(core, DEVICES.split(",")).save(path)
    return str(path)


def test_autoplace_gives_the_outputs_of_one_device(case: Case, unequal_pair: ov.Core, target: str) -> None:
    config = F32 | {
        "AUTOPLACE_MODE": "ZERO_SHOT" if case.model.friendly_name in HEAVY else "PROFILE",
        "AUTOPLACE_TIME_BUDGET_MS": 200,
        "AUTOPLACE_SHAPES": shapes_of(case),
        "AUTOPLACE_TARGET": target,
    }
    compiled = unequal_pair.compile_model(case.model, f"AUTOPLACE:{DEVICES}", config)
    assert_same(outputs_of(compiled, case.inputs), case.expected)


def test_a_mixed_placement_gives_the_outputs_of_one_device(case: Case, unequal_pair: ov.Core) -> None:
    mixed = case.model.clone()
    ov_autoplace.annotate(mixed, random_regions(case, seed=7))
    compiled = unequal_pair.compile_model(mixed, f"AUTOPLACE:{DEVICES}", F32)
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") >= REGIONS - 1
    assert_same(outputs_of(compiled, case.inputs), case.expected)


def shapes_of(case: Case) -> dict[str, list[int]]:
    """The shape of each input whose model leaves it open."""
    return {
        port.any_name: list(case.inputs[port.any_name].shape)
        for port in case.model.inputs
        if port.partial_shape.is_dynamic
    }


def random_regions(case: Case, seed: int) -> dict[str, str]:
    """Devices by turns for the co-location groups, cut at random into runs of the topological order."""
    random = np.random.default_rng(seed)
    groups = coarsen(ov_autoplace.extract(case.model, shapes_of(case))).members
    cuts = np.sort(random.choice(np.arange(1, len(groups)), size=REGIONS - 1, replace=False))
    devices = DEVICES.split(",")
    return {
        op: devices[np.searchsorted(cuts, g, side="right") % len(devices)]
        for g, ops in enumerate(groups)
        for op in ops
    }
