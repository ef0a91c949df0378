"""Convolutional networks out of searched cells: AmoebaNet-A, and others of the same search space."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import pick

CellPlan = tuple[tuple[tuple[str, int], tuple[str, int]], ...]
"""Each combination adds two operations on earlier states; states 0 and 1 are the outputs of the cell before
the last one and of the last one, combination i makes state i + 2. What none of them reads is concatenated."""

# Figure 5 of E. Real et al., "Regularized Evolution for Image Classifier Architecture Search", 2018
# (arXiv 1802.01548).
AMOEBANET_A_NORMAL: CellPlan = (
    (("avg3", 0), ("max3", 1)),
    (("sep3", 0), ("sep5", 2)),
    (("sep3", 0), ("avg3", 3)),
    (("sep3", 1), ("none", 1)),
    (("none", 0), ("avg3", 1)),
)
AMOEBANET_A_REDUCTION: CellPlan = (
    (("avg3", 0), ("sep3", 1)),
    (("max3", 0), ("sep7", 2)),
    (("sep7", 0), ("avg3", 1)),
    (("max3", 0), ("max3", 1)),
    (("conv1x7", 0), ("sep3", 5)),
)

_OPERATIONS = ("none", "sep3", "sep5", "sep7", "avg3", "max3", "dil3", "conv1x7")  # the paper's set
_BRANCH_GAIN = 0.5  # half of the variance from each of the two operations that are added


def random_cell(random: np.random.Generator) -> CellPlan:
    """Five random combinations, each of any states before it."""

    def operation(states: int) -> tuple[str, int]:
        return pick(random, _OPERATIONS), int(random.integers(states))

    return tuple((operation(states), operation(states)) for states in range(2, 7))


@dataclass(frozen=True)
class AmoebaNetConfig:
    """Sizes of a network of cells, the large AmoebaNet-A for ImageNet by default.

    Attributes:
        width: Channels of an operation in the first stage; each reduction doubles them.
        cells: Normal cells of each of the stages.
        stem: Channels of the first convolution, behind which two reductions follow.
        normal, reduction: The two kinds of cells.
    """

    image: int = 331
    width: int = 190
    cells: tuple[int, ...] = (6, 6, 6)
    stem: int = 32
    classes: int = 1001
    normal: CellPlan = AMOEBANET_A_NORMAL
    reduction: CellPlan = AMOEBANET_A_REDUCTION

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> AmoebaNetConfig:
        """Random sizes of about ``depth`` normal cells, and half of the time random cells."""
        searched = random.random() < 0.5
        normal, reduction = random_cell(random), random_cell(random)
        stages = min(depth, 3)
        counts = [depth // stages + (stage < depth % stages) for stage in range(stages)]
        return cls(
            image=pick(random, (96, 128, 192, 224, 331)),
            width=pick(random, (16, 24, 32, 44, 50, 64, 96, 190)),
            cells=tuple(counts),
            classes=pick(random, (10, 100, 1001)),
            normal=normal if searched else AMOEBANET_A_NORMAL,
            reduction=reduction if searched else AMOEBANET_A_REDUCTION,
        )


def amoebanet(config: AmoebaNetConfig, net: NetworkBuilder) -> ov.Model:
    """Stages of normal cells with reductions between them."""
    image: Node = net.input("image", (1, 3, config.image, config.image))
    x: Node = net.conv(image, config.stem, 3, stride=2, padding=1, gain=1.0, name="stem")
    before = x
    for i, width in enumerate((config.width // 4, config.width // 2)):
        with net.scope(f"stem{i + 1}"):
            before, x = x, _cell(net, config.reduction, before, x, max(1, width), stride=2)
    for stage, cells in enumerate(config.cells):
        width = config.width << stage
        if stage:
            with net.scope(f"reduce{stage}"):
                before, x = x, _cell(net, config.reduction, before, x, width, stride=2)
        for cell in range(cells):
            with net.scope(f"stage{stage + 1}"), net.scope(cell):
                before, x = x, _cell(net, config.normal, before, x, width, stride=1)
    logits = net.dense(net.global_average(net.relu(x)), config.classes, name="classifier")
    return net.model("amoebanet", {"logits": logits})


def _cell(net: NetworkBuilder, plan: CellPlan, before: Node, last: Node, width: int, stride: int) -> Node:
    """The concatenation of a cell's unread states."""
    behind = math.ceil(before.output(0).get_shape()[2] / last.output(0).get_shape()[2])
    states = [
        net.conv(net.relu(before, "before.relu"), width, 1, stride=behind, gain=1.0, name="before"),
        net.conv(net.relu(last, "last.relu"), width, 1, gain=1.0, name="last"),
    ]
    for i, pair in enumerate(plan):
        with net.scope(f"combination{i}"):
            parts = []
            for side, (operation, state) in zip(("left", "right"), pair, strict=True):
                with net.scope(side):
                    step = stride if state < 2 else 1
                    parts.append(_operation(net, operation, states[state], width, step))
            states.append(net.add(*parts, "sum"))
    read = {state for pair in plan for _, state in pair}
    loose = [state for i, state in enumerate(states) if i >= 2 and i not in read]
    return net.named(ops.concat(loose, 1), "concat")


def _operation(net: NetworkBuilder, operation: str, x: Node, width: int, stride: int) -> Node:
    if operation == "none":
        return x if stride == 1 else net.conv(net.relu(x), width, 1, stride=stride, gain=_BRANCH_GAIN)
    if operation in ("avg3", "max3"):
        pool = net.avg_pool if operation == "avg3" else net.max_pool
        return pool(x, 3, stride, 1)
    if operation == "conv1x7":
        y = net.conv(net.relu(x), width, (1, 7), name="wide")
        return net.conv(net.relu(y, "wide.relu"), width, (7, 1), stride=stride, padding=(3, 0), name="high")
    if operation == "dil3":
        y = net.conv(
            net.relu(x), width, 3, stride=stride, padding=2, groups=width, dilation=2, name="dilated"
        )
        return net.conv(y, width, 1, gain=_BRANCH_GAIN, name="project")
    kernel = int(operation.removeprefix("sep"))
    for i in range(2):  # separable convolutions are always applied twice
        with net.scope(i):
            x = net.conv(
                net.relu(x),
                width,
                kernel,
                stride=1 if i else stride,
                padding=kernel // 2,
                groups=width,
                name="depthwise",
            )
            x = net.conv(x, width, 1, gain=_BRANCH_GAIN if i else 1.0, name="project")
    return x
