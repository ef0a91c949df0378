"""How HETERO would cut a placed model: the number and the membership of its subgraphs, without compiling.

The rules are those of the HETERO plugin of the OpenVINO release that this package is built against, and
they are exact on a model's ops. The core's ``partition.hpp`` describes them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from weakref import WeakKeyDictionary

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ov_autoplace import _core
from ov_autoplace._base.arrays import IntArray, csr_from_lists
from ov_autoplace._base.text import counted
from ov_autoplace.cost.wiring import CONSTANT, PARAMETER, RESULT, node_kinds
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.names import unique_names
from ov_autoplace.placement.placement import Placement

__all__ = ["count_graph_subgraphs", "graph_subgraphs", "number_devices", "subgraphs_of"]

# Every other op is 0.
_KINDS = {"Parameter": PARAMETER, "Constant": CONSTANT, "Result": RESULT}

_graphs: WeakKeyDictionary[ComputationGraph, _core.PartitionGraph] = WeakKeyDictionary()


def subgraphs_of(model: ov.Model, placement: Placement | Mapping[str, str]) -> dict[str, int]:
    """Subgraph of every op by friendly name, numbered in order of first appearance among the ops.

    HETERO's rules are applied to the model as it is, whether what comes out can be run or not.

    Constants that no subgraph keeps (HETERO copies them to their readers) have numbers of their own after
    those of the submodels, so ``count_subgraphs`` may be smaller than the number of different values.

    Raises:
        PlacementError: An op has no device, or a placed op is not in the model.
    """
    ops, names = _ops_and_names(model)
    _, first_ops = _partition_graph(ops).partition(_device_indices(names, placement))
    submodels = [first for op, first in zip(ops, first_ops.tolist(), strict=True) if not _is_constant(op)]
    number = {first: i for i, first in enumerate(dict.fromkeys(submodels + first_ops.tolist()))}
    return {name: number[first] for name, first in zip(names, first_ops.tolist(), strict=True)}


def count_graph_subgraphs(graph: ComputationGraph, device: IntArray) -> int:
    """:func:`count_subgraphs` for an extracted graph: faster, when many placements are tried.

    Args:
        graph: An extracted graph of N ops; what it needs for partitioning is prepared once and kept.
        device: Any number per op that tells devices apart, ``int32[N]``.

    Raises:
        PlacementError: ``device`` has another length than the graph.
    """
    return _partition(graph, device)[0]


def graph_subgraphs(graph: ComputationGraph, device: IntArray) -> IntArray:
    """Subgraph of each op, named by its first op, ``int32[N]``; see :func:`count_graph_subgraphs`."""
    return _partition(graph, device)[1]


def number_devices(names: Sequence[str], device_of: Mapping[str, str]) -> IntArray:
    """A number per op, equal for ops on the same device, ``int32[N]``.

    Args:
        names: The N ops.
        device_of: Device of each of them, at least.
    """
    number = {device: i for i, device in enumerate(dict.fromkeys(device_of.values()))}
    return np.array([number[device_of[name]] for name in names], dtype=np.int32)


def _partition(graph: ComputationGraph, device: IntArray) -> tuple[int, IntArray]:
    if device.shape != (len(graph),):
        raise PlacementError(f"the graph has {len(graph)} ops, the placement {list(device.shape)}")
    prepared = _graphs.get(graph)
    if prepared is None:
        prepared = _graphs[graph] = _core.PartitionGraph(
            node_kinds(graph).astype(np.uint8),
            graph.tensor_producer,
            graph.tensor_offsets,
            graph.tensor_consumers,
        )
    return prepared.partition(np.ascontiguousarray(device, dtype=np.int32))


def _ops_and_names(model: ov.Model) -> tuple[list[ov.Node], list[str]]:
    ops = model.get_ordered_ops()
    return ops, unique_names(op.get_friendly_name() for op in ops)


def _partition_graph(ops: list[ov.Node]) -> _core.PartitionGraph:
    position = {op.get_instance_id(): i for i, op in enumerate(ops)}
    tensor: dict[tuple[int, int], int] = {}
    readers: list[list[int]] = []
    for i, op in enumerate(ops):
        for value in op.input_values():
            output = (position[value.get_node().get_instance_id()], value.get_index())
            if output not in tensor:
                tensor[output] = len(readers)
                readers.append([])
            readers[tensor[output]].append(i)
    kinds: NDArray[np.uint8] = np.array([_KINDS.get(op.get_type_name(), 0) for op in ops], dtype=np.uint8)
    producers = np.array([op for op, _ in tensor], dtype=np.int32)
    return _core.PartitionGraph(kinds, producers, *csr_from_lists(readers))


def _is_constant(op: ov.Node) -> bool:
    return bool(op.get_type_name() == "Constant")


def _device_indices(names: list[str], placement: Placement | Mapping[str, str]) -> IntArray:
    """A number per op, equal for ops on the same device, ``int32[N]``."""
    device_of = placement.to_dict() if isinstance(placement, Placement) else dict(placement)
    missing = [name for name in names if name not in device_of]
    if missing:
        raise PlacementError(
            f"there is no device for {len(missing)} of {counted(len(names), 'op')}, "
            f"the first is {missing[0]!r}; place every op"
        )
    if len(device_of) != len(names):
        known = set(names)
        unknown = next(name for name in device_of if name not in known)
        raise PlacementError(f"the model has no op {unknown!r}; was the placement made for another model?")
    return number_devices(names, device_of)
