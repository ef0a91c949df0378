"""The zoo's networks are what their names say, always the same, and run."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset15 as ops

import zoo
from model_checks import random_inputs
from networks import recurrent, relative_attention
from networks.builder import NetworkBuilder
from networks.random_blocks import random_blocks
from networks.random_blocks.drawn import Drawn
from transformers_kinds import drawn


@pytest.fixture(scope="module")
def core() -> ov.Core:
    return ov.Core()


def weights_of(model: ov.Model) -> dict[str, np.ndarray]:
    return {op.friendly_name: op.data for op in model.get_ops() if op.get_type_name() == "Constant"}


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def op_types(model: ov.Model) -> list[str]:
    return [op.get_type_name() for op in model.get_ops()]


def described(model: ov.Model) -> list[tuple[str, str, str]]:
    """Name, type and output shapes of every op."""
    return [
        (op.friendly_name, op.get_type_name(), str([output.get_partial_shape() for output in op.outputs()]))
        for op in model.get_ordered_ops()
    ]


def shaped(model: ov.Model) -> list[tuple[str, str]]:
    """The same without names, which OpenVINO gives to what has none."""
    return [(op_type, shapes) for _, op_type, shapes in described(model)]


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_small_network_runs_with_finite_outputs_that_depend_on_its_inputs(name: str, core: ov.Core) -> None:
    model = zoo.build(name)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    first, second = (compiled(random_inputs(model, seed)) for seed in (0, 1))
    for output in compiled.outputs:
        assert np.isfinite(first[output]).all(), output.any_name
    assert any(not np.array_equal(first[output], second[output]) for output in compiled.outputs)


@pytest.mark.parametrize("name", zoo.NAMES)
def test_a_seed_fixes_every_bit_and_another_seed_changes_the_weights_alone(name: str) -> None:
    first, again, other = (zoo.build(name, seed=seed) for seed in (3, 3, 4))
    names = [op.friendly_name for op in first.get_ops()]
    assert len(set(names)) == len(names)
    assert not {op.get_name() for op in first.get_ops()} & {*names}  # all are chosen
    assert described(first) == described(again) == described(zoo.build(name, weights="untouched"))
    weights, same, changed = weights_of(first), weights_of(again), weights_of(other)
    assert all(np.array_equal(values, same[key]) for key, values in weights.items())
    assert any(not np.array_equal(values, changed[key]) for key, values in weights.items())


# Nodes and edges of the OpenVINO graphs in table 1 of arXiv 2405.14185.
@pytest.mark.parametrize(
    ("name", "nodes", "edges"),
    [("inception_v3", 728, 764), ("resnet50", 396, 411), ("bert_base", 1009, 1071)],
)
def test_full_networks_have_the_published_size(name: str, nodes: int, edges: int) -> None:
    ops = zoo.build(name, "full", weights="untouched").get_ops()
    assert len(ops) == pytest.approx(nodes, rel=0.01)
    assert sum(op.get_input_size() for op in ops) == pytest.approx(edges, rel=0.01)


# What torchvision and transformers count for ResNet-50 (but that folding batch normalisation has made one
# bias of its 26,560 pairs of scale and shift), BERT, VGG-16 and ViT-B/16, and what the papers say:
# DenseNet-121 8.0 M, EfficientNet-B0 5.3 M, the large model of Zaremba et al. 66 M, twelve layers of
# Transformer-XL 41 M, AmoebaNet-A (N=6, F=190) 86.7 M, whose auxiliary head is left out. Scalars are not
# learned.
@pytest.mark.parametrize(
    ("name", "parameters", "tolerance"),
    [
        ("resnet50", 25_557_032 - 26_560, 0),
        ("bert_base", 109_482_240, 0),
        ("vgg16", 138_357_544, 0),
        ("vit_base", 86_567_656, 0),
        ("densenet121", 8.0e6, 0.01),
        ("efficientnet_b0", 5.3e6, 0.01),
        ("rnnlm", 66e6, 0.01),
        ("transformer_xl", 41e6, 0.04),
        ("amoebanet", 86.7e6, 0.04),
    ],
)
def test_full_networks_have_the_published_number_of_parameters(
    name: str, parameters: float, tolerance: float
) -> None:
    model = zoo.build(name, "full", weights="untouched")
    numbers = [
        op
        for op in model.get_ops()
        if op.get_type_name() == "Constant" and op.get_output_element_type(0).is_real()
    ]
    sizes = [int(np.prod(op.get_output_shape(0))) for op in numbers]
    assert sum(size for size in sizes if size > 1) == pytest.approx(parameters, rel=tolerance)


def test_weights_that_are_not_there_share_their_memory() -> None:
    model = zoo.build("bert_base", "full", weights="untouched")
    weights = [
        op.get_data(copy=False)
        for op in model.get_ops()
        if op.friendly_name.endswith("expand.weight.compressed")
    ]
    assert len(weights) == 12
    assert all(weight.nbytes == 2 * 768 * 3072 for weight in weights)
    assert all(np.shares_memory(weights[0], other) for other in weights)


def test_a_network_may_have_more_weights_than_the_machine_has_memory() -> None:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    net = NetworkBuilder(0, weights="untouched")

    weight = net.normal("weight", (2 * memory // 4096, 1024), std=1.0)

    assert weight.get_output_shape(0) == [2 * memory // 4096, 1024]
    assert weight.data[-1, -1] == 0


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_a_family_scales_to_the_number_of_ops_asked_for(family: str) -> None:
    for seed, num_ops in enumerate((700, 1500, 4000)):
        assert num_ops / 1.5 < len(zoo.build_scaled(family, num_ops, seed).get_ops()) < num_ops * 1.5


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_a_family_is_many_graphs_and_a_seed_picks_one(family: str) -> None:
    graphs = [described(zoo.build_scaled(family, 600, seed)) for seed in (0, 0, 1, 2, 3)]
    assert graphs[0] == graphs[1]
    assert all(graphs[i] != graphs[j] for i in range(2, 5) for j in range(1, i))


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_a_scaled_network_runs(family: str, core: ov.Core) -> None:
    small = {"image": 64} if family in ("vgg", "resnet", "mobilenet", "densenet", "inception_like") else {}
    model = zoo.build_scaled(family, 100, seed=11, weights="untouched", **small)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    answer = compiled(random_inputs(model, 0))
    assert all(np.isfinite(answer[output]).all() for output in compiled.outputs)


def test_what_the_caller_fixes_is_not_left_to_the_seed() -> None:
    names = {op.friendly_name for op in zoo.build_scaled("gnmt", 2000, layers=8).get_ops()}
    assert "decoder.step.0.7.gates" in names
    assert "decoder.step.0.8.gates" not in names


def test_no_family_is_of_two_splits() -> None:
    splits = (zoo.TRAINING_FAMILIES, zoo.VALIDATION_FAMILIES, zoo.HELD_OUT_FAMILIES)
    assert len(zoo.FAMILIES) == len(set(zoo.FAMILIES)) == sum(map(len, splits))


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
        ("densenet121", {"Concat", "Convolution"}),
        ("efficientnet_b0", {"Swish", "GroupConvolution", "ReduceMean"}),
        ("mixture_of_experts", {"MatMul", "Softmax", "Split"}),
        ("amoebanet", {"GroupConvolution", "AvgPool", "MaxPool", "Concat"}),
        ("vit_base", {"Convolution", "Softmax", "Gelu"}),
        ("transformer_xl", {"Pad", "Slice", "Softmax"}),
        ("rnnlm", {"Split", "Sigmoid", "Tanh"}),
        ("gnmt", {"Split", "Softmax", "Sigmoid"}),
    ],
)
def test_networks_hold_the_ops_they_are_there_for(name: str, types: set[str]) -> None:
    assert types <= set(op_types(zoo.build(name)))


@pytest.mark.seeds(0, 20)
def test_random_blocks_run_and_a_seed_fixes_them(seed: int, core: ov.Core) -> None:
    model = random_blocks(seed)
    assert shaped(model) == shaped(random_blocks(seed))
    outputs = core.compile_model(model, "CPU")(random_inputs(model, seed))
    assert [value.shape for value in outputs.values()] == [tuple(port.shape) for port in model.outputs]


def test_few_rows_go_through_wide_layers() -> None:
    d = Drawn(0, np.float32)
    assert max(d.rows(256) for _ in range(100)) > 8
    d.with_few_rows()
    assert max(d.rows(256) for _ in range(100)) <= 8
    assert min(d.width(4, 512) for _ in range(100)) >= 128


@pytest.mark.torch
@pytest.mark.parametrize("family", ["bert", "mistral", "t5", "vit_mae", "resnet", "wav2vec2"])
def test_a_drawn_network_has_the_shapes_that_its_seed_draws(family: str) -> None:
    first, again, other = (drawn.drawn(family, seed) for seed in (3, 3, 4))
    assert not first.is_dynamic()
    assert shaped(first) == shaped(again) != shaped(other)


@pytest.mark.torch
@pytest.mark.parametrize("family", ["bert", "mistral", "t5"])
def test_a_drawn_network_reads_few_tokens_where_it_is_asked_for(family: str) -> None:
    for seed in (3, 4, 5):
        few, usual = (drawn.drawn(family, seed, is_asked) for is_asked in (True, False))
        assert few.input(0).shape[1] < min(8, usual.input(0).shape[1])


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


def test_gnmt_reads_the_whole_source_before_the_first_token(core: ov.Core) -> None:
    model = zoo.build("gnmt")
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    inputs = random_inputs(model, 0)
    before = compiled(inputs)["logits"].copy()
    for token in range(inputs["source_ids"].shape[1]):
        changed = inputs["source_ids"].copy()
        changed[0, token] += 1
        assert np.abs(compiled({**inputs, "source_ids": changed})["logits"] - before)[0, 0].max() > 1e-6


def test_transformer_xl_remembers_what_its_layers_read(core: ov.Core) -> None:
    model = zoo.build("transformer_xl")
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    inputs = random_inputs(model, 0)
    answer = compiled(inputs)
    # Six positions are kept of six old and four new ones.
    for layer in range(2):
        old, kept = inputs[f"memory{layer}"], answer[f"memory{layer}.next"]
        np.testing.assert_array_equal(kept[:, :2], old[:, 4:])
    other = compiled({**inputs, "memory1": inputs["memory1"] + 1})
    assert not np.allclose(answer["logits"], other["logits"])


def test_relative_scores_are_moved_from_distances_to_positions(core: ov.Core) -> None:
    rows, columns = 3, 7
    net = NetworkBuilder(seed=0)
    moved = relative_attention.shifted(net, net.input("scores", (1, 2, rows, columns)))
    compiled = core.compile_model(net.model("shift", {"moved": moved}), "CPU")
    scores = np.random.default_rng(0).standard_normal((1, 2, rows, columns), dtype=np.float32)
    answer = compiled([scores])[0]
    for row in range(rows):
        for position in range(columns - rows + row + 1):  # what a row may look at
            # Column c of the scores is for the distance columns - 1 - c.
            distance = columns - rows + row - position
            np.testing.assert_array_equal(
                answer[..., row, position], scores[..., row, columns - 1 - distance]
            )


@pytest.mark.parametrize(
    ("name", "changed", "answer", "place"),
    [
        ("wavenet", "signal", "probabilities", (..., 40)),
        ("rnnlm", "input_ids", "logits", (0, 2)),
        ("gnmt", "target_ids", "logits", (0, 2)),
        ("transformer_xl", "input_ids", "logits", (0, 2)),
    ],
)
def test_what_comes_later_changes_nothing_before(
    name: str, changed: str, answer: str, place: tuple[Any, ...], core: ov.Core
) -> None:
    model = zoo.build(name)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    inputs = random_inputs(model, 0)
    other = inputs[changed].copy()
    other[place] += 1
    before, after = (compiled({**inputs, changed: values})[answer] for values in (inputs[changed], other))
    moved = np.abs(before - after).max(axis=(0, 1) if name == "wavenet" else (0, 2)) > 1e-6
    assert moved[place[1]]
    assert not moved[: place[1]].any()


@pytest.mark.parametrize("joined", [True, False])
def test_the_lstm_cell_computes_what_its_equations_say(joined: bool, core: ov.Core) -> None:
    net = NetworkBuilder(seed=0)
    cell = recurrent.LstmCell(net, 3, 4, joined=joined)
    x, hidden, memory = (net.input(name, (1, size)) for name, size in (("x", 3), ("h", 4), ("c", 4)))
    output, remembered = cell.step(x, (hidden, memory))
    model = net.model("cell", {"next": output, "remembered": remembered})
    inputs, weights = random_inputs(model, 1), weights_of(model)
    if joined:
        matrix = weights["weight"]
    else:
        matrix = np.concatenate([weights["input_weight"], weights["hidden_weight"]], axis=1)
    gates = np.concatenate([inputs["x"], inputs["h"]], axis=1) @ matrix.T + weights["bias"]
    keep, write, show, fresh = np.split(gates, 4, axis=1)
    expected = sigmoid(keep) * inputs["c"] + sigmoid(write) * np.tanh(fresh)
    compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    answer = compiled(inputs)
    np.testing.assert_allclose(answer["remembered"], expected, atol=1e-5)
    np.testing.assert_allclose(answer["next"], sigmoid(show) * np.tanh(expected), atol=1e-5)


def test_the_gru_cell_is_openvinos(core: ov.Core) -> None:
    net = NetworkBuilder(seed=0)
    cell = recurrent.GruCell(net, 3, 4)
    x, hidden = net.input("x", (1, 3)), net.input("h", (1, 4))
    model = net.model("cell", {"next": cell.step(x, (hidden,))[0]})
    weights = weights_of(model)
    # OpenVINO orders the gates update, reset, candidate.
    reset, update, candidate = np.split(weights["input_weight"], 3)
    reset_bias, update_bias, candidate_bias = np.split(weights["bias"][0], 3)
    own_reset, own_update = np.split(weights["gate_weight"], 2)
    parameters = [ops.parameter([1, 3], np.float32), ops.parameter([1, 4], np.float32)]
    reference = ops.gru_cell(
        *parameters,
        ops.constant(np.concatenate([update, reset, candidate])),
        ops.constant(np.concatenate([own_update, own_reset, weights["candidate_weight"]])),
        ops.constant(np.concatenate([update_bias, reset_bias, candidate_bias])),
        4,
    )
    inputs = random_inputs(model, 2)
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    expected = core.compile_model(ov.Model([reference], parameters, "gru"), "CPU", settings)
    answer = core.compile_model(model, "CPU", settings)(inputs)
    np.testing.assert_allclose(answer["next"], expected([inputs["x"], inputs["h"]])[0], atol=1e-5)


def test_a_cell_of_amoebanet_joins_what_nothing_in_it_reads() -> None:
    # Combinations 2, 3 and 4 of the published normal cell are read by no other one: three times 8 channels.
    shapes = {op.friendly_name: list(op.get_output_shape(0)) for op in zoo.build("amoebanet").get_ops()}
    assert shapes["stage1.0.concat"][1] == 3 * 8


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
