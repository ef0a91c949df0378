"""How HETERO would cut a placed model: the number and the membership of its subgraphs, without compiling.

The rules are those of the HETERO plugin of the OpenVINO release in this process, and they are exact on a
model's ops. The core's ``partition.hpp`` describes them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import openvino as ov

from ov_autoplace import _core
from ov_autoplace._base.arrays import IntArray
from ov_autoplace._base.kept import kept
from ov_autoplace._base.releases import HeteroRules, installed
from ov_autoplace.cost.wiring import node_kinds
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.names import unique_names
from ov_autoplace.plan.hetero_rules import hetero_rules

__all__ = ["completed", "count_graph_subgraphs", "graph_partition", "graph_subgraphs", "number_devices"]


def count_graph_subgraphs(graph: ComputationGraph, device: IntArray) -> int:
    """How many submodels HETERO makes of a placed graph.

    Args:
        graph: An extracted graph of N ops; what it needs for partitioning is prepared once and kept.
        device: Any number per op that tells devices apart, ``int32[N]``.

    Raises:
        PlacementError: ``device`` has another length than the graph, or HETERO refuses the placement.
    """
    submodels, _ = graph_partition(graph, device)
    if submodels is None:
        raise PlacementError(
            f"HETERO of OpenVINO {installed()} refuses this placement, because submodels would wait for each "
            "other in a cycle; place more of the model on one device"
        )
    return submodels


def graph_subgraphs(graph: ComputationGraph, device: IntArray) -> IntArray:
    """Subgraph of each op, named by its first op, ``int32[N]``; see :func:`count_graph_subgraphs`.

    Of a placement that HETERO refuses, those that it could not sort.
    """
    return graph_partition(graph, device)[1]


def graph_partition(graph: ComputationGraph, device: IntArray) -> tuple[int | None, IntArray]:
    """:func:`count_graph_subgraphs`, ``None`` where HETERO refuses, and :func:`graph_subgraphs`."""
    if device.shape != (len(graph),):
        raise PlacementError(f"the graph has {len(graph)} ops, the placement {list(device.shape)}")
    rules = hetero_rules(is_mix=bool((device != device[:1]).any()))
    return _prepared(graph, rules).partition(np.ascontiguousarray(device, dtype=np.int32))


def number_devices(names: Sequence[str], device_of: Mapping[str, str]) -> IntArray:
    """A number per op, equal for ops on the same device, ``int32[N]``.

    Args:
        names: The N ops.
        device_of: Device of each of them, at least.
    """
    number = {device: i for i, device in enumerate(dict.fromkeys(device_of.values()))}
    return np.array([number[device_of[name]] for name in names], dtype=np.int32)


def completed(model: ov.Model, known: Mapping[str, str]) -> dict[str, str]:
    """A device for every op: that of a producer, else of a consumer, else the most frequent one.

    Args:
        model: Its ops are named in ``known`` as ``make_names_unique`` would name them.
        known: Devices of at least one op.

    Returns:
        Device by op name, in topological order.
    """
    device_of = dict(known)
    ops = model.get_ordered_ops()
    names = unique_names(op.get_friendly_name() for op in ops)
    if all(name in device_of for name in names):
        return {name: device_of[name] for name in names}
    name_of = {op.get_instance_id(): name for op, name in zip(ops, names, strict=True)}
    for op, name in zip(ops, names, strict=True):
        if name not in device_of:
            sources = (name_of[v.get_node().get_instance_id()] for v in op.input_values())
            device = next((device_of[s] for s in sources if s in device_of), None)
            if device is not None:
                device_of[name] = device
    most = Counter(device_of.values()).most_common(1)[0][0]
    for op, name in zip(reversed(ops), reversed(names), strict=True):
        if name not in device_of:
            readers = (t.get_node().get_instance_id() for o in op.outputs() for t in o.get_target_inputs())
            targets = (name_of[reader] for reader in readers)
            device_of[name] = next((device_of[t] for t in targets if t in device_of), most)
    return {name: device_of[name] for name in names}


@kept
def _prepared(graph: ComputationGraph, rules: HeteroRules) -> _core.PartitionGraph:
    kinds = node_kinds(graph).astype(np.uint8)
    wiring = graph.tensor_producer, graph.tensor_offsets, graph.tensor_consumers
    return _core.PartitionGraph(kinds, *wiring, rules.value)
