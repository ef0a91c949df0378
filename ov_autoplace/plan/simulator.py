"""What a placement costs, by one of three objectives, evaluated by the C++ core.

``hetero``: HETERO runs the subgraphs of one request strictly one after another, so

    latency = sum of op seconds + one launch per subgraph + one transfer per tensor and receiving subgraph

where a transfer of b bytes from device p to device q takes ``transfer_latency[p, q] +
transfer_seconds_per_byte[p, q] * b`` seconds. Which groups share a subgraph follows HETERO's own rules
(:mod:`ov_autoplace.plan.partition`) on the ops of the model that the table was made from, or on the
groups themselves where the table knows no ops. A constant is never transferred, but it takes part in those
rules like any op.

``overlap``: the columns of the table are lanes (:mod:`ov_autoplace.cost.lanes`) or devices that work at once,
and

    latency = makespan of a list schedule of the submodels

A lane that is free takes, of its submodels whose inputs have arrived, the one with the longest way to the end
of the model (Graham 1969; the way is the upward rank of Topcuoglu et al. 2002). A tensor that another lane
reads arrives there, once, a transfer after its submodel has finished; on its own lane it is there at once.
While two lanes compute, work takes ``corun_factor`` as long; ``mix_seconds`` pass before a placement on more
than one lane begins.

Two groups of a lane share a submodel if the same groups of other lanes wait for them and they wait for the
same groups of other lanes: a finer cut is worth nothing. Of these submodels, neighbours on a lane become one
where nobody starts later for it, and if still coarser ones (as many transfers on the longest way to them, and
as many on the longest way from them) are faster, these are taken.

``rate``: so many requests are in flight that every device always has work, and

    seconds per request = seconds that the busiest device works for one request

A device works for the ops of its subgraphs, their launches and the transfers that these wait for: a transfer
keeps the device busy that receives it. Subgraphs are HETERO's, because that is what runs. All devices work at
once, so work takes ``corun_factor`` as long if a placement uses several; none idles, so ``mix_seconds`` are
not paid.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array, offsets_of
from ov_autoplace._base.kept import kept
from ov_autoplace._base.text import unknown_name
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.wiring import CONSTANT, GROUP, PARAMETER, Wiring
from ov_autoplace.errors import CostTableError, OptionError, PlacementError
from ov_autoplace.plan.hetero_rules import hetero_rules
from ov_autoplace.plan.placement import Placement, Schedule
from ov_autoplace.plan.submodels import SubmodelParts, submodel_parts

__all__ = [
    "OBJECTIVES",
    "Objective",
    "objective_of",
    "parts_of",
    "simulate",
    "simulate_batch",
    "simulator_of",
    "wiring_of_groups",
]

_MOST_THREADS = 1_000  # the core takes one per processor core at most


@dataclass(frozen=True, slots=True)
class Objective:
    """What follows from what is made short.

    Attributes:
        at_once: Lanes and devices work at once inside a request, in submodels; else HETERO's subgraphs take
            turns.
        per_request: Many requests are in flight, and the time per request counts instead of the latency.
    """

    at_once: bool = False
    per_request: bool = False


OBJECTIVES = {"hetero": Objective(), "overlap": Objective(at_once=True), "rate": Objective(per_request=True)}
"""What can be made short, by name: a request in HETERO's turns, one on lanes and devices that work at once,
or the time per request of many."""

_Simulator: TypeAlias = "_core.Simulator | _core.OverlapSimulator"


def objective_of(name: str) -> Objective:
    """What follows from an objective's name.

    Raises:
        OptionError: There is no such objective.
    """
    if name not in OBJECTIVES:
        raise OptionError(unknown_name("objective", name, OBJECTIVES))
    return OBJECTIVES[name]


@overload
def simulator_of(table: CostTable) -> _core.Simulator: ...


@overload
def simulator_of(table: CostTable, objective: str) -> _Simulator: ...


def simulator_of(table: CostTable, objective: str = "hetero") -> _Simulator:
    """The C++ copy of a cost table for one objective, made once and kept as long as the table.

    Raises:
        CostTableError: The table's arrays do not fit together.
        OptionError: There is no such objective.
    """
    return _simulator(table, objective_of(objective))


@kept
def _simulator(table: CostTable, objective: Objective) -> _Simulator:
    try:
        return _overlapping(table) if objective.at_once else _in_turns(table, objective)
    except (TypeError, ValueError) as cause:
        raise CostTableError(f"the cost table is not consistent: {cause}") from cause


@kept
def parts_of(table: CostTable) -> SubmodelParts:
    """What the objective ``overlap`` cuts into submodels, made once and kept as long as the table."""
    return submodel_parts(table, table.wiring or wiring_of_groups(table))


def _in_turns(table: CostTable, objective: Objective) -> _core.Simulator:
    wiring = table.wiring or wiring_of_groups(table)
    return _core.Simulator(
        table.op_seconds,
        wiring.node_group,
        wiring.node_kind,
        wiring.tensor_producer,
        wiring.tensor_bytes,
        wiring.tensor_offsets,
        wiring.tensor_consumers,
        np.ascontiguousarray(wiring.bonds[:, 0]),
        np.ascontiguousarray(wiring.bonds[:, 1]),
        wiring.links,
        table.transfer_latency,
        table.transfer_seconds_per_byte,
        table.launch_seconds,
        table.mix_seconds,
        hetero_rules(is_mix=table.num_devices > 1).value,
        objective.per_request,
        table.corun_factor,
    )


def _overlapping(table: CostTable) -> _core.OverlapSimulator:
    parts, wiring = parts_of(table), table.wiring or wiring_of_groups(table)
    return _core.OverlapSimulator(
        table.op_seconds,
        parts.piece_of,
        parts.runs.astype(np.uint8),
        parts.producer,
        parts.tensor_bytes,
        parts.offsets,
        parts.consumers,
        wiring.node_group,
        wiring.links,
        table.transfer_latency,
        table.transfer_seconds_per_byte,
        table.launch_seconds,
        table.device_of,
        table.mix_seconds,
        table.corun_factor,
    )


def simulate(
    table: CostTable,
    placement: Placement | ArrayLike,
    objective: str = "hetero",
) -> Schedule:
    """Simulate one placement.

    Args:
        table: Costs of G groups on D devices.
        placement: A placement of the table's groups or of their ops, or a device index per group, ``int[G]``.
        objective: One of :data:`OBJECTIVES`, see :mod:`ov_autoplace.plan.simulator`.

    Returns:
        The schedule; under ``rate``, ``start_seconds`` and the like are of one request alone. Its latency is
        ``inf`` when a group is placed where it cannot run, when HETERO would cut, or the placement parts,
        what must stay in one subgraph (:attr:`Wiring.bonds`), or when HETERO refuses the placement.

    Raises:
        OptionError: There is no such objective.
        PlacementError: The placement does not fit the table.
        CostTableError: The table's arrays do not fit together.
    """
    assignment = _assignment_of(table, placement)
    parts = simulator_of(table, objective).breakdown(assignment)
    memory = held_bytes(table, assignment)
    per_request = parts.latency_seconds
    if OBJECTIVES[objective].per_request and np.isfinite(per_request):
        per_request = float(parts.device_seconds.max())
    return Schedule(
        latency_seconds=parts.latency_seconds,
        seconds_per_request=per_request,
        subgraphs=parts.subgraphs,
        device_seconds=tuple(parts.device_seconds.tolist()),
        memory_bytes=tuple(memory.tolist()),
        transfer_seconds=parts.transfer_seconds,
        subgraph_of=frozen_array(parts.subgraph_of, np.int32),
        lane_of=frozen_array(parts.lane_of, np.int32),
        start_seconds=frozen_array(parts.start_seconds, np.float64),
        finish_seconds=frozen_array(parts.finish_seconds, np.float64),
    )


def simulate_batch(
    table: CostTable,
    assignments: ArrayLike,
    threads: int = 0,
    limit_seconds: float = np.inf,
    objective: str = "hetero",
) -> FloatArray:
    """Simulate many placements at once on several cores, without holding the GIL.

    Args:
        table: Costs of G groups on D devices.
        assignments: Device index per group, ``int[B, G]``.
        threads: Number of threads; 0 takes one per core, which is also the most, or fewer where there is
            little to do.
        limit_seconds: Placements that are slower than this are of no interest: their subgraphs are cut only
            until that is proven.
        objective: One of :data:`OBJECTIVES`.

    Returns:
        ``Schedule.seconds_per_request`` of each placement, ``float64[B]``, which is its latency but under
        ``rate``; ``inf`` = cannot run. A value above ``limit_seconds`` may be a lower bound.

    Raises:
        OptionError: ``threads`` is negative, or there is no such objective.
        PlacementError: The assignments do not fit the table.
        CostTableError: The table's arrays do not fit together.
    """
    if threads < 0:
        raise OptionError(f"threads is {threads}; give 0 for one per core, or a positive number")
    rows = _device_indices(assignments)
    if rows.ndim != 2 or rows.shape[1] != len(table):
        raise PlacementError(f"assignments must be int[B, {len(table)}], not {rows.dtype}{list(rows.shape)}")
    simulator = simulator_of(table, objective)
    threads = min(threads, _MOST_THREADS)
    try:
        return simulator.simulate_batch(rows, threads, limit_seconds)
    except ValueError as cause:
        raise PlacementError(str(cause)) from cause


def _assignment_of(table: CostTable, placement: Placement | ArrayLike) -> IntArray:
    """Device index of each group, ``int32[G]``, checked."""
    if isinstance(placement, Placement):
        return placement.groups_of(table)
    assignment = _device_indices(placement)
    if assignment.shape != (len(table),):
        raise PlacementError(
            f"a placement of this table has {len(table)} groups, not {list(assignment.shape)}"
        )
    wrong = np.flatnonzero((assignment < 0) | (assignment >= table.num_devices))
    if len(wrong):
        raise PlacementError(
            f"group {table.names[wrong[0]]!r} is placed on device {assignment[wrong[0]]}; "
            f"the cost table has {table.num_devices} devices"
        )
    return assignment


def _device_indices(values: ArrayLike) -> IntArray:
    array: NDArray[np.generic] = np.asarray(values)
    if not np.issubdtype(array.dtype, np.integer):
        raise PlacementError(f"a placement holds device indices, not values of type {array.dtype}")
    # NumPy would wrap what 32 bits do not hold around to the index of another device.
    limits = np.iinfo(np.int32)
    if array.size and (array.min() < limits.min or array.max() > limits.max):
        worst = max(int(array.max()), int(array.min()), key=abs)
        raise PlacementError(f"a placement holds device indices, not numbers like {worst}")
    return np.ascontiguousarray(array, dtype=np.int32)


def wiring_of_groups(table: CostTable) -> Wiring:
    """The wiring of a table that knows no ops: a node per group, and one per shared constant.

    A shared constant is on its group's device, as it does for HETERO, joins its readers there, and
    readers elsewhere have a boundary towards it that is never paid for.
    """
    G = len(table)
    constant = np.flatnonzero(table.tensor_is_constant).astype(np.int32)
    shift = len(constant)
    alone = np.zeros(G, dtype=np.bool_)
    if table.op_types is not None:
        alone = np.array([op_type == "Parameter" for op_type in table.op_types], dtype=np.bool_)
    owner = table.tensor_producer + shift
    producer = owner.copy()
    producer[constant] = np.arange(shift)
    # The group that holds a shared constant reads it too: one more consumer, before the others.
    consumers = np.insert(table.tensor_consumers + shift, table.tensor_offsets[constant], owner[constant])
    offsets = table.tensor_offsets + offsets_of(table.tensor_is_constant)
    return Wiring(
        node_group=np.concatenate((table.tensor_producer[constant], np.arange(G))),
        node_kind=np.concatenate((np.full(shift, CONSTANT), np.where(alone, PARAMETER, GROUP))),
        tensor_producer=producer,
        tensor_bytes=table.tensor_bytes,
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        bonds=np.empty((0, 2), dtype=np.int32),
    )
