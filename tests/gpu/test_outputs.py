"""Every way to run a model on the GPU and the CPU gives what the CPU gives."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from gpu_models import compiled_with, split_after

import zoo
from model_checks import outputs_of, random_inputs, random_regions, relative_error
from problems.networks import random_feature_classifier

DEVICES = ("GPU", "CPU")
TIGHT = 5e-4  # of two plugins in f32: their Softmax alone differs by 1e-4
QUICK = {"AUTOPLACE_MODE": "ZERO_SHOT"}
MIXED = {**QUICK, "AUTOPLACE_PINS": {"query0": "GPU", "outer0": "CPU"}}


@pytest.mark.parametrize(
    ("device", "config"),
    [
        ("GPU", {}),
        ("HETERO:GPU,CPU", {}),
        ("AUTOPLACE:GPU,CPU", QUICK),
        ("AUTOPLACE", QUICK),
        ("AUTOPLACE:GPU,CPU", MIXED),
    ],
)
def test_outputs_in_f32_are_those_of_the_cpu(core, model, inputs, expected, device, config) -> None:
    compiled = core.compile_model(model, device, config)
    if config == MIXED:
        assert set(compiled.get_property("EXECUTION_DEVICES")) == {"GPU", "CPU"}
    assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT


@pytest.mark.smoke
@pytest.mark.seeds(3)
def test_placements_of_whole_groups_give_the_cpus_outputs(core, model, inputs, expected, seed) -> None:
    compiled = compiled_with(core, model, random_regions(model, DEVICES, 4, seed))
    assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT


def test_in_its_own_precision_the_gpu_is_further_off_but_bounded(model, inputs, expected) -> None:
    """Unless told otherwise the plugin computes in f16, with 11 bits."""
    compiled = ov.Core().compile_model(model, "GPU")
    assert compiled.get_property("INFERENCE_PRECISION_HINT") == ov.Type.f16
    error = relative_error(outputs_of(compiled, inputs), expected)
    print(f"relative error of the GPU in f16: {error:.1e}")
    assert 1e-5 < error < 2e-2


def test_the_precision_that_is_asked_for_reaches_a_mix_of_devices(model, inputs, expected) -> None:
    """Flat properties of compile_model go to the devices inside HETERO."""
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(model, "AUTOPLACE:GPU,CPU", {**MIXED, **exact})
    assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT


@pytest.mark.parametrize("name", ["bert_base", "lstm_lm", "mixture_of_experts"])
def test_networks_of_the_zoo_give_the_cpus_outputs(core, name) -> None:
    model = zoo.build(name, "small")
    inputs = random_inputs(model, seed=2)
    expected = outputs_of(core.compile_model(model, "CPU"), inputs)
    compiled = core.compile_model(model, "AUTOPLACE:GPU", QUICK)
    assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT
    mixed = compiled_with(core, model, random_regions(model, DEVICES, 3, seed=1))
    assert relative_error(outputs_of(mixed, inputs), expected) < TIGHT


def test_convolutions_on_the_cpu_and_cosines_on_the_gpu(core) -> None:
    model = random_feature_classifier()
    mixed = compiled_with(core, model, split_after(model, "positions", "CPU", "GPU"))
    assert mixed.get_property("EXECUTION_DEVICES") == ["CPU", "GPU"]
    assert mixed.get_property("HETERO_NUMBER_OF_SUBMODELS") == 2
    inputs = random_inputs(model, seed=6)
    assert (
        relative_error(outputs_of(mixed, inputs), outputs_of(core.compile_model(model, "CPU"), inputs))
        < TIGHT
    )


def test_asynchronous_requests_do_not_mix_up_their_values(core, model) -> None:
    compiled = core.compile_model(model, "AUTOPLACE:GPU", QUICK)
    values = [random_inputs(model, seed) for seed in range(4)]
    expected = [outputs_of(core.compile_model(model, "CPU"), value) for value in values]
    requests = [compiled.create_infer_request() for _ in values]
    for request, value in zip(requests, values, strict=True):
        request.start_async(value)
    for request, wanted in zip(requests, expected, strict=True):
        request.wait()
        assert relative_error([np.array(request.get_output_tensor(0).data)], wanted) < TIGHT
