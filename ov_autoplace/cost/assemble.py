"""Putting a cost table together from a coarse graph, op times and what transfers cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, offsets_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.cost.wiring import wiring_of_ops
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph

__all__ = ["assemble_table", "tensor_readers"]


def assemble_table(
    coarse: CoarseGraph,
    devices: Sequence[str],
    op_seconds: FloatArray,
    transfers: TransferFit,
    memory_capacity: FloatArray | None = None,
    source: str = "analytic",
) -> CostTable:
    """A cost table over the groups of ``coarse``.

    A group holds its weights and its results in memory. Consumers that read a tensor through several
    ports are named once.

    Args:
        coarse: Co-location groups of a model, G of them.
        devices: Device names, D.
        op_seconds: Run time of each group on each device, ``float64[G, D]``; ``inf`` = cannot run there.
        transfers: Costs of launches and transfers; must know ``devices``.
        memory_capacity: Bytes per device, ``float64[D]``; ``None`` = not limited.
        source: Where the times come from, see :class:`CostTable`.

    Raises:
        TargetError: ``transfers`` lacks a device.
    """
    graph = coarse.graph
    transfers = transfers.for_devices(devices)
    D = len(devices)
    offsets, consumers = tensor_readers(graph)
    return CostTable(
        devices=tuple(devices),
        names=graph.names,
        op_seconds=op_seconds,
        tensor_producer=graph.tensor_producer,
        tensor_bytes=graph.tensor_bytes,
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        tensor_is_constant=coarse.tensor_is_constant,
        tensor_uncuttable=graph.tensor_uncuttable,
        transfer_latency=transfers.latency,
        transfer_seconds_per_byte=transfers.seconds_per_byte,
        launch_seconds=transfers.launch_seconds,
        memory_bytes=graph.weight_bytes + graph.output_bytes,
        memory_capacity=np.full(D, np.inf) if memory_capacity is None else memory_capacity,
        op_types=graph.op_types,
        output_shapes=graph.output_shapes,
        members=coarse.members,
        source=source,
        result_bytes=graph.output_bytes,
        wiring=wiring_of_ops(coarse),
    )


def tensor_readers(graph: ComputationGraph) -> tuple[IntArray, IntArray]:
    """Readers of each tensor, CSR ``int32[T + 1]`` and ``int32[E]``: each once, and never the producer."""
    G = max(len(graph), 1)
    pairs = np.unique(graph.edge_tensor.astype(np.int64) * G + graph.tensor_consumers)
    tensor_of_pair, consumers = np.divmod(pairs, G)
    outside = consumers != graph.tensor_producer[tensor_of_pair]
    readers = np.bincount(tensor_of_pair[outside], minlength=len(graph.tensor_producer))
    return offsets_of(readers), consumers[outside].astype(np.int32)
