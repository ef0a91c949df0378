"""Models of one kind of op each, in several sizes: what a device's speed is read from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import openvino as ov
from openvino import opset13 as opset

__all__ = [
    "OVERHEAD_CHAINS",
    "Benchmark",
    "benchmarks",
    "overhead_chain",
    "reference_model",
    "shared_chain",
]

OVERHEAD_CHAINS = (1, 17, 33)
"""Lengths of the chains whose slope is the time of an op with nothing to do."""

# Work that one op does, by the counts of ov_autoplace.graph.flops.
_MATMUL_SIZES = (32, 64, 128, 256, 512, 1024)
_CONVOLUTION_SIZES = ((8, 14), (16, 28), (32, 28), (64, 28), (128, 28), (256, 28))  # channels, side
_DEPTHWISE_SIZES = ((8, 7), (32, 14), (64, 28), (128, 56), (256, 56))
_ELEMENTWISE_SIZES = (1 << 8, 1 << 12, 1 << 15, 1 << 18, 1 << 20)  # elements
_ATTENTION_SIZES = (8, 64, 256)  # tokens
_RECURRENT_SIZES = (16, 64, 256)  # width of the state
_COPY_SIZES = (1 << 8, 1 << 12, 1 << 15, 1 << 18, 1 << 20, 1 << 22)
_KERNEL = 3
_HEADS, _HEAD_WIDTH = 4, 32
_TIMES = 16
_TANH_FLOP = 8
_F32_BYTES = 4
# A launch takes longer than a small op, and never the same. So what is measured is what further ops add to a
# model: so many of them, or as many as do no more work than this together.
_MOST_FURTHER, _MOST_WORK = 16, 1e8


@dataclass(frozen=True)
class Benchmark:
    """A model of one kind of op.

    Attributes:
        op_class: A class of ops, see :mod:`ov_autoplace.cost.target`.
        work: Flop of an op; for ``copy`` the bytes that it reads and writes.
        build: Makes a model of so many ops.
        steps: What an op does one after the other.
    """

    op_class: str
    work: float
    build: Callable[[int], ov.Model]
    steps: int = 1

    @property
    def counts(self) -> tuple[int, ...]:
        """Of how many ops models are to be run; a second model tells what ops take without the launch."""
        further = int(min(_MOST_WORK / self.work, _MOST_FURTHER))
        return (1, 1 + further) if further else (1,)


def benchmarks(quantized: bool = False, quick: bool = False) -> list[Benchmark]:
    """All benchmarks, by class and ascending work.

    Args:
        quantized: 8-bit integer models instead, through FakeQuantize: matmul and convolution only, as
            the other classes are bound by memory.
        quick: Only three sizes of each class.
    """
    classes: list[list[Benchmark]] = [
        [Benchmark("matmul", 2.0 * n**3, partial(_matmul, n, quantized)) for n in _MATMUL_SIZES],
        [
            Benchmark("convolution", 2.0 * _KERNEL**2 * c**2 * h**2, partial(_convolution, c, h, quantized))
            for c, h in _CONVOLUTION_SIZES
        ],
    ]
    if not quantized:
        classes += [
            [
                Benchmark("depthwise", 2.0 * _KERNEL**2 * c * h**2, partial(_depthwise, c, h))
                for c, h in _DEPTHWISE_SIZES
            ],
            [
                Benchmark("elementwise", float(_TANH_FLOP * n), partial(_side_by_side, opset.tanh, n))
                for n in _ELEMENTWISE_SIZES
            ],
            [
                Benchmark("attention", _HEADS * t * t * (4.0 * _HEAD_WIDTH + 7.0), partial(_attention, t))
                for t in _ATTENTION_SIZES
            ],
            [
                Benchmark("recurrent", _TIMES * (16.0 * n * n + 40.0 * n), partial(_recurrent, n), _TIMES)
                for n in _RECURRENT_SIZES
            ],
            [
                Benchmark("copy", 2.0 * _F32_BYTES * n, partial(_side_by_side, opset.relu, n))
                for n in _COPY_SIZES
            ],
        ]
    if quick:
        classes = [[sizes[0], sizes[len(sizes) // 2], sizes[-1]] for sizes in classes]
    return [benchmark for sizes in classes for benchmark in sizes]


def reference_model() -> ov.Model:
    """A small network of several kinds of ops, which tells how fast a machine is at the moment."""
    data = opset.parameter([1, 16, 28, 28], np.float32, name="input")
    node: ov.Node = data
    for _ in range(3):
        ones = [1, 1]
        node = opset.relu(opset.convolution(node, _weights((16, 16, 3, 3)), ones, ones, ones, ones))
    rows = opset.reshape(node, opset.constant(np.array([16, 784])), special_zero=False)
    node = opset.softmax(opset.matmul(rows, _weights((784, 256)), False, False), 1)
    return _model(opset.tanh(opset.matmul(node, _weights((256, 256)), False, False)), data)


def overhead_chain(length: int) -> ov.Model:
    """A chain of ops on 64 elements that no plugin fuses."""
    data = node = opset.parameter([1, 64], np.float32, name="input")
    for _ in range(length):
        axes = opset.constant(np.array([1], dtype=np.int64))
        node = opset.mvn(node, axes, normalize_variance=True, eps=1e-6, eps_mode="inside_sqrt")
    return _model(node, data)


def shared_chain(length: int) -> ov.Model:
    """A chain of products that threads share though they are small, with an op of one thread in between."""
    data = node = opset.parameter([1, 64], np.float32, name="input")
    weights = _weights((64, 64))
    for _ in range(length):
        node = opset.softmax(opset.matmul(node, weights, False, False), 1)
    return _model(node, data)


def _matmul(n: int, quantized: bool, count: int) -> ov.Model:
    data = node = opset.parameter([n, n], np.float32, name="input")
    for _ in range(count):
        left, weights = _operands(node, (n, n), quantized)
        node = opset.matmul(left, weights, False, False)
    return _model(node, data)


def _convolution(channels: int, side: int, quantized: bool, count: int) -> ov.Model:
    data = node = opset.parameter([1, channels, side, side], np.float32, name="input")
    for _ in range(count):
        left, weights = _operands(node, (channels, channels, _KERNEL, _KERNEL), quantized)
        node = opset.convolution(left, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    return _model(node, data)


def _depthwise(channels: int, side: int, count: int) -> ov.Model:
    data = node = opset.parameter([1, channels, side, side], np.float32, name="input")
    weights = _weights((channels, 1, 1, _KERNEL, _KERNEL))
    for _ in range(count):
        node = opset.group_convolution(node, weights, [1, 1], [1, 1], [1, 1], [1, 1])
    return _model(node, data)


def _side_by_side(op: Callable[[ov.Output], ov.Node], elements: int, count: int) -> ov.Model:
    """Ops on slices of the input, which are not copied; plugins fuse ops that follow each other."""
    data = opset.parameter([count * elements // 64, 64], np.float32, name="input")
    parts = opset.split(data, opset.constant(0), count)
    return _model(opset.concat([op(part) for part in parts.outputs()], 0), data)


def _attention(tokens: int, count: int) -> ov.Model:
    """Queries, keys and values are one input, so that nothing else is computed."""
    data = node = opset.parameter([1, _HEADS, tokens, _HEAD_WIDTH], np.float32, name="input")
    for _ in range(count):
        node = opset.scaled_dot_product_attention(node, node, node)
    return _model(node, data)


def _recurrent(width: int, count: int) -> ov.Model:
    data = node = opset.parameter([1, _TIMES, width], np.float32, name="input")
    state = opset.constant(np.zeros((1, 1, width), np.float32))
    lengths = opset.constant(np.array([_TIMES], np.int32))
    inputs, hidden, bias = (_weights(shape) for shape in ((1, 4 * width, width),) * 2 + ((1, 4 * width),))
    for _ in range(count):
        own = opset.lstm_sequence(node, state, state, lengths, inputs, hidden, bias, width, "forward")
        node = opset.squeeze(own.output(0), opset.constant([1]))
    return _model(node, data)


def _operands(data: ov.Node, weights_shape: tuple[int, ...], quantized: bool) -> tuple[ov.Node, ov.Node]:
    weights = _weights(weights_shape)
    if not quantized:
        return data, weights
    unsigned = [opset.constant(np.float32(limit)) for limit in (0.0, 1.0)]
    signed = [opset.constant(np.float32(limit)) for limit in (-1.0, 1.0)]
    return (
        opset.fake_quantize(data, *unsigned, *unsigned, levels=256),
        opset.fake_quantize(weights, *signed, *signed, levels=255),
    )


def _weights(shape: tuple[int, ...]) -> ov.Node:
    return opset.constant(np.random.default_rng(0).uniform(-1, 1, shape).astype(np.float32))


def _model(node: ov.Node, data: ov.Node) -> ov.Model:
    return ov.Model([opset.result(node)], [data], "microbenchmark")
