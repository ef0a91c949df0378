"""Checkpoints for tests: some whose answers are known beforehand, made without torch; a small network."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.policy.card import write_checkpoint

__all__ = ["handmade", "handmade_files", "small_checkpoint"]


def handmade(folder: Path, factor: float = -1.0, **card: Any) -> Path:
    """A checkpoint whose score is ``factor`` times the cost of a unit on a device.

    A factor below 0 prefers the fastest device of each unit on its own, one above 0 the slowest.
    """
    network = {"name": "handmade", "num_devices": card.pop("num_devices", None)}
    write_checkpoint(folder, handmade_files(factor), network, card.pop("training", {}), {"gap": 0.5})
    assert not card
    return folder


def handmade_files(factor: float = -1.0) -> dict[str, bytes]:
    cost = ops.parameter(ov.PartialShape([-1, -1]), np.float32, name="node_cost")
    cost.output(0).set_names({"node_cost"})
    scale = ops.constant(np.full((1, 1), factor, dtype=np.float32), name="scale")
    scores = ops.multiply(cost, scale, name="scores")
    scores.output(0).set_names({"scores"})
    model = ov.Model([ops.result(scores, name="answer")], [cost], "handmade")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "policy.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        graph, constants = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    return {"policy.xml": graph, "policy.bin": constants, "policy.safetensors": b"not read here"}


@pytest.fixture(scope="session")
def small_checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small network whose weights are all different, as in a trained one."""
    import torch

    from ov_autoplace.policy.config import CONFIGS
    from ov_autoplace.policy.networks.checkpoint import save_checkpoint
    from ov_autoplace.policy.networks.network import make_network

    network = make_network(replace(CONFIGS["autoplace-base"], hidden=8, layers=1), 0)
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for parameter in network.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator))
    folder = tmp_path_factory.mktemp("checkpoints") / "small"
    save_checkpoint(folder, network, {}, {})
    return folder
