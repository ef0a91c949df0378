"""Transformers: the BERT encoder and a decoder that keeps its keys and values as state."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick


@dataclass(frozen=True)
class BertConfig:
    """Sizes of a BERT encoder (Devlin et al. 2018, arXiv 1810.04805); more layers make larger graphs."""

    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 30522
    positions: int = 512
    tokens: int = 128

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> BertConfig:
        """Random sizes of ``depth`` layers."""
        heads = pick(random, (2, 4, 6, 8, 12, 16))
        return cls(
            layers=depth,
            width=pick(random, (32, 64, 64, 64)) * heads,
            heads=heads,
            vocabulary=pick(random, (8000, 30522, 50265)),
            tokens=pick(random, (16, 32, 64, 128, 256, 384, 512)),
        )


def bert(config: BertConfig, net: NetworkBuilder) -> ov.Model:
    """BERT with pooler.

    The inputs stand for one sentence: ``input_ids`` below the vocabulary, ``attention_mask`` and
    ``token_type_ids`` of 0 and 1.
    """
    shape = (1, config.tokens)
    ids = net.input("input_ids", shape, np.int64)
    mask = net.input("attention_mask", shape, np.int64)
    types = net.input("token_type_ids", shape, np.int64)
    with net.scope("embeddings"):
        x = net.add(
            net.embedding(ids, config.vocabulary, config.width, name="word"),
            net.embedding(types, 2, config.width, name="type"),
            "word_and_type",
        )
        places = net.constant("position_ids", [range(config.tokens)])
        positions = net.embedding(places, config.positions, config.width, name="position")
        x = net.layer_norm(net.add(x, positions, "sum"))
    with net.scope("mask"):
        penalty = _mask_penalty(net, mask)
    for layer in range(config.layers):
        with net.scope("layer"), net.scope(layer):
            x = _encoder_layer(net, x, penalty, config.heads)
    with net.scope("pooler"):
        first = net.named(ops.gather(x, net.constant("index", 0), net.constant("axis", 1)), "first")
        pooled = net.named(ops.tanh(net.dense(first, config.width)), "tanh")
    return net.model("bert", {"last_hidden_state": x, "pooler_output": pooled})


def _mask_penalty(net: NetworkBuilder, mask: Node) -> Node:
    """``[N, T]`` of 1 (read) and 0 (ignore) to ``[N, 1, 1, T]`` of 0 and a large negative number."""
    x = mask
    for axis in (1, 2):
        x = net.named(ops.unsqueeze(x, net.constant(f"axis{axis}", axis)), f"unsqueeze{axis}")
    x = net.named(ops.convert(x, "f32"), "convert")
    one = net.stored("one", np.ones((1, 1, 1, 1), np.float32))
    x = net.named(ops.subtract(one, x), "invert")
    lowest = net.stored("lowest", np.full((1, 1, 1, 1), np.finfo(np.float16).min, np.float32))
    return net.named(ops.multiply(x, lowest), "scale")


def _encoder_layer(net: NetworkBuilder, x: Node, penalty: Node, heads: int) -> Node:
    width = x.output(0).get_shape()[-1]
    with net.scope("attention"):
        query, key, value = (split_heads(net, x, heads, name) for name in ("query", "key", "value"))
        key = net.transpose(key, (0, 1, 3, 2), "key.transposed")
        scores = net.named(ops.matmul(query, key, False, False), "scores")
        divisor = net.stored("scale", np.full((1, 1, 1, 1), math.sqrt(width // heads), np.float32))
        scores = net.named(ops.divide(scores, divisor), "scaled")
        weights = net.named(ops.softmax(net.add(scores, penalty, "masked"), -1), "softmax")
        context = net.named(ops.matmul(weights, value, False, False), "context")
        y = net.dense(merge_heads(net, context), width, name="output")
        x = net.layer_norm(net.add(y, x, "sum"))
    with net.scope("feed_forward"):
        y = net.named(ops.gelu(net.dense(x, 4 * width, gain=2.0, name="expand"), "erf"), "gelu")
        return net.layer_norm(net.add(net.dense(y, width, name="project"), x, "sum"))


def split_heads(net: NetworkBuilder, x: Node, heads: int, name: str) -> Node:
    """A projection of ``[N, T, C]`` as ``[N, heads, T, C / heads]``."""
    width = x.output(0).get_shape()[-1]
    with net.scope(name):
        y = net.reshape(net.dense(x, width), [0, 0, heads, width // heads])
        return net.transpose(y, (0, 2, 1, 3))


def merge_heads(net: NetworkBuilder, x: Node) -> Node:
    """``[N, heads, T, C / heads]`` to ``[N, T, C]``."""
    return net.reshape(net.transpose(x, (0, 2, 1, 3), "merge"), [0, 0, -1], "merge.reshape")


@dataclass(frozen=True)
class DecoderConfig:
    """Sizes of a decoder with pre-normalisation, as in GPT-2 (Radford et al. 2019).

    Attributes:
        context: Past tokens whose keys and values are kept; fixed, so that no shape is dynamic.
    """

    layers: int = 12
    width: int = 768
    heads: int = 12
    vocabulary: int = 50257
    context: int = 256

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> DecoderConfig:
        """Random sizes of ``depth`` layers."""
        heads = pick(random, (4, 6, 8, 12, 16, 20))
        return cls(
            layers=depth,
            width=64 * heads,
            heads=heads,
            vocabulary=pick(random, (8000, 32000, 50257)),
            context=pick(random, (32, 128, 256, 512, 1024, 2048)),
        )


def decoder(config: DecoderConfig, net: NetworkBuilder) -> ov.Model:
    """One step of a decoder: a token in, logits out, the cache moves on by one token in the state."""
    token = net.input("token", (1, 1), np.int64)
    x: Node = net.embedding(token, config.vocabulary, config.width)
    sinks: list[ov.Node] = []
    for layer in range(config.layers):
        with net.scope("layer"), net.scope(layer):
            with net.scope("attention"):
                y = _attend_to_cache(net, net.layer_norm(x), config, f"layer.{layer}", sinks)
            x = net.add(x, y, "attention.sum")
            with net.scope("feed_forward"):
                y = net.dense(net.layer_norm(x), 4 * config.width, gain=2.0, name="expand")
                y = net.dense(net.named(ops.gelu(y, "tanh"), "gelu"), config.width, name="project")
            x = net.add(x, y, "feed_forward.sum")
    logits = net.dense(net.layer_norm(x), config.vocabulary, bias=False, name="head")
    return net.model("decoder", {"logits": logits}, sinks)


def _attend_to_cache(
    net: NetworkBuilder, x: Node, config: DecoderConfig, variable: str, sinks: list[ov.Node]
) -> Node:
    query = split_heads(net, x, config.heads, "query")
    key = _remember(net, split_heads(net, x, config.heads, "key"), config.context, f"{variable}.key", sinks)
    value = split_heads(net, x, config.heads, "value")
    value = _remember(net, value, config.context, f"{variable}.value", sinks)
    y = net.named(ops.scaled_dot_product_attention(query, key, value), "sdpa")
    return net.dense(merge_heads(net, y), config.width, name="output")


def _remember(net: NetworkBuilder, x: Node, context: int, variable: str, sinks: list[ov.Node]) -> Node:
    """The last ``context`` values of ``x``, newest last; the first ones are zero."""
    batch, heads, _, width = x.output(0).get_shape()
    with net.scope(variable.rpartition(".")[2]), net.scope("cache"):
        zeros = net.zeros("zeros", (batch, heads, context, width))
        past = net.named(ops.read_value(zeros, variable, ov.Type.f32, zeros.output(0).get_shape()), "read")
        recent = net.slice(past, 2, 1, context)
        present = net.named(ops.concat([recent, x], 2), "append")
        sinks.append(net.named(ops.assign(present, variable), "assign"))
    return present
