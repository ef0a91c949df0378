"""Weights exchanged in an exported network, against networks that were made with the new weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.policy.reweighting import exchange_weights
from ov_autoplace.problem.problem import Problem

Weights = dict[str, np.ndarray]


def exported(
    folder: Path, weights: dict[str, np.ndarray], offset: float | None = None
) -> tuple[bytes, bytes]:
    """``x @ matrix + bias + offset`` as IR."""
    x = ops.parameter(ov.PartialShape([-1, 3]), np.float32, name="x")
    y = ops.add(ops.matmul(x, ops.constant(weights["matrix"]), False, False), ops.constant(weights["bias"]))
    if offset is not None:
        y = ops.add(y, ops.constant(np.full((1, 3), offset, dtype=np.float32)))
    path = folder / "net.xml"
    ov.save_model(ov.Model([y], [x]), path, compress_to_fp16=False)
    return path.read_bytes(), path.with_suffix(".bin").read_bytes()


def weights(seed: int) -> Weights:
    random = np.random.default_rng(seed)
    return {
        "matrix": random.normal(size=(3, 3)).astype(np.float32),
        "bias": random.normal(size=(1, 3)).astype(np.float32),
    }


def test_the_network_computes_with_the_new_weights(tmp_path: Path) -> None:
    old, new = weights(0), weights(1)
    graph, constants = exported(tmp_path, old)
    changed = exchange_weights(graph, constants, old, new)
    assert changed is not None
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    core = ov.Core()
    compiled = core.compile_model(core.read_model(graph, changed), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    assert np.allclose(compiled([x])[0], x @ new["matrix"] + new["bias"], atol=1e-5)
    assert exchange_weights(graph, changed, new, old) == constants


def test_equal_weights_cannot_be_told_apart(tmp_path: Path) -> None:
    old = {"matrix": np.ones((3, 3), dtype=np.float32), "bias": np.ones((1, 3), dtype=np.float32)}
    twice = {**old, "copy": old["matrix"]}
    assert exchange_weights(*exported(tmp_path, old), twice, twice) is None


def test_a_constant_that_is_no_weight_may_have_been_computed_from_one(tmp_path: Path) -> None:
    old = weights(0)
    assert exchange_weights(*exported(tmp_path, old, offset=0.5), old, weights(1)) is None


def test_weights_that_were_folded_into_others_are_missed(tmp_path: Path) -> None:
    old = weights(0)
    more = {**old, "gain": np.array([7.0, 8.0], dtype=np.float32)}
    assert exchange_weights(*exported(tmp_path, old), more, more) is None


def test_other_shapes_are_another_network(tmp_path: Path) -> None:
    old = weights(0)
    new = {**weights(1), "bias": np.zeros((3,), dtype=np.float32)}
    assert exchange_weights(*exported(tmp_path, old), old, new) is None


@pytest.mark.torch
def test_a_policy_with_other_weights_answers_like_its_torch_network(tmp_path: Path) -> None:
    from dataclasses import replace

    import torch

    from ov_autoplace.policy.card import load_card
    from ov_autoplace.policy.config import CONFIGS
    from ov_autoplace.policy.features import policy_graph
    from ov_autoplace.policy.networks.batch import collate
    from ov_autoplace.policy.networks.checkpoint import load_network, save_checkpoint
    from ov_autoplace.policy.networks.network import make_network
    from ov_autoplace.policy.runner import PolicyRunner
    from ov_autoplace.training.finetuning.checkpoint_writer import CheckpointWriter
    from random_tables import random_table

    config = replace(CONFIGS["autoplace-base"], hidden=8, layers=1)
    network = make_network(config, 0)
    generator = torch.Generator().manual_seed(0)

    def shake() -> None:
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(0.2 * torch.randn(parameter.shape, generator=generator))

    fresh = save_checkpoint(tmp_path / "fresh", make_network(config, 0), {}, {})
    assert not CheckpointWriter(tmp_path / "any", fresh).is_fast  # many of its weights are all ones
    shake()
    trained = save_checkpoint(tmp_path / "trained", network, {}, {})
    writer = CheckpointWriter(tmp_path / "tuned", trained)
    assert writer.is_fast
    shake()
    writer.save(network, {"tuned": True}, {}, {})
    assert load_card(tmp_path / "tuned").files["policy.xml"] == trained.files["policy.xml"]
    for seed in range(3):
        graph = policy_graph(Problem.of(random_table(seed, 5 + 20 * seed, 2 + seed % 2, constrained=False)))
        with torch.no_grad():
            expected = network(collate([graph])).logits.numpy()
        scores = PolicyRunner(tmp_path / "tuned").scores(graph)
        assert np.allclose(scores, expected, atol=1e-4, rtol=1e-4), f"seed {seed}"
    same = load_network(tmp_path / "tuned").state_dict()
    assert all(torch.equal(value, same[name]) for name, value in network.state_dict().items())
