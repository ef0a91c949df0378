"""Transformer-XL: attention over a memory of earlier segments, with relative positions."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset15 as ops

from networks.attention import merge_heads, split_heads
from networks.builder import NetworkBuilder, Node
from networks.variation import pick


@dataclass(frozen=True)
class TransformerXlConfig:
    """Sizes of a Transformer-XL (Dai et al. 2019, arXiv 1901.02860), the one for enwik8 by default.

    Attributes:
        hidden: Width of the feed-forward part.
        tokens: Of a segment.
        memory: Positions of earlier segments that each layer remembers.
    """

    layers: int = 12
    width: int = 512
    heads: int = 8
    hidden: int = 2048
    vocabulary: int = 204
    tokens: int = 512
    memory: int = 512

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> TransformerXlConfig:
        """Random sizes of ``depth`` layers."""
        heads, size = pick(random, (4, 8, 10, 12, 16)), pick(random, (32, 41, 64))
        return cls(
            layers=depth,
            width=heads * size,
            heads=heads,
            hidden=heads * size * pick(random, (2, 4, 5)),
            vocabulary=pick(random, (204, 10000, 50000)),
            tokens=pick(random, (16, 32, 64, 128, 256)),
            memory=pick(random, (16, 64, 150, 256, 512)),
        )


def transformer_xl(config: TransformerXlConfig, net: NetworkBuilder) -> ov.Model:
    """Logits of one segment, and what each layer is to remember for the next one."""
    ids = net.input("input_ids", (1, config.tokens), np.int64)
    memories = [
        net.input(f"memory{layer}", (1, config.memory, config.width)) for layer in range(config.layers)
    ]
    x: Node = net.embedding(ids, config.vocabulary, config.width)
    span = config.memory + config.tokens
    positions = net.constant("positions", _sinusoids(span, config.width)[None], np.float32)
    future = np.triu(np.full((config.tokens, span), -1e4, np.float32), 1 + config.memory)
    mask = net.constant("mask", future[None, None], np.float32)
    with net.scope("bias"):
        size = config.width // config.heads
        content = net.normal("content", (1, config.heads, 1, size), 0.1)
        place = net.normal("place", (1, config.heads, 1, size), 0.1)
    outputs: dict[str, Node] = {}
    for layer, memory in enumerate(memories):
        with net.scope("layer"), net.scope(layer):
            seen = net.named(ops.concat([memory, x], 1), "remember")
            outputs[f"memory{layer}.next"] = net.slice(seen, 1, config.tokens, span, "forget")
            with net.scope("attention"):
                y = _attend(net, x, seen, positions, (content, place), mask, config)
            x = net.layer_norm(net.add(x, y, "attention.sum"), "attention.norm")
            y = net.relu(net.dense(x, config.hidden, gain=2.0, name="expand"))
            y = net.dense(y, config.width, name="project")
            x = net.layer_norm(net.add(x, y, "feed_forward.sum"), "feed_forward.norm")
    logits = net.dense(x, config.vocabulary, name="head")
    return net.model("transformer_xl", {"logits": logits, **outputs})


def _attend(
    net: NetworkBuilder,
    x: Node,
    seen: Node,
    positions: Node,
    biases: tuple[Node, Node],
    mask: Node,
    config: TransformerXlConfig,
) -> Node:
    """Attention of ``x`` ``[1, T, C]`` to ``seen`` ``[1, M + T, C]``."""
    query = split_heads(net, x, config.heads, "query")
    key, value = (split_heads(net, seen, config.heads, name) for name in ("key", "value"))
    place = split_heads(net, positions, config.heads, "place")
    by_content, by_place = (
        net.named(ops.matmul(net.add(query, bias, f"{name}.query"), what, False, True), f"{name}.scores")
        for name, bias, what in zip(("content", "place"), biases, (key, place), strict=True)
    )
    scores = net.add(by_content, shifted(net, by_place), "scores")
    scale = net.constant("scale", np.full((1, 1, 1, 1), (config.width // config.heads) ** -0.5), np.float32)
    scores = net.add(net.named(ops.multiply(scores, scale), "scaled"), mask, "masked")
    weights = net.named(ops.softmax(scores, -1), "softmax")
    context = net.named(ops.matmul(weights, value, False, False), "context")
    return net.dense(merge_heads(net, context), config.width, bias=False, name="output")


def shifted(net: NetworkBuilder, scores: Node) -> Node:
    """Row t moved left by ``T - 1 - t``: scores by distance ``[1, H, T, S]`` become scores by position.

    The trick of the paper's appendix B: pad one column in front, and read the same memory with rows one
    element shorter.
    """
    _, heads, rows, columns = scores.output(0).get_shape()
    with net.scope("shift"):
        begin, end = net.constant("begin", [0, 0, 0, 1]), net.constant("end", [0, 0, 0, 0])
        zero = net.constant("zero", 0.0, np.float32)
        padded = net.named(ops.pad(scores, begin, end, "constant", zero), "pad")
        turned = net.reshape(padded, [1, heads, columns + 1, rows], "turn")
        return net.reshape(net.slice(turned, 2, 1, columns + 1), [1, heads, rows, columns], "turn.back")


def _sinusoids(span: int, width: int) -> NDArray[np.float32]:
    """Codes of the distances ``span - 1`` to 0, ``float32[span, width]``."""
    distance = np.arange(span - 1, -1, -1)[:, None]
    angle = distance * np.exp(-math.log(1e4) * np.arange(0, width, 2) / width)
    return np.concatenate([np.sin(angle), np.cos(angle)], 1)[:, :width].astype(np.float32)
