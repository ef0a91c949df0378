"""Networks of random blocks, written out as converters write them: to learn from what ops cost.

A network reads an image ``[1, C, H, W]``, tokens ``[1, T, C]`` or rows ``[N, C]`` and goes through blocks
that are drawn with their sizes, widths and variants. No network that has a name comes out; every pattern that
converters write for common layers does, in surroundings that no published network has.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import chance, pick

Block = Callable[["_Drawn", Node], Node]

_UNARY = ("abs", "ceiling", "cos", "elu", "erf", "exp", "floor", "gelu", "hswish", "hsigmoid", "log_softmax")
_UNARY += ("mish", "negative", "relu", "sigmoid", "sin", "softplus", "softsign", "sqrt_abs", "swish", "tanh")
_LARGEST_FLOPS = 3e9
# Sizes are at most this share of the largest. What small networks take is mostly the beginning of kernels.
_SCALES = (1.0, 1.0, 0.3, 0.12)


def random_blocks(seed: int, weight_type: type = np.float32) -> ov.Model:
    """One network; the same seed gives the same one."""
    return _Drawn(seed, weight_type).network()


class _Drawn:
    """A network in the making."""

    def __init__(self, seed: int, weight_type: type) -> None:
        self.random = np.random.default_rng((seed, 77))
        self.scale = float(pick(np.random.default_rng((seed, 78)), _SCALES))
        self.net = NetworkBuilder(seed, weight_type)
        self.count = 0

    def network(self) -> ov.Model:
        kind = pick(self.random, ("image", "image", "tokens", "tokens", "rows"))
        depth = int(np.exp(self.random.uniform(np.log(2), np.log(14 if self.scale == 1 else 28))))
        x, blocks = {"image": (_image, _IMAGE), "tokens": (_tokens, _TOKENS), "rows": (_rows, _ROWS)}[kind]
        y = x(self)
        ends: list[Node] = []
        # A few kinds make up a network, which repeats them.
        kinds = [pick(self.random, blocks) for _ in range(int(self.random.integers(1, 5)))]
        for _ in range(depth):
            y = self.scoped(pick(self.random, kinds), y)
            if chance(self.random, 0.04):
                ends.append(y)
        heads = {"image": _image_head, "tokens": _token_head, "rows": _row_head}
        y = self.scoped(heads[kind], y)
        outputs = {f"output{i}": end for i, end in enumerate([y, *ends])}
        return self.net.model(f"random_{kind}", outputs)

    def scoped(self, block: Block, x: Node) -> Node:
        self.count += 1
        with self.net.scope(f"{block.__name__.strip('_')}{self.count}"):
            return block(self, x)

    def named(self, node: ov.Node) -> ov.Node:
        self.count += 1
        return self.net.named(node, f"{node.get_type_name().lower()}{self.count}")

    def size(self, low: float, high: float, multiple: int = 1) -> int:
        """Log-uniform, mostly a multiple of eight where it is large enough."""
        high = max(low, round(self.scale * high))
        value = int(np.exp(self.random.uniform(np.log(low), np.log(high))))
        step = multiple if multiple > 1 else 8 if value >= 16 and chance(self.random, 0.8) else 1
        return max(step, value // step * step)

    def number(self, value: float) -> ov.Node:
        return self.net.constant(f"number{self._next()}", value, np.float32)

    def ints(self, values: object) -> ov.Node:
        return self.net.constant(f"ints{self._next()}", values)

    def dense(self, x: Node, width: int, bias: bool | None = None) -> ov.Node:
        bias = chance(self.random, 0.8) if bias is None else bias
        return self.net.dense(x, width, bias=bias, name=f"dense{self._next()}")

    def conv(self, x: Node, channels: int, kernel: int, **settings: object) -> ov.Node:
        return self.net.conv(x, channels, kernel, name=f"conv{self._next()}", **settings)

    def activated(self, x: Node, kind: str | None = None) -> ov.Node:
        return _activation(self, x, kind or pick(self.random, _UNARY))

    def usual(self, x: Node) -> ov.Node:
        """One of the activations that most networks have."""
        return self.activated(
            x, pick(self.random, ("relu", "relu", "swish", "gelu", "hswish", "sigmoid", "tanh"))
        )

    def normed(self, x: Node) -> ov.Node:
        return pick(self.random, (_layer_norm, _layer_norm, _written_layer_norm, _rms_norm))(self, x)

    def _next(self) -> int:
        self.count += 1
        return self.count


def _dims(x: Node) -> list[int]:
    output = x if isinstance(x, ov.Output) else x.output(0)
    return list(output.get_shape())


def _activation(d: _Drawn, x: Node, kind: str) -> ov.Node:
    n = d.named
    if kind == "swish" and chance(d.random, 0.5):
        return n(ops.multiply(x, n(ops.sigmoid(x))))
    if kind == "hswish" and chance(d.random, 0.5):
        gate = n(ops.clamp(n(ops.add(x, d.number(3.0))), 0.0, 6.0))
        return n(ops.multiply(n(ops.multiply(x, gate)), d.number(1 / 6)))
    if kind == "gelu" and chance(d.random, 0.4):
        half = n(ops.erf(n(ops.multiply(x, d.number(0.7071)))))
        return n(ops.multiply(n(ops.multiply(x, n(ops.add(half, d.number(1.0))))), d.number(0.5)))
    if kind == "sqrt_abs":
        return n(ops.sqrt(n(ops.add(n(ops.abs(x)), d.number(1e-3)))))
    made: dict[str, Callable[[], ov.Node]] = {
        "elu": lambda: ops.elu(x, 1.0),
        "gelu": lambda: ops.gelu(x, pick(d.random, ("erf", "tanh"))),
        "log_softmax": lambda: ops.log_softmax(x, -1),
    }
    return n(made[kind]() if kind in made else getattr(ops, kind)(x))


def _layer_norm(d: _Drawn, x: Node) -> ov.Node:
    return d.net.layer_norm(x, name=f"norm{d._next()}")


def _written_layer_norm(d: _Drawn, x: Node) -> ov.Node:
    n, axis = d.named, d.ints([-1])
    centred = n(ops.subtract(x, n(ops.reduce_mean(x, axis, True))))
    variance = n(ops.reduce_mean(n(ops.multiply(centred, centred)), axis, True))
    scale = n(ops.sqrt(n(ops.add(variance, d.number(1e-5)))))
    width = _dims(x)[-1]
    y = n(
        ops.multiply(n(ops.divide(centred, scale)), d.net.normal(f"gain{d._next()}", (width,), 0.1, mean=1.0))
    )
    return n(ops.add(y, d.net.normal(f"shift{d._next()}", (width,), 0.1)))


def _rms_norm(d: _Drawn, x: Node) -> ov.Node:
    n = d.named
    mean = n(ops.reduce_mean(n(ops.power(x, d.number(2.0))), d.ints([-1]), True))
    y = n(ops.multiply(x, n(ops.divide(d.number(1.0), n(ops.sqrt(n(ops.add(mean, d.number(1e-6)))))))))
    return n(ops.multiply(y, d.net.normal(f"gain{d._next()}", (_dims(x)[-1],), 0.1, mean=1.0)))


# Images.


def _image(d: _Drawn) -> Node:
    side, channels = d.size(8, 160), pick(d.random, (1, 3, 3, 3, d.size(4, 64)))
    x: Node = d.net.input("image", (1, channels, side, d.size(8, 160) if chance(d.random, 0.2) else side))
    if chance(d.random, 0.5):
        x = d.named(ops.multiply(d.named(ops.subtract(x, d.number(0.4))), d.number(3.9)))
    return d.usual(d.conv(x, d.size(8, 64), pick(d.random, (3, 3, 5, 7)), stride=pick(d.random, (1, 2))))


def _bounded(d: _Drawn, x: Node, kernel: int) -> int:
    """Output channels that keep a convolution below some work."""
    _, channels, height, width = _dims(x)
    wanted = d.size(8, 512)
    most = _LARGEST_FLOPS / (2 * kernel * kernel * channels * height * width) / 10
    return max(4, min(wanted, int(most) // 4 * 4))


def _plain(d: _Drawn, x: Node) -> Node:
    kernel = pick(d.random, (1, 1, 3, 3, 3, 5))
    stride = 2 if min(_dims(x)[2:]) >= 8 and chance(d.random, 0.25) else 1
    y = d.conv(x, _bounded(d, x, kernel), kernel, stride=stride)
    if chance(d.random, 0.15):  # a normalisation that was not folded into the weights
        channels = _dims(y)[1]
        y = d.named(ops.multiply(y, d.net.normal(f"gain{d._next()}", (1, channels, 1, 1), 0.1, mean=1.0)))
        y = d.named(ops.add(y, d.net.normal(f"shift{d._next()}", (1, channels, 1, 1), 0.1)))
    return d.usual(y) if chance(d.random, 0.9) else y


def _residual(d: _Drawn, x: Node) -> Node:
    channels = _dims(x)[1]
    inner = max(4, int(channels * pick(d.random, (0.25, 0.5, 1.0))))
    y = d.usual(d.conv(x, inner, pick(d.random, (1, 3))))
    y = d.conv(y, channels, 3, gain=0.2)
    return d.usual(d.named(ops.add(y, x)))


def _inverted(d: _Drawn, x: Node) -> Node:
    channels = _dims(x)[1]
    inner = min(channels * pick(d.random, (1, 2, 4, 6)), 768)
    stride = 2 if min(_dims(x)[2:]) >= 8 and chance(d.random, 0.3) else 1
    y = d.usual(d.conv(x, inner, 1)) if inner != channels else x
    y = d.usual(d.conv(y, inner, pick(d.random, (3, 5, 7)), groups=inner, stride=stride))
    if chance(d.random, 0.4):
        y = _squeeze(d, y)
    out = channels if stride == 1 else _bounded(d, y, 1)
    y = d.conv(y, out, 1, gain=0.2)
    return d.named(ops.add(y, x)) if stride == 1 else y


def _squeeze(d: _Drawn, x: Node) -> Node:
    channels, n = _dims(x)[1], d.named
    mean = n(ops.reduce_mean(x, d.ints([2, 3]), True))
    gate = d.usual(d.conv(mean, max(4, channels // pick(d.random, (4, 8, 16))), 1))
    gate = d.activated(d.conv(gate, channels, 1), pick(d.random, ("sigmoid", "hsigmoid")))
    return n(ops.multiply(x, gate))


def _branches(d: _Drawn, x: Node) -> Node:
    ends: list[Node] = []
    for _ in range(int(d.random.integers(2, 6))):
        y = x
        for _ in range(int(d.random.integers(1, 4))):
            y = pick(d.random, (_plain_same, _plain_same, _pooled))(d, y)
        ends.append(y)
    return d.named(ops.concat(ends, 1))


def _plain_same(d: _Drawn, x: Node) -> Node:
    kernel = pick(d.random, (1, 3, 3, 5))
    return d.usual(d.conv(x, min(_bounded(d, x, kernel), 128), kernel))


def _pooled(d: _Drawn, x: Node) -> Node:
    pool = pick(d.random, (d.net.max_pool, d.net.avg_pool))
    return pool(x, 3, 1, 1, name=f"pool{d._next()}")


def _shrink(d: _Drawn, x: Node) -> Node:
    if min(_dims(x)[2:]) < 6:
        return _plain(d, x)
    pool = pick(d.random, (d.net.max_pool, d.net.max_pool, d.net.avg_pool))
    return pool(x, pick(d.random, (2, 3)), 2, 0, name=f"pool{d._next()}")


def _dense_block(d: _Drawn, x: Node) -> Node:
    for _ in range(int(d.random.integers(1, 4))):
        if _dims(x)[1] > 512:
            break
        y = d.conv(d.usual(x), pick(d.random, (8, 16, 32)), 3)
        x = d.named(ops.concat([x, y], 1))
    return x


def _shuffled(d: _Drawn, x: Node) -> Node:
    _, channels, height, width = _dims(x)
    if channels % 2:
        return _plain(d, x)
    left, right = d.named(ops.split(x, d.ints(1), 2)).outputs()
    y = d.usual(d.conv(right, channels // 2, 1))
    y = d.usual(d.conv(d.conv(y, channels // 2, 3, groups=channels // 2), channels // 2, 1))
    y = d.named(ops.concat([left, y], 1))
    y = d.named(ops.reshape(y, d.ints([1, 2, channels // 2, height, width]), False))
    y = d.named(ops.transpose(y, d.ints([0, 2, 1, 3, 4])))
    return d.named(ops.reshape(y, d.ints([1, channels, height, width]), False))


def _enlarged(d: _Drawn, x: Node) -> Node:
    _, channels, height, width = _dims(x)
    if height * width * channels > 1 << 18:
        return _shrink(d, x)
    if chance(d.random, 0.3):
        weight = d.net.normal(f"weight{d._next()}", (channels, max(4, channels // 2), 2, 2), 0.05)
        return d.usual(
            d.named(ops.convolution_backprop_data(x, weight, [2, 2], None, [0, 0], [0, 0], [1, 1]))
        )
    mode = pick(d.random, ("nearest", "linear_onnx"))
    y = ops.interpolate(x, d.number([2.0, 2.0]), mode, "scales", axes=d.ints([2, 3]))
    return d.usual(d.conv(d.named(y), min(_bounded(d, y, 3), channels), 3))


def _gated_image(d: _Drawn, x: Node) -> Node:
    channels = _dims(x)[1]
    gate = d.activated(d.conv(x, channels, 1), "sigmoid")
    return d.named(ops.multiply(d.conv(x, channels, 3), gate))


def _instance_norm(d: _Drawn, x: Node) -> Node:
    channels = _dims(x)[1]
    y = d.named(ops.mvn(x, d.ints([2, 3]), True, 1e-5, "INSIDE_SQRT"))
    y = d.named(ops.multiply(y, d.net.normal(f"gain{d._next()}", (1, channels, 1, 1), 0.1, mean=1.0)))
    return d.usual(d.named(ops.add(y, d.net.normal(f"shift{d._next()}", (1, channels, 1, 1), 0.1))))


def _channels_last(d: _Drawn, x: Node) -> Node:
    """A block of ConvNeXt's kind: a depthwise convolution, and a perceptron over channels that lie last."""
    channels = _dims(x)[1]
    y = d.conv(x, channels, pick(d.random, (3, 7)), groups=channels)
    y = d.normed(d.named(ops.transpose(y, d.ints([0, 2, 3, 1]))))
    y = d.dense(d.usual(d.dense(y, min(channels * 4, 512))), channels)
    return d.named(ops.add(d.named(ops.transpose(y, d.ints([0, 3, 1, 2]))), x))


def _image_head(d: _Drawn, x: Node) -> Node:
    if chance(d.random, 0.3):
        return d.conv(x, d.size(1, 32), 1)
    y = d.net.global_average(x, name=f"mean{d._next()}")
    y = d.dense(y, d.size(2, 1000))
    return d.named(ops.softmax(y, -1)) if chance(d.random, 0.5) else y


# Tokens.


def _tokens(d: _Drawn) -> Node:
    length, width = d.size(1, 256), d.size(16, 512, pick(d.random, (8, 16, 32)))
    if chance(d.random, 0.5):
        ids = d.net.input("ids", (1, length), np.int64)
        x = d.net.embedding(ids, d.size(50, 5000), width, name="words")
        places = d.net.normal("places", (1, length, width), 1.0)
        return d.normed(d.named(ops.add(x, places)))
    return d.dense(d.net.input("features", (1, length, d.size(4, 128))), width)


def _heads(d: _Drawn, width: int) -> int:
    return pick(d.random, [h for h in (1, 2, 4, 8, 12, 16) if width % h == 0 and width // h >= 4] or [1])


def _split_heads(d: _Drawn, x: Node, heads: int) -> Node:
    _, length, width = _dims(x)
    y = d.named(ops.reshape(x, d.ints([1, length, heads, width // heads]), False))
    return d.named(ops.transpose(y, d.ints([0, 2, 1, 3])))


def _attention(d: _Drawn, x: Node) -> Node:
    _, length, width = _dims(x)
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
            scores = n(ops.add(scores, d.net.normal(f"mask{d._next()}", (1, 1, length, length), 0.1)))
        y = n(ops.matmul(n(ops.softmax(scores, -1)), v, False, False))
    y = n(ops.reshape(n(ops.transpose(y, d.ints([0, 2, 1, 3]))), d.ints([1, length, width]), False))
    y = n(ops.add(d.dense(y, width), x))
    return y if before else d.normed(y)


def _rotated(d: _Drawn, x: Node) -> Node:
    """Rotary embeddings, written out."""
    _, _, length, width = _dims(x)
    if width % 2:
        return x
    n, half = d.named, width // 2
    first, second = n(ops.split(x, d.ints(3), 2)).outputs()
    turned = n(ops.concat([n(ops.negative(second)), first], 3))
    cos, sin = (d.net.normal(f"turn{d._next()}", (1, 1, length, 2 * half), 1.0) for _ in range(2))
    return n(ops.add(n(ops.multiply(x, cos)), n(ops.multiply(turned, sin))))


def _perceptron(d: _Drawn, x: Node) -> Node:
    width = _dims(x)[-1]
    before = chance(d.random, 0.6)
    y = d.normed(x) if before else x
    inner = min(width * pick(d.random, (1, 2, 3, 4)), 2048)
    if chance(d.random, 0.3):
        y = d.named(ops.multiply(d.activated(d.dense(y, inner), "swish"), d.dense(y, inner)))
    else:
        y = d.usual(d.dense(y, inner))
    y = d.named(ops.add(d.dense(y, width), x))
    return y if before else d.normed(y)


def _sequence(d: _Drawn, x: Node) -> Node:
    """LSTM and GRU sequences in one direction or two."""
    _, length, width = _dims(x)
    n, hidden = d.named, d.size(8, 256, 8)
    directions = pick(d.random, (1, 1, 2))
    is_lstm = chance(d.random, 0.5)
    gates = 4 if is_lstm else 3
    zeros = d.net.zeros(f"zero{d._next()}", (1, directions, hidden))
    w, r = (d.net.normal(f"weight{d._next()}", (directions, gates * hidden, k), 0.1) for k in (width, hidden))
    b = d.net.normal(f"bias{d._next()}", (directions, gates * hidden), 0.1)
    lengths = d.net.constant(f"length{d._next()}", [length], np.int32)
    direction = "bidirectional" if directions == 2 else "forward"
    if is_lstm:
        y = ops.lstm_sequence(x, zeros, zeros, lengths, w, r, b, hidden, direction)
    else:
        y = ops.gru_sequence(x, zeros, lengths, w, r, b, hidden, direction)
    y = n(ops.transpose(n(y).output(0), d.ints([0, 2, 1, 3])))
    y = n(ops.reshape(y, d.ints([1, length, directions * hidden]), False))
    return d.dense(y, width) if chance(d.random, 0.6) else y


def _scan(d: _Drawn, x: Node) -> Node:
    """A state space, step by step in a TensorIterator."""
    _, length, width = _dims(x)
    n = d.named
    body_x, body_h = ops.parameter([1, 1, width], np.float32), ops.parameter([1, 1, width], np.float32)
    decay = ops.constant(np.full((1, 1, width), 0.9, np.float32))
    h = ops.add(ops.multiply(body_h, decay), body_x)
    y = ops.multiply(h, ops.sigmoid(body_x)) if chance(d.random, 0.5) else ops.relu(h)
    body = ov.Model([h, y], [body_x, body_h], "body")
    loop = ops.tensor_iterator()
    loop.set_body(body)
    loop.set_sliced_input(body_x, x.output(0) if isinstance(x, ov.Node) else x, 0, 1, 1, -1, 1)
    zero = d.net.zeros(f"zero{d._next()}", (1, 1, width))
    loop.set_merged_input(body_h, zero.output(0), h.output(0))
    out = loop.get_concatenated_slices(y.output(0), 0, 1, 1, -1, 1)
    n(loop)
    return d.dense(out, width) if length else out


def _convolved(d: _Drawn, x: Node) -> Node:
    """Convolutions in time over tokens."""
    _, _, width = _dims(x)
    y = d.named(ops.transpose(x, d.ints([0, 2, 1])))
    kernel = pick(d.random, (3, 5, 7, 15))
    if chance(d.random, 0.5):
        y = d.usual(d.conv(y, width, kernel, groups=width))
    else:
        y = d.usual(d.conv(y, width, 3, dilation=pick(d.random, (1, 2, 4)), causal=chance(d.random, 0.5)))
    return d.named(ops.add(d.named(ops.transpose(y, d.ints([0, 2, 1]))), x))


def _mixed_tokens(d: _Drawn, x: Node) -> Node:
    """A perceptron over the tokens, as in MLP-Mixer."""
    length = _dims(x)[1]
    y = d.named(ops.transpose(d.normed(x), d.ints([0, 2, 1])))
    y = d.dense(d.usual(d.dense(y, min(2 * length, 256))), length)
    return d.named(ops.add(d.named(ops.transpose(y, d.ints([0, 2, 1]))), x))


def _pointwise(d: _Drawn, x: Node) -> Node:
    """A run of operations element by element."""
    y: Node = x
    for _ in range(int(d.random.integers(1, 8))):
        if chance(d.random, 0.5):
            y = d.activated(y)
        else:
            other = d.number(float(d.random.uniform(0.5, 2.0))) if chance(d.random, 0.6) else x
            y = d.named(pick(d.random, (ops.add, ops.multiply, ops.subtract, ops.maximum))(y, other))
    return y


def _selected(d: _Drawn, x: Node) -> Node:
    """Parts of a tensor put together anew: slices, gathers, reductions, comparisons."""
    n, dims = d.named, _dims(x)
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


def _token_head(d: _Drawn, x: Node) -> Node:
    if chance(d.random, 0.4):
        return d.dense(d.normed(x), d.size(2, 4000))
    first = d.named(ops.gather(x, d.ints(0), d.ints(1)))
    return d.activated(d.dense(first, d.size(2, 500)), pick(d.random, ("tanh", "sigmoid", "relu")))


# What converters write now and then, on a tensor of any rank whose shape it keeps.


def _compared(d: _Drawn, x: Node) -> Node:
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


def _computed(d: _Drawn, x: Node) -> Node:
    """Functions of elements that are no activations."""
    n = d.named
    if chance(d.random, 0.5):
        binary = pick(d.random, (ops.minimum, ops.squared_difference, ops.floor_mod, ops.mod, ops.divide))
        return n(binary(x, d.number(0.7)))
    if chance(d.random, 0.5):
        return n(ops.prelu(x, d.net.normal(f"slope{d._next()}", (_dims(x)[1],), 0.1)))
    unary = pick(d.random, (ops.log, ops.sign, ops.tan, ops.atan, ops.sinh, ops.asinh))
    return n(unary(n(ops.add(n(ops.abs(x)), d.number(0.1)))))


def _reduced(d: _Drawn, x: Node) -> Node:
    """A reduction that comes back by a broadcast, and normalisations and sums along an axis."""
    n, dims = d.named, _dims(x)
    at = int(d.random.integers(1, len(dims)))
    axis = d.ints([at])
    reduce = pick(d.random, (ops.reduce_sum, ops.reduce_max, ops.reduce_min, ops.reduce_prod, ops.reduce_l1))
    kind = pick(d.random, ("broadcast", "squeeze", "cumsum", "norm"))
    if kind == "broadcast":
        return n(ops.add(x, n(ops.broadcast(n(reduce(x, axis, True)), d.ints(dims)))))
    if kind == "squeeze":
        return n(ops.add(x, n(ops.unsqueeze(n(ops.squeeze(n(reduce(x, axis, True)), axis)), axis))))
    return n(ops.cum_sum(x, d.ints(at))) if kind == "cumsum" else n(ops.normalize_l2(x, axis, 1e-6, "add"))


def _moved(d: _Drawn, x: Node) -> Node:
    """Elements at other places: parts, rolls, indices, padding, the largest ones."""
    n, dims = d.named, _dims(x)
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


def _halved(d: _Drawn, x: Node) -> Node:
    """Slices along any axis, of which one changes the other, put together again."""
    n, dims = d.named, _dims(x)
    axes = [axis for axis, size in enumerate(dims) if size > 1 and size % 2 == 0]
    if not axes:
        return _computed(d, x)
    axis = pick(d.random, axes)
    half, size, at, one = (d.ints([k]) for k in (dims[axis] // 2, dims[axis], axis, 1))
    first, second = n(ops.slice(x, d.ints([0]), half, one, at)), n(ops.slice(x, half, size, one, at))
    if chance(d.random, 0.5):
        second = n(pick(d.random, (ops.add, ops.multiply))(first, second))
    return n(ops.concat([first, second], axis))


def _of_another_rank(d: _Drawn, x: Node) -> Node:
    """Ops on the same elements under another shape: an axis in two, a new one, or two as one."""
    n, dims = d.named, _dims(x)
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


def _branched(d: _Drawn, x: Node) -> Node:
    """An If that the mean decides."""
    n, dims = d.named, _dims(x)
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


def _image_only(d: _Drawn, x: Node) -> Node:
    """Ops that know which axes are the picture's."""
    n, dims = d.named, _dims(x)
    kind = pick(d.random, ("groups", "grid", "adaptive", "across", "resized"))
    if kind == "groups":
        groups = pick(d.random, [g for g in (1, 2, 4, 8) if dims[1] % g == 0])
        scale = [d.net.normal(f"scale{d._next()}", (dims[1],), 0.1, mean=1.0) for _ in range(2)]
        return n(ops.group_normalization(x, *scale, groups, 1e-5))
    if kind == "grid":
        grid = d.net.normal(f"grid{d._next()}", (1, *dims[2:], 2), 0.5)
        return n(ops.grid_sample(x, grid, {"mode": pick(d.random, ("bilinear", "nearest"))}))
    if kind == "adaptive":
        return n(ops.add(x, n(ops.adaptive_avg_pool(x, d.ints([1, 1])))))
    if kind == "across":
        return n(ops.lrn(x, d.ints([1]), 1e-4, 0.75, 1.0, 5))
    mode = pick(d.random, ("nearest", "linear", "linear_onnx", "cubic"))
    for size in ([max(1, side // 2) for side in dims[2:]], dims[2:]):
        x = n(ops.interpolate(x, d.ints(size), mode, "sizes", axes=d.ints([2, 3])))
    return x


def _tokens_only(d: _Drawn, x: Node) -> Node:
    """Ops that know which axis is time."""
    _, length, width = _dims(x)
    if chance(d.random, 0.4):
        return d.named(ops.reverse_sequence(x, d.ints([length]), 0, 1))
    weight = d.net.normal(f"weight{d._next()}", (width, width), width**-0.5)
    return d.named(ops.einsum([x, weight], "btc,cd->btd"))


# Rows.


def _rows(d: _Drawn) -> Node:
    return d.net.input("rows", (d.size(1, 512), d.size(4, 512)))


def _layer(d: _Drawn, x: Node) -> Node:
    y = d.usual(d.dense(x, d.size(8, 1024)))
    return d.normed(y) if chance(d.random, 0.2) else y


def _skipping(d: _Drawn, x: Node) -> Node:
    width = _dims(x)[-1]
    return d.named(ops.add(d.dense(d.usual(d.dense(x, width)), width), x))


def _crossed(d: _Drawn, x: Node) -> Node:
    """A layer of DCN: every column times a mix of all of them."""
    width = _dims(x)[-1]
    return d.named(ops.add(d.named(ops.multiply(d.dense(x, width), x)), x))


def _experts(d: _Drawn, x: Node) -> Node:
    count, width = int(d.random.integers(2, 7)), d.size(8, 256)
    shares = d.named(ops.softmax(d.dense(x, count), -1))
    parts = d.named(ops.split(shares, d.ints(1), count)).outputs()
    ends = [d.named(ops.multiply(d.usual(d.dense(x, width)), part)) for part in parts]
    while len(ends) > 1:
        ends = [d.named(ops.add(ends[0], ends[1])), *ends[2:]]
    return ends[0]


def _towers(d: _Drawn, x: Node) -> Node:
    ends = [d.usual(d.dense(x, d.size(8, 256))) for _ in range(int(d.random.integers(2, 6)))]
    return d.named(ops.concat(ends, -1))


def _waves(d: _Drawn, x: Node) -> Node:
    """Sines and cosines of several frequencies, as radiance fields encode points."""
    if _dims(x)[-1] > 256:
        return _layer(d, x)
    scaled = [d.named(ops.multiply(x, d.number(2.0**i))) for i in range(int(d.random.integers(1, 4)))]
    ends = [d.named(wave(y)) for y in scaled for wave in (ops.sin, ops.cos)]
    return d.named(ops.concat([x, *ends], -1))


def _row_head(d: _Drawn, x: Node) -> Node:
    return d.activated(d.dense(x, d.size(1, 100)), pick(d.random, ("sigmoid", "tanh", "log_softmax")))


_ANY: tuple[Block, ...] = (_compared, _computed, _reduced, _moved, _halved, _of_another_rank, _branched)
_IMAGE: tuple[Block, ...] = (_plain, _plain, _residual, _inverted, _squeeze, _branches, _shrink, _dense_block)
_IMAGE += (_shuffled, _enlarged, _gated_image, _instance_norm, _channels_last, _pointwise, _image_only, *_ANY)
_TOKENS: tuple[Block, ...] = (_attention, _attention, _perceptron, _perceptron, _sequence, _scan, _convolved)
_TOKENS += (_mixed_tokens, _pointwise, _selected, _tokens_only, *_ANY)
_ROWS: tuple[Block, ...] = (_layer, _layer, _skipping, _crossed, _experts, _towers, _waves, _pointwise, *_ANY)
