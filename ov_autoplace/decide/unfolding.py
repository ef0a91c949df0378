"""A placement of a model with folded shapes, carried over to the model as it was given.

An affinity file is applied to the very model that it is named after, whose shape computations nobody folds.
Each op that was folded away takes the device of its first reader. Where HETERO cannot run that, or would make
more submodels of it, the groups of the given model are placed anew at the costs that are known.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.statistics import MINIMAL_GAIN
from ov_autoplace.cost.assemble import assemble_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.plan.fitting import FittedPlacement
from ov_autoplace.plan.legality import broken_bonds
from ov_autoplace.plan.partition import count_graph_subgraphs, number_devices
from ov_autoplace.plan.placement import Placement
from ov_autoplace.problem.problem import Problem

__all__ = ["runs_as_it_is", "unfolded"]

_log = logging.getLogger("ov_autoplace")


def unfolded(
    fitted: FittedPlacement, problem: Problem | None = None, source: ProposalSource | None = None
) -> Placement:
    """A placement with ``Placement.given`` where it is of the model with folded shapes.

    Args:
        fitted: The placement, and the form of the model that it is of.
        problem: Costs of that form's groups, and constraints; without them the answer stays as near to the
            placement as it can.
        source: Whose solvers are asked to place the given model's groups.
    """
    prepared, placement, own = fitted.prepared, fitted.placement, fitted.prepared.structure
    if not prepared.is_folded and runs_as_it_is(own, number_devices(own.names, fitted.device_of)):
        return replace(placement, given=None)
    graph = extract(prepared.given, prepared.shapes) if prepared.shapes else prepared.given_structure
    devices = placement.devices if problem is None else problem.table.devices
    # An op that became a Constant stood with its group there; here it runs.
    known = {
        name: fitted.device_of[name]
        for name, constant in zip(own.names, own.is_constant.tolist(), strict=True)
        if not constant or graph.is_constant[graph.index[name]]
    }
    projection = _projected(graph, known, devices)
    same_cuts = count_graph_subgraphs(own, number_devices(own.names, fitted.device_of))
    if not runs_as_it_is(graph, projection) or count_graph_subgraphs(graph, projection) != same_cuts:
        found = None if problem is None else _cheapest(graph, problem, source or ProposalSource())
        projection = _nearest(graph, projection) if found is None else found
    given = {name: devices[d] for name, d in zip(graph.names, projection.tolist(), strict=True)}
    return replace(placement, given=given)


def runs_as_it_is(graph: ComputationGraph, device: IntArray) -> bool:
    """Whether plain HETERO runs a placement of a model's own file.

    Args:
        graph: The N ops of the model as it was given.
        device: Any number per op that tells devices apart, ``int32[N]``.
    """
    return not broken_bonds(graph, device, as_it_is=True)


def _projected(graph: ComputationGraph, device_of: Mapping[str, str], devices: Sequence[str]) -> IntArray:
    """Device of every op, ``int32[N]``; those that ``device_of`` lacks take their first reader's."""
    position = {device: d for d, device in enumerate(devices)}
    found = [position[device_of[name]] if name in device_of else -1 for name in graph.names]
    readers = np.split(graph.tensor_consumers, graph.tensor_offsets[1:-1])
    of_producer = list(zip(graph.tensor_producer.tolist(), (r.tolist() for r in readers), strict=True))
    # Producers ascend, so that the readers of a tensor have their devices when its maker is looked at.
    for producer, consumers in reversed(of_producer):
        if graph.names[producer] not in device_of:
            found[producer] = found[min(consumers)]
    # Who has no reader was folded for nobody.
    most = int(np.argmax(np.bincount([d for d in found if d >= 0])))
    return np.array([most if d < 0 else d for d in found], dtype=np.int32)


def _nearest(graph: ComputationGraph, wanted: IntArray) -> IntArray:
    """Every group where most of its work is wanted, or the whole model where most of it is, ``int32[N]``."""
    group_of = coarsen(graph, light_ops=False).group_of
    work = 1 + graph.flops + graph.weight_bytes + graph.output_bytes
    votes = np.zeros((int(group_of.max(initial=-1)) + 1, int(wanted.max(initial=0)) + 1))
    np.add.at(votes, (group_of, wanted), work)
    by_group: IntArray = votes.argmax(axis=1).astype(np.int32)[group_of]
    if runs_as_it_is(graph, by_group):
        return by_group
    return np.full(len(graph), votes.sum(axis=0).argmax(), dtype=np.int32)


def _cheapest(graph: ComputationGraph, problem: Problem, source: ProposalSource) -> IntArray | None:
    """The given model's groups placed at known costs, ``int32[N]``; ``None`` where no way is found."""
    table = problem.table
    for pins in (problem.pins, {}) if problem.pins else ({},):
        try:
            coarse = coarsen(graph, fused=table.members or (), pins=pins, light_ops=False)
            unfolded_problem = Problem.of(_costs_of(coarse, table), problem.memory_limits, pins)
            proposals = propose(unfolded_problem, source)
        except PlacementError as cause:
            _log.warning(
                "on the model as it was given, whose shape computations are not folded, the pins and limits "
                "cannot be met; the affinity file does not honour them (%s)",
                cause,
            )
            continue
        able = [p for p in proposals if runs_as_it_is(graph, p.assignment[coarse.group_of])]
        best = min(able, key=lambda p: p.expected_seconds, default=None)
        single = min((p for p in able if p.is_single), key=lambda p: p.expected_seconds, default=None)
        if best is not None and single is not None:
            # A mix that was never measured must be predicted to gain what a measured one has to.
            gains = best.expected_seconds <= (1 - MINIMAL_GAIN) * single.expected_seconds
            best = best if gains else single
        if best is not None:
            return best.assignment[coarse.group_of].astype(np.int32)
    return None


def _costs_of(coarse: CoarseGraph, table: CostTable) -> CostTable:
    """Costs of groups that are unions of ``table``'s groups and of shape computations, which cost nothing."""
    index = coarse.ops.index
    label = coarse.group_of[[index[name] for name in table.names]]
    seconds = np.zeros((len(coarse), table.num_devices))
    np.add.at(seconds, label, table.op_seconds)
    transfers = TransferFit(
        table.devices, table.transfer_latency, table.transfer_seconds_per_byte, table.launch_seconds
    )
    found = assemble_table(coarse, table.devices, seconds, transfers, table.memory_capacity, table.source)
    return replace(found, doubt=table.doubt)
