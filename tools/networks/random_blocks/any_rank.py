"""What converters write now and then, on a tensor of any rank whose shape it keeps."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import Node
from networks.random_blocks.drawn import LARGEST_TENSOR, Block, Drawn, dims_of
from networks.variation import chance, pick


def pointwise(d: Drawn, x: Node) -> Node:
    """A run of operations element by element."""
    y: Node = x
    for _ in range(int(d.random.integers(1, 8))):
        if chance(d.random, 0.5):
            y = d.activated(y)
        else:
            other = d.number(float(d.random.uniform(0.5, 2.0))) if chance(d.random, 0.6) else x
            y = d.named(pick(d.random, (ops.add, ops.multiply, ops.subtract, ops.maximum))(y, other))
    return y


def _compared(d: Drawn, x: Node) -> Node:
    """A comparison whose answer becomes a factor or a mask, or a detour over integers."""
    n, zero = d.named, d.number(0.0)
    compare = pick(d.random, (ops.less, ops.less_equal, ops.greater_equal, ops.equal, ops.not_equal))
    kind = pick(d.random, ("factor", "mask", "not", "integers"))
    if kind == "integers":
        return n(ops.convert(n(ops.convert(x, "i32")), "f32"))
    is_kept = n(compare(x, zero))
    if kind == "factor":
        return n(ops.multiply(x, n(ops.convert(is_kept, "f32"))))
    if kind == "mask":
        return n(ops.select(n(ops.logical_and(is_kept, n(ops.less(x, d.number(2.0))))), x, zero))
    return n(ops.select(n(ops.logical_not(is_kept)), x, n(ops.negative(x))))


def _computed(d: Drawn, x: Node) -> Node:
    """Functions of elements that are no activations."""
    n = d.named
    if chance(d.random, 0.5):
        binary = pick(d.random, (ops.minimum, ops.squared_difference, ops.floor_mod, ops.mod, ops.divide))
        return n(binary(x, d.number(0.7)))
    if chance(d.random, 0.5):
        return n(ops.prelu(x, d.net.normal(f"slope{d.serial()}", (dims_of(x)[1],), 0.1)))
    unary = pick(d.random, (ops.log, ops.sign, ops.tan, ops.atan, ops.sinh, ops.asinh))
    return n(unary(n(ops.add(n(ops.abs(x)), d.number(0.1)))))


def _reduced(d: Drawn, x: Node) -> Node:
    """A reduction that comes back by a broadcast, and normalisations and sums along an axis."""
    n, dims = d.named, dims_of(x)
    at = int(d.random.integers(1, len(dims)))
    axis = d.ints([at])
    reduce = pick(d.random, (ops.reduce_sum, ops.reduce_max, ops.reduce_min, ops.reduce_prod, ops.reduce_l1))
    kind = pick(d.random, ("broadcast", "squeeze", "cumsum", "norm"))
    if kind == "broadcast":
        return n(ops.add(x, n(ops.broadcast(n(reduce(x, axis, True)), d.ints(dims)))))
    if kind == "squeeze":
        return n(ops.add(x, n(ops.unsqueeze(n(ops.squeeze(n(reduce(x, axis, True)), axis)), axis))))
    return n(ops.cum_sum(x, d.ints(at))) if kind == "cumsum" else n(ops.normalize_l2(x, axis, 1e-6, "add"))


def _moved(d: Drawn, x: Node) -> Node:
    """Elements at other places: parts, rolls, indices, padding, the largest ones."""
    n, dims = d.named, dims_of(x)
    last, width = d.ints([len(dims) - 1]), dims[-1]
    kind = pick(d.random, ("parts", "roll", "permute", "scatter", "pad", "largest"))
    if kind == "parts" and width > 2:
        at = int(d.random.integers(1, width))
        parts = n(ops.variadic_split(x, last, d.ints([at, width - at]))).outputs()
        return n(ops.concat(parts[::-1], len(dims) - 1))
    if kind == "roll":
        return n(ops.roll(x, d.ints([max(1, dims[1] // 2)]), d.ints([1])))
    if kind == "scatter":
        column = n(ops.gather(x, d.ints([width // 2]), d.ints(len(dims) - 1)))
        return n(ops.scatter_update(x, d.ints([0]), column, d.ints(len(dims) - 1)))
    if kind == "pad":
        most = [0] * (len(dims) - 1) + [int(d.random.integers(1, 4))]
        mode = pick(d.random, ("constant", "edge"))
        y = n(ops.pad(x, d.ints(most), d.ints(most), mode, d.number(0.0)))
        return n(ops.slice(y, d.ints(most[-1:]), d.ints([most[-1] + width]), d.ints([1]), last))
    if kind == "largest":
        places = n(ops.topk(x, d.ints(max(1, width // 2)), len(dims) - 1, "max", "value")).output(1)
        largest = n(ops.gather_elements(x, places, len(dims) - 1))
        return n(ops.add(x, n(ops.reduce_mean(largest, last, True))))
    return n(ops.gather(x, d.ints(d.random.permutation(width)), d.ints(len(dims) - 1)))


def _halved(d: Drawn, x: Node) -> Node:
    """Slices along any axis, of which one changes the other, put together again."""
    n, dims = d.named, dims_of(x)
    axes = [axis for axis, size in enumerate(dims) if size > 1 and size % 2 == 0]
    if not axes:
        return _computed(d, x)
    axis = pick(d.random, axes)
    half, size, at, one = (d.ints([k]) for k in (dims[axis] // 2, dims[axis], axis, 1))
    first, second = n(ops.slice(x, d.ints([0]), half, one, at)), n(ops.slice(x, half, size, one, at))
    if chance(d.random, 0.5):
        second = n(pick(d.random, (ops.add, ops.multiply))(first, second))
    return n(ops.concat([first, second], axis))


def _of_another_rank(d: Drawn, x: Node) -> Node:
    """Ops on the same elements under another shape: an axis in two, a new one, or two as one."""
    n, dims = d.named, dims_of(x)
    axis = int(d.random.integers(len(dims)))
    divisors = [k for k in (2, 3, 4, 8, 16) if dims[axis] % k == 0 and dims[axis] > k]
    shape = [*dims[:axis], 1, *dims[axis:]]
    if divisors:
        k = pick(d.random, divisors)
        shape = [*dims[:axis], k, dims[axis] // k, *dims[axis + 1 :]]
    if len(dims) > 2 and chance(d.random, 0.2):
        shape = [dims[0] * dims[1], *dims[2:]]
    y: Node = n(ops.reshape(x, d.ints(shape), False))
    for _ in range(int(d.random.integers(1, 5))):
        if chance(d.random, 0.25):
            order = d.random.permutation(len(shape))
            y = n(pick(d.random, (ops.sigmoid, ops.exp, ops.tanh))(n(ops.transpose(y, d.ints(order)))))
            y = n(ops.transpose(y, d.ints(np.argsort(order))))
        else:
            y = pick(d.random, (_compared, _computed, _reduced, _moved, _halved, _halved))(d, y)
    return n(ops.reshape(y, d.ints(dims), False))


def _spread(d: Drawn, x: Node) -> Node:
    """Each element as a row of several, which are summed again."""
    n, dims = d.named, dims_of(x)
    most = LARGEST_TENSOR // int(np.prod(dims))
    width = min(most, pick(d.random, (4, 8, 16, 32, 64)))
    if width < 2:
        return pointwise(d, x)
    y = n(ops.unsqueeze(x, d.ints(-1)))
    if chance(d.random, 0.5):
        y = n(ops.broadcast(y, d.ints([*dims, width])))
    y = n(ops.multiply(y, d.net.normal(f"row{d.serial()}", (width,), 0.5)))
    if chance(d.random, 0.5):
        y = d.activated(y)
    if chance(d.random, 0.5):
        order = [*range(len(dims) - 1), len(dims), len(dims) - 1]
        return n(ops.reduce_sum(n(ops.transpose(y, d.ints(order))), d.ints([len(dims) - 1]), False))
    return n(ops.reduce_sum(y, d.ints([-1]), False))


def _branched(d: Drawn, x: Node) -> Node:
    """An If that the mean decides."""
    n, dims = d.named, dims_of(x)
    mean = n(ops.reduce_mean(x, d.ints(list(range(len(dims))))))
    choice = ops.if_op(n(ops.greater(mean, d.number(0.0))).output(0))
    inputs = [ops.parameter(dims, np.float32) for _ in range(2)]
    then, other = (
        ov.Model([ops.result(make(own))], [own], make.__name__)
        for make, own in zip((ops.relu, ops.tanh), inputs, strict=True)
    )
    choice.set_then_body(then)
    choice.set_else_body(other)
    choice.set_input(x.output(0) if isinstance(x, ov.Node) else x, *inputs)
    result = choice.set_output(then.results[0], other.results[0])
    n(choice)
    return n(ops.abs(result))


BLOCKS: tuple[Block, ...] = (_compared, _computed, _reduced, _moved, _halved, _of_another_rank, _branched)
BLOCKS += (_spread,)
