"""Contenders of a race, each compiled several times over where a model is short.

The same model compiled again for the same device may be 15 % faster or slower, whatever anybody chose: its
weights and buffers lie elsewhere in memory. A race of one copy each measures that luck.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._core import Profiler, ProfilerError
from ov_autoplace.devices.models import openvino_reason

if TYPE_CHECKING:
    from ov_autoplace._core import Executable, RaceResult

__all__ = ["Copies", "compile_copies", "copies_for", "race_copies"]

_ROUNDS = 500  # at most
_FEWEST_ROUNDS = 15  # fewer say little, so slow models get them in up to so many seconds
_LONGEST = 30.0
_BELOW = ((1e-3, 5), (5e-3, 3))  # seconds of an inference, and copies of a model that takes less
_LARGE_BYTES = 100e6  # of constants: every copy holds its own
# Compiling more copies may take so many times the seconds of the race, so that a run's time is bounded.
_COMPILING = 5.0


@dataclass(frozen=True, eq=False)
class Copies:
    """What a race of copies measured.

    Attributes:
        samples: Seconds of each contender in the same rounds, means over its copies, ``float64[R]``.
        medians: Median seconds of each copy by contender.
    """

    samples: dict[str, np.ndarray]
    medians: dict[str, tuple[float, ...]]


def copies_for(inference: float, constant_bytes: float, compiling: float, allowed: float) -> int:
    """How often a contender is compiled.

    Args:
        inference: Seconds on the fastest device, the same for everybody.
        constant_bytes: Of the model.
        compiling: Seconds that the contender's first copy took.
        allowed: Seconds for its other copies. Means over few copies are no worse than those over many,
            only less certain, so not everybody needs as many as those that compile quickly.
    """
    if constant_bytes > _LARGE_BYTES:
        return 1
    wanted = next((copies for below, copies in _BELOW if inference < below), 1)
    return min(wanted, 1 + int(allowed / max(compiling, 1e-9)))


def compile_copies(
    calls: Mapping[str, Callable[[], Executable]],
    devices: Sequence[str],
    constant_bytes: float,
    seconds: float,
    seed: int | Sequence[int],
    failures: dict[str, str],
) -> dict[str, list[Executable]]:
    """Everybody once, and again as often as suits a model that is as short as the first copies are.

    Args:
        calls: Compile a contender on a Core of its own.
        devices: Those among them that are a single device.
        constant_bytes: Of the model.
        seconds: Of the race.
        seed: Of the order.
        failures: Gets those of whom a copy could not be compiled or run; they are left out.
    """
    random = np.random.default_rng(seed)
    executables: dict[str, list[Executable]] = {name: [] for name in calls}
    compiling: dict[str, float] = {}
    inference: dict[str, float] = {}

    def compile_each(names: Sequence[str]) -> None:
        # Where a copy lies in memory depends on those before it, so nobody is always the first.
        for name in random.permutation(list(names)).tolist():
            start = time.perf_counter()
            try:
                executable = calls[name]()
                inference[name] = float(np.median(executable.run(3, warmup=2)))
            except ProfilerError as cause:
                failures[name] = openvino_reason(cause)
                del executables[name]
                continue
            executables[name].append(executable)
            compiling.setdefault(name, time.perf_counter() - start)

    compile_each(list(calls))
    fastest = min((inference[device] for device in devices if device in inference), default=np.inf)
    allowed = _COMPILING * seconds / len(calls)
    wanted = {name: copies_for(fastest, constant_bytes, compiling[name], allowed) for name in executables}
    for copy in range(1, max(wanted.values(), default=1)):
        compile_each([name for name in executables if wanted[name] > copy])
    return executables


def race_copies(
    executables: Mapping[str, Sequence[Any]],
    seconds: float,
    seed: int,
    failures: dict[str, str],
    race: Callable[..., RaceResult] = Profiler.race,
) -> Copies:
    """All copies of all contenders in the same rounds: the fewest, then as many as the time allows.

    A contender's sample of a round is the mean over its copies, because what a user gets is a compilation
    of his own with luck of its own: the mean is what he may expect, the fastest copy is not.

    Args:
        executables: Copies by contender.
        seconds: Of the race; it becomes longer where so few rounds fit that medians say little.
        seed: Of the order in each round.
        failures: Gets those of whom a copy failed; they are left out.
        race: Runs executables in turns.
    """
    running = [(name, copy) for name, copies in executables.items() for copy in range(len(copies))]
    parts: dict[tuple[str, int], list[np.ndarray]] = {entrant: [] for entrant in running}
    for budget, rounds in ((_LONGEST, _FEWEST_ROUNDS), (seconds, _ROUNDS)):
        # Nobody leaves for being slow before the last round: the tables show everybody.
        raced = [executables[name][copy] for name, copy in running]
        result = race(raced, budget, seed=seed, min_rounds=rounds, max_rounds=rounds)
        lost = {}
        for entrant, entry in zip(running, result.entries, strict=True):
            parts[entrant].append(np.asarray(entry.samples))
            if len(entry.samples) < result.rounds:
                lost[entrant[0]] = entry.dropped
        failures |= lost
        running = [(name, copy) for name, copy in running if name not in lost]
    samples, medians = {}, {}
    for name in dict(running):
        all_rounds = np.array([np.concatenate(parts[entrant]) for entrant in running if entrant[0] == name])
        samples[name] = all_rounds.mean(axis=0)
        medians[name] = tuple(np.median(all_rounds, axis=1).tolist())
    return Copies(samples, medians)
