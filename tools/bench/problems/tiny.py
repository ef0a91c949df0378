"""Networks of some tens of microseconds, with the sizes that they are published with and random weights.

The four of MLPerf Tiny (C. Banbury et al., "MLPerf Tiny Benchmark", 2021), and four that score rows of
tables: neural collaborative filtering (X. He et al., 2017), Wide & Deep (H.-T. Cheng et al., 2016), a small
DLRM (M. Naumov et al., 2019) and a classifier of 32 columns.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node


def build(name: str) -> ov.Model:
    """One of :data:`NETWORKS`, for one image, sound or row."""
    return NETWORKS[name](NetworkBuilder(0, np.float32))


def _resnet8(b: NetworkBuilder) -> ov.Model:
    image = b.input("image", [1, 3, 32, 32])
    y = b.conv_relu(image, 16, 3, name="stem")
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        with b.scope(f"block{channels}"):
            long = b.conv(
                b.conv_relu(y, channels, 3, stride=stride, name="first"), channels, 3, name="second"
            )
            short = y if stride == 1 else b.conv(y, channels, 1, stride=stride, name="short")
            y = b.relu(b.add(long, short))
    return b.model("resnet8", {"scores": b.dense(b.global_average(y), 10)})


def _separable(b: NetworkBuilder, y: Node, channels: int, stride: int, name: str) -> Node:
    with b.scope(name):
        inputs = y.output(0).shape[1] if isinstance(y, ov.Node) else y.shape[1]
        y = b.conv_relu(y, inputs, 3, stride=stride, groups=inputs, name="depthwise")
        return b.conv_relu(y, channels, 1, name="pointwise")


def _keyword_spotting(b: NetworkBuilder) -> ov.Model:
    y = b.conv_relu(b.input("features", [1, 1, 49, 10]), 64, (10, 4), stride=2, padding=(5, 1), name="stem")
    for block in range(4):
        y = _separable(b, y, 64, 1, f"block{block}")
    return b.model("keyword_spotting", {"scores": b.dense(b.global_average(y), 12)})


def _visual_wake_words(b: NetworkBuilder) -> ov.Model:
    y: Node = b.conv_relu(b.input("image", [1, 3, 96, 96]), 8, 3, stride=2, name="stem")
    sizes = [(16, 1), (32, 2), (32, 1), (64, 2), (64, 1), (128, 2), *[(128, 1)] * 5, (256, 2), (256, 1)]
    for block, (channels, stride) in enumerate(sizes):
        y = _separable(b, y, channels, stride, f"block{block}")
    return b.model("visual_wake_words", {"scores": b.dense(b.global_average(y), 2)})


def _anomaly_detection(b: NetworkBuilder) -> ov.Model:
    y: Node = b.input("spectrum", [1, 640])
    for layer, width in enumerate((128, 128, 128, 128, 8, 128, 128, 128, 128)):
        y = b.relu(b.dense(y, width, gain=2.0, name=f"dense{layer}"), f"relu{layer}")
    return b.model("anomaly_detection", {"spectrum_again": b.dense(y, 640)})


def _collaborative_filtering(b: NetworkBuilder) -> ov.Model:
    user, item = b.input("user", [1], np.int64), b.input("item", [1], np.int64)
    rows = {"user": (user, 6040), "item": (item, 3706)}
    product = ops.multiply(*(b.embedding(ids, n, 8, name=f"{who}.factors") for who, (ids, n) in rows.items()))
    both = [b.embedding(ids, n, 32, name=f"{who}.features") for who, (ids, n) in rows.items()]
    deep = b.mlp(b.concat(both, -1, "features"), (64, 32, 16, 8), "tower")
    together = b.concat([b.named(product, "product"), deep], -1, "together")
    score = b.named(ops.sigmoid(b.dense(together, 1)), "sigmoid")
    return b.model("collaborative_filtering", {"score": score})


def _wide_and_deep(b: NetworkBuilder) -> ov.Model:
    wide, numbers = b.input("crossed", [1, 100]), b.input("numbers", [1, 13])
    columns = [
        b.embedding(b.input(f"column{i}", [1], np.int64), 1000, 16, name=f"table{i}") for i in range(8)
    ]
    deep = b.mlp(b.concat([numbers, *columns], -1, "columns"), (256, 128, 64), "tower")
    score = b.add(b.dense(deep, 1, name="deep"), b.dense(wide, 1, name="wide"))
    return b.model("wide_and_deep", {"score": b.named(ops.sigmoid(score), "sigmoid")})


def _dlrm(b: NetworkBuilder) -> ov.Model:
    dense = b.mlp(b.input("numbers", [1, 13]), (64, 16), "bottom")
    tables = [b.embedding(b.input(f"column{i}", [1], np.int64), 1000, 16, name=f"table{i}") for i in range(8)]
    rows = [b.reshape(part, [1, 1, 16], f"row{i}") for i, part in enumerate([dense, *tables])]
    stacked = b.named(ops.concat(rows, 1), "stacked")
    products = b.named(ops.matmul(stacked, stacked, False, True), "products")
    known = b.concat([dense, b.reshape(products, [1, 81], "flat")], -1, "known")
    score = b.dense(b.mlp(known, (64, 32), "top"), 1)
    return b.model("dlrm", {"score": b.named(ops.sigmoid(score), "sigmoid")})


def _table_classifier(b: NetworkBuilder) -> ov.Model:
    y = b.mlp(b.input("columns", [1, 32]), (128, 128, 64), "hidden")
    return b.model("table_classifier", {"classes": b.named(ops.softmax(b.dense(y, 7), 1), "softmax")})


NETWORKS: dict[str, Callable[[NetworkBuilder], ov.Model]] = {
    "resnet8": _resnet8,
    "keyword_spotting": _keyword_spotting,
    "visual_wake_words": _visual_wake_words,
    "anomaly_detection": _anomaly_detection,
    "collaborative_filtering": _collaborative_filtering,
    "wide_and_deep": _wide_and_deep,
    "dlrm": _dlrm,
    "table_classifier": _table_classifier,
}
"""Builder by name."""
