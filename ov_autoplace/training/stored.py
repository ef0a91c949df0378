"""Examples in a folder of shards: what training reads, and the batches that are drawn from it.

Batch i is a function of the seed and i alone, so a run that resumes at batch i goes on as if it had never
stopped.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import overload

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.errors import TrainingError
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.examples import Example
from ov_autoplace.training.labelled import Labelled, Shard, read_shard

__all__ = ["StoredExamples"]


class StoredExamples(Sequence[Example]):
    """The examples of shards, by number; what a policy sees of one is made when it is first asked for.

    Args:
        shards: One after the other.

    Attributes:
        num_devices: Columns of each problem's tables, ``int64[P]``.
    """

    def __init__(self, shards: Sequence[Shard]) -> None:
        self._shards = tuple(shards)
        self.num_devices: NDArray[np.int64] = np.concatenate([shard.num_devices for shard in shards])
        self._ends = np.cumsum([len(shard) for shard in shards])
        self._made: dict[int, Example] = {}
        self._units: dict[int, int] = {}

    @classmethod
    def load(cls, folder: str | Path) -> StoredExamples:
        """All shards of a folder, by file name.

        Raises:
            TrainingError: The folder has none, or one cannot be read.
        """
        paths = sorted(Path(folder).glob("*.npz"))
        if not paths:
            raise TrainingError(f"{folder} holds no examples; write some there with tools/examples.py")
        return cls([read_shard(path) for path in paths])

    def __len__(self) -> int:
        return len(self.num_devices)

    @overload
    def __getitem__(self, i: int) -> Example: ...

    @overload
    def __getitem__(self, i: slice) -> list[Example]: ...

    def __getitem__(self, i: int | slice) -> Example | list[Example]:
        if isinstance(i, slice):
            return [self[j] for j in range(len(self))[i]]
        if i not in self._made:
            self._made[i] = Example.of(self.labelled(i))
        return self._made[i]

    def labelled(self, i: int) -> Labelled:
        """Problem i with its teacher's answer alone."""
        if not 0 <= i < len(self):
            raise IndexError(i)
        shard = int(np.searchsorted(self._ends, i, side="right"))
        return self._shards[shard][i - int(self._ends[shard]) + len(self._shards[shard])]

    def placeable(self, num_devices: int | None) -> NDArray[np.int64]:
        """Numbers of the examples that a network for so many devices can place; ``None`` = for any."""
        if num_devices is None:
            return np.arange(len(self))
        return np.flatnonzero(self.num_devices == num_devices)

    def units(self, i: int) -> int:
        """Units that example i decides, without what a policy sees of it."""
        if i not in self._units:
            task = self.labelled(i).task
            self._units[i] = len(Problem.of(task.shown, objective=task.objective).units)
        return self._units[i]

    def batch(
        self, seed: int, number: int, graphs: int, units: int, num_devices: int | None = None
    ) -> list[int]:
        """Batch ``number`` of an endless stream: examples with one number of devices, objectives mixed.

        Args:
            seed: Of the stream.
            number: Of the batch.
            graphs: Most examples.
            units: A batch with this many units is closed.
            num_devices: Of all examples; ``None`` draws it.
        """
        random = np.random.default_rng((seed, number))
        columns, among = self.num_devices, self.placeable(num_devices)
        # A random example says how many devices, so that each is drawn as often as any other.
        drawn = among[random.integers(len(among))]
        alike = np.flatnonzero(columns == columns[drawn])
        batch: list[int] = []
        total = 0
        for i in random.permutation(alike)[:graphs].tolist():
            batch.append(i)
            total += self.units(i)
            if total >= units:
                break
        return batch
