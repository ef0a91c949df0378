"""What every network of the zoo is built with: seeded weights, and one unique name per op."""

from __future__ import annotations

import math
import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from typing import Any, Literal, TypeAlias

import numpy as np
import openvino as ov
from numpy.typing import ArrayLike, DTypeLike, NDArray
from openvino import opset1
from openvino import opset15 as ops
from openvino.op import Constant

# What a layer reads and returns: an op (its first output is meant) or one output of an op.
Node: TypeAlias = ov.Node | ov.Output

_NO_RESERVE = getattr(mmap, "MAP_NORESERVE", 0x4000)  # a name that Python has from 3.13 on

Weights = Literal["random", "untouched"]
"""Whether weights are drawn, or zeros in memory that nobody has touched and that therefore is not there."""


class NetworkBuilder:
    """Makes the ops of one network.

    Every op is named after the scopes that are open when it is made (``layer1.0.conv1``) and no two
    ops share a name. Weights are drawn from one generator in the order of construction, scaled so
    that activations keep their size from layer to layer.

    Args:
        seed: Of the weights.
        weight_type: Weights are stored in this type; anything but ``float32`` adds a Convert behind
            each, the way a model converter compresses weights.
        weights: ``"untouched"`` builds the same ops in milliseconds however many weights they have, for
            whoever looks at the graph alone.
    """

    def __init__(self, seed: int, weight_type: DTypeLike = np.float32, weights: Weights = "random") -> None:
        self._random = np.random.default_rng(seed)
        self._weight_type = np.dtype(weight_type)
        self._weights = weights
        self._scopes: list[str] = []
        self._names: set[str] = set()
        self._parameters: list[ov.Node] = []

    @contextmanager
    def scope(self, name: str | int) -> Iterator[None]:
        """Ops that are made inside carry ``name.`` before their own name."""
        self._scopes.append(str(name))
        try:
            yield
        finally:
            self._scopes.pop()

    def named(self, node: ov.Node, name: str) -> ov.Node:
        """Give ``node`` its friendly name.

        Raises:
            ValueError: Another op of this network has that name already.
        """
        full = ".".join([*self._scopes, name])
        if full in self._names:
            raise ValueError(f"two ops are called {full!r}; open a scope around one of them")
        self._names.add(full)
        node.set_friendly_name(full)
        return node

    def input(self, name: str, shape: Sequence[int], dtype: DTypeLike = np.float32) -> ov.Node:
        """An input of the network, also known by ``name`` as a tensor."""
        node = self.named(ops.parameter(list(shape), dtype), name)
        node.output(0).set_names({name})
        self._parameters.append(node)
        return node

    def model(self, name: str, outputs: Mapping[str, Node], sinks: Sequence[ov.Node] = ()) -> ov.Model:
        """The finished network, its outputs in the given order and known by their names."""
        results = []
        for output, node in outputs.items():
            result = self.named(ops.result(node), output)
            result.input_value(0).set_names({output})
            results.append(result)
        return ov.Model(results, list(sinks), self._parameters, name)

    def concat(self, parts: Sequence[Node], axis: int = 1, name: str = "concat") -> ov.Node:
        """Several tensors as one."""
        return self.named(ops.concat(list(parts), axis), name)

    def mlp(self, x: Node, widths: Sequence[int], prefix: str = "") -> Node:
        """Fully connected layers with ReLU."""
        for layer, width in enumerate(widths):
            x = self.relu(
                self.dense(x, width, gain=2.0, name=f"{prefix}dense{layer}"), f"{prefix}relu{layer}"
            )
        return x

    def constant(self, name: str, values: ArrayLike, dtype: DTypeLike = np.int64) -> ov.Node:
        """A Constant that is not a weight: axes, shapes, indices."""
        return self.named(ops.constant(np.asarray(values, dtype=dtype)), name)

    def stored(self, name: str, values: NDArray[np.float32]) -> ov.Node:
        """``values`` as the network stores them: a Constant and, when compressed, a Convert."""
        return self._stored(name, ops.constant(values.astype(self._weight_type)))

    def _stored(self, name: str, values: ov.Node) -> ov.Node:
        if self._weight_type == np.float32:
            return self.named(values, name)
        return self.named(ops.convert(self.named(values, f"{name}.compressed"), "f32"), name)

    def zeros(self, name: str, shape: Sequence[int]) -> ov.Node:
        """Zeros in f32 that are no weight: the first state of something that remembers."""
        return self.named(_untouched(shape, np.dtype(np.float32)), name)

    def normal(self, name: str, shape: Sequence[int], std: float, mean: float = 0.0) -> ov.Node:
        """Normally distributed weights."""
        if self._weights == "untouched":
            return self._stored(name, _untouched(shape, self._weight_type))
        values = self._random.standard_normal(tuple(shape), dtype=np.float32)
        values *= np.float32(std)
        values += np.float32(mean)
        return self.stored(name, values)

    def conv(
        self,
        x: Node,
        channels: int,
        kernel: int | tuple[int, ...],
        *,
        stride: int = 1,
        padding: int | tuple[int, ...] | None = None,
        groups: int = 1,
        dilation: int = 1,
        causal: bool = False,
        gain: float = 2.0,
        name: str = "conv",
    ) -> ov.Node:
        """Convolution with bias over all axes behind the second, with batch normalisation folded in.

        Args:
            x: ``[N, C, spatial...]``.
            channels: Output channels.
            kernel: Size per spatial axis, or one for all.
            stride: For all axes.
            padding: On both sides; by default the size is kept (for stride 1).
            groups: Into how many the channels are divided; as many as there are for a depthwise convolution.
            dilation: For all axes.
            causal: Pad only in front.
            gain: Variance of the output by that of the input; 2 makes up for a ReLU behind (He
                initialisation), a small one keeps a residual branch small.
            name: Scope of the ops.
        """
        inputs = _shape(x)[1]
        axes = len(_shape(x)) - 2
        kernel = (kernel,) * axes if isinstance(kernel, int) else kernel
        if padding is None:
            padding = tuple(dilation * (k - 1) // (1 if causal else 2) for k in kernel)
        pads = [padding] * axes if isinstance(padding, int) else list(padding)
        fan_in = inputs // groups * math.prod(kernel)
        settings = {
            "strides": [stride] * axes,
            "pads_begin": pads,
            "pads_end": [0] * axes if causal else pads,
            "dilations": [dilation] * axes,
        }
        with self.scope(name):
            std = math.sqrt(gain / fan_in)
            if groups == 1:
                weight = self.normal("weight", (channels, inputs, *kernel), std)
                y = self.named(ops.convolution(x, weight, **settings), "conv")
            else:
                split = (groups, channels // groups, inputs // groups)
                weight = self.normal("weight", (*split, *kernel), std)
                y = self.named(ops.group_convolution(x, weight, **settings), "conv")
            bias = self.normal("bias", (1, channels, *(1,) * axes), 0.01)
            return self.named(ops.add(y, bias), "add")

    def conv_relu(self, x: Node, channels: int, kernel: int | tuple[int, ...], **settings: Any) -> ov.Node:
        """:meth:`conv` with a ReLU behind it."""
        y = self.conv(x, channels, kernel, **settings)
        return self.relu(y, f"{settings.get('name', 'conv')}.relu")

    def relu(self, x: Node, name: str = "relu") -> ov.Node:
        """ReLU."""
        return self.named(ops.relu(x), name)

    def add(self, a: Node, b: Node, name: str = "add") -> ov.Node:
        """Element-wise sum."""
        return self.named(ops.add(a, b), name)

    def max_pool(
        self, x: Node, kernel: int, stride: int, padding: int = 0, name: str = "max_pool"
    ) -> ov.Node:
        """Maximum pooling over two axes."""
        # The first operation set's has no second output (the indices), which nobody reads here.
        pads = [padding] * 2
        return self.named(opset1.max_pool(x, [stride] * 2, pads, pads, [kernel] * 2, "floor"), name)

    def avg_pool(
        self, x: Node, kernel: int, stride: int, padding: int = 0, name: str = "avg_pool"
    ) -> ov.Node:
        """Average pooling over two axes that counts the padding."""
        pads = [padding] * 2
        return self.named(ops.avg_pool(x, [stride] * 2, pads, pads, [kernel] * 2, False, "floor"), name)

    def global_average(self, x: Node, name: str = "global_average") -> ov.Node:
        """Mean over the two spatial axes and flattening: ``[N, C, H, W]`` to ``[N, C]``."""
        with self.scope(name):
            axes = self.constant("axes", [2, 3])
            mean = self.named(ops.reduce_mean(x, axes, keep_dims=True), "mean")
            return self.reshape(mean, [0, -1], "flatten")

    def dense(
        self, x: Node, width: int, *, gain: float = 1.0, bias: bool = True, name: str = "dense"
    ) -> ov.Node:
        """Matrix product over the last axis with an optional bias."""
        inputs = _shape(x)[-1]
        with self.scope(name):
            weight = self.normal("weight", (width, inputs), math.sqrt(gain / inputs))
            y = self.named(ops.matmul(x, weight, False, True), "matmul")
            if not bias:
                return y
            shift = self.normal("bias", (1,) * (len(_shape(x)) - 1) + (width,), 0.01)
            return self.named(ops.add(y, shift), "add")

    def embedding(
        self, ids: Node, rows: int, width: int, *, std: float = 1.0, name: str = "embedding"
    ) -> ov.Node:
        """Rows of a table: ``[...]`` to ``[..., width]``."""
        with self.scope(name):
            table = self.normal("table", (rows, width), std)
            return self.named(ops.gather(table, ids, self.constant("axis", 0)), "gather")

    def layer_norm(self, x: Node, name: str = "norm") -> ov.Node:
        """Layer normalisation over the last axis."""
        lift = (1,) * (len(_shape(x)) - 1)
        width = _shape(x)[-1]
        with self.scope(name):
            y = self.named(ops.mvn(x, self.constant("axes", [-1]), True, 1e-12, "INSIDE_SQRT"), "mvn")
            y = self.named(ops.multiply(y, self.normal("scale", (*lift, width), 0.1, mean=1.0)), "multiply")
            return self.named(ops.add(y, self.normal("shift", (*lift, width), 0.1)), "add")

    def reshape(self, x: Node, shape: Sequence[int], name: str = "reshape") -> ov.Node:
        """Reshape to a constant pattern, in which 0 keeps a dimension."""
        pattern = self.constant(f"{name}.pattern", shape)
        return self.named(ops.reshape(x, pattern, special_zero=True), name)

    def transpose(self, x: Node, order: Sequence[int], name: str = "transpose") -> ov.Node:
        """Transpose to a constant order."""
        return self.named(ops.transpose(x, self.constant(f"{name}.order", order)), name)

    def slice(self, x: Node, axis: int, begin: int, end: int, name: str = "slice") -> ov.Node:
        """``x[..., begin:end, ...]`` along one axis."""
        with self.scope(name):
            bounds = (self.constant(what, [value]) for what, value in (("begin", begin), ("end", end)))
            step, axes = self.constant("step", [1]), self.constant("axes", [axis])
            return self.named(ops.slice(x, *bounds, step, axes), "slice")


def _untouched(shape: Sequence[int], dtype: np.dtype[Any]) -> ov.Node:
    """Zeros over memory that all such constants share and nobody writes to."""
    num_bytes = math.prod(shape) * dtype.itemsize
    zeros = _zero_bytes(max(1, num_bytes - 1).bit_length())[:num_bytes]
    return Constant(zeros.view(dtype).reshape(tuple(shape)), shared_memory=True)


@cache
def _zero_bytes(exponent: int) -> NDArray[np.uint8]:
    """``2 ** exponent`` bytes, which may be more than the machine has: a page is there once it is used.

    Without the flag, the system refuses what it could not hold if all of it were used.
    """
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | _NO_RESERVE
    return np.frombuffer(mmap.mmap(-1, 1 << exponent, flags=flags), dtype=np.uint8)


def _shape(x: Node) -> list[int]:
    output = x if isinstance(x, ov.Output) else x.output(0)
    return list(output.get_shape())
