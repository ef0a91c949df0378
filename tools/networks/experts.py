"""A mixture of experts over tokens: wide parallel branches of dense layers, without attention."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick


@dataclass(frozen=True)
class ExpertsConfig:
    """Sizes of an MLP-Mixer (Tolstikhin et al. 2021, arXiv 2105.01601) with softly gated experts.

    Every expert sees every token, as in the mixtures of Jacobs et al. 1991, so that the graph is static;
    the sparse ones of Shazeer et al. 2017 (arXiv 1701.06538) choose per token.

    Attributes:
        experts: Of each layer; as many parallel branches.
        hidden: Width of an expert.
        mixing: Width of the layer that mixes tokens.
    """

    layers: int = 8
    tokens: int = 196
    width: int = 512
    experts: int = 8
    hidden: int = 1024
    mixing: int = 256
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> ExpertsConfig:
        """Random sizes of ``depth`` layers."""
        width = pick(random, (64, 128, 256, 512, 768, 1024))
        return cls(
            layers=depth,
            tokens=pick(random, (16, 49, 64, 196, 256)),
            width=width,
            experts=int(random.integers(2, 17)),
            hidden=width * pick(random, (1, 2, 4)),
            mixing=pick(random, (64, 128, 256, 512)),
            classes=pick(random, (10, 100, 1000)),
        )


def mixture_of_experts(config: ExpertsConfig, net: NetworkBuilder) -> ov.Model:
    """Layers that mix tokens and then give each token a weighed sum of what the experts make of it."""
    x: Node = net.input("tokens", (1, config.tokens, config.width))
    for layer in range(config.layers):
        with net.scope("layer"), net.scope(layer):
            with net.scope("mix"):
                y = net.transpose(net.layer_norm(x), (0, 2, 1), "turn")
                y = net.named(ops.gelu(net.dense(y, config.mixing, gain=2.0, name="expand"), "erf"), "gelu")
                y = net.transpose(net.dense(y, config.tokens, name="project"), (0, 2, 1), "turn.back")
            x = net.add(x, y, "mix.sum")
            x = net.add(x, _experts(net, net.layer_norm(x), config), "experts.sum")
    pooled = net.named(ops.reduce_mean(x, net.constant("pool.axis", [1])), "pool")
    return net.model("mixture_of_experts", {"logits": net.dense(pooled, config.classes, name="head")})


def _experts(net: NetworkBuilder, x: Node, config: ExpertsConfig) -> Node:
    with net.scope("gate"):
        shares = net.named(ops.softmax(net.dense(x, config.experts), -1), "softmax")
        share = net.named(ops.split(shares, net.constant("split.axis", 2), config.experts), "split")
    total: Node | None = None
    for i in range(config.experts):
        with net.scope(f"expert{i}"):
            y = net.named(ops.gelu(net.dense(x, config.hidden, gain=2.0, name="expand"), "erf"), "gelu")
            y = net.dense(y, config.width, name="project")
            y = net.named(ops.multiply(y, share.output(i)), "weighed")
            total = y if total is None else net.add(total, y, "sum")
    return total
