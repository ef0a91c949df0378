"""Well-known networks out of OpenVINO operations, with seeded random weights and no framework.

``build(name)`` makes one. Every network comes small, for tests (milliseconds to build and to run),
and full, with the dimensions of its publication; both sizes come from the same code.

``build_scaled(family, num_ops, seed)`` makes one of any number of ops, up to 50,000, with sizes that the
seed decides, so that a family is many different graphs. The network of costs is trained on graphs of
:data:`TRAINING_FAMILIES` and judged on graphs of :data:`HELD_OUT_FAMILIES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
import openvino as ov
from numpy.typing import DTypeLike

from networks import (
    attention,
    branching,
    cells,
    cnn,
    dense_prediction,
    efficient_cnn,
    experts,
    plain_cnn,
    random_cnn,
    recurrent,
    relative_attention,
    sequence,
    translation,
    vision_transformer,
)
from networks.builder import NetworkBuilder, Weights


class _Network(NamedTuple):
    """A builder and the dataclass of its sizes.

    ``config()`` is full, ``config(**small)`` is small and ``config.varied(depth, random)`` is random.
    """

    builder: Callable[[Any, NetworkBuilder], ov.Model]
    config: Any
    small: Mapping[str, Any]
    weight_type: DTypeLike = np.float32


_RESNET = {"image": 32, "width": 8, "blocks": (1, 2), "classes": 10}
_NETWORKS = {
    # one block of each kind, channels divided by 16
    "inception_v3": _Network(
        cnn.inception_v3,
        cnn.InceptionConfig,
        {"image": 75, "divisor": 16, "blocks": (1, 1, 1), "classes": 10},
        np.float16,
    ),
    # two stages on thumbnails
    "resnet50": _Network(cnn.resnet50, cnn.ResNetConfig, _RESNET, np.float16),
    # two narrow layers on eight tokens
    "bert_base": _Network(
        attention.bert,
        attention.BertConfig,
        {"layers": 2, "width": 32, "heads": 2, "vocabulary": 100, "positions": 16, "tokens": 8},
        np.float16,
    ),
    # three stages on thumbnails
    "mobilenet_v2": _Network(
        cnn.mobilenet_v2,
        cnn.MobileNetConfig,
        {
            "image": 32,
            "stem": 8,
            "stages": ((1, 8, 1, 1), (4, 12, 2, 2), (4, 16, 1, 2)),
            "head": 32,
            "classes": 10,
        },
    ),
    # the smallest image tower beside eight tokens
    "two_tower": _Network(
        branching.two_tower,
        branching.TwoTowerConfig,
        {"image": cnn.ResNetConfig(**_RESNET), "vocabulary": 100, "tokens": 8, "width": 16, "joint": 16},
    ),
    # two stacks of three layers on 64 samples
    "wavenet": _Network(
        sequence.wavenet,
        sequence.WaveNetConfig,
        {"stacks": 2, "layers": 3, "channels": 8, "skip_channels": 16, "levels": 16, "samples": 64},
    ),
    # two narrow layers on six tokens
    "lstm_lm": _Network(
        sequence.lstm_lm, sequence.LstmConfig, {"layers": 2, "width": 16, "vocabulary": 50, "tokens": 6}
    ),
    # two narrow layers that remember eight tokens
    "decoder": _Network(
        attention.decoder,
        attention.DecoderConfig,
        {"layers": 2, "width": 32, "heads": 2, "vocabulary": 100, "context": 8},
    ),
    # three iterations on narrow layers
    "control_flow": _Network(
        branching.control_flow, branching.ControlFlowConfig, {"width": 16, "rows": 4, "iterations": 3}
    ),
    # two levels on thumbnails
    "unet": _Network(
        dense_prediction.unet, dense_prediction.UNetConfig, {"image": 32, "width": 4, "depth": 2}
    ),
    # two sources on thumbnails
    "ssdlite": _Network(
        dense_prediction.ssdlite,
        dense_prediction.SsdConfig,
        {
            "image": 64,
            "stem": 8,
            "stages": ((1, 8, 1, 1), (4, 12, 1, 2), (4, 16, 1, 2)),
            "sources": (1, 2),
            "anchors": 2,
            "classes": 4,
            "kept": 5,
        },
    ),
    # two blocks on thumbnails
    "vgg16": _Network(
        plain_cnn.vgg,
        plain_cnn.VggConfig,
        {"image": 32, "width": 8, "blocks": (1, 2), "widest": 16, "hidden": 32, "classes": 10},
    ),
    # two blocks on thumbnails
    "densenet121": _Network(
        plain_cnn.densenet,
        plain_cnn.DenseNetConfig,
        {"image": 32, "growth": 4, "blocks": (2, 2), "classes": 10},
    ),
    # two stages on thumbnails
    "efficientnet_b0": _Network(
        efficient_cnn.efficientnet,
        efficient_cnn.EfficientNetConfig,
        {"image": 32, "stem": 8, "stages": ((1, 8, 1, 1, 3), (4, 12, 2, 2, 5)), "head": 32, "classes": 10},
    ),
    # two layers of three narrow experts
    "mixture_of_experts": _Network(
        experts.mixture_of_experts,
        experts.ExpertsConfig,
        {"layers": 2, "tokens": 6, "width": 16, "experts": 3, "hidden": 16, "mixing": 8, "classes": 10},
    ),
    # two blocks on thumbnails
    "inception_like": _Network(
        random_cnn.inception_like,
        random_cnn.RandomInceptionConfig,
        {"image": 32, "width": 8, "blocks": (1, 1), "classes": 10},
    ),
    # one cell in each of two stages on thumbnails
    "amoebanet": _Network(
        cells.amoebanet,
        cells.AmoebaNetConfig,
        {"image": 64, "width": 8, "cells": (1, 1), "stem": 4, "classes": 10},
    ),
    # two narrow layers on sixteen patches
    "vit_base": _Network(
        vision_transformer.vit,
        vision_transformer.VitConfig,
        {"image": 32, "patch": 8, "layers": 2, "width": 32, "heads": 2, "classes": 10},
    ),
    # two narrow layers on four tokens that remember six
    "transformer_xl": _Network(
        relative_attention.transformer_xl,
        relative_attention.TransformerXlConfig,
        {"layers": 2, "width": 32, "heads": 2, "hidden": 64, "vocabulary": 50, "tokens": 4, "memory": 6},
    ),
    # two narrow layers on four tokens
    "rnnlm": _Network(recurrent.rnnlm, recurrent.RnnLmConfig, {"width": 16, "vocabulary": 50, "tokens": 4}),
    # three narrow layers from three tokens to four
    "gnmt": _Network(
        translation.gnmt,
        translation.GnmtConfig,
        {"layers": 3, "width": 16, "vocabulary": 50, "source": 3, "target": 4},
    ),
}

NAMES = tuple(_NETWORKS)

TRAINING_FAMILIES = (
    "rnnlm",
    "gnmt",
    "two_tower",
    "decoder",
    "vgg",
    "resnet",
    "mobilenet",
    "densenet",
    "efficientnet",
    "inception_v3",
    "inception_like",
    "mixture_of_experts",
    "ssdlite",
    "unet",
)
"""Recurrent, attention, plain and branching networks; see :data:`HELD_OUT_FAMILIES`."""

VALIDATION_FAMILIES = ("wavenet", "transformer_xl")
"""Never trained on; design choices are made by them."""

HELD_OUT_FAMILIES = ("bert", "vit", "amoebanet")
"""Neither trained on nor chosen by. Families are held out by structure, not by name: of the surroundings of
their nodes at most a quarter occurs in all training graphs together. That rules out ResNet, four fifths of
whose structure MobileNet has, U-Net, most of which chains with skips have, Inception, half of which random
fan-outs have, and GNMT, which has a third of what random grids show; they are trained on."""

FAMILIES = TRAINING_FAMILIES + VALIDATION_FAMILIES + HELD_OUT_FAMILIES

# Families that are not called like the one network that the zoo names.
_NETWORK_OF = {
    "bert": "bert_base",
    "densenet": "densenet121",
    "efficientnet": "efficientnet_b0",
    "mobilenet": "mobilenet_v2",
    "resnet": "resnet50",
    "vgg": "vgg16",
    "vit": "vit_base",
}

_CLOSE = 0.05  # of the asked number of ops: near enough to stop looking
_TRIES = 8  # depths; two or three are the rule


def build(
    name: str, size: Literal["small", "full"] = "small", seed: int = 0, weights: Weights = "random"
) -> ov.Model:
    """One network of the zoo.

    Args:
        name: One of :data:`NAMES`.
        size: ``"small"`` for tests, ``"full"`` for the published dimensions.
        seed: Of the weights; the same seed gives the same bits.
        weights: ``"untouched"`` has zeros for weights, which take no time and no memory.

    Raises:
        ValueError: There is no such network or size.
    """
    if name not in _NETWORKS:
        raise ValueError(f"the zoo has no network {name!r}; it has {', '.join(NAMES)}")
    if size not in ("small", "full"):
        raise ValueError(f"size is 'small' or 'full', not {size!r}")
    network = _NETWORKS[name]
    config = network.config(**network.small) if size == "small" else network.config()
    return network.builder(config, NetworkBuilder(seed, network.weight_type, weights))


def network_of(family: str) -> str:
    """Name of the network of a family that :func:`build` knows."""
    return _NETWORK_OF.get(family, family)


def build_scaled(
    family: str, num_ops: int, seed: int = 0, weights: Weights = "untouched", **fixed: Any
) -> ov.Model:
    """A network of about ``num_ops`` ops whose other sizes are random.

    The depth that gives the number of ops is searched for; a family cannot be smaller than its depth 1.

    Args:
        family: One of :data:`FAMILIES`.
        num_ops: Constants included, as ``len(model.get_ops())`` counts.
        seed: Of the sizes and the weights.
        weights: See :func:`build`.
        **fixed: Fields of the family's configuration that are not left to the seed (``layers=8``).

    Raises:
        ValueError: There is no such family.
    """
    if family not in FAMILIES:
        raise ValueError(f"the zoo has no family {family!r}; it has {', '.join(FAMILIES)}")
    network = _NETWORKS[network_of(family)]
    halves = np.random.default_rng((seed, 1)).random() < 0.5

    def model_of(depth: int) -> ov.Model:
        config = replace(network.config.varied(depth, np.random.default_rng(seed)), **fixed)
        return network.builder(config, NetworkBuilder(seed, np.float16 if halves else np.float32, weights))

    models, counts = {}, {}
    depth = 1
    for _ in range(_TRIES):
        models[depth] = model_of(depth)
        counts[depth] = len(models[depth].get_ops())
        missing = num_ops - counts[depth]
        if abs(missing) <= _CLOSE * num_ops:
            break
        depth = max(1, depth + round(missing / _ops_per_depth(list(counts.items()))))
        if depth in models:
            break
    return models[min(counts, key=lambda depth: abs(counts[depth] - num_ops))]


def _ops_per_depth(points: list[tuple[int, int]]) -> float:
    """How many ops one more step of depth makes, from (depth, ops) of what was built so far."""
    depth, ops = points[-1]
    if len(points) > 1 and points[-2][1] != ops:
        return max(1.0, (ops - points[-2][1]) / (depth - points[-2][0]))
    return ops / depth
