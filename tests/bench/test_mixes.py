"""Networks for which a mix of devices may be worth it."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest

from harness import ROOT
from ov_autoplace._base.statistics import Interval
from problems.networks import LAYERS, NETWORKS, SHAPE, composite, layer_model
from sections.mixes import Kernel, amounts, transfer_seconds

ANY = Interval(1.0, 1.0, 1.0)


def outputs_of(model: ov.Model) -> list[np.ndarray]:
    random = np.random.default_rng(0)
    inputs = [random.uniform(-1, 1, port.shape).astype(np.float32) for port in model.inputs]
    compiled = ov.Core().compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(inputs).values())


def test_so_many_layers_are_taken_that_each_half_saves_five_transfers():
    gpu = Kernel("Sin", (0.001, 0.005), ANY)  # a layer saves 4 ms on the first device
    cpu = Kernel("Softmax", (0.020, 0.010), ANY)  # and 10 ms on the second
    assert amounts(gpu, cpu, crossing=0.002) == (3, 1)  # 10 ms need three layers, or one


def test_a_transfer_is_latency_bytes_and_the_dearer_launch():
    # That machine's GPU to CPU: 5 us and 50 ps per byte of 128 x 64 x 64 floats; launches of 30 and 6 us.
    target = (ROOT / "ov_autoplace" / "cost" / "catalogue" / "core-ultra-7-155h.json").read_text()
    assert transfer_seconds(target) == pytest.approx(5e-6 + 5e-11 * 4 * 128 * 64 * 64 + 30e-6)


def test_amounts_are_bounded():
    gpu, cpu = Kernel("Sin", (0.001, 0.002), ANY), Kernel("Softmax", (0.2, 0.1), ANY)
    assert amounts(gpu, cpu, crossing=1.0) == (8, 8)


@pytest.mark.parametrize("kind", ["Acosh", "Atanh", "Tan", "Softmax", "CumSum"])
def test_layers_can_be_stacked_without_leaving_their_domain(kind):
    (output,) = outputs_of(composite(kind, 4, kind, 4))
    assert np.isfinite(output).all()
    assert np.abs(output).max() < 10


def test_every_layer_keeps_the_shape():
    for kind in LAYERS:
        reduction = next(
            op for op in layer_model(kind).get_ordered_ops() if op.get_type_name() == "ReduceMean"
        )
        assert tuple(reduction.input(0).get_shape()) == SHAPE, kind


@pytest.mark.parametrize("name", NETWORKS)
def test_networks_give_finite_answers_that_depend_on_the_input(name):
    (output,) = outputs_of(NETWORKS[name]())
    assert np.isfinite(output).all()
    assert output.std() > 0


def test_the_radiance_field_sums_up_rays():
    # Weights along a ray are products of survival and absorption, so they add up to at most 1, as colours do.
    (pixels,) = outputs_of(NETWORKS["radiance_field"]())
    assert pixels.min() >= 0
    assert pixels.max() <= 1
