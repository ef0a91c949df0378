"""Cost tables for the tests of timelines, traces and reports; of any size, with names of any kind."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ov_autoplace import CostTable
from ov_autoplace._base.arrays import IntArray, csr_from_lists

__all__ = ["HOSTILE", "chain_with_skips", "diamond", "layered_table", "pieces"]

HOSTILE = (
    "</script><img src=x onerror=alert(1)>",
    "<svg/onload=alert(2)>",
    "\"';alert(3)//",
    "]]><!-- @name{safe} $index {{x}}",
    "line\u2028separator\u2029\u202e<b>bold</b>",
    "&lt;script&gt;alert(4)&lt;/script&gt;",
)


def diamond() -> CostTable:
    """a -> b, c; b, c -> d on X and Y; times in milliseconds, sizes in bytes, a byte moves in 100 ns."""
    return CostTable(
        devices=("X", "Y"),
        names=("a", "b", "c", "d"),
        op_seconds=np.array([[1e-3, 3e-3], [2e-3, 1e-3], [4e-3, 5e-3], [1e-3, 6e-3]]),
        tensor_producer=np.array([0, 1, 2], dtype=np.int32),
        tensor_bytes=np.array([1000.0, 2000.0, 3000.0]),
        tensor_offsets=np.array([0, 2, 3, 4], dtype=np.int32),
        tensor_consumers=np.array([1, 2, 3, 3], dtype=np.int32),
        tensor_is_constant=np.zeros(3, dtype=bool),
        tensor_uncuttable=np.zeros(3, dtype=bool),
        transfer_latency=np.array([[0.0, 1e-4], [2e-4, 0.0]]),
        transfer_seconds_per_byte=np.full((2, 2), 1e-7),
        launch_seconds=np.array([1e-5, 2e-5]),
        memory_bytes=np.zeros(4),
        memory_capacity=np.full(2, np.inf),
        op_types=("Parameter", "Relu", "Convolution", "Add"),
        members=(("a",), ("b", "b.bias"), ("c", "c.weights"), ("d",)),
    )


def chain_with_skips(groups: int) -> CostTable:
    """A chain in which each group of the first half is also read by its mirror image, as in a U-Net."""
    layered = layered_table(groups)
    readers = [sorted({g + 1, groups - 1 - g} if g < groups // 2 else {g + 1}) for g in range(groups - 1)]
    offsets, consumers = csr_from_lists(readers)
    tensors = groups - 1
    return replace(
        layered,
        tensor_producer=np.arange(tensors, dtype=np.int32),
        tensor_bytes=np.full(tensors, 1000.0),
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        tensor_is_constant=np.zeros(tensors, dtype=bool),
        tensor_uncuttable=np.zeros(tensors, dtype=bool),
    )


def layered_table(groups: int, seed: int = 0, names: tuple[str, ...] = (), members: int = 1) -> CostTable:
    """A network of blocks: a chain with branches of 1 to 4 groups and skips, on two devices.

    Args:
        groups: How many groups.
        seed: Of everything random.
        names: Names of the first groups; the others have ordinary ones.
        members: Ops of each group.
    """
    rng = np.random.default_rng(seed)
    readers: list[list[int]] = [[] for _ in range(groups)]
    joint, g = 0, 1
    while g < groups:
        width = min(int(rng.integers(1, 5)), max(groups - g - 1, 1))
        branch = list(range(g, g + width))
        readers[joint].extend(branch)
        g += width
        if g < groups:
            for b in branch:
                readers[b].append(g)
            if rng.random() < 0.3:
                readers[joint].append(g)
            joint, g = g, g + 1
    tensors = [t for t in range(groups) if readers[t]]
    offsets, consumers = csr_from_lists([readers[t] for t in tensors])
    labels = tuple(names[i] if i < len(names) else f"layer{i // 20}/op{i}" for i in range(groups))
    times = rng.lognormal(-10, 1, (groups, 1)) * rng.lognormal(0, 0.5, (groups, 2))
    return CostTable(
        devices=("GPU", "CPU"),
        names=labels,
        op_seconds=times,
        tensor_producer=np.array(tensors, dtype=np.int32),
        tensor_bytes=rng.integers(100, 100_000, len(tensors)).astype(np.float64),
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        tensor_is_constant=np.zeros(len(tensors), dtype=bool),
        tensor_uncuttable=np.zeros(len(tensors), dtype=bool),
        transfer_latency=np.full((2, 2), 2e-5),
        transfer_seconds_per_byte=np.full((2, 2), 1e-10),
        launch_seconds=np.full(2, 1e-5),
        memory_bytes=np.zeros(groups),
        memory_capacity=np.full(2, np.inf),
        op_types=tuple(("Convolution", "MatMul", "Add", "Softmax")[i % 4] for i in range(groups)),
        members=tuple((label, *(f"{label}.member{m}" for m in range(1, members))) for label in labels),
        source="profiled",
    )


def pieces(groups: int, count: int) -> IntArray:
    """A placement in ``count`` stretches of the topological order that alternate between two devices."""
    return ((np.arange(groups) * count // groups) % 2).astype(np.int32)
