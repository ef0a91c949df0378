"""Multilevel partitioning by METIS: balanced parts with few bytes between them.

G. Karypis, V. Kumar, "A Fast and High Quality Multilevel Scheme for Partitioning Irregular Graphs", SIAM J.
Sci. Comput. 20(1), 1998, by the library itself (pymetis). Papers on placement compare with it in the same
way: a vertex weighs the time of its ops on their fastest device, an edge the bytes that it carries, and there
is one part per device.

METIS knows neither which ops a device is good at nor what HETERO charges, and it insists on a balance. Added
so that it can answer here at all: a device's share of the weight is proportional to its speed over the
whole graph, parts go to the devices where they take least time together (linear assignment), what a device
may not run goes to the fastest one that may, and an overfull device is emptied as the solvers do it. A tensor
with several consumers is as many edges, though it is sent once.
"""

from __future__ import annotations

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.errors import OptionError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.memory import first_fit, repair
from ov_autoplace.solvers.solver import SolverOptions

_TOTAL_WEIGHT = 1_000_000  # METIS counts in integers of 32 bits


def solve_multilevel(problem: Problem, options: SolverOptions) -> Placement:
    """Cut the graph into one part per device, and give each device a part.

    Raises:
        OptionError: pymetis is not installed.
        PlacementError: Nothing that fits into memory was found.
    """
    units = problem.units
    usable = units.usable_devices
    allowed = np.isfinite(units.op_seconds)
    # Of a device that may not run something, the dearest device's time is taken.
    dearest = np.where(allowed, units.op_seconds, 0.0).max(axis=1, keepdims=True)
    seconds = np.where(allowed, units.op_seconds, dearest)
    part = np.zeros(len(units), dtype=np.int32)
    if len(usable) > 1 and len(units) > 1:
        part = _partition(units, seconds[:, usable], options.seed)
    device = _devices_of(part, np.where(allowed, seconds, 2 * dearest)[:, usable])
    placed = np.asarray(usable, dtype=np.int32)[device]
    fastest = np.argmin(units.op_seconds, axis=1)
    placed = np.where(allowed[np.arange(len(units)), placed], placed, fastest).astype(np.int32)
    if not units.fits(placed):
        repaired = repair(units, placed)
        placed = first_fit(problem.table, units) if repaired is None else repaired
    return problem.evaluator.answer(placed)


def _partition(units: UnitGraph, seconds: FloatArray, seed: int) -> IntArray:
    """Part of each unit, ``int32[U]``; ``seconds`` are those on the usable devices, ``float64[U, P]``."""
    try:
        import pymetis  # type: ignore[import-not-found, unused-ignore]
    except ImportError as cause:
        raise OptionError(
            "the rival 'multilevel' needs pymetis; install it with pip install pymetis"
        ) from cause
    offsets, neighbours, nbytes = _undirected(units)
    speed = 1.0 / np.maximum(seconds.sum(axis=0), 1e-12)
    _, part = pymetis.part_graph(
        seconds.shape[1],
        pymetis.CSRAdjacency(offsets.tolist(), neighbours.tolist()),
        vweights=_integers(seconds.min(axis=1)).tolist(),
        eweights=(1 + _integers(nbytes)).tolist(),  # none may be zero
        tpwgts=(speed / speed.sum()).tolist(),
        options=pymetis.Options(seed=seed),
    )
    return np.asarray(part, dtype=np.int32)


def _undirected(units: UnitGraph) -> tuple[IntArray, IntArray, FloatArray]:
    """CSR of each unit's neighbours and the bytes between them, both ways."""
    U = len(units)
    lengths = np.diff(units.offsets)
    producer = np.repeat(units.producer, lengths).astype(np.int64)
    nbytes = np.repeat(units.tensor_bytes, lengths)
    pair, of_edge = np.unique(
        np.concatenate([producer * U + units.consumers, units.consumers.astype(np.int64) * U + producer]),
        return_inverse=True,
    )
    offsets = np.searchsorted(pair, np.arange(U + 1) * U)
    total = np.bincount(of_edge, np.concatenate([nbytes, nbytes]), len(pair)).astype(np.float64)
    return offsets.astype(np.int32), (pair % U).astype(np.int32), total


def _integers(weights: FloatArray) -> IntArray:
    """Weights scaled to a sum of about a million."""
    return np.rint(weights * (_TOTAL_WEIGHT / max(float(weights.sum()), 1e-300))).astype(np.int32)


def _devices_of(part: IntArray, seconds: FloatArray) -> IntArray:
    """Device of each unit, such that parts take least time in all: a linear assignment, ``int32[U]``."""
    from scipy.optimize import linear_sum_assignment

    P = seconds.shape[1]
    cost = np.stack([np.bincount(part, column, P) for column in seconds.T], axis=1)
    _, device_of_part = linear_sum_assignment(cost)
    return np.asarray(device_of_part[part], dtype=np.int32)
