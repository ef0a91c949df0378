"""Networks over sequences: WaveNet and an LSTM language model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick


@dataclass(frozen=True)
class WaveNetConfig:
    """Sizes of a WaveNet (van den Oord et al. 2016, arXiv 1609.03499).

    Attributes:
        stacks: How often the dilations start again from 1.
        layers: Layers per stack; layer i has dilation ``2 ** i``.
        channels: Of the residual path.
        skip_channels: Of the sum that all layers contribute to.
        levels: Quantisation levels of a sample.
        samples: Length of the signal.
    """

    stacks: int = 4
    layers: int = 9
    channels: int = 64
    skip_channels: int = 256
    levels: int = 256
    samples: int = 2048

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> WaveNetConfig:
        """Random sizes of about ``depth`` layers."""
        layers = min(depth, int(random.integers(4, 11)))
        return cls(
            stacks=max(1, round(depth / layers)),
            layers=layers,
            channels=pick(random, (16, 32, 64, 128, 256)),
            skip_channels=pick(random, (64, 128, 256, 512)),
            samples=pick(random, (256, 1024, 2048, 4096, 8192)),
        )


def wavenet(config: WaveNetConfig, net: NetworkBuilder) -> ov.Model:
    """Causal convolutions with growing dilation, gates, residual and skip connections."""
    x: Node = net.input("signal", (1, 1, config.samples))
    x = net.conv(x, config.channels, 2, causal=True, gain=1.0, name="causal")
    skips: list[Node] = []
    for stack in range(config.stacks):
        for layer in range(config.layers):
            with net.scope(f"stack{stack}"), net.scope(layer):
                x, skip = _gated_layer(net, x, config, 2**layer)
                skips.append(skip)
    with net.scope("head"):
        total = skips[0]
        for i, skip in enumerate(skips[1:]):
            total = net.add(total, skip, f"skip{i + 1}")
        y = net.conv_relu(net.relu(total), config.skip_channels, 1, name="conv1")
        y = net.conv(y, config.levels, 1, gain=1.0, name="conv2")
        probabilities = net.named(ops.softmax(y, 1), "softmax")
    return net.model("wavenet", {"probabilities": probabilities})


def _gated_layer(net: NetworkBuilder, x: Node, config: WaveNetConfig, dilation: int) -> tuple[Node, Node]:
    """The residual and the skip output of one layer."""
    y = net.conv(x, config.channels, 2, dilation=dilation, causal=True, gain=1.0, name="filter")
    gate = net.conv(x, config.channels, 2, dilation=dilation, causal=True, gain=1.0, name="gate")
    y = net.named(
        ops.multiply(net.named(ops.tanh(y), "tanh"), net.named(ops.sigmoid(gate), "sigmoid")), "gated"
    )
    layers = config.stacks * config.layers
    skip = net.conv(y, config.skip_channels, 1, gain=4.0 / layers, name="skip")
    return net.add(x, net.conv(y, config.channels, 1, gain=1.0, name="residual"), "sum"), skip


@dataclass(frozen=True)
class LstmConfig:
    """Sizes of an LSTM language model (Zaremba et al. 2014, arXiv 1409.2329, with projection)."""

    layers: int = 2
    width: int = 1024
    vocabulary: int = 10000
    tokens: int = 35


def lstm_lm(config: LstmConfig, net: NetworkBuilder) -> ov.Model:
    """Embedding, layers of LSTMSequence, projection to the vocabulary."""
    ids = net.input("input_ids", (1, config.tokens), np.int64)
    x: Node = net.embedding(ids, config.vocabulary, config.width)
    lengths = net.constant("lengths", [config.tokens])
    for layer in range(config.layers):
        with net.scope("lstm"), net.scope(layer):
            x = lstm(net, x, lengths)
    return net.model("lstm_lm", {"logits": net.dense(x, config.vocabulary, name="head")})


def lstm(net: NetworkBuilder, x: Node, lengths: Node) -> Node:
    """A forward LSTM with zero initial state: ``[N, T, C]`` to the same shape."""
    batch, _, width = x.output(0).get_shape()
    zeros = net.zeros("zeros", (batch, 1, width))
    std = math.sqrt(1.0 / width)
    weights = [
        net.normal("input_weight", (1, 4 * width, width), std),
        net.normal("hidden_weight", (1, 4 * width, width), std),
        net.normal("bias", (1, 4 * width), 0.1),
    ]
    sequence = net.named(
        ops.lstm_sequence(x, zeros, zeros, lengths, *weights, hidden_size=width, direction="forward"),
        "sequence",
    )
    return net.named(ops.squeeze(sequence.output(0), net.constant("squeeze.axis", [1])), "squeeze")
