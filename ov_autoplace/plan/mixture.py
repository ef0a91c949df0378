"""A mixture of placements: which fraction of many requests runs by which of them."""

from __future__ import annotations

from dataclasses import dataclass

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.plan.placement import Placement

__all__ = ["Mixture"]


@dataclass(frozen=True, eq=False)
class Mixture:
    """K placements on D devices that run at once, each with requests of its own.

    Attributes:
        placements: The placements, the one with most requests first, length K. In an optimal one there are at
            most as many as devices.
        fractions: Share of all requests that each gets, ``float64[K]``; they sum up to 1.
        rate_per_second: Requests per second of all together: no device is then busy more than all the time.
        bound_per_second: Proven: no mixture of allowed placements has a higher rate.
        device_load: Share of the time in which each device is busy, ``float64[D]``, 1 at most.
        device_prices: What a request costs of each device, ``float64[D]``: the prices, summing up to 1, at
            which a device's time is worth as much as the linear program makes of it (its dual variables over
            the rate). A device that costs nothing is not what holds the rate back.
        memory_bytes: Bytes that each device holds, ``float64[D]``, for one request of each placement: all of
            them keep their own weights.
        cuts: How often placements were looked for at prices.
    """

    placements: tuple[Placement, ...]
    fractions: FloatArray
    rate_per_second: float
    bound_per_second: float
    device_load: FloatArray
    device_prices: FloatArray
    memory_bytes: FloatArray
    cuts: int

    @property
    def gap(self) -> float:
        """How far below the bound the rate may be; a share of the bound, and 0 is optimal."""
        return 1.0 - self.rate_per_second / self.bound_per_second

    @property
    def devices(self) -> tuple[str, ...]:
        """The devices that the arrays are in order of."""
        return self.placements[0].devices
