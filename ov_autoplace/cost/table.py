"""The cost table: seconds of every group on every device, and what crossing devices costs."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray
from ov_autoplace.cost.validation import check_table, checked_arrays
from ov_autoplace.cost.wiring import Wiring

__all__ = ["CostTable"]


@dataclass(frozen=True, eq=False)
class CostTable:
    """Costs of placing G groups, which exchange T tensors, on D devices.

    A transfer is paid once per tensor and receiving subgraph. Groups stand in topological order. The
    fields are checked when a table is made, and its arrays are then read-only.

    Attributes:
        devices: Device names, length D.
        names: Unique name of each group, length G.
        op_seconds: Run time of each group on each device, ``float64[G, D]``; ``inf`` = cannot run there.
        tensor_producer: Producing group of each tensor, ``int32[T]``.
        tensor_bytes: Bytes of each tensor, ``float64[T]``.
        tensor_offsets, tensor_consumers: CSR of consuming groups, ``int32[T + 1]``, ``int32[E]``; a
            consumer stands once per tensor and is never the producer.
        tensor_is_constant: Constants shared by several groups: no transfer and no dependency, but
            consumers on the producer's device join its subgraph, ``bool[T]``.
        tensor_uncuttable: Tensors whose producer and consumers must share a device, ``bool[T]``.
        transfer_latency: Fixed seconds of one hand-over, ``float64[D, D]`` (from, to); the diagonal is a
            hand-over between two subgraphs of one device.
        transfer_seconds_per_byte: Seconds per byte of one hand-over, ``float64[D, D]``.
        launch_seconds: Fixed seconds per subgraph, ``float64[D]``.
        mix_seconds: Fixed seconds that a placement on more than one device pays once: a device that idles
            while another works has to wake up for its next subgraph.
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
        source: Where the times come from: ``analytic``, ``profiled``, ``measured`` or ``imported``.
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

    def __post_init__(self) -> None:
        for field, array in checked_arrays(self).items():
            object.__setattr__(self, field, array)
        check_table(self)

    def __len__(self) -> int:
        return len(self.names)

    @cached_property
    def index(self) -> dict[str, int]:
        """Position of each group by name."""
        return {name: i for i, name in enumerate(self.names)}

    @classmethod
    def load(cls, path: str | Path) -> CostTable:
        """Read a table that :meth:`save` wrote."""
        from ov_autoplace.cost.table_json import load_table

        return load_table(path)

    def save(self, path: str | Path) -> None:
        """Write the table as JSON (the schema is described in ``cost/table_json.py``)."""
        from ov_autoplace.cost.table_json import save_table

        save_table(self, path)

    @classmethod
    def from_dnn_partitioning(
        cls, path: str | Path, accelerators: int | None = None, memory: bool = True
    ) -> CostTable:
        """Read a graph of the public dnn-partitioning format.

        Args:
            path: JSON file of that format.
            accelerators: How many accelerators to keep; ``None`` keeps all that the file names.
            memory: ``False`` drops the accelerators' memory capacity.
        """
        from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning

        return load_dnn_partitioning(path, accelerators, memory)

    def to_dnn_partitioning(self, path: str | Path) -> None:
        """Write the table in the dnn-partitioning format, as far as that format can say it."""
        from ov_autoplace.cost.dnn_partitioning_export import save_dnn_partitioning

        save_dnn_partitioning(self, path)

    @property
    def num_devices(self) -> int:
        """Number of devices, D."""
        return len(self.devices)

    @cached_property
    def supported(self) -> BoolArray:
        """Which group can run on which device, ``bool[G, D]``."""
        return np.isfinite(self.op_seconds)
