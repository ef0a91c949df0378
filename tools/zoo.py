"""Well-known networks out of OpenVINO operations, with seeded random weights and no framework.

``build(name)`` makes one. Every network comes small, for tests (milliseconds to build and to run),
and full, with the dimensions of its publication; both sizes come from the same code.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple

import openvino as ov

from networks import attention, branching, cnn, dense_prediction, sequence

__all__ = ["NAMES", "build"]


class _Network(NamedTuple):
    """A builder and the dataclass of its sizes: ``config()`` is full, ``config.small()`` is small."""

    builder: Callable[[Any, int], ov.Model]
    config: Any


_NETWORKS = {
    "inception_v3": _Network(cnn.inception_v3, cnn.InceptionConfig),
    "resnet50": _Network(cnn.resnet50, cnn.ResNetConfig),
    "bert_base": _Network(attention.bert, attention.BertConfig),
    "mobilenet_v2": _Network(cnn.mobilenet_v2, cnn.MobileNetConfig),
    "two_tower": _Network(branching.two_tower, branching.TwoTowerConfig),
    "wavenet": _Network(sequence.wavenet, sequence.WaveNetConfig),
    "lstm_lm": _Network(sequence.lstm_lm, sequence.LstmConfig),
    "decoder": _Network(attention.decoder, attention.DecoderConfig),
    "control_flow": _Network(branching.control_flow, branching.ControlFlowConfig),
    "unet": _Network(dense_prediction.unet, dense_prediction.UNetConfig),
    "ssdlite": _Network(dense_prediction.ssdlite, dense_prediction.SsdConfig),
}

NAMES = tuple(_NETWORKS)


def build(name: str, size: Literal["small", "full"] = "small", seed: int = 0) -> ov.Model:
    """One network of the zoo.

    Args:
        name: One of :data:`NAMES`.
        size: ``"small"`` for tests, ``"full"`` for the published dimensions.
        seed: Of the weights; the same seed gives the same bits.

    Raises:
        ValueError: There is no such network or size.
    """
    if name not in _NETWORKS:
        raise ValueError(f"the zoo has no network {name!r}; it has {', '.join(NAMES)}")
    if size not in ("small", "full"):
        raise ValueError(f"size is 'small' or 'full', not {size!r}")
    network = _NETWORKS[name]
    return network.builder(network.config.small() if size == "small" else network.config(), seed)
