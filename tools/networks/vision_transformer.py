"""A vision transformer: an encoder with pre-normalisation over the patches of an image."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.attention import merge_heads, split_heads
from networks.builder import NetworkBuilder, Node
from networks.variation import pick


@dataclass(frozen=True)
class VitConfig:
    """Sizes of ViT (Dosovitskiy et al. 2020, arXiv 2010.11929), ViT-B/16 by default."""

    image: int = 224
    patch: int = 16
    layers: int = 12
    width: int = 768
    heads: int = 12
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> VitConfig:
        """Random sizes of ``depth`` layers."""
        heads, patch = pick(random, (3, 6, 12, 16)), pick(random, (8, 14, 16, 32))
        return cls(
            image=patch * pick(random, (7, 12, 14, 16, 24)),
            patch=patch,
            layers=depth,
            width=64 * heads,
            heads=heads,
            classes=pick(random, (10, 100, 1000, 21841)),
        )


def vit(config: VitConfig, net: NetworkBuilder) -> ov.Model:
    """Patches and a class token through the encoder, and a head on the class token."""
    image = net.input("image", (1, 3, config.image, config.image))
    with net.scope("embeddings"):
        x: Node = net.conv(
            image, config.width, config.patch, stride=config.patch, padding=0, gain=1.0, name="patches"
        )
        x = net.transpose(net.reshape(x, [0, 0, -1], "flatten"), (0, 2, 1))
        x = net.named(ops.concat([net.normal("class_token", (1, 1, config.width), 0.5), x], 1), "concat")
        length = x.output(0).get_shape()[1]
        x = net.add(x, net.normal("positions", (1, length, config.width), 0.5), "sum")
    for layer in range(config.layers):
        with net.scope("layer"), net.scope(layer):
            x = encoder_layer(net, x, config.heads)
    first = net.slice(net.layer_norm(x), 1, 0, 1, "first")
    logits = net.dense(net.reshape(first, [0, -1], "first.flatten"), config.classes, name="head")
    return net.model("vit", {"logits": logits})


def encoder_layer(net: NetworkBuilder, x: Node, heads: int) -> Node:
    """Attention and a feed-forward part over ``[1, tokens, width]``, each normalised before."""
    width = x.output(0).get_shape()[-1]
    with net.scope("attention"):
        y = net.layer_norm(x)
        query, key, value = (split_heads(net, y, heads, name) for name in ("query", "key", "value"))
        scores = net.named(ops.matmul(query, key, False, True), "scores")
        scale = net.stored("scale", np.full((1, 1, 1, 1), (width // heads) ** -0.5, np.float32))
        weights = net.named(ops.softmax(net.named(ops.multiply(scores, scale), "scaled"), -1), "softmax")
        context = net.named(ops.matmul(weights, value, False, False), "context")
        x = net.add(x, net.dense(merge_heads(net, context), width, name="output"), "sum")
    with net.scope("feed_forward"):
        y = net.dense(net.layer_norm(x), 4 * width, gain=2.0, name="expand")
        y = net.dense(net.named(ops.gelu(y, "erf"), "gelu"), width, name="project")
        return net.add(x, y, "sum")
