"""What no mix of devices can beat: bounds that end a decision before anything else is measured.

Two bounds, the cheap one first: every group on its best device with crossing for nothing; and the solver's
bound of the placement problem with crossings. Both rest on measurements, so both are computed for costs that
are wrong in favour of a mix: all devices but the best one run as fast as in their fastest tenth of
inferences, and crossing costs half of what was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.statistics import MINIMAL_GAIN
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.problem.problem import Problem

__all__ = ["cheap_transfers", "free_transfers", "unbeatable_device"]

# A device that may be faster than this by its fastest tenth of inferences is raced with the best one: where
# in memory compiled models lie makes copies of one model differ by some percent.
_CLOSE_DEVICE = 1.05
_FASTEST = 0.1


def free_transfers(devices: tuple[str, ...]) -> TransferFit:
    """Crossing for nothing between D devices."""
    D = len(devices)
    zeros = frozen_array(np.zeros((D, D)), np.float64)
    return TransferFit(devices, zeros, zeros, frozen_array(np.zeros(D), np.float64))


def cheap_transfers(transfers: TransferFit) -> TransferFit:
    """Crossing at half its cost, against which measured transfers are hardly ever wrong."""
    return replace(
        transfers,
        latency=frozen_array(transfers.latency / 2, np.float64),
        seconds_per_byte=frozen_array(transfers.seconds_per_byte / 2, np.float64),
        launch_seconds=frozen_array(transfers.launch_seconds / 2, np.float64),
    )


def unbeatable_device(problem: Problem, samples: Mapping[str, FloatArray], seed: int = 0) -> Candidate | None:
    """The placement on one device that no placement can beat by :data:`MINIMAL_GAIN`, if that is proven.

    Args:
        problem: With crossings priced as the bound shall take them, see :func:`cheap_transfers`.
        samples: Latencies of the whole model on each device, ``float64[n]`` in seconds.
        seed: Of the solver ``portfolio``, which is asked where crossing costs something.
    """
    table = problem.table
    known = [device for device in table.devices if device in samples]
    if not known:
        return None
    best = min(known, key=lambda device: float(np.median(samples[device])))
    scale = np.array([_speed_up(samples.get(d)) if d != best else 1.0 for d in table.devices])
    favourable = replace(table, op_seconds=frozen_array(table.op_seconds * scale, np.float64))
    crossing = table.launch_seconds.any() or table.transfer_latency.any()
    solvers = ("portfolio",) if crossing else ()
    candidates = propose(problem.at(favourable), ProposalSource(solvers, seed=seed))
    alone = next((p for p in candidates if p.is_single and p.name == best), None)
    if alone is None:
        return None
    others = [p.expected_seconds for p in candidates if p.is_single and p is not alone]
    if min(others, default=np.inf) < _CLOSE_DEVICE * alone.expected_seconds:
        return None
    bounds = [p.lower_bound_seconds for p in candidates if p.lower_bound_seconds is not None]
    bound = max([float(favourable.op_seconds.min(axis=1).sum()), *bounds])
    return alone if bound >= (1 - MINIMAL_GAIN) * alone.expected_seconds else None


def _speed_up(samples: FloatArray | None) -> float:
    """Fastest tenth over median; 1 for a device that was not timed alone."""
    if samples is None:
        return 1.0
    return float(np.quantile(samples, _FASTEST) / np.median(samples))
