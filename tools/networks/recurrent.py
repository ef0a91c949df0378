"""Recurrent cells written out op by op, and the language model that is made of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick

State = tuple[Node, ...]


class LstmCell:
    """An LSTM whose steps share one set of weights.

    Args:
        net: Where the ops go.
        inputs: Width of what a step reads.
        width: Of the state.
        joined: Input and state are concatenated and multiplied by one matrix, as TensorFlow's basic
            cell does; otherwise each has its own matrix.
    """

    def __init__(self, net: NetworkBuilder, inputs: int, width: int, *, joined: bool = False) -> None:
        self._net = net
        self._width = width
        self._joined = joined
        std = math.sqrt(1.0 / width)
        if joined:
            self._weights = [net.normal("weight", (4 * width, inputs + width), std)]
        else:
            self._weights = [
                net.normal("input_weight", (4 * width, inputs), std),
                net.normal("hidden_weight", (4 * width, width), std),
            ]
        self._bias = net.normal("bias", (1, 4 * width), 0.1)
        self._axis = net.constant("split.axis", 1)

    def initial(self) -> State:
        """Output and memory before the first step."""
        return (
            self._net.zeros("initial.output", (1, self._width)),
            self._net.zeros("initial.memory", (1, self._width)),
        )

    def step(self, x: Node, state: State) -> State:
        """Output and memory behind one step on ``[1, inputs]``."""
        net, (hidden, memory) = self._net, state
        if self._joined:
            both = net.named(ops.concat([x, hidden], 1), "concat")
            gates = net.named(ops.matmul(both, self._weights[0], False, True), "gates")
        else:
            products = [
                net.named(ops.matmul(value, weight, False, True), f"{name}.gates")
                for name, value, weight in zip(("input", "hidden"), (x, hidden), self._weights, strict=True)
            ]
            gates = net.add(*products, "gates")
        split = net.named(ops.split(net.add(gates, self._bias, "bias.add"), self._axis, 4), "split")
        keep, write, show = (
            net.named(ops.sigmoid(split.output(i)), name) for i, name in enumerate(("keep", "write", "show"))
        )
        fresh = net.named(ops.tanh(split.output(3)), "fresh")
        memory = net.add(
            net.named(ops.multiply(keep, memory), "kept"),
            net.named(ops.multiply(write, fresh), "written"),
            "memory",
        )
        output = net.named(ops.multiply(show, net.named(ops.tanh(memory), "memory.tanh")), "output")
        return output, memory


class GruCell:
    """A gated recurrent unit (Cho et al. 2014, arXiv 1406.1078) whose steps share one set of weights."""

    def __init__(self, net: NetworkBuilder, inputs: int, width: int) -> None:
        self._net = net
        self._width = width
        std = math.sqrt(1.0 / width)
        self._input = net.normal("input_weight", (3 * width, inputs), std)
        self._gates = net.normal("gate_weight", (2 * width, width), std)
        self._candidate = net.normal("candidate_weight", (width, width), std)
        self._bias = net.normal("bias", (1, 3 * width), 0.1)
        self._axis = net.constant("split.axis", 1)

    def initial(self) -> State:
        """Output before the first step."""
        return (self._net.zeros("initial.output", (1, self._width)),)

    def step(self, x: Node, state: State) -> State:
        """Output behind one step on ``[1, inputs]``."""
        net, hidden = self._net, state[0]
        read = net.named(ops.matmul(x, self._input, False, True), "input.gates")
        read = net.named(ops.split(net.add(read, self._bias, "bias.add"), self._axis, 3), "input.split")
        kept = net.named(ops.matmul(hidden, self._gates, False, True), "hidden.gates")
        kept = net.named(ops.split(kept, self._axis, 2), "hidden.split")
        reset, update = (
            net.named(ops.sigmoid(net.add(read.output(i), kept.output(i), f"{name}.add")), name)
            for i, name in enumerate(("reset", "update"))
        )
        past = net.named(ops.multiply(reset, hidden), "reset.hidden")
        past = net.named(ops.matmul(past, self._candidate, False, True), "candidate.hidden")
        fresh = net.named(ops.tanh(net.add(read.output(2), past, "candidate.add")), "candidate")
        change = net.named(ops.subtract(hidden, fresh), "change")
        return (net.add(fresh, net.named(ops.multiply(update, change), "kept"), "output"),)


Cell = LstmCell | GruCell


def time_steps(net: NetworkBuilder, x: Node, name: str = "steps") -> list[Node]:
    """``[1, T, C]`` as T values of ``[1, C]``."""
    _, steps, width = x.output(0).get_shape()
    with net.scope(name):
        split = net.named(ops.split(x, net.constant("axis", 1), steps), "split")
        return [net.reshape(split.output(t), [1, width], f"reshape{t}") for t in range(steps)]


@dataclass(frozen=True)
class RnnLmConfig:
    """Sizes of an unrolled recurrent language model (Zaremba et al. 2014, arXiv 1409.2329).

    Attributes:
        cell: Of every layer.
        residual: Whether layers of equal width add to what they read.
        head_per_step: The projection to the vocabulary runs once per step instead of once for all.
    """

    layers: int = 2
    width: int = 1500
    vocabulary: int = 10000
    tokens: int = 35
    cell: Literal["lstm", "gru"] = "lstm"
    residual: bool = False
    head_per_step: bool = False

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> RnnLmConfig:
        """Random sizes of ``depth`` steps."""
        return cls(
            layers=pick(random, (1, 2, 2, 4, 8)),
            width=pick(random, (128, 200, 256, 512, 650, 1024, 1500, 2048)),
            vocabulary=pick(random, (256, 10000, 33278, 50000)),
            tokens=depth,
            cell=pick(random, ("lstm", "lstm", "gru")),
            residual=pick(random, (False, True)),
            head_per_step=pick(random, (False, True)),
        )


def rnnlm(config: RnnLmConfig, net: NetworkBuilder) -> ov.Model:
    """Logits ``[1, tokens, vocabulary]`` of the tokens that follow ``input_ids``."""
    ids = net.input("input_ids", (1, config.tokens), np.int64)
    steps = time_steps(net, net.embedding(ids, config.vocabulary, config.width))
    for layer in range(config.layers):
        with net.scope("layer"), net.scope(layer):
            make = LstmCell if config.cell == "lstm" else GruCell
            cell: Cell = make(net, config.width, config.width)
            outputs = run_cell(net, cell, steps)
            steps = residual_sums(net, steps, outputs) if config.residual and layer else outputs
    return net.model("rnnlm", {"logits": _logits(net, steps, config)})


def run_cell(net: NetworkBuilder, cell: Cell, steps: Sequence[Node]) -> list[Node]:
    """Output of each step."""
    state, outputs = cell.initial(), []
    for t, x in enumerate(steps):
        with net.scope(t):
            state = cell.step(x, state)
        outputs.append(state[0])
    return outputs


def residual_sums(net: NetworkBuilder, steps: Sequence[Node], outputs: Sequence[Node]) -> list[Node]:
    """What each step read plus what it gave."""
    return [net.add(x, y, f"residual{t}") for t, (x, y) in enumerate(zip(steps, outputs, strict=True))]


def _logits(net: NetworkBuilder, steps: Sequence[Node], config: RnnLmConfig) -> Node:
    with net.scope("head"):
        if not config.head_per_step:
            rows = net.named(ops.concat(list(steps), 0), "concat")
            return net.reshape(net.dense(rows, config.vocabulary), [1, config.tokens, -1])
        weight = net.normal("weight", (config.vocabulary, config.width), math.sqrt(1.0 / config.width))
        rows = [net.named(ops.matmul(x, weight, False, True), f"matmul{t}") for t, x in enumerate(steps)]
        return net.reshape(net.named(ops.concat(rows, 0), "concat"), [1, config.tokens, -1])
