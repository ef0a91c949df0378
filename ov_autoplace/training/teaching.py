"""Making examples: workloads on random machines, solved by quick teachers, as shards in a folder.

Example i depends on the seed and i alone, so shards that are there already are kept.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ov_autoplace._base.files import make_folder, write_atomically
from ov_autoplace.training.examples import by_family, make_labelled
from ov_autoplace.training.labelled import shard_bytes
from ov_autoplace.training.logs import progress
from ov_autoplace.training.targets import EVERY_OBJECTIVE
from ov_autoplace.training.workload import Workload, load_folder

__all__ = ["SHARD", "Teaching", "shard_path", "teach_folder"]

SHARD = 64
"""Examples in a shard."""


@dataclass(frozen=True, eq=False)
class Teaching:
    """What examples are made of.

    Attributes:
        families: Workloads by family.
        seed: Of everything random.
        objective: Of all examples; ``None`` draws it.
        devices: Number of devices of all examples; ``None`` draws it.
    """

    families: tuple[tuple[Workload, ...], ...]
    seed: int
    objective: str | None = None
    devices: int | None = None

    @classmethod
    def of(cls, workloads: Path, seed: int) -> Teaching:
        """With the workloads of a folder.

        Raises:
            TrainingError: The folder has none, or one cannot be read.
        """
        return cls(by_family(load_folder(workloads)), seed)

    def shard(self, number: int) -> bytes:
        """The content of a shard's file."""
        first = number * SHARD
        return shard_bytes(
            [
                make_labelled(
                    self.families,
                    np.random.default_rng((self.seed, i)),
                    EVERY_OBJECTIVE,
                    self.devices,
                    self.objective,
                )
                for i in range(first, first + SHARD)
            ]
        )


def shard_path(folder: Path, shard: int) -> Path:
    """Where a shard lies."""
    return folder / f"{shard:05d}.npz"


def teach_folder(folder: Path, count: int, teaching: Teaching) -> None:
    """Write at least ``count`` examples, in shards, of which those that are there already are kept.

    Args:
        folder: Where to.
        count: How many.
        teaching: What they are made of.

    Raises:
        OutputError: The folder cannot be written.
    """
    shards = [i for i in range(-(-count // SHARD)) if not shard_path(folder, i).exists()]
    if not shards:
        return
    make_folder(folder)
    with progress(len(shards), "solving examples") as advance:
        for number in shards:
            write_atomically(shard_path(folder, number), teaching.shard(number))
            advance(1)
