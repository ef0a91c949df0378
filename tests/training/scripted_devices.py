"""Devices that do what a cost table says, with noise, for tests of what is done with measurements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np

from candidates import on_groups, result_of
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.plan.plan import SplitPlan, WholePlan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.training.finetuning.preparing import ProfiledModel
from ov_autoplace.training.finetuning.trials import Trial


class Clock:
    """Stands for the module ``time``: seconds pass only when somebody asks, or says so."""

    def __init__(self, per_look: float = 0.0) -> None:
        self.now = 100.0
        self.per_look = per_look

    def perf_counter(self) -> float:
        self.now += self.per_look
        return self.now


def scripted_trial(name: str, assignment: Sequence[int], seconds: float = 1.0, dropped: str = "") -> Trial:
    """A placement on the scripted devices that was not measured yet."""
    pair = ("DEV0", "DEV1")
    return on_groups(name, assignment, seconds, (), pair, Trial, subgraphs=0, dropped=dropped)


class ScriptedSession:
    """Plays a profiling session whose devices take as long as ``table`` says.

    Args:
        table: The truth.
        noise: Relative spread of a sample.
        clock: Compiling takes ``compile_seconds`` on it, and every inference what it takes.
        fails: Placements (device of each group) that do not compile.
    """

    outputs = None  # nobody compares them

    def __init__(
        self,
        table: CostTable,
        noise: float = 0.01,
        clock: Clock | None = None,
        compile_seconds: float = 0.0,
        fails: tuple[tuple[int, ...], ...] = (),
        seed: int = 0,
    ) -> None:
        self.table = table
        self.devices = table.devices
        self.compiled: list[tuple[int, ...]] = []
        self.raced: list[list[tuple[int, ...]]] = []
        self.compilations_forgotten = 0
        self.interrupt_in_race = -1
        self.luck: dict[tuple[int, ...], float] = {}  # of what is compiled before the first `forget`
        self._noise = noise
        self._clock = clock or Clock()
        self._compile_seconds = compile_seconds
        self._fails = fails
        self._random = np.random.default_rng(seed)

    def compile_whole(self, plan: WholePlan) -> SimpleNamespace:
        return self.compile_devices((self.devices.index(plan.device),) * len(self.table))

    def compile_split(self, plan: SplitPlan) -> SimpleNamespace:
        return self.compile_devices(tuple(self.devices.index(plan.device_of[n]) for n in self.table.names))

    def compile_devices(self, devices: tuple[int, ...]) -> SimpleNamespace:
        self._clock.now += self._compile_seconds
        if devices in self._fails:
            raise ProfilingError("the model cannot be timed: no such kernel")
        self.compiled.append(devices)
        schedule = simulate(self.table, np.array(devices, dtype=np.int32))
        seconds = schedule.latency_seconds
        if not self.compilations_forgotten:
            seconds *= self.luck.get(devices, 1.0)
        return SimpleNamespace(
            devices=devices,
            seconds=seconds,
            compile_seconds=self._compile_seconds,
            subgraphs=schedule.subgraphs,
            run=lambda runs, warmup: np.array([self._sample(seconds) for _ in range(runs)]),
        )

    def race(self, executables, budget_seconds, *, max_rounds, names, progress, **_):
        assert len(names) == len(executables)
        self.raced.append([executable.devices for executable in executables])
        if self.interrupt_in_race == len(self.raced):
            raise KeyboardInterrupt
        progress(0, len(executables), 0.0)
        drift = 1.0 + 0.3 * self._random.random()  # machines are faster and slower from race to race
        return result_of(
            [
                np.array([drift * self._sample(executable.seconds) for _ in range(max_rounds)])
                for executable in executables
            ]
        )

    def has_compiled(self, device: str) -> bool:
        return not self.compilations_forgotten

    def forget(self) -> None:
        self.compilations_forgotten += 1

    def close(self) -> None:
        pass

    def _sample(self, seconds: float) -> float:
        self._clock.now += seconds
        return seconds * (1.0 + self._noise * abs(self._random.standard_normal()))


def scripted_model(
    believed: CostTable,
    session: ScriptedSession,
    digest: str = "digest",
    memory_limits: Mapping[str, float] | None = None,
    pins: Mapping[str, str] | None = None,
) -> ProfiledModel:
    """A model whose ops are the groups of a table."""
    options = PlacerOptions(memory_limits=memory_limits or {}, pins=pins or {})
    machine = Machine(None, believed.devices, options)  # type: ignore[arg-type]
    prepared = PreparedModel(None)  # type: ignore[arg-type]
    return ProfiledModel(machine, prepared, digest, session, believed, 0.0)  # type: ignore[arg-type]
