"""Networks and scenarios of XRBench, rebuilt from its public lists of layers with random weights.

XRBench (H. Kwon et al., "XRBench: An Extended Reality (XR) Machine Learning Benchmark Suite for the
Metaverse", MLSys 2023) says of each network only the sizes of its layers, all of them dense convolutions,
also where the real network has another one; ``xrbench.json`` holds these numbers. So what is built is called
XRBench's layer lists and is none of its networks. Layers follow each other in the order of the list. Where
the output of one is not the input of the next, as for most layers of HRViT, it is adapted without
arithmetic: reshaped where it has as many elements, else channels are left out or repeated, and the nearest
pixels taken.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from networks.builder import NetworkBuilder
from ov_autoplace.application.workload import Application

_FACTS: dict[str, Any] = json.loads(Path(__file__).with_suffix(".json").read_text(encoding="utf-8"))
SCENARIOS: dict[str, list[list[Any]]] = _FACTS["scenarios"]
"""Of each network its frames per second, and the one that it follows with which probability."""


def layers(network: str) -> list[tuple[int, ...]]:
    """Output channels, input channels, rows, columns, and rows and columns of the kernel of each layer."""
    rows = []
    for times, block in _FACTS["networks"][network]:
        rows += times * (_FACTS["blocks"][block] if isinstance(block, str) else block)
    return [tuple(row) if len(row) == 6 else (*row, row[4]) for row in rows]


def macs(network: str) -> int:
    """Multiplications of an inference."""
    return sum(int(np.prod(layer)) for layer in layers(network))


def build(network: str, divisor: int = 1) -> ov.Model:
    """One network for one frame.

    Args:
        network: As the lists call it.
        divisor: Channels are divided by it.
    """
    b = NetworkBuilder(0, np.float32)
    x: ov.Node | None = None
    for i, (outputs, inputs, *size, rows, columns) in enumerate(layers(network)):
        outputs, inputs = (max(1, count // divisor) for count in (outputs, inputs))
        wanted = [1, inputs, *size]
        x = b.input("frame", wanted) if x is None else _adapted(x, wanted)
        x = b.conv_relu(x, outputs, (rows, columns), name=f"layer{i}")
    assert x is not None
    return b.model(network, {"result": x})


def scenario(name: str, divisor: int, slowdown: float) -> Application:
    """The application of a scenario: a frame has to be through before the next one comes.

    Args:
        name: One of :data:`SCENARIOS`.
        divisor: Channels of all networks are divided by it.
        slowdown: Frames come at so many times longer intervals.
    """
    models: dict[str, Any] = {}
    load, chains = [], []
    for network, frames, *follows in SCENARIOS[name]:
        models[network] = build(network, divisor)
        if follows:
            chains.append({"from": follows[0], "to": network, "times": follows[1]})
        else:
            deadline = 1e3 * slowdown / frames
            load.append({"start": network, "rate": frames / slowdown, "deadline_ms": deadline})
    return Application(models, load, chains)


def _adapted(x: ov.Node, wanted: Sequence[int]) -> ov.Node:
    """A tensor in the shape that the next layer takes."""
    found = list(x.output(0).shape)
    if np.prod(found) == np.prod(wanted):
        return x if found == list(wanted) else ops.reshape(x, list(wanted), special_zero=False)
    if found[1] < wanted[1]:
        x = ops.concat([x] * -(-wanted[1] // found[1]), 1)
    if found[1] != wanted[1]:
        x = ops.slice(x, [0], [wanted[1]], [1], [1])
    if found[2:] == list(wanted[2:]):
        return x
    return ops.interpolate(x, np.array(wanted[2:]), "nearest", "sizes", axes=np.array([2, 3]))
