"""Who makes what a group reads: what every list scheduler asks for each group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ov_autoplace.cost.table import CostTable

__all__ = ["Producers"]


@dataclass(frozen=True, eq=False)
class Producers:
    """CSR of what each group reads: producing groups and bytes; constants are nobody's output."""

    offsets: list[int]
    producer: list[int]
    size: list[float]

    @classmethod
    def of(cls, table: CostTable) -> Producers:
        """Turn a table's tensors around."""
        lengths = np.diff(table.tensor_offsets)
        tensor = np.repeat(np.arange(len(lengths)), lengths)
        moves = ~table.tensor_is_constant[tensor]
        tensor, consumers = tensor[moves], table.tensor_consumers[moves]
        order = np.argsort(consumers, kind="stable")
        counts = np.bincount(consumers, minlength=len(table))
        return cls(
            [0, *np.cumsum(counts).tolist()],
            table.tensor_producer[tensor[order]].tolist(),
            table.tensor_bytes[tensor[order]].tolist(),
        )

    def of_group(self, g: int) -> list[tuple[int, float]]:
        """Producer and bytes of each tensor that group ``g`` reads."""
        begin, end = self.offsets[g], self.offsets[g + 1]
        return list(zip(self.producer[begin:end], self.size[begin:end], strict=True))
