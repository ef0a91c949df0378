"""One model, everything that could run it: each device, AUTO, HETERO and AUTOPLACE's answers, in one race.

Everybody is compiled apart, on a Core of its own, even where AUTOPLACE's answer is a single device: so
each is measured like any other and none is equal to another by definition.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from common import unequal_pair
from real_models import PAIRS

import ov_autoplace
from ov_autoplace._core import ProfilerError
from ov_autoplace.cost.profiling import save_ir
from ov_autoplace.cost.target import Target
from ov_autoplace.cost.transfers import measure_transfers
from ov_autoplace.devices import device_properties, profiler_for
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.models import openvino_reason
from ov_autoplace.placement.placement import Placement
from ov_autoplace.statistics import Interval, median_interval, paired_ratio

if TYPE_CHECKING:
    from ov_autoplace._core import Executable

__all__ = ["MODES", "Answer", "Race", "core_of", "hand_overs", "race_model"]

MODES = ("ZERO_SHOT", "PROFILE", "TUNE")
_ROUNDS = 500  # at most
_FEWEST_ROUNDS = 15  # fewer say little, so slow models get them in up to so many seconds
_LONGEST = 60.0
# AUTO would run on the CPU until its first choice is compiled: what is compared is what comes after.
_PROPERTIES = {"AUTO": {"ENABLE_STARTUP_FALLBACK": "NO"}}


@dataclass(frozen=True, slots=True)
class Answer:
    """A placement of AUTOPLACE's.

    Attributes:
        chosen: Name of the candidate.
        devices: Those that it uses.
        subgraphs: HETERO's number of submodels, 1 on a single device.
        predicted_seconds: Latency by the cost table.
        seconds: That finding it took.
    """

    chosen: str
    devices: tuple[str, ...]
    subgraphs: int
    predicted_seconds: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Race:
    """What was measured of one model.

    Attributes:
        devices: All of them.
        samples: Seconds of each contestant in the same rounds, ``float64[R]``.
        failures: Why a contestant is missing.
        answers: AUTOPLACE's, by mode.
    """

    devices: tuple[str, ...]
    samples: dict[str, np.ndarray]
    failures: dict[str, str]
    answers: dict[str, Answer]

    @property
    def best_device(self) -> str:
        """The single device with the lowest median."""
        alone = [device for device in self.devices if device in self.samples]
        return min(alone, key=lambda device: float(np.median(self.samples[device])))

    @property
    def rounds(self) -> int:
        """Paired runs of everybody."""
        return len(next(iter(self.samples.values())))

    def interval(self, contestant: str) -> Interval:
        """Median seconds."""
        return median_interval(self.samples[contestant])

    def ratio(self, contestant: str, rival: str) -> Interval:
        """Median of the paired ratios."""
        return paired_ratio(self.samples[contestant], self.samples[rival])


def core_of(pair: str) -> ov.Core:
    """A Core with the devices of a pair, all in f32, so that none is faster by computing less exactly."""
    if pair == "alias":
        return unequal_pair()
    core = ov.Core()
    for device in ("GPU", "CPU"):
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32"})
    return core


def hand_overs(pair: str) -> str:
    """A target profile whose hand-overs are measured, as JSON; the rest is what devices say of themselves."""
    core, devices = core_of(pair), PAIRS[pair]
    profiler = profiler_for(core, devices, device_properties(core, devices))
    fit = replace(measure_transfers(profiler, devices), samples=())
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        path = Path(folder) / "target.json"
        replace(Target.generic(core, devices), transfers=fit).save(path)
        return path.read_text(encoding="utf-8")


def race_model(
    core: ov.Core,
    model: ov.Model,
    devices: Sequence[str],
    seconds: float,
    modes: Sequence[str] = MODES,
    tune_ms: float | None = None,
    rivals: Sequence[str] = ("AUTO", "HETERO"),
    seed: int = 0,
    target: str = "",
) -> Race:
    """Place a model in every mode and run all answers, devices and rivals in turns.

    Args:
        core: Knows the devices.
        model: Is not modified.
        devices: In the order in which AUTO and HETERO get them.
        seconds: Of the race; it becomes longer where so few rounds fit that medians say little.
        modes: AUTOPLACE's.
        tune_ms: Budget of ``TUNE``.
        rivals: Virtual devices that get all devices.
        seed: Of placing, and of the order in each round.
        target: What :func:`hand_overs` gave, for the modes that measure; they measure hand-overs themselves
            where it is empty, which takes longer than all else on a slow device.
    """
    answers, placements, failures = {}, {}, {}
    for mode in modes:
        budget = {"time_budget_ms": tune_ms} if mode == "TUNE" and tune_ms else {}
        start = time.perf_counter()
        try:
            with _file(target if mode != "ZERO_SHOT" else "") as path:
                placement = ov_autoplace.place(model, devices, mode, core, seed=seed, target=path, **budget)
        except AutoplaceError as cause:
            failures[mode] = str(cause)
            continue
        placements[mode] = placement
        answers[mode] = _answer(placement, time.perf_counter() - start)
    with _compiler(core, model, devices, failures) as compile_for:
        calls = {device: partial(compile_for, device, device) for device in devices}
        calls |= {rival: partial(compile_for, rival, f"{rival}:{','.join(devices)}") for rival in rivals}
        for mode, placement in placements.items():
            used = [device for device in devices if device in placement.devices]
            if len(used) == 1:
                calls[mode] = partial(compile_for, mode, used[0])
            else:
                calls[mode] = partial(compile_for, mode, f"HETERO:{','.join(used)}", placement)
        # Where a compiled model lies in memory depends on those before it, so nobody is always the first.
        order = np.random.default_rng((seed, len(model.get_ops()))).permutation(list(calls)).tolist()
        compiled = {name: calls[name]() for name in order}
        able = {name: compiled[name] for name in calls if compiled[name] is not None}
        samples = _race(able, seconds, seed, failures)
    return Race(tuple(devices), samples, failures, answers)


@contextmanager
def _file(text: str) -> Iterator[str | None]:
    """A file that holds the text; ``None`` for an empty one."""
    if not text:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        path = Path(folder) / "target.json"
        path.write_text(text, encoding="utf-8")
        yield str(path)


def _answer(placement: Placement, seconds: float) -> Answer:
    decision = placement.decision
    chosen = decision.chosen if decision else placement.solver
    subgraphs = next((c.subgraphs for c in decision.candidates if c.name == chosen), 1) if decision else 1
    used = tuple(sorted(set(placement.to_dict().values())))
    return Answer(chosen, used, subgraphs, float(placement.latency_seconds or np.nan), seconds)


@contextmanager
def _compiler(
    core: ov.Core, model: ov.Model, devices: Sequence[str], failures: dict[str, str]
) -> Iterator[_Compile]:
    static, _ = with_static_shapes(model, None)
    make_names_unique(static)
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        ir = str(save_ir(static, Path(folder)))
        yield _Compile(core, devices, ir, input_ranges(static), failures)


@dataclass(frozen=True, eq=False)
class _Compile:
    """Compiles one contestant on a profiler of its own; notes why where it cannot."""

    core: ov.Core
    devices: Sequence[str]
    ir: str
    input_high: dict[str, int]
    failures: dict[str, str]

    def __call__(self, name: str, device: str, placement: Placement | None = None) -> Executable | None:
        properties = device_properties(self.core, self.devices)
        affinities = None if placement is None else placement.to_dict()
        try:
            profiler = profiler_for(self.core, self.devices, properties)
            return profiler.compile(
                self.ir, device, _PROPERTIES.get(name, {}), affinities, self.input_high, 0
            )
        except ProfilerError as cause:
            self.failures[name] = openvino_reason(cause)
            return None


def _race(
    executables: dict[str, Executable], seconds: float, seed: int, failures: dict[str, str]
) -> dict[str, np.ndarray]:
    """Samples of all who could be run, of the same rounds: the fewest, then as many as the time allows."""
    from ov_autoplace._core import Profiler

    running = dict(executables)
    for executable in executables.values():
        executable.run(1, warmup=2)
    parts: dict[str, list[np.ndarray]] = {name: [] for name in executables}
    for budget, rounds in ((_LONGEST, _FEWEST_ROUNDS), (seconds, _ROUNDS)):
        # Nobody leaves for being slow before the last round: the tables show everybody.
        result = Profiler.race(
            list(running.values()), budget, seed=seed, min_rounds=rounds, max_rounds=rounds
        )
        for name, entry in zip(list(running), result.entries, strict=True):
            if len(entry.samples) < result.rounds:
                failures[name] = entry.dropped
                del running[name], parts[name]
            else:
                parts[name].append(np.asarray(entry.samples))
    return {name: np.concatenate(found) for name, found in parts.items()}
