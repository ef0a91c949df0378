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

__all__ = ["Estimate", "estimated_table", "estimates", "fitted_factors"]

_LEAST_WORK = 0.1  # of the time, however many kernels there are
# How strongly factors are drawn to 1, in whole models whose error they would have to explain; and how far
# they may be from it.
_PRIOR, _MOST_FACTOR = 0.1, 4.0


@dataclass(frozen=True, eq=False)
class Estimate:
    """What the N ops of a model are estimated to take on one device.

    Attributes:
        seconds: Of each op, ``float64[N]``; where a device computes several ops at once, they add up to what
            it takes for them. Without what an inference costs beside its ops.
        kernels: How many kernels the device is taken to run.
        work: Part of the seconds in which the device does more than begin kernels.
        doubt: By which factor the total is typically off; 1 where nobody knows.
        source: ``learned``, or ``analytic`` on a device that is unlike all that were learned from.
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

    The factors are the least-squares fit of the relative errors, drawn towards 1: what few models say nothing
    of stays as it was estimated.

    Args:
        device: As it was calibrated.
        models: Graphs that were run there, and the seconds of an inference without the launch.
    """
    device = replace(device, factors={})
    classes = (*OP_CLASSES, *SHARE_OF_MATMUL)
    shares = []
    for graph, seconds in models:
        ops, kept = OpGraph.of(graph)
        [found] = estimates(graph, [device])
        column = np.array([classes.index(op_class) for op_class in op_classes(ops)], dtype=np.int64)
        by_class = np.bincount(column, weights=found.seconds[kept], minlength=len(classes))
        shares.append(by_class / max(seconds, np.finfo(np.float64).tiny))
    A = np.array(shares).reshape(-1, len(classes))
    prior = _PRIOR * np.eye(len(classes))
    factors = np.linalg.solve(A.T @ A + prior, A.sum(axis=0) + _PRIOR)
    shown = np.asarray(A.sum(axis=0) > 0)
    kept_factors = np.clip(factors, 1 / _MOST_FACTOR, _MOST_FACTOR)
    return {c: float(f) for c, f, used in zip(classes, kept_factors, shown, strict=True) if used}
