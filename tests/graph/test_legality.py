"""Groups are legal wherever they are cut: real HETERO runs over random placements of the groups."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from graph_models import STRUCTURES
from numpy.typing import NDArray

import zoo
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.plan.annotation import set_affinities
from ov_autoplace.plan.legality import broken_bonds

DEVICES = ("XCPU", "CPU")
SHAPES = {"shared_dynamic_shape": {"x": [3, 5, 8]}, "bounded_dimension": {"x": [3, 8]}}


@pytest.fixture(scope="module")
def core() -> ov.Core:
    """Two equal devices in f32, so that only a broken cut can change an output."""
    core = ov.Core()
    core.register_plugin(f"{ov.__path__[0]}/libs/libopenvino_intel_cpu_plugin.so", "XCPU")
    for device in DEVICES:
        # Without its snippets, which take most of the time to compile.
        own = {"INFERENCE_PRECISION_HINT": "f32", "SNIPPETS_MODE": "DISABLE", "INFERENCE_NUM_THREADS": 1}
        core.set_property(device, own)
    return core


def random_inputs(model: ov.Model, shapes: dict[str, list[int]] | None) -> list[NDArray]:
    random = np.random.default_rng(0)
    bounds = input_ranges(model)
    inputs = []
    for parameter in with_static_shapes(model, shapes).get_parameters():
        shape, element = list(parameter.get_output_shape(0)), parameter.get_output_element_type(0)
        values = (
            random.standard_normal(shape)
            if element.is_real()
            else random.integers(0, bounds.get(parameter.get_friendly_name(), 2), shape)
        )
        inputs.append(values.astype(element.to_dtype()))
    return inputs


def outputs_of_two_runs(compiled: ov.CompiledModel, inputs: list[NDArray]) -> list[NDArray]:
    """Two runs of one request, so that state counts."""
    request = compiled.create_infer_request()
    return [output.copy() for _ in range(2) for output in request.infer(inputs).values()]


@pytest.mark.parametrize("light_ops", [True, False])
@pytest.mark.parametrize("name", STRUCTURES)
def test_random_placements_of_groups_run_and_change_no_output(
    name: str, light_ops: bool, core: ov.Core
) -> None:
    check_random_placements(core, STRUCTURES[name](), SHAPES.get(name), light_ops, trials=3)


# Their fine groups only, whose cuts are those of their groups and more.
@pytest.mark.seeds(zoo.NAMES, argument="name", cost=8)
def test_random_placements_of_whole_networks_run_and_change_no_output(name: str, core: ov.Core) -> None:
    check_random_placements(core, zoo.build(name), None, light_ops=False, trials=1)


def check_random_placements(
    core: ov.Core, model: ov.Model, shapes: dict[str, list[int]] | None, light_ops: bool, trials: int
) -> None:
    coarse = coarsen(extract(model, shapes), light_ops=light_ops)
    inputs = random_inputs(model, shapes)
    expected = outputs_of_two_runs(core.compile_model(model, "CPU"), inputs)
    seed = 7
    random = np.random.default_rng(seed)
    for trial in range(trials):
        placed = model.clone()
        on = random.integers(0, 2, len(coarse))[coarse.group_of].astype(np.int32)
        if broken_bonds(coarse.ops, on):
            continue  # HETERO's own cuts go through groups; tools/legality.py shows that it cannot run
        device_of = dict(zip(coarse.ops.names, (DEVICES[i] for i in on), strict=True))
        set_affinities(placed, device_of)
        found = outputs_of_two_runs(core.compile_model(placed, "HETERO:XCPU,CPU"), inputs)
        for one, other in zip(expected, found, strict=True):
            scale = max(1e-6, float(np.abs(one).max(initial=0)))
            np.testing.assert_allclose(
                other / scale, one / scale, atol=1e-4, err_msg=f"seed {seed}, trial {trial}"
            )
