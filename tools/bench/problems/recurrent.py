"""Recurrent networks whose parts do not wait for each other, with random weights.

A cell's steps are too small for several threads, so what can be had from several cores is to run the parts
at once: both directions of a tagger (Z. Huang et al., 2015), of a bidirectional language model (M. Peters et
al., ELMo, 2018) and of a speech recogniser (D. Amodei et al., Deep Speech 2, 2016), whose directions meet
after every layer, both sentences of a pair (J. Mueller and A. Thyagarajan, MaLSTM, 2016), and the members of
an ensemble of forecasters (S. Smyl, 2020).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node


def _layer(b: NetworkBuilder, x: Node, width: int, direction: str, name: str, cell: str = "lstm") -> Node:
    """One direction of an LSTM or GRU over ``[1, tokens, features]``, ``[1, tokens, width]``."""
    _, tokens, features = x.shape if isinstance(x, ov.Output) else x.output(0).shape
    gates = {"lstm": 4, "gru": 3}[cell]
    lengths = b.constant(f"{name}_lengths", [tokens])
    states = [b.zeros(f"{name}_{what}", [1, 1, width]) for what in ("hidden", "cell")]
    weights = [
        b.normal(f"{name}_w", [1, gates * width, features], features**-0.5),
        b.normal(f"{name}_r", [1, gates * width, width], width**-0.5),
        b.normal(f"{name}_b", [1, gates * width], 0.01),
    ]
    if cell == "lstm":
        node = ops.lstm_sequence(x, *states, lengths, *weights, width, direction)
    else:
        node = ops.gru_sequence(x, states[0], lengths, *weights, width, direction)
    return b.reshape(b.named(node, name).output(0), [1, tokens, width], f"{name}_flat")


def _tagger(b: NetworkBuilder, tokens: int, width: int) -> ov.Model:
    words = b.embedding(b.input("tokens", [1, tokens], np.int64), 2, width)
    directions = []
    for direction in ("forward", "reverse"):
        y: Node = words
        for layer in range(2):
            y = _layer(b, y, width, direction, f"{direction}_lstm{layer}")
        directions.append(y)
    return b.model("bidirectional_lstm", {"tags": b.dense(b.concat(directions, 2), 17)})


def _language_model(b: NetworkBuilder, tokens: int, width: int, projected: int) -> ov.Model:
    """Two layers per direction, each projected and added to what it read; both give their states away."""
    words = b.embedding(b.input("tokens", [1, tokens], np.int64), 2, projected)
    outputs = {}
    for direction in ("forward", "reverse"):
        y: Node = words
        for layer in range(2):
            with b.scope(f"{direction}{layer}"):
                made = b.dense(_layer(b, y, width, direction, "lstm"), projected, name="projection")
                y = b.add(y, made, "residual") if layer else made
            outputs[f"{direction}{layer}"] = y
    return b.model("bidirectional_language_model", outputs)


def _speech(b: NetworkBuilder, frames: int, width: int) -> ov.Model:
    x: Node = b.conv_relu(b.input("spectrogram", [1, 1, frames, 40]), 8, 5, stride=2, name="conv")
    x = b.reshape(b.transpose(x, [0, 2, 1, 3], "by_time"), [0, 0, -1], "features")
    for layer in range(3):
        both = [_layer(b, x, width, way, f"{way}_gru{layer}", "gru") for way in ("forward", "reverse")]
        x = b.concat(both, 2, f"concat{layer}")
    return b.model("speech", {"letters": b.dense(x, 29)})


def _pair(b: NetworkBuilder, tokens: int, width: int) -> ov.Model:
    ends = []
    for which in ("first", "second"):
        words = b.embedding(b.input(which, [1, tokens], np.int64), 2, width, name=f"{which}_embedding")
        last = b.slice(
            _layer(b, words, width, "forward", f"{which}_lstm"), 1, tokens - 1, tokens, f"{which}_last"
        )
        ends.append(b.reshape(last, [0, -1], f"{which}_sentence"))
    apart = b.named(ops.abs(b.named(ops.subtract(*ends), "difference")), "absolute")
    distance = b.named(ops.reduce_sum(apart, b.constant("axis", [1]), True), "distance")
    return b.model(
        "sentence_pair",
        {"likeness": b.named(ops.exp(b.named(ops.negative(distance), "negated")), "exponential")},
    )


def _forecasters(b: NetworkBuilder, members: int, steps: int, width: int) -> ov.Model:
    series = b.input("series", [1, steps, 8])
    total: Node | None = None
    for m in range(members):
        with b.scope(f"member{m}"):
            y: Node = series
            for layer in range(2):
                y = _layer(b, y, width, "forward", f"lstm{layer}")
            last = b.reshape(b.slice(y, 1, steps - 1, steps, "last"), [0, -1], "state")
            forecast = b.dense(last, 14, name="forecast")
        total = forecast if total is None else b.add(total, forecast, f"sum{m}")
    return b.model("forecasters", {"forecast": total})


RECURRENT: Mapping[str, Callable[[NetworkBuilder], ov.Model]] = {
    "bidirectional LSTM/16": partial(_tagger, tokens=16, width=128),
    "bidirectional LSTM/64": partial(_tagger, tokens=64, width=128),
    "bidirectional language model/32": partial(_language_model, tokens=32, width=256, projected=64),
    "speech, bidirectional GRU/50": partial(_speech, frames=100, width=96),
    "sentence pair/20": partial(_pair, tokens=20, width=50),
    "sentence pair/40": partial(_pair, tokens=40, width=128),
    "ensemble of forecasters/48": partial(_forecasters, members=4, steps=48, width=40),
}
"""By kind and size: five kinds."""
