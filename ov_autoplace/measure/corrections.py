"""Cost tables that explain whole placements that were run, and those that are as wrong as profiles are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.cost.table import CostTable
from ov_autoplace.plan.simulator import simulator_of

__all__ = ["Observation", "corrected_table", "perturbed_table"]

# Weight of "nothing needs correcting" against one observation with an error of 100 %.
_RIDGE = 0.05


@dataclass(frozen=True, eq=False)
class Observation:
    """A placement that was run.

    Attributes:
        assignment: Device of each group, ``int32[G]``.
        seconds: Measured latency.
    """

    assignment: IntArray
    seconds: float


def corrected_table(table: CostTable, observations: Sequence[Observation]) -> CostTable:
    """Scale a table so that it explains measured placements.

    Latency is linear in one factor per device (its op times), one for all launches and one for all
    transfers. The factors are the non-negative least-squares fit of the relative errors, drawn towards
    1 by a ridge term, so that few observations change little.

    Args:
        table: The table to correct, always the uncorrected one: corrections do not add up.
        observations: What was measured.
    """
    from scipy.optimize import nnls

    D = table.num_devices
    rows, wanted = [], []
    for observation in observations:
        parts = simulator_of(table).breakdown(observation.assignment)
        ops = _seconds_by_device(table, observation.assignment)
        rows.append(np.array([*ops, parts.launch_seconds, parts.transfer_seconds]) / observation.seconds)
        wanted.append(1.0)
    ridge = np.sqrt(_RIDGE) * np.eye(D + 2)
    factors, _ = nnls(np.vstack([*rows, ridge]), np.array([*wanted, *ridge.sum(axis=1)]))
    return replace(
        table,
        op_seconds=frozen_array(table.op_seconds * factors[:D], np.float64),
        launch_seconds=frozen_array(table.launch_seconds * factors[D], np.float64),
        mix_seconds=float(table.mix_seconds * factors[D + 1]),
        transfer_latency=frozen_array(table.transfer_latency * factors[D + 1], np.float64),
        transfer_seconds_per_byte=frozen_array(table.transfer_seconds_per_byte * factors[D + 1], np.float64),
        source=" ".join(["measured", *table.source.split(" ")[1:]]),  # what is emulated stays so
    )


def perturbed_table(table: CostTable, random: np.random.Generator) -> CostTable:
    """The table with every op time off by about 20 %, and crossing devices by up to a factor of two.

    Profiles are usually that wrong: each such table has an optimum of its own, and the true one is likely to
    be among them.

    Args:
        table: As it was measured.
        random: Decides how wrong.
    """
    noise = random.lognormal(sigma=0.2, size=table.op_seconds.shape)
    crossing = 2.0 ** random.uniform(-1, 1)
    return replace(
        table,
        op_seconds=frozen_array(table.op_seconds * noise, np.float64),
        launch_seconds=frozen_array(table.launch_seconds * crossing, np.float64),
        mix_seconds=table.mix_seconds * crossing,
        transfer_latency=frozen_array(table.transfer_latency * crossing, np.float64),
        transfer_seconds_per_byte=frozen_array(table.transfer_seconds_per_byte * crossing, np.float64),
    )


def _seconds_by_device(table: CostTable, assignment: IntArray) -> FloatArray:
    """Sum of op times on each device, ``float64[D]``."""
    chosen = table.op_seconds[np.arange(len(table)), assignment]
    by_device = np.bincount(assignment, weights=chosen, minlength=table.num_devices)
    return np.asarray(by_device, dtype=np.float64)
