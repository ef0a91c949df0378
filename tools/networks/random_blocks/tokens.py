"""Blocks of networks that read tokens ``[1, T, C]``."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import Node
from networks.random_blocks.any_rank import pointwise
from networks.random_blocks.drawn import LARGEST_TENSOR, Block, Drawn, dims_of
from networks.variation import chance, pick

_LARGEST_WEIGHTS = 1 << 24  # elements of the weights of experts, as they are stored and as they are gathered


def begin(d: Drawn) -> Node:
    length, width = d.rows(256), d.width(16, 512, pick(d.random, (8, 16, 32)))
    if chance(d.random, 0.5):
        ids = d.net.input("ids", (1, length), np.int64)
        x = d.net.embedding(ids, d.size(50, 5000), width, name="words")
        places = d.net.normal("places", (1, length, width), 1.0)
        return d.normed(d.named(ops.add(x, places)))
    return d.dense(d.net.input("features", (1, length, d.size(4, 128))), width)


def _heads(d: Drawn, width: int) -> int:
    return pick(d.random, [h for h in (1, 2, 4, 8, 12, 16) if width % h == 0 and width // h >= 4] or [1])


def _split_heads(d: Drawn, x: Node, heads: int) -> Node:
    _, length, width = dims_of(x)
    y = d.named(ops.reshape(x, d.ints([1, length, heads, width // heads]), False))
    return d.named(ops.transpose(y, d.ints([0, 2, 1, 3])))


def _attention(d: Drawn, x: Node) -> Node:
    _, length, width = dims_of(x)
    heads, n = _heads(d, width), d.named
    before = chance(d.random, 0.5)
    y = d.normed(x) if before else x
    if chance(d.random, 0.3):  # one product for all three
        joined = d.dense(y, 3 * width)
        parts = n(ops.split(joined, d.ints(2), 3)).outputs()
        q, k, v = (_split_heads(d, part, heads) for part in parts)
    else:
        q, k, v = (_split_heads(d, d.dense(y, width), heads) for _ in range(3))
    if chance(d.random, 0.3):
        q, k = _rotated(d, q), _rotated(d, k)
    if chance(d.random, 0.4):
        y = n(ops.scaled_dot_product_attention(q, k, v, causal=chance(d.random, 0.5)))
    else:
        scores = n(ops.matmul(q, k, False, True))
        scores = n(ops.multiply(scores, d.number((width // heads) ** -0.5)))
        if chance(d.random, 0.5):
            scores = n(ops.add(scores, d.net.normal(f"mask{d.serial()}", (1, 1, length, length), 0.1)))
        y = n(ops.matmul(n(ops.softmax(scores, -1)), v, False, False))
    y = n(ops.reshape(n(ops.transpose(y, d.ints([0, 2, 1, 3]))), d.ints([1, length, width]), False))
    y = n(ops.add(d.dense(y, width), x))
    return y if before else d.normed(y)


def _rotated(d: Drawn, x: Node) -> Node:
    """Rotary embeddings, written out."""
    _, _, length, width = dims_of(x)
    if width % 2:
        return x
    n, half = d.named, width // 2
    first, second = n(ops.split(x, d.ints(3), 2)).outputs()
    turned = n(ops.concat([n(ops.negative(second)), first], 3))
    cos, sin = (d.net.normal(f"turn{d.serial()}", (1, 1, length, 2 * half), 1.0) for _ in range(2))
    return n(ops.add(n(ops.multiply(x, cos)), n(ops.multiply(turned, sin))))


def _perceptron(d: Drawn, x: Node) -> Node:
    width = dims_of(x)[-1]
    before = chance(d.random, 0.6)
    y = d.normed(x) if before else x
    inner = min(width * pick(d.random, (1, 2, 3, 4)), 2048)
    if chance(d.random, 0.3):
        y = d.named(ops.multiply(d.activated(d.dense(y, inner), "swish"), d.dense(y, inner)))
    else:
        y = d.usual(d.dense(y, inner))
    y = d.named(ops.add(d.dense(y, width), x))
    return y if before else d.normed(y)


def _sequence(d: Drawn, x: Node) -> Node:
    """LSTM and GRU sequences in one direction or two."""
    _, length, width = dims_of(x)
    n, hidden = d.named, d.size(8, 256, 8)
    directions = pick(d.random, (1, 1, 2))
    is_lstm = chance(d.random, 0.5)
    gates = 4 if is_lstm else 3
    zeros = d.net.zeros(f"zero{d.serial()}", (1, directions, hidden))
    w, r = (
        d.net.normal(f"weight{d.serial()}", (directions, gates * hidden, k), 0.1) for k in (width, hidden)
    )
    b = d.net.normal(f"bias{d.serial()}", (directions, gates * hidden), 0.1)
    lengths = d.net.constant(f"length{d.serial()}", [length], np.int32)
    direction = "bidirectional" if directions == 2 else "forward"
    if is_lstm:
        y = ops.lstm_sequence(x, zeros, zeros, lengths, w, r, b, hidden, direction)
    else:
        y = ops.gru_sequence(x, zeros, lengths, w, r, b, hidden, direction)
    y = n(ops.transpose(n(y).output(0), d.ints([0, 2, 1, 3])))
    y = n(ops.reshape(y, d.ints([1, length, directions * hidden]), False))
    return d.dense(y, width) if chance(d.random, 0.6) else y


def _scan(d: Drawn, x: Node) -> Node:
    """A state space, step by step in a TensorIterator."""
    _, length, width = dims_of(x)
    n = d.named
    body_x, body_h = ops.parameter([1, 1, width], np.float32), ops.parameter([1, 1, width], np.float32)
    decay = ops.constant(np.full((1, 1, width), 0.9, np.float32))
    h = ops.add(ops.multiply(body_h, decay), body_x)
    y = ops.multiply(h, ops.sigmoid(body_x)) if chance(d.random, 0.5) else ops.relu(h)
    body = ov.Model([h, y], [body_x, body_h], "body")
    loop = ops.tensor_iterator()
    loop.set_body(body)
    loop.set_sliced_input(body_x, x.output(0) if isinstance(x, ov.Node) else x, 0, 1, 1, -1, 1)
    zero = d.net.zeros(f"zero{d.serial()}", (1, 1, width))
    loop.set_merged_input(body_h, zero.output(0), h.output(0))
    out = loop.get_concatenated_slices(y.output(0), 0, 1, 1, -1, 1)
    n(loop)
    return d.dense(out, width) if length else out


def _convolved(d: Drawn, x: Node) -> Node:
    """Convolutions in time over tokens."""
    _, _, width = dims_of(x)
    y = d.named(ops.transpose(x, d.ints([0, 2, 1])))
    if chance(d.random, 0.5):
        y = d.usual(d.conv(y, width, pick(d.random, (3, 5, 7, 15)), groups=width))
    else:
        groups = d.groups(width, width)
        kernel, dilation = (1, 1) if groups > 1 else (3, pick(d.random, (1, 2, 4)))
        y = d.conv(y, width, kernel, dilation=dilation, causal=chance(d.random, 0.5), groups=groups)
        y = d.usual(y)
    return d.named(ops.add(d.named(ops.transpose(y, d.ints([0, 2, 1]))), x))


def _mixed_tokens(d: Drawn, x: Node) -> Node:
    """A perceptron over the tokens, as in MLP-Mixer."""
    length = dims_of(x)[1]
    y = d.named(ops.transpose(d.normed(x), d.ints([0, 2, 1])))
    y = d.dense(d.usual(d.dense(y, min(2 * length, 256))), length)
    return d.named(ops.add(d.named(ops.transpose(y, d.ints([0, 2, 1]))), x))


def _selected(d: Drawn, x: Node) -> Node:
    """Parts of a tensor put together anew: slices, gathers, reductions, comparisons."""
    n, dims = d.named, dims_of(x)
    length = dims[1]
    kind = pick(d.random, ("slice", "gather", "cumsum", "select", "topk", "reduce", "tile", "pad"))
    if kind == "slice" and length > 1:
        y = n(ops.slice(x, d.ints([0]), d.ints([max(1, length // 2)]), d.ints([1]), d.ints([1])))
        return n(ops.concat([y, x], 1)) if length < 256 else y
    if kind == "gather":
        return n(ops.gather(x, d.ints(d.random.integers(0, length, length)), d.ints(1)))
    if kind == "cumsum":
        return n(ops.cum_sum(x, d.ints(1)))
    if kind == "select":
        return n(ops.select(n(ops.greater(x, d.number(0.0))), x, n(ops.multiply(x, d.number(0.1)))))
    if kind == "topk":
        values = n(ops.topk(x, d.ints(max(1, length // 2)), 1, "max", "value")).output(0)
        return n(ops.concat([values, x], 1)) if length < 256 else values
    if kind == "reduce":
        reduce = pick(d.random, (ops.reduce_mean, ops.reduce_max, ops.reduce_sum, ops.reduce_l2))
        return n(ops.add(x, n(reduce(x, d.ints([1]), True))))
    if kind == "tile" and length < 64:
        return n(ops.tile(x, d.ints([1, 2] + [1] * (len(dims) - 2))))
    if kind == "pad" and length < 256:
        ends = [d.ints([0, k] + [0] * (len(dims) - 2)) for k in (1, 2)]
        return n(ops.pad(x, ends[0], ends[1], "constant", d.number(0.0)))
    return n(ops.softmax(x, 1))


def head(d: Drawn, x: Node) -> Node:
    if chance(d.random, 0.4):
        return d.dense(d.normed(x), d.size(2, 4000))
    first = d.named(ops.gather(x, d.ints(0), d.ints(1)))
    return d.activated(d.dense(first, d.size(2, 500)), pick(d.random, ("tanh", "sigmoid", "relu")))


def _backwards(d: Drawn, x: Node) -> Node:
    return d.named(ops.reverse_sequence(x, d.ints([dims_of(x)[1]]), 0, 1))


def _summed(d: Drawn, x: Node) -> Node:
    """Products that are written as sums over indices."""
    n, (_, length, width), heads = d.named, dims_of(x), _heads(d, dims_of(x)[2])
    kind = pick(d.random, ("dense", "pairs", "heads", "per head", "over time"))
    if kind == "dense":
        weight = d.net.normal(f"weight{d.serial()}", (width, width), width**-0.5)
        return n(ops.einsum([x, weight], "btc,cd->btd"))
    if kind == "pairs":
        scores = n(ops.softmax(n(ops.einsum([x, x], "btc,bsc->bts")), -1))
        return n(ops.einsum([scores, x], "bts,bsc->btc"))
    y = n(ops.reshape(x, d.ints([1, length, heads, width // heads]), False))
    if kind == "heads":
        scores = n(ops.softmax(n(ops.einsum([y, y], "bthd,bshd->bhts")), -1))
        y = n(ops.einsum([scores, y], "bhts,bshd->bthd"))
    elif kind == "per head":
        weight = d.net.normal(f"weight{d.serial()}", (heads, width // heads, width // heads), 0.1)
        y = n(ops.einsum([y, weight], "bthd,hde->bthe"))
    else:
        share = n(ops.softmax(n(ops.reduce_mean(y, d.ints([3]), False)), 1))
        state = n(ops.einsum([share, y], "bth,bthd->bhd"))
        y = n(ops.einsum([y, state], "bthd,bhd->bthd"))
    return n(ops.reshape(y, d.ints([1, length, width]), False))


def _steps(d: Drawn, x: Node) -> Node:
    """A recurrence that is written out, step after step, as tracing a loop leaves it."""
    n, (_, length, width) = d.named, dims_of(x)
    count = min(length, int(d.random.integers(2, 33)))
    is_sliced, is_state_wide, is_stacked = (chance(d.random, p) for p in (0.3, 0.4, 0.6))
    axis = d.ints(1)
    decay = d.net.normal(f"decay{d.serial()}", (1, width, 8) if is_state_wide else (1, width), 0.3)
    state: Node | None = None
    ends: list[Node] = []
    for t in range(count):
        if is_sliced:
            part = n(ops.slice(x, d.ints([t]), d.ints([t + 1]), d.ints([1]), d.ints([1])))
            part = n(ops.squeeze(part, axis))
        else:
            part = n(ops.gather(x, d.ints(t), axis))
        fed = n(ops.multiply(n(ops.unsqueeze(part, d.ints(-1))), decay)) if is_state_wide else part
        kept = None if state is None else n(ops.multiply(state, decay))
        state = fed if kept is None else n(ops.add(kept, fed))
        read = state
        if is_state_wide:
            weight = d.net.normal(f"weight{d.serial()}", (8, 1), 0.3)
            read = n(ops.squeeze(n(ops.matmul(state, weight, False, False)), d.ints(-1)))
        ends.append(n(ops.unsqueeze(read, axis)))
    if is_stacked:
        return n(ops.concat(ends, 1)) if count > 1 else ends[0]
    return n(ops.add(x, ends[-1]))


def _routed(d: Drawn, x: Node) -> Node:
    """Experts that a router chooses for each token, by products with weights that are gathered for it."""
    n, (_, length, width) = d.named, dims_of(x)
    experts, taken = pick(d.random, (4, 8, 16, 32)), pick(d.random, (1, 2, 4))
    is_gated = chance(d.random, 0.7)
    rows, wide = length * taken, 2 if is_gated else 1
    most = _LARGEST_WEIGHTS / (max(rows, experts) * width * (wide + 1))
    inner = max(8, int(min(width * pick(d.random, (1, 2, 4, 8)), most)) // 8 * 8)
    shares = n(ops.softmax(d.dense(x, experts, False), -1))
    shares = n(ops.reshape(shares, d.ints([length, experts]), False))
    chosen = n(ops.topk(shares, d.ints(taken), 1, "max", "value"))
    expert = n(ops.reshape(chosen.output(1), d.ints([rows]), False))
    tokens = n(ops.reshape(x, d.ints([length, width]), False))
    y: Node = n(ops.gather(tokens, d.ints(np.repeat(np.arange(length), taken)), d.ints(0)))
    is_column = chance(d.random, 0.5)
    own = _product_of_rows(d, y, expert, (experts, wide * inner, width), is_column)
    if is_gated:
        gate, own = n(ops.split(own, d.ints(1), 2)).outputs()
        y = n(ops.multiply(d.activated(gate, "swish"), own))
    else:
        y = d.usual(own)
    y = _product_of_rows(d, y, expert, (experts, width, inner), is_column)
    share = n(ops.reshape(chosen.output(0), d.ints([rows, 1]), False))
    y = n(ops.reshape(n(ops.multiply(y, share)), d.ints([length, taken, width]), False))
    return n(ops.add(x, n(ops.unsqueeze(n(ops.reduce_sum(y, d.ints([1]), False)), d.ints(0)))))


def _product_of_rows(
    d: Drawn, x: Node, chosen: Node, shape: tuple[int, int, int], is_column: bool
) -> ov.Node:
    """Each row of ``x`` times the matrix that is chosen for it."""
    n, (_, outputs, inputs) = d.named, shape
    stored = shape if is_column else (shape[0], inputs, outputs)
    matrix = n(ops.gather(d.net.normal(f"weight{d.serial()}", stored, inputs**-0.5), chosen, d.ints(0)))
    axis = d.ints(2 if is_column else 1)
    row = n(ops.unsqueeze(x, axis))
    return n(ops.squeeze(n(ops.matmul(*((matrix, row) if is_column else (row, matrix)), False, False)), axis))


def _chunked(d: Drawn, x: Node) -> Node:
    """A state space in chunks: what decays from one step of a chunk to another is a triangle of sums."""
    n, (_, length, width) = d.named, dims_of(x)
    heads, size = pick(d.random, (2, 4, 8, 16, 32, 64, 128)), pick(d.random, (8, 16, 32, 64, 128))
    depth, kept = (pick(d.random, (8, 16, 32, 64, 128)) for _ in range(2))
    while heads * max(length, size) * max(size, kept, depth) > LARGEST_TENSOR:
        heads = heads // 2
    count = -(-length // size)
    padded: Node = d.normed(x)
    if count * size > length:
        ends = [d.ints([0, k, 0]) for k in (0, count * size - length)]
        padded = n(ops.pad(padded, *ends, "constant", d.number(0.0)))
    sizes = (count, size, heads)
    value = n(ops.reshape(d.dense(padded, heads * depth), d.ints([1, *sizes, depth]), False))
    read, write = (_projected(d, padded, (*sizes, kept)) for _ in range(2))
    decay = n(ops.negative(d.activated(d.dense(padded, heads), "softplus")))
    decay = n(ops.reshape(decay, d.ints([1, *sizes]), False))
    decay = n(ops.transpose(decay, d.ints([0, 3, 1, 2])))
    within = _decayed(d, decay)
    scores = n(ops.einsum([read, write], "bclhn,bcshn->bhcls"))
    y = n(ops.einsum([n(ops.multiply(scores, within)), value], "bhcls,bcshp->bclhp"))
    if chance(d.random, 0.6):  # what earlier chunks leave to later ones
        states = n(ops.einsum([write, value], "bclhn,bclhp->bchpn"))
        sums = n(ops.reduce_sum(decay, d.ints([3]), False))
        states = n(ops.einsum([_decayed(d, sums), states], "bhzc,bchpn->bzhpn"))
        y = n(ops.add(y, n(ops.einsum([read, states], "bclhn,bchpn->bclhp"))))
    y = n(ops.reshape(y, d.ints([1, count * size, heads * depth]), False))
    if count * size > length:
        y = n(ops.slice(y, d.ints([0]), d.ints([length]), d.ints([1]), d.ints([1])))
    return n(ops.add(d.dense(y, width), x))


def _projected(d: Drawn, x: Node, shape: tuple[int, int, int, int]) -> ov.Node:
    """A vector for each head, or one that all heads share; ``shape`` = chunks, steps, heads and its size."""
    n, (count, size, heads, kept) = d.named, shape
    if chance(d.random, 0.5):
        return n(ops.reshape(d.dense(x, heads * kept), d.ints([1, count, size, heads, kept]), False))
    shared = n(ops.reshape(d.dense(x, kept), d.ints([1, count, size, 1, kept]), False))
    return n(ops.broadcast(shared, d.ints([1, count, size, heads, kept])))


def _decayed(d: Drawn, x: Node) -> ov.Node:
    """Exponentials of sums from any of the last axis to any later one, written out as a triangle."""
    n, dims = d.named, dims_of(x)
    size = dims[-1]
    spread = n(ops.broadcast(n(ops.unsqueeze(x, d.ints(-1))), d.ints([*dims, size])))
    later, same = (
        d.net.constant(f"triangle{d.serial()}", np.tril(np.ones((size, size)), k), np.bool_) for k in (-1, 0)
    )
    sums = n(ops.cum_sum(n(ops.select(later, spread, d.number(0.0))), d.ints(len(dims) - 1)))
    return n(ops.exp(n(ops.select(same, sums, d.number(-1e9)))))


BLOCKS: tuple[Block, ...] = (_attention, _attention, _perceptron, _perceptron, _sequence, _scan, _convolved)
BLOCKS += (_mixed_tokens, pointwise, _selected, _backwards, _summed, _steps, _routed, _chunked)
