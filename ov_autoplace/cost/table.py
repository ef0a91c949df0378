"""The cost table: seconds of every group on every device, and what crossing devices costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array, rows_of
from ov_autoplace.cost.wiring import Wiring
from ov_autoplace.errors import CostTableError

__all__ = ["ANALYTIC", "LEARNED", "CostTable"]

ANALYTIC, LEARNED = "analytic", "learned"
"""Sources of a table that is estimated before anything was measured."""


@dataclass(frozen=True, eq=False)
class CostTable:
    """Costs of placing G groups, which exchange T tensors, on D devices.

    A transfer is paid once per tensor and receiving subgraph. Groups are in topological order. The
    fields are checked when a table is made, and its arrays are then read-only.

    Attributes:
        devices: Device names, length D.
        names: Unique name of each group, length G.
        op_seconds: Run time of each group on each device, ``float64[G, D]``; ``inf`` = cannot run there.
        tensor_producer: Producing group of each tensor, ``int32[T]``.
        tensor_bytes: Bytes of each tensor, ``float64[T]``.
        tensor_offsets, tensor_consumers: CSR of consuming groups, ``int32[T + 1]``, ``int32[E]``; a
            consumer is named once per tensor and is never the producer.
        tensor_is_constant: Constants shared by several groups: no transfer and no dependency, but
            consumers on the producer's device join its subgraph, ``bool[T]``.
        tensor_uncuttable: Tensors whose producer and consumers must share a device, ``bool[T]``.
        transfer_latency: Fixed seconds of one transfer, ``float64[D, D]`` (from, to); the diagonal is a
            transfer between two subgraphs of one device.
        transfer_seconds_per_byte: Seconds per byte of one transfer, ``float64[D, D]``.
        launch_seconds: Fixed seconds per subgraph, ``float64[D]``.
        mix_seconds: Fixed seconds that a placement on more than one column pays once: a device that idles
            while another works has to wake up for its next subgraph, and lanes need somebody to lead them.
        lane_devices: Device behind each column, length D, where columns are lanes: several lanes of one
            device share its memory and work at once under the objective ``overlap`` (``cost/lanes.py``).
            ``None`` = each column is a device.
        corun_factor: How much longer all work takes while two or more columns compute at once, 1 or more;
            of the objective ``overlap`` alone.
        memory_bytes: Weights and results that a group keeps on its device, ``float64[G]``.
        result_bytes: The part of ``memory_bytes`` that are results, ``float64[G]``: memory that is free
            again once the last reader has run, and taken on reading devices too (``cost/liveness.py``).
            ``None`` = not known: then all of ``memory_bytes`` is held all the time.
        memory_capacity: Bytes per device, ``float64[D]``; ``inf`` = not limited.
        colocation: Class of each group, ``int32[G]``, -1 = none: groups of one class share a device.
        op_types: Op type of each group's heaviest op, or ``None`` when the source has none.
        output_shapes: Shape of the first output of each group's heaviest op, -1 for a dimension that is
            not known, or ``None`` when the source has none.
        members: Op friendly names of each group, or ``None`` when a group is one op.
        source: Where times come from: ``analytic``, ``learned``, ``profiled``, ``measured`` or ``imported``.
        doubt: By which factor an estimate of a whole model is typically off; 1 where nobody knows, and where
            times are no estimate.
        wiring: The ops behind the groups, for counting subgraphs exactly as HETERO does; ``None`` takes
            each group as one op.

    Raises:
        CostTableError: On construction, when a field contradicts this description.
    """

    devices: tuple[str, ...]
    names: tuple[str, ...]
    op_seconds: FloatArray
    tensor_producer: IntArray
    tensor_bytes: FloatArray
    tensor_offsets: IntArray
    tensor_consumers: IntArray
    tensor_is_constant: BoolArray
    tensor_uncuttable: BoolArray
    transfer_latency: FloatArray
    transfer_seconds_per_byte: FloatArray
    launch_seconds: FloatArray
    memory_bytes: FloatArray
    memory_capacity: FloatArray
    colocation: IntArray | None = None
    op_types: tuple[str, ...] | None = None
    members: tuple[tuple[str, ...], ...] | None = None
    source: str = "imported"
    wiring: Wiring | None = None
    output_shapes: tuple[tuple[int, ...], ...] | None = None
    result_bytes: FloatArray | None = None
    mix_seconds: float = 0.0
    lane_devices: tuple[str, ...] | None = None
    corun_factor: float = 1.0
    doubt: float = 1.0

    def __post_init__(self) -> None:
        for field, array in _checked_arrays(self).items():
            object.__setattr__(self, field, array)
        _check_table(self)

    def __len__(self) -> int:
        return len(self.names)

    @property
    def is_estimate(self) -> bool:
        """Whether nothing was measured of the model."""
        return self.source in (ANALYTIC, LEARNED)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each group by name."""
        return {name: i for i, name in enumerate(self.names)}

    @property
    def num_devices(self) -> int:
        """Number of devices, D."""
        return len(self.devices)

    @property
    def owners(self) -> tuple[str, ...]:
        """The device that each column is, or is a lane of, D."""
        return self.lane_devices or self.devices

    @cached_property
    def device_of(self) -> IntArray:
        """First column of each column's device, ``int32[D]``: equal for lanes that share memory."""
        return frozen_array([self.owners.index(name) for name in self.owners], np.int32)

    @cached_property
    def supported(self) -> BoolArray:
        """Which group can run on which device, ``bool[G, D]``."""
        return np.isfinite(self.op_seconds)


def _checked_arrays(table: CostTable) -> dict[str, NDArray[Any]]:
    """The table's arrays with their documented types, read-only and contiguous.

    Raises:
        CostTableError: An array has another shape, holds a NaN, a negative or an infinite value where
            none is allowed, or holds ids that are not integers.
    """
    G, D, T = len(table.names), len(table.devices), len(table.tensor_producer)
    E = len(table.tensor_consumers)
    arrays = {
        "op_seconds": _costs("op_seconds", table.op_seconds, (G, D), infinite=True),
        "tensor_producer": _ids("tensor_producer", table.tensor_producer, (T,), 0, G),
        "tensor_bytes": _costs("tensor_bytes", table.tensor_bytes, (T,)),
        "tensor_offsets": _ids("tensor_offsets", table.tensor_offsets, (T + 1,), 0, E + 1),
        "tensor_consumers": _ids("tensor_consumers", table.tensor_consumers, (E,), 0, G),
        "tensor_is_constant": _array("tensor_is_constant", table.tensor_is_constant, (T,), np.bool_),
        "tensor_uncuttable": _array("tensor_uncuttable", table.tensor_uncuttable, (T,), np.bool_),
        "transfer_latency": _costs("transfer_latency", table.transfer_latency, (D, D)),
        "transfer_seconds_per_byte": _costs(
            "transfer_seconds_per_byte", table.transfer_seconds_per_byte, (D, D)
        ),
        "launch_seconds": _costs("launch_seconds", table.launch_seconds, (D,)),
        "memory_bytes": _costs("memory_bytes", table.memory_bytes, (G,)),
        "memory_capacity": _costs("memory_capacity", table.memory_capacity, (D,), infinite=True),
    }
    if table.result_bytes is not None:
        arrays["result_bytes"] = _costs("result_bytes", table.result_bytes, (G,))
    if table.colocation is not None:
        arrays["colocation"] = _ids("colocation", table.colocation, (G,), -1, 2**31 - 1)
    return arrays


def _check_table(table: CostTable) -> None:
    """Check what concerns several fields: names, order, and the tensors' consumers.

    Raises:
        CostTableError: Naming the first field, group or tensor that is wrong.
    """
    if not table.devices:
        raise CostTableError("a cost table needs at least one device")
    if not (np.isfinite(table.mix_seconds) and table.mix_seconds >= 0):
        raise CostTableError(f"mix_seconds is {table.mix_seconds}; it must be finite and 0 or more")
    if not (np.isfinite(table.corun_factor) and table.corun_factor >= 1):
        raise CostTableError(f"corun_factor is {table.corun_factor}; it must be finite and 1 or more")
    if not (np.isfinite(table.doubt) and table.doubt >= 1):
        raise CostTableError(f"doubt is {table.doubt}; it must be finite and 1 or more")
    if table.lane_devices is not None and len(table.lane_devices) != len(table.devices):
        raise CostTableError(
            f"lane_devices must name one device per column ({len(table.devices)}), "
            f"not {len(table.lane_devices)}"
        )
    _unique("device names", table.devices)
    _unique("group names", table.names)
    for field in ("op_types", "output_shapes", "members"):
        values = getattr(table, field)
        if values is not None and len(values) != len(table.names):
            raise CostTableError(
                f"{field} must have one entry per group ({len(table.names)}), not {len(values)}"
            )
    if table.members is not None:
        _unique("member ops", [op for ops in table.members for op in ops])
    _check_tensors(table)
    if table.wiring is not None:
        groups = table.wiring.node_group
        if len(groups) and not 0 <= groups.min() <= groups.max() < len(table.names):
            raise CostTableError(f"the wiring names group {groups.max()}; the table has {len(table.names)}")


def _check_tensors(table: CostTable) -> None:
    offsets, consumers = table.tensor_offsets, table.tensor_consumers
    counts = np.diff(offsets)
    if offsets[0] != 0 or offsets[-1] != len(consumers) or (counts < 0).any():
        raise CostTableError(
            f"tensor_offsets must rise from 0 to the number of consumers ({len(consumers)}) without a fall"
        )
    tensor = rows_of(offsets)
    producer = table.tensor_producer[tensor]
    late = (producer > consumers) & ~table.tensor_is_constant[tensor]
    wrong = np.flatnonzero((producer == consumers) | late)
    if len(wrong):
        e = wrong[0]
        names = table.names[producer[e]], table.names[consumers[e]]
        problem = "its own consumer" if names[0] == names[1] else f"behind its consumer {names[1]!r}"
        raise CostTableError(
            f"tensor {tensor[e]}: its producer {names[0]!r} is {problem}; groups must be in topological order"
        )
    pairs = tensor.astype(np.int64) * len(table.names) + consumers
    if len(np.unique(pairs)) != len(pairs):
        ordered = np.sort(pairs)
        twice = int(ordered[1:][ordered[1:] == ordered[:-1]][0])
        t, g = divmod(twice, len(table.names))
        raise CostTableError(f"tensor {t} names its consumer {table.names[g]!r} twice; name each once")


def _array(field: str, values: Any, shape: tuple[int, ...], dtype: DTypeLike) -> NDArray[Any]:
    array = np.asarray(values)
    if array.shape != shape:
        raise CostTableError(f"{field} must have the shape {list(shape)}, not {list(array.shape)}")
    if array.size and not np.can_cast(array.dtype, dtype, "same_kind"):
        raise CostTableError(f"{field} must hold {np.dtype(dtype)} values, not {array.dtype}")
    return array


def _costs(field: str, values: Any, shape: tuple[int, ...], infinite: bool = False) -> NDArray[Any]:
    array = frozen_array(_array(field, values, shape, np.float64), np.float64)
    good = (array >= 0) if infinite else np.isfinite(array) & (array >= 0)
    if not good.all():
        where = np.unravel_index(int(np.argmin(good)), array.shape)
        allowed = "0 or more" if infinite else "finite and 0 or more"
        raise CostTableError(f"{field}{[int(i) for i in where]} is {array[where]}; it must be {allowed}")
    return array


def _ids(field: str, values: Any, shape: tuple[int, ...], low: int, end: int) -> NDArray[Any]:
    # Range before type: an id of 2**40 must not wrap around into a valid one.
    array = _array(field, values, shape, np.int64)
    if array.size and (array.min() < low or array.max() >= end):
        bad = array.min() if array.min() < low else array.max()
        raise CostTableError(f"{field} holds {bad}; its values lie in {low} .. {end - 1}")
    return frozen_array(array, np.int32)


def _unique(what: str, names: Sequence[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if not isinstance(name, str):
            raise CostTableError(f"{what} must be strings, not {name!r}")
        if name in seen:
            raise CostTableError(f"{what} must be unique, but {name!r} stands twice")
        seen.add(name)
