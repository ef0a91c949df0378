"""Small random models with what makes cuts go wrong: dynamic and bounded dimensions, computed shapes, state,
data-dependent sizes, If and Loop, compressed weights."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import openvino as ov
import openvino.opset13 as ops

__all__ = ["RandomModel", "random_dynamic_model"]

_WIDTH = 8
_KINDS = (
    "dense", "dense", "relu", "add", "heads", "flatten", "computed_slice", "scaled_size", "topk", "concat",
    "broadcast", "interpolate", "nonzero", "nms", "state", "branch", "loop", "compressed", "softmax",
    "gather", "split", "pad", "range", "tile", "onehot",
)  # fmt: skip


class RandomModel(NamedTuple):
    """A model, and shapes of its inputs by name."""

    model: ov.Model
    shapes: dict[str, list[int]]


class _Builder:
    """All values that wander from op to op have the shape [batch, rows, 8], of which two may be unknown."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.serial = 0
        self.sinks: list[ov.Node] = []
        self.extra: list[ov.Output] = []

    def named(self, node: ov.Node, what: str) -> ov.Output:
        self.serial += 1
        node.set_friendly_name(f"{what}{self.serial}")
        return node.output(0)

    def weights(self, *shape: int) -> ov.Node:
        return ops.constant((self.random.standard_normal(shape) / np.sqrt(shape[0])).astype(np.float32))

    def ints(self, *values: int) -> ov.Node:
        return ops.constant(np.array(values, np.int64))

    def size(self, x: ov.Output, axis: int) -> ov.Output:
        """One element of the shape of ``x``, int64[1], read in one of the ways in which frontends read it."""
        shape = self.named(ops.shape_of(x, "i64" if self.random.random() < 0.7 else "i32"), "shape")
        if shape.get_element_type() != ov.Type.i64:
            shape = self.named(ops.convert(shape, "i64"), "wide")
        if self.random.random() < 0.5:
            return self.named(ops.gather(shape, self.ints(axis), ops.constant(np.int64(0))), "size")
        return self.named(ops.slice(shape, self.ints(axis), self.ints(axis + 1), self.ints(1)), "size")

    def grow(self, x: ov.Output, y: ov.Output) -> ov.Output:
        kind = str(self.random.choice(_KINDS))
        return getattr(self, kind)(x, y)

    def dense(self, x: ov.Output, _: ov.Output) -> ov.Output:
        return self.named(ops.matmul(x, self.weights(_WIDTH, _WIDTH), False, False), "dense")

    def compressed(self, x: ov.Output, _: ov.Output) -> ov.Output:
        stored = ops.constant(self.random.integers(-127, 127, (_WIDTH, _WIDTH)).astype(np.int8))
        whole = ops.multiply(ops.convert(stored, "f32"), ops.constant(np.float32(0.004)))
        return self.named(ops.matmul(x, whole, False, False), "compressed")

    def relu(self, x: ov.Output, _: ov.Output) -> ov.Output:
        return self.named(ops.relu(x) if self.random.random() < 0.5 else ops.tanh(x), "unary")

    def softmax(self, x: ov.Output, _: ov.Output) -> ov.Output:
        return self.named(ops.softmax(x, 2), "softmax")

    def _like(self, x: ov.Output, y: ov.Output) -> ov.Output:
        """``y`` in the shape of ``x``: the size of an average row, spread."""
        row = self.named(ops.reduce_mean(y, self.ints(0, 1), True), "mean")
        if self.random.random() < 0.5:
            return row
        shape = self.named(ops.shape_of(x), "shape")
        return self.named(ops.broadcast(row, shape), "spread")

    def add(self, x: ov.Output, y: ov.Output) -> ov.Output:
        return self.named(ops.add(x, self._like(x, y)), "add")

    def broadcast(self, x: ov.Output, y: ov.Output) -> ov.Output:
        return self.named(ops.multiply(x, self.named(ops.sigmoid(self._like(x, y)), "gate")), "gated")

    def heads(self, x: ov.Output, _: ov.Output) -> ov.Output:
        batch, rows = self.size(x, 0), self.size(x, 1)
        split = self.named(ops.concat([batch, rows, self.ints(2, 4)], 0), "split_shape")
        parts = self.named(ops.reshape(x, split, False), "heads")
        turned = self.named(ops.transpose(parts, self.ints(0, 2, 1, 3)), "turned")
        scores = self.named(
            ops.softmax(self.named(ops.matmul(turned, turned, False, True), "scores"), 3), "weights"
        )
        mixed = self.named(
            ops.transpose(self.named(ops.matmul(scores, turned, False, False), "mix"), self.ints(0, 2, 1, 3)),
            "back",
        )
        last = -1 if self.random.random() < 0.5 else _WIDTH
        join = self.named(ops.concat([batch, rows, self.ints(last)], 0), "join_shape")
        return self.named(ops.reshape(mixed, join, False), "joined")

    def flatten(self, x: ov.Output, _: ov.Output) -> ov.Output:
        flat = self.named(ops.reshape(x, self.ints(-1, _WIDTH), False), "flat")
        y = self.dense(flat, flat)
        shape = self.named(ops.concat([self.size(x, 0), self.ints(-1, _WIDTH)], 0), "unflat_shape")
        return self.named(ops.reshape(y, shape, False), "unflat")

    def computed_slice(self, x: ov.Output, _: ov.Output) -> ov.Output:
        stop = self.size(x, 1)
        if self.random.random() < 0.5:  # never empty
            stop = self.named(
                ops.maximum(self.named(ops.subtract(stop, self.ints(1)), "less"), self.ints(1)), "stop"
            )
        return self.named(ops.slice(x, self.ints(0), stop, self.ints(1), self.ints(1)), "slice")

    def scaled_size(self, x: ov.Output, _: ov.Output) -> ov.Output:
        """A size that goes through floats and back, as in resizing by a factor."""
        rows = self.named(ops.convert(self.size(x, 1), "f32"), "float_size")
        more = self.named(ops.multiply(rows, ops.constant(np.float32([1.5]))), "scaled")
        count = self.named(ops.convert(self.named(ops.ceiling(more), "ceil"), "i64"), "count")
        ordinal = self.named(
            ops.range(
                ops.constant(np.int64(0)),
                self.named(ops.squeeze(count, self.ints(0)), "stop"),
                ops.constant(np.int64(1)),
                "i64",
            ),
            "range",
        )
        rows_again = self.size(x, 1)
        index = self.named(ops.mod(ordinal, rows_again), "index")
        return self.named(ops.gather(x, index, ops.constant(np.int64(1))), "resized")

    def interpolate(self, x: ov.Output, _: ov.Output) -> ov.Output:
        image = self.named(ops.unsqueeze(x, self.ints(1)), "image")
        sizes = self.named(
            ops.multiply(
                self.named(ops.concat([self.size(x, 1), self.ints(_WIDTH)], 0), "sizes"), self.ints(2, 1)
            ),
            "twice",
        )
        large = ops.interpolate(image, sizes, "nearest", "sizes", axes=self.ints(2, 3))
        large.set_friendly_name(f"interpolate{self.serial}")
        pooled = self.named(ops.max_pool(large, [2, 1], [1, 1], [0, 0], [0, 0], [2, 1], "floor"), "pool")
        return self.named(ops.squeeze(pooled, self.ints(1)), "image_row")

    def topk(self, x: ov.Output, _: ov.Output) -> ov.Output:
        return self.named(ops.topk(x, ops.constant(np.int64(_WIDTH)), 2, "max", "value"), "topk")

    def concat(self, x: ov.Output, y: ov.Output) -> ov.Output:
        both = self.named(ops.concat([x, self._spread(x, y)], 2), "concat")
        return self.named(ops.matmul(both, self.weights(2 * _WIDTH, _WIDTH), False, False), "half")

    def _spread(self, x: ov.Output, y: ov.Output) -> ov.Output:
        row = self.named(ops.reduce_mean(y, self.ints(0, 1), True), "mean")
        target = self.named(ops.concat([self.size(x, 0), self.size(x, 1), self.ints(_WIDTH)], 0), "target")
        return self.named(ops.broadcast(row, target), "spread")

    def nonzero(self, x: ov.Output, _: ov.Output) -> ov.Output:
        """The rows whose mean is positive, and one more row so that there always is one."""
        row = self.named(ops.reduce_mean(x, self.ints(0, 2), False), "score")
        places = self.named(
            ops.non_zero(self.named(ops.greater(row, ops.constant(np.float32(0))), "positive"), "i64"),
            "nonzero",
        )
        index = self.named(ops.squeeze(places, self.ints(0)), "places")
        index = self.named(ops.concat([index, self.ints(0)], 0), "some")
        return self.named(ops.gather(x, index, ops.constant(np.int64(1))), "chosen")

    def nms(self, x: ov.Output, _: ov.Output) -> ov.Output:
        one = self.named(ops.gather(x, self.ints(0), ops.constant(np.int64(0))), "one")
        corner = self.named(ops.slice(one, self.ints(0), self.ints(2), self.ints(1), self.ints(2)), "corner")
        far = self.named(
            ops.add(
                self.named(ops.abs(corner), "span"),
                self.named(ops.add(corner, ops.constant(np.float32(0.1))), "far"),
            ),
            "corner2",
        )
        boxes = self.named(ops.concat([corner, far], 2), "boxes")
        scores = self.named(
            ops.transpose(
                self.named(ops.slice(one, self.ints(2), self.ints(3), self.ints(1), self.ints(2)), "score"),
                self.ints(0, 2, 1),
            ),
            "scores",
        )
        kept = ops.non_max_suppression(
            boxes,
            scores,
            ops.constant(np.int64(5)),
            ops.constant(np.float32(0.6)),
            ops.constant(np.float32(-9)),
            output_type="i64",
        )
        kept.set_friendly_name(f"nms{self.serial}")
        index = self.named(
            ops.squeeze(
                ops.slice(kept.output(0), self.ints(2), self.ints(3), self.ints(1), self.ints(1)),
                self.ints(1),
            ),
            "kept",
        )
        return self.named(ops.gather(x, index, ops.constant(np.int64(1))), "best")

    def state(self, x: ov.Output, _: ov.Output) -> ov.Output:
        variable = f"memory{self.serial}"
        old = self.named(ops.read_value(ops.constant(np.zeros((1, 1, _WIDTH), np.float32)), variable), "read")
        mean = self.named(ops.reduce_mean(x, self.ints(0, 1), True), "mean")
        new = self.named(ops.tanh(self.named(ops.add(self.dense(mean, mean), old), "update")), "new")
        sink = ops.assign(new.get_node(), variable)
        self.named(sink, "write")
        self.sinks.append(sink)
        return self.named(ops.add(x, new if self.random.random() < 0.5 else old), "remembered")

    def branch(self, x: ov.Output, _: ov.Output) -> ov.Output:
        shape = x.get_partial_shape()
        inner = [ops.parameter(shape, np.float32) for _ in range(2)]
        then = ov.Model([ops.result(ops.relu(inner[0]))], [inner[0]])
        other = ov.Model([ops.result(ops.tanh(inner[1]))], [inner[1]])
        total = self.named(ops.reduce_sum(x, self.ints(0, 1, 2)), "total")
        node = ops.if_op(self.named(ops.greater(total, ops.constant(np.float32(0))), "choice"))
        node.set_friendly_name(f"if{self.serial}")
        node.set_then_body(then)
        node.set_else_body(other)
        node.set_input(x, inner[0], inner[1])
        return node.set_output(then.results[0], other.results[0])

    def loop(self, x: ov.Output, _: ov.Output) -> ov.Output:
        inner = ops.parameter(x.get_partial_shape(), np.float32)
        step = ops.tanh(ops.matmul(inner, self.weights(_WIDTH, _WIDTH), False, False))
        body = ov.Model([ops.result(ops.constant(np.array(True))), ops.result(step)], [inner])
        node = ops.loop(ops.constant(np.int32(3)), ops.constant(np.array(True)))
        node.set_friendly_name(f"loop{self.serial}")
        node.set_function(body)
        node.set_special_body_ports([-1, 0])
        node.set_merged_input(inner, x, body.results[1].output(0))
        return node.get_iter_value(body.results[1].output(0), -1)

    def gather(self, x: ov.Output, _: ov.Output) -> ov.Output:
        last = self.named(ops.subtract(self.size(x, 1), self.ints(1)), "last")
        row = self.named(ops.gather(x, last, ops.constant(np.int64(1))), "row")
        return self.named(ops.add(x, row), "with_last")

    def split(self, x: ov.Output, _: ov.Output) -> ov.Output:
        halves = ops.split(x, ops.constant(np.int64(2)), 2)
        self.named(halves, "halves")
        return self.named(ops.concat([halves.output(1), halves.output(0)], 2), "swapped")

    def pad(self, x: ov.Output, _: ov.Output) -> ov.Output:
        more = self.named(ops.mod(self.size(x, 1), self.ints(2)), "odd")
        end = self.named(ops.concat([self.ints(0), more, self.ints(0)], 0), "end")
        return self.named(
            ops.pad(x, self.ints(0, 0, 0), end, "constant", ops.constant(np.float32(0))), "padded"
        )

    def range(self, x: ov.Output, _: ov.Output) -> ov.Output:
        rows = self.named(ops.squeeze(self.size(x, 1), self.ints(0)), "rows")
        ordinal = self.named(
            ops.range(ops.constant(np.int64(0)), rows, ops.constant(np.int64(1)), "f32"), "positions"
        )
        return self.named(
            ops.add(x, self.named(ops.unsqueeze(ordinal, self.ints(0, 2)), "grid")), "positioned"
        )

    def tile(self, x: ov.Output, _: ov.Output) -> ov.Output:
        rows = self.named(ops.reduce_mean(x, self.ints(1), True), "mean")
        repeats = self.named(ops.concat([self.ints(1), self.size(x, 1), self.ints(1)], 0), "repeats")
        return self.named(ops.add(x, self.named(ops.tile(rows, repeats), "tile")), "tiled")

    def onehot(self, x: ov.Output, _: ov.Output) -> ov.Output:
        best = ops.topk(x, ops.constant(np.int64(1)), 2, "max", "value")
        self.named(best, "best")
        place = self.named(ops.squeeze(best.output(1), self.ints(2)), "place")
        one = ops.one_hot(
            place,
            ops.constant(np.int64(_WIDTH)),
            ops.constant(np.float32(1)),
            ops.constant(np.float32(0)),
            -1,
        )
        return self.named(ops.add(x, self.named(one, "onehot")), "marked")


def random_dynamic_model(seed: int, size: int = 7) -> RandomModel:
    """A random model of one or two inputs [batch, rows, 8] whose op names are unique.

    Args:
        seed: Of everything.
        size: Number of building blocks, of one to a dozen ops each.
    """
    builder = _Builder(seed)
    random = builder.random
    shapes: dict[str, list[int]] = {}
    parameters = []
    for i in range(int(random.integers(1, 3))):
        batch, rows = int(random.integers(1, 4)), int(random.integers(3, 6))
        dims = [
            [batch, -1, ov.Dimension(1, 4), ov.Dimension(0, 7)][
                int(random.choice(4, p=[0.4, 0.4, 0.15, 0.05]))
            ],
            [rows, -1, ov.Dimension(2, 9)][int(random.choice(3, p=[0.3, 0.55, 0.15]))],
        ]
        shapes[f"input{i}"] = [batch, rows, _WIDTH]
        parameters.append(ops.parameter(ov.PartialShape([*dims, _WIDTH]), np.float32, name=f"input{i}"))
    values = [p.output(0) for p in parameters]
    for _ in range(size):
        x, y = (values[-1 - int(random.integers(min(3, len(values))))] for _ in range(2))
        values.append(builder.grow(x, y))
    unread = [value for value in values if not value.get_target_inputs()]
    results = [ops.result(value, name=f"result{i}") for i, value in enumerate(unread)]
    return RandomModel(ov.Model(results, builder.sinks, parameters, f"dynamic{seed}"), shapes)
