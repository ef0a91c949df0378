"""What costs are estimated to be before anything is measured: learned, or the roofline where nothing was."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, frozen_array
from ov_autoplace.cost.analytic import Roofline, op_classes, target_table
from ov_autoplace.cost.learned import shipped_network
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.table import ANALYTIC, LEARNED, CostTable
from ov_autoplace.cost.target import OP_CLASSES, SHARE_OF_MATMUL, DeviceProfile, Target
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph

__all__ = ["Estimate", "class_factors", "estimated_table", "estimates", "fitted_factors", "seconds_by_class"]

_CLASSES = (*OP_CLASSES, *SHARE_OF_MATMUL)
_LEAST_WORK = 0.1  # of the time, however many kernels there are
# How strongly factors are drawn to 1: that of a device as a whole, and those of classes to that. Chosen on
# networks of the training data, by ten others each.
_WHOLE_PRIOR, _CLASS_PRIOR = 3.0, 5.0
# How far factors may be from 1; which errors of a whole model count squared; steps of the fit.
_MOST_FACTOR, _SMALL_ERROR, _STEPS, _LONGEST_STEP = 4.0, 0.1, 30, 0.7


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the N ops of a model are estimated to take on one device.

    Attributes:
        seconds: Of each op, ``float64[N]``; where a device computes several ops at once, they add up to what
            it takes for them. Without what an inference costs beside its ops.
        kernels: How many kernels the device is taken to run.
        work: Part of the seconds in which the device does more than begin kernels.
        doubt: By which factor the total is typically off; 1 where nobody knows.
        source: ``learned``, or ``analytic`` on GPUs and NPUs unlike those that were learned from.
    """

    seconds: FloatArray
    kernels: int
    work: float
    doubt: float
    source: str

    @property
    def total(self) -> float:
        """Seconds of all ops."""
        return float(self.seconds.sum())


def estimates(graph: ComputationGraph, devices: Sequence[DeviceProfile]) -> list[Estimate]:
    """Estimate what the ops of a model take on devices, or on one device set up in several ways.

    They are to be compared, so all come from one source: what was learned of one device says nothing beside
    the roofline of another.
    """
    ops, kept = OpGraph.of(graph)
    network = shipped_network()
    is_known = all(map(network.knows, devices))
    found = []
    for device in devices:
        roofline = Roofline.of(ops, device)
        learned = network.predict(ops, device) if is_known else None
        own = roofline.seconds if learned is None else learned.seconds
        if device.factors:
            own = own * np.array([device.factors.get(op_class, 1.0) for op_class in op_classes(ops)])
        seconds = np.zeros(len(graph))
        seconds[kept] = own
        total = float(own.sum())
        work = max(total - float(roofline.overhead.sum()), _LEAST_WORK * total)
        kernels = int((roofline.overhead > 0).sum())
        source = LEARNED if is_known else ANALYTIC
        doubt = 1.0 if learned is None else learned.doubt
        found.append(Estimate(frozen_array(seconds, np.float64), kernels, work, doubt, source))
    return found


def estimated_table(
    coarse: CoarseGraph,
    target: Target,
    devices: Sequence[str],
    supported: BoolArray | None = None,
) -> CostTable:
    """What every group is estimated to cost on every device of a target; see :func:`estimates`.

    The arguments and the errors are those of :func:`~ov_autoplace.cost.analytic.analytic_table`.
    """
    found = estimates(coarse.ops, [target.device(name) for name in devices])
    seconds = [np.bincount(coarse.group_of, weights=one.seconds, minlength=len(coarse)) for one in found]
    table = target_table(coarse, target, devices, np.stack(seconds, axis=1), supported, found[0].source)
    return replace(table, doubt=max(one.doubt for one in found))


def fitted_factors(
    device: DeviceProfile, models: Sequence[tuple[ComputationGraph, float]]
) -> Mapping[str, float]:
    """By how much estimates of a device are to be multiplied, by class of op, so that whole models come out.

    See :func:`class_factors`. Classes that no model has ops of are left out.

    Args:
        device: As it was calibrated.
        models: Graphs that were run there, and the seconds of an inference without the launch.
    """
    device = replace(device, factors={})
    by_class = np.zeros((len(models), len(_CLASSES)))
    for row, (graph, _) in zip(by_class, models, strict=True):
        ops, kept = OpGraph.of(graph)
        [found] = estimates(graph, [device])
        row += seconds_by_class(ops, found.seconds[kept])
    factors = class_factors(by_class, np.array([seconds for _, seconds in models]))
    shown = by_class.sum(axis=0) > 0
    return {c: float(f) for c, f, used in zip(_CLASSES, factors, shown, strict=True) if used}


def seconds_by_class(ops: OpGraph, seconds: FloatArray) -> FloatArray:
    """Sums of the seconds of N ops, ``float64[N]``, over each class of op, ``float64[C]``."""
    column = [_CLASSES.index(op_class) for op_class in op_classes(ops)]
    sums = np.bincount(np.array(column, dtype=np.int64), weights=seconds, minlength=len(_CLASSES))
    return frozen_array(sums, np.float64)


def class_factors(estimated: FloatArray, measured: FloatArray) -> FloatArray:
    """Factors on estimates by class of op, one for all classes times one for each.

    With ``e`` the logarithms of K models' estimates over what was measured, the factors' logarithms ``g`` and
    ``d[c]`` minimize ``sum |e| + 3 g^2 + 5 sum d[c]^2``, errors below a tenth squared: a model that is far
    off counts little more than others, and what few models say nothing of stays as it was estimated. Solved
    by reweighted least squares (Gauss-Newton steps of bounded length).

    Args:
        estimated: Seconds of the ops of each of C classes, ``float64[K, C]``.
        measured: Seconds of each model, ``float64[K]``.

    Returns:
        ``float64[C]``, each between a quarter and four.
    """
    K, C = estimated.shape
    is_used = (estimated.sum(axis=1) > 0) & (measured > 0)
    M, T = estimated[is_used], measured[is_used]
    prior = np.diag([_WHOLE_PRIOR, *[_CLASS_PRIOR] * C])
    x = np.zeros(1 + C)
    for _ in range(_STEPS if K else 0):
        parts = M * np.exp(x[0] + x[1:])
        totals = parts.sum(axis=1)
        e = np.log(totals / T)
        J = np.concatenate([np.ones((len(M), 1)), parts / totals[:, None]], axis=1)
        weights = 1 / np.maximum(np.abs(e), _SMALL_ERROR)
        step = np.linalg.solve(J.T @ (J * weights[:, None]) + prior, J.T @ (e * weights) + prior @ x)
        x -= np.clip(step, -_LONGEST_STEP, _LONGEST_STEP)
    return np.asarray(np.clip(np.exp(x[0] + x[1:]), 1 / _MOST_FACTOR, _MOST_FACTOR))
