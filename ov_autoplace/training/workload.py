"""What a model asks of any device, apart from devices: the raw material of training graphs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace._base.arrays import BoolArray, FloatArray, IntArray, frozen_array
from ov_autoplace._base.files import read_arrays
from ov_autoplace.cost.analytic import WORK_CLASSES, busy_groups, bytes_exchanged, work_by_class
from ov_autoplace.cost.assemble import tensor_readers
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import TrainingError
from ov_autoplace.graph.computation_graph import CoarseGraph

__all__ = ["Workload", "load_folder"]

_SCHEMA = 1


_DTYPES: dict[str, type] = {
    "flops": np.float64,
    "weight_bytes": np.float64,
    "output_bytes": np.float64,
    "exchanged_bytes": np.float64,
    "busy": np.bool_,
    "tensor_producer": np.int32,
    "tensor_bytes": np.float64,
    "tensor_offsets": np.int32,
    "tensor_consumers": np.int32,
    "tensor_is_constant": np.bool_,
    "tensor_uncuttable": np.bool_,
}
_INDICES = "iu"
_KIND_OF: dict[type, str] = {np.float64: "fiu", np.bool_: "b", np.int32: _INDICES}
# NumPy's letters for the kinds of values that each stored array may hold.
_KINDS = {field: _KIND_OF[dtype] for field, dtype in _DTYPES.items()} | {
    "schema": _INDICES,
    "num_ops": _INDICES,
    "ranks": _INDICES,
    "about": "U",
    "op_types": "U",
    "dims": "i",
}


@dataclass(frozen=True, slots=True, eq=False)
class Workload:
    """A graph of G groups in topological order that exchange T tensors, and its demands.

    A cost table follows from it for any target in a few array operations.

    Attributes:
        name: What to call it.
        family: Which kind of network it is; splits of the data are by family.
        num_ops: Ops of the original model.
        op_types: Op type of each group's heaviest op, length G.
        output_shapes: Shape of that op's first output, length G; -1 marks a dimension that is not known.
        flops: Work of each group by class of op, ``float64[G, 4]``, see
            :func:`~ov_autoplace.cost.analytic.work_by_class`.
        weight_bytes: Constant data that each group reads, ``float64[G]``.
        output_bytes: Bytes over all outputs of the members, ``float64[G]``; with the weights, the memory
            that a group fills.
        exchanged_bytes: Bytes read from and written to other groups, ``float64[G]``.
        busy: Which groups take time at all, ``bool[G]``.
        tensor_producer, tensor_bytes, tensor_offsets, tensor_consumers, tensor_is_constant,
            tensor_uncuttable: As in :class:`~ov_autoplace.cost.table.CostTable`.

    Raises:
        TrainingError: On construction, when the lengths contradict each other.
    """

    name: str
    family: str
    num_ops: int
    op_types: tuple[str, ...]
    output_shapes: tuple[tuple[int, ...], ...]
    flops: FloatArray
    weight_bytes: FloatArray
    output_bytes: FloatArray
    exchanged_bytes: FloatArray
    busy: BoolArray
    tensor_producer: IntArray
    tensor_bytes: FloatArray
    tensor_offsets: IntArray
    tensor_consumers: IntArray
    tensor_is_constant: BoolArray
    tensor_uncuttable: BoolArray

    def __post_init__(self) -> None:
        for field, dtype in _DTYPES.items():
            object.__setattr__(self, field, frozen_array(getattr(self, field), dtype))
        self._check()

    def __len__(self) -> int:
        return len(self.op_types)

    @classmethod
    def of(cls, coarse: CoarseGraph, name: str, family: str) -> Workload:
        """What the groups of a model ask of any device."""
        graph = coarse.graph
        offsets, consumers = tensor_readers(graph)
        return cls(
            name=name,
            family=family,
            num_ops=len(coarse.ops),
            op_types=graph.op_types,
            output_shapes=graph.output_shapes,
            flops=work_by_class(coarse),
            weight_bytes=graph.weight_bytes,
            output_bytes=graph.output_bytes,
            exchanged_bytes=bytes_exchanged(coarse),
            busy=busy_groups(coarse),
            tensor_producer=graph.tensor_producer,
            tensor_bytes=graph.tensor_bytes,
            tensor_offsets=offsets,
            tensor_consumers=consumers,
            tensor_is_constant=coarse.tensor_is_constant,
            tensor_uncuttable=graph.tensor_uncuttable,
        )

    def table(self, op_seconds: FloatArray, transfers: TransferFit) -> CostTable:
        """What the groups cost on D devices that hold everything.

        Args:
            op_seconds: Seconds of each group on each device, ``float64[G, D]``; ``inf`` = unsupported.
            transfers: What crossing the devices costs, with their names.
        """
        return CostTable(
            devices=transfers.devices,
            names=tuple(f"group{g}" for g in range(len(self))),
            op_seconds=op_seconds,
            tensor_producer=self.tensor_producer,
            tensor_bytes=self.tensor_bytes,
            tensor_offsets=self.tensor_offsets,
            tensor_consumers=self.tensor_consumers,
            tensor_is_constant=self.tensor_is_constant,
            tensor_uncuttable=self.tensor_uncuttable,
            transfer_latency=transfers.latency,
            transfer_seconds_per_byte=transfers.seconds_per_byte,
            launch_seconds=transfers.launch_seconds,
            memory_bytes=self.weight_bytes + self.output_bytes,
            memory_capacity=np.full(len(transfers.devices), np.inf),
            op_types=self.op_types,
            output_shapes=self.output_shapes,
            source="profiled",
        )

    def save(self, path: str | Path) -> None:
        """Write one ``.npz`` file that holds no pickled objects.

        Shapes follow each other with the number of dimensions of each beside.
        """
        arrays: dict[str, Any] = {field: getattr(self, field) for field in _DTYPES}
        arrays["schema"] = np.array(_SCHEMA)
        arrays["about"] = np.array([self.name, self.family])
        arrays["num_ops"] = np.array(self.num_ops)
        arrays["op_types"] = np.array(self.op_types, dtype=np.str_)
        arrays["ranks"] = np.array([len(shape) for shape in self.output_shapes], dtype=np.int64)
        arrays["dims"] = np.array([dim for shape in self.output_shapes for dim in shape], dtype=np.int64)
        np.savez_compressed(path, **arrays)

    @classmethod
    def load(cls, path: str | Path) -> Workload:
        """Read what :meth:`save` wrote.

        Raises:
            TrainingError: There is no such file, or it holds no workload.
        """
        try:
            return cls._of_arrays(read_arrays(path))
        except TrainingError as cause:
            raise TrainingError(f"{path} holds no workload: {cause}") from cause
        except (KeyError, ValueError) as cause:
            raise TrainingError(
                f"{path} holds no workload ({cause}); write it again with tools/workloads.py"
            ) from cause

    @classmethod
    def _of_arrays(cls, arrays: dict[str, NDArray[Any]]) -> Workload:
        for field, kinds in _KINDS.items():
            values = arrays[field]
            if values.dtype.kind not in kinds:
                raise TrainingError(f"{field} holds {values.dtype} values")
            # Before they are cast, which would wrap them around into valid ones.
            if values.size and kinds == _INDICES and not 0 <= values.min() <= values.max() < 2**31:
                raise TrainingError(f"{field} holds numbers that are no index")
        if arrays["schema"].tolist() != _SCHEMA:
            raise TrainingError(
                f"its schema is {arrays['schema'].tolist()}, and this version reads {_SCHEMA}"
            )
        if arrays["about"].shape != (2,) or arrays["num_ops"].shape != ():
            raise TrainingError("it must have two names and one number of ops")
        name, family = arrays["about"].tolist()
        ranks, sizes = arrays["ranks"], arrays["dims"]
        if ranks.ndim != 1 or sizes.ndim != 1 or ranks.sum(dtype=np.float64) != len(sizes):
            raise TrainingError("the numbers of dimensions do not fit the dimensions")
        dims = np.split(sizes, np.cumsum(ranks)[:-1]) if len(ranks) else []
        return cls(
            name=name,
            family=family,
            num_ops=int(arrays["num_ops"]),
            op_types=tuple(arrays["op_types"].tolist()),
            output_shapes=tuple(tuple(shape.tolist()) for shape in dims),
            **{field: arrays[field] for field in _DTYPES},
        )

    def _check(self) -> None:
        G, T = len(self.op_types), self.tensor_producer.size
        lengths = {
            "output_shapes": G,
            "flops": G,
            "weight_bytes": G,
            "output_bytes": G,
            "exchanged_bytes": G,
            "busy": G,
            "tensor_bytes": T,
            "tensor_offsets": T + 1,
            "tensor_is_constant": T,
            "tensor_uncuttable": T,
        }
        for field, length in lengths.items():
            values = getattr(self, field)
            if isinstance(values, np.ndarray) and values.ndim != 1 + (field == "flops"):
                raise TrainingError(f"{field} has shape {values.shape}")
            if len(values) != length:
                raise TrainingError(f"{field} has {len(values)} entries, and needs {length}")
            if isinstance(values, np.ndarray) and not (np.isfinite(values) & (values >= 0)).all():
                raise TrainingError(f"{field} must hold finite numbers of 0 or more")
        if self.flops.shape != (G, len(WORK_CLASSES)):
            raise TrainingError(f"flops has shape {self.flops.shape}, and needs {(G, len(WORK_CLASSES))}")
        counts = np.diff(self.tensor_offsets)
        if (counts < 0).any() or self.tensor_offsets[[0, -1]].tolist() != [0, len(self.tensor_consumers)]:
            raise TrainingError("the ranges of the tensors' consumers do not fit the consumers")
        ends = np.concatenate((self.tensor_producer, self.tensor_consumers))
        later = np.repeat(self.tensor_producer, counts) < self.tensor_consumers
        if (
            not ((ends >= 0) & (ends < G)).all()
            or not (later | np.repeat(self.tensor_is_constant, counts)).all()
        ):
            raise TrainingError(f"tensors must go from earlier to later ones of {G} groups")


def load_folder(folder: str | Path) -> list[Workload]:
    """All workloads of a folder, by file name.

    Raises:
        TrainingError: The folder has none, or one cannot be read.
    """
    paths = sorted(Path(folder).glob("*.npz"))
    if not paths:
        raise TrainingError(f"{folder} holds no workloads; write some there with tools/workloads.py")
    return [Workload.load(path) for path in paths]
