"""A classifier of blocks whose branches are drawn at random, in the manner of Inception."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino as ov
from openvino import opset15 as ops

from networks.builder import NetworkBuilder, Node
from networks.variation import chance, pick, split_depth

BranchPlan = tuple[str, ...]
"""Operations of one branch, one after the other: ``"3"`` and ``"5"`` are convolutions of that size, ``"d3"``
is depthwise, ``"1x5"`` a pair of flat ones, ``"max"`` and ``"avg"`` pool; ``"fork"`` splits the branch in
two for the rest of its way."""

_OPERATIONS = ("1", "1", "3", "3", "5", "d3", "d5", "1x5", "1x7", "max", "avg")


def _random_block(random: np.random.Generator, branches: int, longest: int) -> tuple[BranchPlan, ...]:
    lengths = random.integers(1, longest + 1, branches).tolist()
    return tuple(
        tuple("fork" if chance(random, 0.06) else pick(random, _OPERATIONS) for _ in range(length))
        for length in lengths
    )


@dataclass(frozen=True)
class RandomInceptionConfig:
    """Sizes of a network of random blocks.

    Attributes:
        width: Channels of the first stage; each stage doubles them, up to sixteen-fold.
        blocks: Blocks of each stage; behind each stage the image is halved.
        plans: Branches of the blocks, taken in turns.
        residual: Whether a block adds to what it reads.
    """

    image: int = 224
    width: int = 96
    blocks: tuple[int, ...] = (2, 4, 2)
    plans: tuple[tuple[BranchPlan, ...], ...] = (
        (("1",), ("1", "3"), ("1", "5", "fork"), ("max", "1")),
        (("1x7",), ("avg", "1"), ("1", "d3", "1"), ("1", "fork", "3")),
    )
    residual: bool = False
    classes: int = 1000

    @classmethod
    def varied(cls, depth: int, random: np.random.Generator) -> RandomInceptionConfig:
        """Random sizes of ``depth`` blocks, of up to four kinds."""
        branches, longest = int(random.integers(2, 9)), int(random.integers(1, 6))
        plans = tuple(_random_block(random, branches, longest) for _ in range(int(random.integers(1, 5))))
        return cls(
            image=pick(random, (96, 128, 160, 192, 224, 299)),
            width=pick(random, (24, 48, 64, 96, 128, 192)),
            plans=plans,
            residual=chance(random, 0.4),
            classes=pick(random, (10, 100, 1000)),
            blocks=split_depth(random, depth, int(random.integers(1, 5))),
        )


def inception_like(config: RandomInceptionConfig, net: NetworkBuilder) -> ov.Model:
    """Blocks of parallel branches that are concatenated and mixed by a convolution."""
    x: Node = net.input("image", (1, 3, config.image, config.image))
    x = net.conv_relu(x, config.width, 3, stride=2, padding=1, name="stem")
    number = 0
    for stage, blocks in enumerate(config.blocks):
        width = config.width << min(stage, 4)
        with net.scope(f"stage{stage + 1}"):
            x = net.max_pool(net.conv_relu(x, width, 1, name="widen"), 3, 2, 1)
            for block in range(blocks):
                with net.scope(block):
                    x = _block(net, config.plans[number % len(config.plans)], x, width, config.residual)
                number += 1
    logits = net.dense(net.global_average(x), config.classes, name="classifier")
    return net.model("inception_like", {"logits": logits})


def _block(net: NetworkBuilder, plan: tuple[BranchPlan, ...], x: Node, width: int, residual: bool) -> Node:
    ends: list[Node] = []
    for i, branch in enumerate(plan):
        with net.scope(f"branch{i}"):
            ends += _branch(net, branch, x, max(1, width // len(plan)))
    joined = net.named(ops.concat(ends, 1), "concat") if len(ends) > 1 else ends[0]
    y = net.conv(joined, width, 1, gain=0.2 if residual else 2.0, name="mix")
    return net.relu(net.add(x, y, "sum") if residual else y, "mix.relu")


def _branch(net: NetworkBuilder, plan: BranchPlan, x: Node, width: int) -> list[Node]:
    """The ends of a branch: one, and one more for each fork on the way."""
    for i, operation in enumerate(plan):
        with net.scope(i):
            if operation == "fork":
                ends = []
                for side in ("left", "right"):
                    with net.scope(side):
                        y = net.conv_relu(x, max(1, width // 2), 3)
                        ends += _branch(net, plan[i + 1 :], y, max(1, width // 2))
                return ends
            x = _operation(net, operation, x, width)
    return [x]


def _operation(net: NetworkBuilder, operation: str, x: Node, width: int) -> Node:
    if operation in ("max", "avg"):
        return (net.max_pool if operation == "max" else net.avg_pool)(x, 3, 1, 1)
    if operation.startswith("d"):
        channels = x.output(0).get_shape()[1]
        x = net.conv_relu(x, channels, int(operation[1:]), groups=channels, name="depthwise")
        return net.conv_relu(x, width, 1, name="project")
    if "x" in operation:
        size = int(operation[2:])
        x = net.conv_relu(x, width, (1, size), name="wide")
        return net.conv_relu(x, width, (size, 1), name="high")
    return net.conv_relu(x, width, int(operation))
