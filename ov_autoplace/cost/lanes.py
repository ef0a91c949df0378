"""Lanes: one device as several columns of a cost table, which work at once under the objective ``overlap``.

A lane is a part of a device's threads that runs its own submodels (two cores: one lane of two threads, or two
lanes of one thread each). All lanes of a device have one width, so all of them take equally long.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError

__all__ = ["CORUN_FACTOR", "EXECUTOR_SECONDS", "HAND_OVER_SECONDS", "with_lanes"]

HAND_OVER_SECONDS = 8e-6
"""From the end of a submodel to the start of one on another lane that waits for it; two cores, measured."""

EXECUTOR_SECONDS = 4e-6
"""What an inference costs beside its submodels where the executor runs them; two cores, measured."""

CORUN_FACTOR = 1.03
"""How much longer work takes while another lane computes: 1.00 to 1.06 on two cores, measured."""


def with_lanes(
    table: CostTable,
    device: str,
    lanes: int,
    op_seconds: ArrayLike = 1.0,
    *,
    hand_over_seconds: float = HAND_OVER_SECONDS,
    corun_factor: float = CORUN_FACTOR,
) -> CostTable:
    """Replace the column of a device by one per lane, called ``CPU#0``, ``CPU#1`` and so on.

    Args:
        table: Costs of G groups.
        device: A device of the table that has no lanes yet.
        lanes: How many.
        op_seconds: Run time of each group at the width of one lane, ``float64[G]``, or one factor on the
            times of the whole device.
        hand_over_seconds: From the end of a submodel to the start of one on another lane of the device that
            waits for it. Lanes share memory, so what this takes hardly depends on the size of the tensor.
        corun_factor: See ``CostTable.corun_factor``; a larger one of the table stays.

    Returns:
        A table in which the device's lanes stand where the device was. Crossing to other devices, launches
        and memory are those of the device, whose lanes share the latter.

    Raises:
        CostTableError: The table has no such device, or it has lanes already; ``lanes`` is below 1, or a
            time or the factor is out of range.
    """
    if device not in table.devices:
        raise CostTableError(f"the cost table has no device {device!r}; it has {', '.join(table.devices)}")
    d = table.devices.index(device)
    if table.lane_devices is not None and table.owners[d] != device:
        raise CostTableError(f"{device} is a lane of {table.owners[d]} already; take the table without lanes")
    if lanes < 1:
        raise CostTableError(f"{lanes} lanes were asked of {device}; give 1 or more")
    narrow = np.asarray(op_seconds, dtype=np.float64)
    if narrow.shape not in ((), (len(table),)):
        raise CostTableError(
            f"op_seconds must be one factor or one time per group ({len(table)}), not {list(narrow.shape)}"
        )
    if narrow.ndim == 0 and not (np.isfinite(narrow) and narrow >= 0):
        raise CostTableError(f"op_seconds is the factor {float(narrow)}; it must be finite and 0 or more")
    columns = np.repeat(np.arange(table.num_devices), np.where(np.arange(table.num_devices) == d, lanes, 1))
    is_lane = columns == d
    seconds = table.op_seconds[:, columns]
    # A factor scales what can run; what cannot stays so.
    seconds[:, is_lane] = (table.op_seconds[:, d] * narrow if narrow.ndim == 0 else narrow)[:, None]
    between = np.outer(is_lane, is_lane) & ~np.eye(len(columns), dtype=np.bool_)

    def crossing(matrix: FloatArray, within: float) -> FloatArray:
        return np.where(between, within, matrix[np.ix_(columns, columns)])

    names = [table.devices[c] for c in columns.tolist()]
    if lanes > 1:
        names[d : d + lanes] = [f"{device}#{lane}" for lane in range(lanes)]
    return replace(
        table,
        devices=tuple(names),
        lane_devices=tuple(table.owners[c] for c in columns.tolist()),
        op_seconds=frozen_array(seconds, np.float64),
        transfer_latency=frozen_array(crossing(table.transfer_latency, hand_over_seconds), np.float64),
        transfer_seconds_per_byte=frozen_array(crossing(table.transfer_seconds_per_byte, 0.0), np.float64),
        launch_seconds=frozen_array(table.launch_seconds[columns], np.float64),
        memory_capacity=frozen_array(table.memory_capacity[columns], np.float64),
        corun_factor=max(table.corun_factor, corun_factor),
    )
