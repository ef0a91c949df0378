"""What crossing devices costs: launches of subgraphs, and transfers of tensors between them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace.errors import TargetError

if TYPE_CHECKING:
    pass

__all__ = ["TransferFit", "TransferSample"]


@dataclass(frozen=True, eq=False)
class TransferSample:
    """One placement of the diamond, or of the chain, that was run.

    Attributes:
        devices: Device of each op; three of the diamond, or one repeated ``4`` times for the chain.
        tensor_bytes: Bytes of every tensor in it.
        seconds: Raw latencies, ``float64[n]``.
    """

    devices: tuple[str, ...]
    tensor_bytes: int
    seconds: FloatArray


@dataclass(frozen=True, eq=False)
class TransferFit:
    """Launch and transfer costs between D devices.

    Attributes:
        devices: Device names.
        latency: Fixed seconds of one transfer, ``float64[D, D]`` (from, to).
        seconds_per_byte: Seconds per byte of one transfer, ``float64[D, D]``.
        launch_seconds: Fixed seconds per subgraph, ``float64[D]``.
        samples: What was measured; empty when nothing was.
    """

    devices: tuple[str, ...]
    latency: FloatArray
    seconds_per_byte: FloatArray
    launch_seconds: FloatArray
    samples: tuple[TransferSample, ...] = field(default=(), repr=False)

    def for_devices(self, devices: Sequence[str]) -> TransferFit:
        """The part of the fit that concerns ``devices``, in their order.

        Raises:
            TargetError: A device is not in the fit.
        """
        missing = [name for name in devices if name not in self.devices]
        if missing:
            raise TargetError(
                f"no transfer costs are known for {', '.join(missing)}; known: {', '.join(self.devices)}"
            )
        kept = [self.devices.index(name) for name in devices]
        return TransferFit(
            devices=tuple(devices),
            latency=frozen_array(self.latency[np.ix_(kept, kept)], np.float64),
            seconds_per_byte=frozen_array(self.seconds_per_byte[np.ix_(kept, kept)], np.float64),
            launch_seconds=frozen_array(self.launch_seconds[kept], np.float64),
            samples=tuple(sample for sample in self.samples if set(sample.devices) <= set(devices)),
        )
