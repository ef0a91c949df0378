"""Machines to judge a policy on, not from the training set's generator: rooflines of kinds of devices.

Training draws how fast devices are from wide distributions and balances their totals. Here a machine is put
together from kinds of devices whose rates, bandwidths, overheads and links have the orders of magnitude of
the catalogue's public figures, each perturbed; types of ops are slow or missing where they are on such
devices, and what crossing costs follows from the links that a tensor passes. Where devices take turns and
hold everything, one of them is then best at nearly everything, which says nothing about a policy: there,
three machines of four have devices that take about as long as each other for the whole, and links that are
faster by up to a hundred times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ov_autoplace.cost.lanes import CORUN_FACTOR, EXECUTOR_SECONDS, with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.plan.simulator import OBJECTIVES
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.targets import Task
from ov_autoplace.training.workload import Workload

_SPREAD = 0.25  # standard deviation of the logarithm of every figure
_BALANCED = 0.75
_LACKS = 0.3  # chance that an NPU cannot run a type of op that it may lack


@dataclass(frozen=True)
class _Kind:
    """A kind of device.

    Attributes:
        rates: Operations per second by class of work (matmul, convolution, depthwise, elementwise).
        bandwidth: Bytes per second to its memory.
        overhead: Seconds per op; launch: per subgraph.
        link_latency, link_bandwidth: Between its memory and the host's.
        slow: Op types that take so many times as long.
        lacks: Op types that it may lack.
    """

    rates: tuple[float, float, float, float]
    bandwidth: float
    overhead: float
    launch: float
    link_latency: float
    link_bandwidth: float
    slow: tuple[tuple[str, float], ...] = ()
    lacks: tuple[str, ...] = ()


_KINDS = {
    "CPU": _Kind((6e11, 5e11, 1e11, 5e10), 5e10, 2e-6, 1e-6, 1e-6, 2e10),
    "WIDE_CPU": _Kind((3e12, 2.5e12, 4e11, 2e11), 2e11, 3e-6, 2e-6, 1e-6, 5e10),
    "IGPU": _Kind((4e12, 3e12, 4e11, 4e11), 6e10, 5e-6, 2e-5, 1e-5, 2e10, (("Softmax", 2.0), ("MVN", 2.0))),
    "GPU": _Kind((4e13, 3e13, 4e12, 4e12), 4e11, 5e-6, 2e-5, 2e-5, 1.2e10, (("Concat", 2.0),)),
    "NPU": _Kind(
        (2e12, 4e12, 5e11, 1e11),
        5e10,
        8e-6,
        5e-5,
        3e-5,
        1e10,
        (("Transpose", 4.0), ("Softmax", 3.0), ("MVN", 3.0)),
        ("Sigmoid", "Gather", "Transpose", "Tanh", "TopK", "LSTMCell"),
    ),
    "STICK": _Kind((5e11, 1e12, 1e11, 3e10), 1e10, 1e-5, 1e-4, 1e-4, 4e8, (("Softmax", 3.0),)),
}
_HOSTS = ("CPU", "WIDE_CPU")


def held_out_task(
    workload: Workload,
    random: np.random.Generator,
    devices: int,
    objective: str,
    limited: bool = False,
) -> Task:
    """A workload on a machine of D columns.

    Under ``overlap`` the host's processor has lanes, all columns or all but one or two; else a host stands
    beside accelerators, of which several are often of one kind.

    Args:
        workload: What is computed.
        random: Source of everything random.
        devices: D, 2 or more.
        objective: What placements are scored by.
        limited: Whether devices hold less than the workload takes.
    """
    lanes = 1
    if OBJECTIVES[objective].at_once:
        others = (
            0 if devices == 2 or random.random() < 0.5 else int(random.integers(1, min(2, devices - 2) + 1))
        )
        lanes = devices - others
    else:
        others = devices - 1
    accelerators = [name for name in _KINDS if name not in _HOSTS]
    chosen = random.choice(accelerators, size=min(others, int(random.integers(1, 4))), replace=False).tolist()
    # Further devices are copies of those that are there.
    names = [str(random.choice(_HOSTS)), *(chosen[i % len(chosen)] for i in range(others))]
    table = _table(workload, names, random)
    if objective == "hetero" and not limited and random.random() < _BALANCED:
        table = _balanced(table, names, random)
    if limited:
        table = replace(table, memory_capacity=_capacities(table, names, random))
    if lanes > 1:
        hand_over = float(random.lognormal(np.log(8e-6), _SPREAD))
        table = with_lanes(table, table.devices[0], lanes, hand_over_seconds=hand_over)
        table = replace(table, mix_seconds=EXECUTOR_SECONDS, corun_factor=CORUN_FACTOR)
    return Task(table, table, workload.family, workload.name, objective)


def _table(workload: Workload, names: list[str], random: np.random.Generator) -> CostTable:
    """Costs on devices of these kinds; devices of one kind are copies."""
    kinds = {name: _perturbed(_KINDS[name], random) for name in dict.fromkeys(names)}
    columns = {name: _seconds(workload, kind, random) for name, kind in kinds.items()}
    D = len(names)
    latency, per_byte = np.zeros((D, D)), np.zeros((D, D))
    for p, q in np.ndindex(D, D):
        # Through the host's memory.
        ends = [kinds[names[end]] for end in (p, q)]
        latency[p, q] = sum(kind.link_latency for kind in ends)
        per_byte[p, q] = sum(1 / kind.link_bandwidth for kind in ends)
    transfers = TransferFit(
        devices=tuple(f"{name}.{names[:d].count(name)}" for d, name in enumerate(names)),
        latency=latency,
        seconds_per_byte=per_byte,
        launch_seconds=np.array([kinds[name].launch for name in names]),
    )
    seconds = np.stack([columns[name] for name in names], axis=1)
    return replace(workload.table(seconds, transfers), result_bytes=workload.output_bytes)


def _balanced(table: CostTable, names: list[str], random: np.random.Generator) -> CostTable:
    """Devices that take about as long for the whole, with faster links; copies stay copies."""
    total = np.where(table.supported, table.op_seconds, 0.0).sum(axis=0)
    wanted = {name: np.exp(random.normal(0, 0.2)) for name in dict.fromkeys(names)}
    factor = total.min() / np.maximum(total, 1e-12) * np.array([wanted[name] for name in names])
    faster = 10.0 ** random.uniform(-2, 0)
    return replace(
        table,
        op_seconds=table.op_seconds * factor,
        transfer_latency=table.transfer_latency * faster,
        transfer_seconds_per_byte=table.transfer_seconds_per_byte * faster,
        launch_seconds=table.launch_seconds * faster,
    )


def _perturbed(kind: _Kind, random: np.random.Generator) -> _Kind:
    factor = np.exp(random.normal(0, _SPREAD, 9))
    rates = tuple((np.array(kind.rates) * factor[:4]).tolist())
    return replace(
        kind,
        rates=rates,
        bandwidth=kind.bandwidth * factor[4],
        overhead=kind.overhead * factor[5],
        launch=kind.launch * factor[6],
        link_latency=kind.link_latency * factor[7],
        link_bandwidth=kind.link_bandwidth * factor[8],
    )


def _seconds(workload: Workload, kind: _Kind, random: np.random.Generator) -> np.ndarray:
    """The roofline of one device, ``float64[G]``."""
    moved = workload.weight_bytes + workload.exchanged_bytes
    seconds = np.maximum(workload.flops @ (1 / np.array(kind.rates)), moved / kind.bandwidth) + kind.overhead
    slow = dict(kind.slow)
    seconds *= np.array([slow.get(op_type, 1.0) for op_type in workload.op_types])
    seconds *= np.exp(random.normal(0, _SPREAD, len(seconds)))
    seconds[~workload.busy] = 0.0
    lacks = {op_type for op_type in kind.lacks if random.random() < _LACKS}
    seconds[[op_type in lacks for op_type in workload.op_types]] = np.inf
    return seconds


def _capacities(table: CostTable, names: list[str], random: np.random.Generator) -> np.ndarray:
    """Memory of each device, ``float64[D]``: part of what all takes; half of the hosts hold everything."""
    total = Problem.of(table).units.most_bytes
    of_kind = {name: random.uniform(0.15, 0.8) for name in dict.fromkeys(names)}
    capacity = np.array([total * of_kind[name] for name in names])
    if capacity.sum() < 1.3 * total or random.random() < 0.5:
        capacity[0] = np.inf
    return capacity
