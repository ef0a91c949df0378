"""What crossing devices costs: measured through small HETERO models whose cuts are known.

The model is a diamond: ``first`` feeds ``second`` and ``join``, ``second`` feeds ``join``. Its eight
placements on two devices i and j cut it in every way that matters: ``ijj`` is two subgraphs and one tensor,
``iij`` two subgraphs and two tensors (which tells launches from transfers), ``iji`` three subgraphs and a
tensor from i to i, because HETERO must not merge two subgraphs that another one is between. The ops'
own times are unknowns of the same fit, one per op, device and size; a chain of ``first`` ops alone on one
device tells the ops apart, without which a slow op could not be told from a slow direction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.files import temporary_folder
from ov_autoplace.cost.transfers import TransferFit, TransferSample
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.timing import mood_of

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable, Profiler

__all__ = ["DEFAULT_SIZES", "fit_transfers", "measure_transfers"]

DEFAULT_SIZES = (1 << 10, 8 << 10, 64 << 10, 256 << 10, 1 << 20, 4 << 20)
"""Bytes of the tensors that are transferred."""

_OPS = ("first", "second", "join")
_EDGES = ((0, 1), (0, 2), (1, 2))
_CHAIN = 4  # ops of the chain that isolates one op's time
_ROW = 64  # elements that one normalisation runs over; any length that all devices like
# Placements of one size are run in turns, so that a slow spell of the machine hits them all; those rounds
# count in which it was undisturbed.
_FEWEST_ROUNDS, _MOST_ROUNDS = 8, 20
_MAX_RUNS = 10  # in a turn


def measure_transfers(
    profiler: Profiler,
    devices: Sequence[str],
    properties: Mapping[str, str] | None = None,
    sizes: Sequence[int] = DEFAULT_SIZES,
    *,
    seconds_per_placement: float = 0.015,
    progress: Callable[[int, int, str], None] | None = None,
) -> TransferFit:
    """Run the diamond in every placement on every pair of devices, and fit the costs.

    Two CPU devices and six sizes take about two seconds, most of it compilation.

    Args:
        profiler: Knows the devices.
        devices: Device names, D. One device hands nothing over: its costs are zeros.
        properties: Compile properties of every model.
        sizes: Bytes of the tensors, at least two sizes.
        seconds_per_placement: Run time to spend on each placement and size.
        progress: Called with (done, total, text).

    Raises:
        ProfilingError: A placement does not compile or run.
    """
    pairs = list(combinations(devices, 2))
    samples: list[TransferSample] = []
    total = len(pairs) * len(sizes)
    for step, (pair, size) in enumerate((pair, size) for pair in pairs for size in sizes):
        if progress is not None:
            progress(step, total, f"transfer {pair[0]} - {pair[1]}, {size >> 10} KB")
        samples.extend(_measure_pair(profiler, pair, size, properties or {}, seconds_per_placement))
    return fit_transfers(devices, samples)


def fit_transfers(devices: Sequence[str], samples: Sequence[TransferSample]) -> TransferFit:
    """Non-negative least squares on the samples' medians, each weighted by the inverse of its median.

    Relative errors keep the microseconds of small tensors as important as the milliseconds of large ones.

    Args:
        devices: Device names, D.
        samples: Placements of at least two sizes for each pair of devices.
    """
    from scipy.optimize import nnls

    D = len(devices)
    index = {name: d for d, name in enumerate(devices)}
    if not samples:
        return TransferFit(
            tuple(devices), _frozen(np.zeros((D, D))), _frozen(np.zeros((D, D))), _frozen(np.zeros(D))
        )
    sizes = sorted({sample.tensor_bytes for sample in samples})
    largest = sizes[-1]
    # Columns: launch [D], latency [D, D], seconds per largest tensor [D, D], op times [size, D, op kind].
    op_column = D + 2 * D * D
    rows = np.zeros((len(samples), op_column + len(sizes) * D * 2))
    for row, sample in zip(rows, samples, strict=True):
        placed = [index[name] for name in sample.devices]
        is_chain = len(placed) != len(_OPS)
        for position, d in enumerate(placed):
            kind = int(not is_chain and _OPS[position] == "join")
            row[op_column + (sizes.index(sample.tensor_bytes) * D + d) * 2 + kind] += 1
        launches, transfers = ([placed[0]], []) if is_chain else _cuts(placed)
        for d in launches:
            row[d] += 1
        for source, destination in transfers:
            cell = source * D + destination
            row[D + cell] += 1
            row[D + D * D + cell] += sample.tensor_bytes / largest
    weights = 1.0 / np.array([np.median(sample.seconds) for sample in samples])
    solution, _ = nnls(rows * weights[:, None], np.ones(len(samples)))
    return TransferFit(
        devices=tuple(devices),
        latency=_frozen(solution[D : D + D * D].reshape(D, D)),
        seconds_per_byte=_frozen(solution[D + D * D : op_column].reshape(D, D) / largest),
        launch_seconds=_frozen(solution[:D]),
        samples=tuple(samples),
    )


def _cuts(placed: Sequence[int]) -> tuple[list[int], list[tuple[int, int]]]:
    """Device of each subgraph of the placed diamond, and (from, to) of each transfer.

    The diamond splits into its runs of equal devices: ``first`` and ``join`` are neighbours, but when only
    ``second`` is elsewhere, merging them would make a cycle.
    """
    subgraph = np.cumsum([0, *(a != b for a, b in pairwise(placed))]).tolist()
    launches = [placed[subgraph.index(s)] for s in range(subgraph[-1] + 1)]
    crossings = {
        (source, subgraph[destination])
        for source, destination in _EDGES
        if subgraph[source] != subgraph[destination]
    }
    return launches, [(placed[source], launches[destination]) for source, destination in sorted(crossings)]


def _measure_pair(
    profiler: Profiler, pair: tuple[str, str], size: int, properties: Mapping[str, str], seconds: float
) -> Iterator[TransferSample]:
    with temporary_folder() as folder:
        diamond = save_ir(_diamond(size), folder, "diamond.xml")
        chain = save_ir(_chain(size), folder, "chain.xml")
        executables: dict[tuple[str, ...], Executable] = {}
        i, j = pair
        for alone in pair:
            executables[(alone,) * _CHAIN] = _compile(profiler, chain, alone, properties)
            executables[(alone,) * len(_OPS)] = _compile(profiler, diamond, alone, properties)
        for cut in ((i, j, j), (i, i, j), (i, j, i), (j, i, i), (j, j, i), (j, i, j)):
            executables[cut] = _compile(profiler, diamond, f"HETERO:{i},{j}", properties, _affinities(cut))
        try:
            measured = _run_in_turns(executables, seconds)
        except RuntimeError as cause:
            raise ProfilingError(f"cannot measure transfers between {i} and {j}: {cause}") from cause
    for placed, samples in measured.items():
        yield TransferSample(placed, size, samples)


def _compile(
    profiler: Profiler,
    path: Path,
    device: str,
    properties: Mapping[str, str],
    affinities: dict[str, str] | None = None,
) -> Executable:
    try:
        return profiler.compile(str(path), device, dict(properties), affinities)
    except RuntimeError as cause:
        raise ProfilingError(f"cannot measure transfers: {device} refuses a small model: {cause}") from cause


def _run_in_turns(
    executables: Mapping[tuple[str, ...], Executable], seconds: float
) -> dict[tuple[str, ...], FloatArray]:
    try:
        return _timed_in_turns(executables, seconds)
    except RuntimeError as cause:
        raise ProfilingError(
            f"cannot measure transfers: a small model fails when it is run: {cause}"
        ) from cause


def _timed_in_turns(
    executables: Mapping[tuple[str, ...], Executable], seconds: float
) -> dict[tuple[str, ...], FloatArray]:
    once = {placed: float(e.run(2, warmup=2).min()) for placed, e in executables.items()}
    rounds = int(np.clip(seconds / max(once.values()), _FEWEST_ROUNDS, _MOST_ROUNDS))
    runs = {placed: int(np.clip(seconds / rounds / once[placed], 1, _MAX_RUNS)) for placed in executables}
    collected: dict[tuple[str, ...], list[FloatArray]] = {placed: [] for placed in executables}
    for _ in range(rounds):
        for placed, executable in executables.items():
            collected[placed].append(executable.run(runs[placed], warmup=1))
    mood = mood_of(list(collected.values()))
    return {placed: mood.samples(parts) for placed, parts in collected.items()}


def _affinities(placed: Sequence[str]) -> dict[str, str]:
    """Device of every op of the diamond, the constants and the ends with the op they belong to."""
    device = dict(zip(_OPS, placed, strict=True))
    ends = {"input": device["first"], "output": device["join"]}
    return {**device, **ends, **{f"{name}/axes": device[name] for name in ("first", "second")}}


def _diamond(size: int) -> ov.Model:
    data = _input(size)
    first = _normalise(data, "first")
    join = opset.add(first, _normalise(first, "second"), name="join")
    return ov.Model([opset.result(join, name="output")], [data], "diamond")


def _chain(size: int) -> ov.Model:
    data = node = _input(size)
    for position in range(_CHAIN):
        node = _normalise(node, f"first{position}")
    return ov.Model([opset.result(node, name="output")], [data], "chain")


def _input(size: int) -> ov.Node:
    itemsize = np.dtype(np.float32).itemsize
    return opset.parameter([max(1, size // itemsize // _ROW), _ROW], np.float32, name="input")


def _normalise(node: ov.Node, name: str) -> ov.Node:
    # Cheap, on every device, and never fused with another of its kind or run in place of its input.
    axes = opset.constant(np.array([1], dtype=np.int64), name=f"{name}/axes")
    return opset.mvn(node, axes, normalize_variance=True, eps=1e-6, eps_mode="inside_sqrt", name=name)


def _frozen(values: FloatArray) -> FloatArray:
    return frozen_array(values, np.float64)
