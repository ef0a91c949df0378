"""Google's neural machine translation, unrolled over time."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.recurrent import LstmCell, residual_sums, run_cell, time_steps
from networks.variation import pick

_FIRST_RESIDUAL = 2  # layers from the third on add to what they read


@dataclass(frozen=True)
class GnmtConfig:
    """Sizes of GNMT (Wu et al. 2016, arXiv 1609.08144).

    Attributes:
        layers: Of the encoder and of the decoder each; published with 8, and placed with 2, 4 and 8.
        width: Of states, embeddings and attention.
        source, target: Tokens of the sentence and of its translation, a step each.
    """

    layers: int = 8
    width: int = 1024
    vocabulary: int = 32000
    source: int = 40
    target: int = 40

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> GnmtConfig:
        """Random sizes of ``depth`` steps of the encoder, and about as many of the decoder."""
        return cls(
            layers=pick(random, (2, 4, 8)),
            width=pick(random, (128, 256, 512, 1024)),
            vocabulary=pick(random, (8000, 17000, 32000)),
            source=depth,
            target=max(1, round(depth * random.uniform(0.7, 1.3))),
        )


def gnmt(config: GnmtConfig, net: NetworkBuilder) -> ov.Model:
    """Logits of each target token from the source and the target tokens before it.

    The first encoder layer runs in both directions. The lowest decoder layer's last output asks the
    attention, whose answer every decoder layer reads.
    """
    source = net.input("source_ids", (1, config.source), np.int64)
    target = net.input("target_ids", (1, config.target), np.int64)
    with net.scope("encoder"):
        memory = _encode(net, source, config)
    with net.scope("decoder"):
        outputs = _decode(net, target, memory, config)
        rows = net.named(ops.concat(outputs, 0), "concat")
        logits = net.reshape(net.dense(rows, config.vocabulary, name="head"), [1, config.target, -1])
    return net.model("gnmt", {"logits": logits})


def _encode(net: NetworkBuilder, ids: Node, config: GnmtConfig) -> Node:
    """What the attention looks at, ``[1, source, width]``."""
    embedded = net.embedding(ids, config.vocabulary, config.width)
    steps = time_steps(net, embedded)
    with net.scope("forward"):
        ahead = run_cell(net, LstmCell(net, config.width, config.width, joined=True), steps)
    with net.scope("backward"):
        back = run_cell(net, LstmCell(net, config.width, config.width, joined=True), steps[::-1])[::-1]
    steps = [
        net.named(ops.concat([a, b], 1), f"both{t}") for t, (a, b) in enumerate(zip(ahead, back, strict=True))
    ]
    for layer in range(1, config.layers):
        with net.scope("layer"), net.scope(layer):
            inputs = config.width if layer > 1 else 2 * config.width
            outputs = run_cell(net, LstmCell(net, inputs, config.width, joined=True), steps)
            steps = residual_sums(net, steps, outputs) if layer >= _FIRST_RESIDUAL else outputs
    width = steps[0].output(0).get_shape()[1]
    return net.reshape(net.named(ops.concat(steps, 0), "concat"), [1, config.source, width], "memory")


def _decode(net: NetworkBuilder, ids: Node, memory: Node, config: GnmtConfig) -> list[Node]:
    """The top layer's output ``[1, width]`` of each target step."""
    embedded = net.embedding(ids, config.vocabulary, config.width)
    attention = _Attention(net, memory, config)
    cells, states, outputs = [], [], []
    for layer in range(config.layers):
        with net.scope("layer"), net.scope(layer):
            cells.append(LstmCell(net, config.width + attention.width, config.width, joined=True))
            states.append(cells[-1].initial())
    for t, x in enumerate(time_steps(net, embedded)):
        with net.scope("step"), net.scope(t):
            context = attention.ask(states[0][0])
            for layer, cell in enumerate(cells):
                with net.scope(layer):
                    both = net.named(ops.concat([x, context], 1), "with_context")
                    states[layer] = cell.step(both, states[layer])
                    y = states[layer][0]
                    x = net.add(x, y, "residual") if layer >= _FIRST_RESIDUAL else y
        outputs.append(x)
    return outputs


class _Attention:
    """Additive attention (Bahdanau et al. 2014, arXiv 1409.0473) over a memory ``[1, S, C]``."""

    def __init__(self, net: NetworkBuilder, memory: Node, config: GnmtConfig) -> None:
        self._net = net
        self._memory = memory
        self.width = int(memory.output(0).get_shape()[2])
        std = math.sqrt(1.0 / config.width)
        with net.scope("attention"):
            self._keys = net.dense(memory, config.width, bias=False, name="keys")
            self._query = net.normal("query.weight", (config.width, config.width), std)
            self._energy = net.normal("energy.weight", (config.width, 1), std)

    def ask(self, query: Node) -> Node:
        """What the memory holds for ``query`` ``[1, width]``: ``[1, C]``."""
        net = self._net
        with net.scope("attention"):
            asked = net.named(ops.matmul(query, self._query, False, True), "query")
            asked = net.reshape(asked, [1, 1, -1], "query.reshape")
            match = net.named(ops.tanh(net.add(self._keys, asked, "match.add")), "match")
            energy = net.named(ops.matmul(match, self._energy, False, False), "energy")
            weights = net.named(ops.softmax(energy, 1), "weights")
            context = net.named(ops.matmul(weights, self._memory, True, False), "context")
            return net.reshape(context, [1, self.width], "context.reshape")
