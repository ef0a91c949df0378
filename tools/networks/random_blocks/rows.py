"""Blocks of networks that read rows ``[N, C]``."""

from __future__ import annotations

from openvino import opset15 as ops

from networks.builder import Node
from networks.random_blocks.any_rank import pointwise
from networks.random_blocks.drawn import Block, Drawn, dims_of
from networks.variation import chance, pick


def begin(d: Drawn) -> Node:
    return d.net.input("rows", (d.rows(512), d.width(4, 512)))


def _layer(d: Drawn, x: Node) -> Node:
    y = d.usual(d.dense(x, d.width(8, 1024)))
    return d.normed(y) if chance(d.random, 0.2) else y


def _skipping(d: Drawn, x: Node) -> Node:
    width = dims_of(x)[-1]
    return d.named(ops.add(d.dense(d.usual(d.dense(x, width)), width), x))


def _crossed(d: Drawn, x: Node) -> Node:
    """A layer of DCN: every column times a mix of all of them."""
    width = dims_of(x)[-1]
    return d.named(ops.add(d.named(ops.multiply(d.dense(x, width), x)), x))


def _experts(d: Drawn, x: Node) -> Node:
    count, width = int(d.random.integers(2, 7)), d.size(8, 256)
    shares = d.named(ops.softmax(d.dense(x, count), -1))
    parts = d.named(ops.split(shares, d.ints(1), count)).outputs()
    ends = [d.named(ops.multiply(d.usual(d.dense(x, width)), part)) for part in parts]
    while len(ends) > 1:
        ends = [d.named(ops.add(ends[0], ends[1])), *ends[2:]]
    return ends[0]


def _towers(d: Drawn, x: Node) -> Node:
    ends = [d.usual(d.dense(x, d.size(8, 256))) for _ in range(int(d.random.integers(2, 6)))]
    return d.named(ops.concat(ends, -1))


def _waves(d: Drawn, x: Node) -> Node:
    """Sines and cosines of several frequencies, as radiance fields encode points."""
    if dims_of(x)[-1] > 256:
        return _layer(d, x)
    scaled = [d.named(ops.multiply(x, d.number(2.0**i))) for i in range(int(d.random.integers(1, 4)))]
    ends = [d.named(wave(y)) for y in scaled for wave in (ops.sin, ops.cos)]
    return d.named(ops.concat([x, *ends], -1))


def head(d: Drawn, x: Node) -> Node:
    return d.activated(d.dense(x, d.size(1, 100)), pick(d.random, ("sigmoid", "tanh", "log_softmax")))


BLOCKS: tuple[Block, ...] = (_layer, _layer, _skipping, _crossed, _experts, _towers, _waves, pointwise)
