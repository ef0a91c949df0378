"""The zoo's networks are what their names say, always the same, and run."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest

import zoo
from model_checks import random_inputs
from networks.builder import NetworkBuilder


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return ov.Core()


def weights_of(model: ov.Model) -> dict[str, np.ndarray]:
    return {op.friendly_name: op.data for op in model.get_ops() if op.get_type_name() == "Constant"}


def op_types(model: ov.Model) -> list[str]:
    return [op.get_type_name() for op in model.get_ops()]


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_small_network_runs_with_finite_outputs_that_depend_on_its_inputs(name: str, core: ov.Core) -> None:
    model = zoo.build(name)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    first, second = (compiled(random_inputs(model, seed)) for seed in (0, 1))
    for output in compiled.outputs:
        assert np.isfinite(first[output]).all(), output.any_name
    assert any(not np.array_equal(first[output], second[output]) for output in compiled.outputs)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_op_names_are_unique_and_chosen(name: str) -> None:
    ops = zoo.build(name).get_ops()
    assert len({op.friendly_name for op in ops}) == len(ops)
    assert [op.friendly_name for op in ops if op.friendly_name == op.get_name()] == []


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_seed_fixes_every_bit_and_another_seed_changes_the_weights(name: str) -> None:
    first, again, other = (zoo.build(name, seed=seed) for seed in (3, 3, 4))
    assert [op.friendly_name for op in first.get_ordered_ops()] == [
        op.friendly_name for op in again.get_ordered_ops()
    ]
    weights, same, changed = weights_of(first), weights_of(again), weights_of(other)
    assert all(np.array_equal(values, same[key]) for key, values in weights.items())
    assert any(not np.array_equal(values, changed[key]) for key, values in weights.items())


# Nodes and edges of the OpenVINO graphs in table 1 of arXiv 2405.14185.
@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [("inception_v3", 728, 764), ("resnet50", 396, 411), ("bert_base", 1009, 1071)],
)
def test_full_networks_have_the_published_size(name: str, nodes: int, edges: int) -> None:
    ops = zoo.build(name, "full").get_ops()
    assert len(ops) == pytest.approx(nodes, rel=0.01)
    assert sum(op.get_input_size() for op in ops) == pytest.approx(edges, rel=0.01)


# What torchvision and transformers count, except that folding batch normalisation has made one bias of
# the 26,560 pairs of scale and shift of ResNet-50. The scalars in f16 are constants and not learned.
@pytest.mark.parametrize(
    ("name", "parameters"), [("resnet50", 25_557_032 - 26_560), ("bert_base", 109_482_240)]
)
def test_full_networks_have_the_published_number_of_parameters(name: str, parameters: int) -> None:
    halves = [op for op in zoo.build(name, "full").get_ops() if op.get_output_element_type(0) == ov.Type.f16]
    learned = sum(int(np.prod(op.get_output_shape(0))) for op in halves if op.get_output_size() == 1)
    scalars = sum(int(np.prod(op.get_output_shape(0))) == 1 for op in halves)
    assert learned - scalars == parameters


@pytest.mark.parametrize(
    ("name", "types"),
    [
        ("mobilenet_v2", {"GroupConvolution", "Clamp"}),
        ("wavenet", {"Convolution", "Tanh", "Sigmoid", "Multiply"}),
        ("lstm_lm", {"Gather", "LSTMSequence"}),
        ("decoder", {"ReadValue", "Assign", "ScaledDotProductAttention"}),
        ("control_flow", {"If", "Loop"}),
        ("unet", {"ConvolutionBackpropData", "Concat"}),
        ("ssdlite", {"NonMaxSuppression"}),
    ],
)
def test_networks_hold_the_ops_they_are_there_for(name: str, types: set[str]) -> None:
    assert types <= set(op_types(zoo.build(name)))


def test_the_two_towers_meet_only_in_the_last_op() -> None:
    model = zoo.build("two_tower")
    reach: dict[str, set[str]] = {}
    for op in model.get_ordered_ops():
        sources = [value.get_node().friendly_name for value in op.input_values()]
        own = {op.friendly_name} if op.get_type_name() == "Parameter" else set()
        reach[op.friendly_name] = own.union(*(reach[source] for source in sources))
    both = [name for name, inputs in reach.items() if inputs == {"image", "input_ids"}]
    assert both == ["join.cosine", "similarity"]


def test_the_decoder_remembers_earlier_tokens_until_its_state_is_reset(core: ov.Core) -> None:
    request = core.compile_model(zoo.build("decoder"), "CPU").create_infer_request()

    def logits(token: int) -> np.ndarray:
        return request.infer({"token": np.array([[token]])})["logits"].copy()

    fresh = logits(5)
    assert not np.allclose(logits(5), fresh)
    request.reset_state()
    np.testing.assert_allclose(logits(5), fresh, rtol=1e-5)


def test_wavenet_does_not_look_ahead(core: ov.Core) -> None:
    model = zoo.build("wavenet")
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    signal = random_inputs(model, 0)["signal"]
    changed = signal.copy()
    changed[..., 40] += 1.0
    before, after = (compiled({"signal": x})[0] for x in (signal, changed))
    moved = np.abs(before - after).max(axis=(0, 1)) > 1e-7
    assert moved[40]
    assert not moved[:40].any()


def test_two_ops_of_one_name_are_refused() -> None:
    net = NetworkBuilder(seed=0)
    x = net.input("x", (1, 3))
    net.relu(x)
    with pytest.raises(ValueError, match="two ops are called 'relu'"):
        net.relu(x)


def test_an_unknown_network_or_size_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ValueError, match="resnet50"):
        zoo.build("resnet")
    with pytest.raises(ValueError, match="'small' or 'full'"):
        zoo.build("resnet50", "huge")  # type: ignore[arg-type]
