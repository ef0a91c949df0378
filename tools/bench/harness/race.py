"""One model, everything that could run it: each device, AUTO, HETERO and AUTOPLACE's answers, in one race.

Everybody is compiled apart, on a Core of its own, even where AUTOPLACE's answer is a single device: so
each is measured like any other and none is equal to another by definition. Short models are compiled
several times, see :mod:`harness.copies`.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

import ov_autoplace
from harness.copies import compile_copies, race_copies
from harness.environment import PAIRS, core_of
from ov_autoplace._base.statistics import Interval, paired_ratio
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.passes import NAMED, formed, static_shapes
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.transfers import measure_transfers
from ov_autoplace.placement.placement import Placement

if TYPE_CHECKING:
    from ov_autoplace._core import Executable

__all__ = ["MODES", "RIVALS", "Answer", "Race", "compiled_for", "race_model", "transfers_of"]

MODES = ("ZERO_SHOT", "PROFILE", "TUNE")
RIVALS = ("AUTO", "HETERO")
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
        samples: Seconds of each contender in the same rounds, means over its copies, ``float64[R]``.
        failures: Why a contender is missing.
        answers: AUTOPLACE's, by mode.
        copy_medians: Median seconds of each copy of a contender.
    """

    devices: tuple[str, ...]
    samples: dict[str, np.ndarray]
    failures: dict[str, str]
    answers: dict[str, Answer]
    copy_medians: dict[str, tuple[float, ...]]

    @property
    def best_device(self) -> str:
        """The single device with the lowest median."""
        alone = [device for device in self.devices if device in self.samples]
        return min(alone, key=lambda device: float(np.median(self.samples[device])))

    @property
    def rounds(self) -> int:
        """Paired runs of everybody."""
        return len(next(iter(self.samples.values())))

    @property
    def runs(self) -> str:
        """Rounds, and how often contenders were compiled and run in each, as a cell."""
        copies = sorted({len(medians) for medians in self.copy_medians.values()})
        if copies == [1]:
            return str(self.rounds)
        return f"{self.rounds} x {'-'.join(map(str, (copies[0], copies[-1])[: len(copies)]))}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self) | {
            "samples": {name: [_short(s) for s in samples] for name, samples in self.samples.items()},
            "copy_medians": {name: list(map(_short, m)) for name, m in self.copy_medians.items()},
        }

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Race:
        """The opposite of :meth:`to_dict`."""
        answers = {
            mode: Answer(**{**answer, "devices": tuple(answer["devices"])})
            for mode, answer in fields["answers"].items()
        }
        samples = {name: np.array(values) for name, values in fields["samples"].items()}
        copies = {name: tuple(medians) for name, medians in fields["copy_medians"].items()}
        return cls(tuple(fields["devices"]), samples, dict(fields["failures"]), answers, copies)

    def spread(self, contender: str) -> float:
        """Median of the slowest copy over that of the fastest."""
        medians = self.copy_medians[contender]
        return max(medians) / min(medians)

    def ratio(self, contender: str, rival: str) -> Interval:
        """Median of the paired ratios."""
        return paired_ratio(self.samples[contender], self.samples[rival])


def transfers_of(pair: str) -> str:
    """A target profile whose transfers are measured, as JSON; the rest is what devices say of themselves."""
    core, devices = core_of(pair), PAIRS[pair]
    profiler = profiler_for(core, devices, device_properties(core, devices))
    fit = replace(measure_transfers(profiler, devices), samples=())
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        path = Path(folder) / "target.json"
        save_target(replace(generic_target(core, devices), transfers=fit), path)
        return path.read_text(encoding="utf-8")


def race_model(
    pair: str,
    model: ov.Model,
    seconds: float,
    modes: Sequence[str] = MODES,
    tune_ms: float | None = None,
    rivals: Sequence[str] = RIVALS,
    seed: int = 0,
    target: str = "",
) -> Race:
    """Place a model in every mode and run all answers, devices and rivals in turns.

    Args:
        pair: Of devices, in the order in which AUTO and HETERO get them.
        model: Is not modified.
        seconds: Of the race; it becomes longer where so few rounds fit that medians say little.
        modes: AUTOPLACE's.
        tune_ms: Budget of ``TUNE``.
        rivals: Virtual devices that get all devices.
        seed: Of placing, and of the order in each round.
        target: What :func:`transfers_of` gave, for the modes that measure; they measure transfers themselves
            where it is empty, which takes longer than all else on a slow device.
    """
    core, devices = core_of(pair), PAIRS[pair]
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
    with _compiler(core, model, devices) as compile_for:
        calls = {device: partial(compile_for, device, device) for device in devices}
        calls |= {rival: partial(compile_for, rival, f"{rival}:{','.join(devices)}") for rival in rivals}
        for mode, placement in placements.items():
            calls[mode] = partial(compile_for, mode, *compiled_for(placement, devices))
        order = (seed, len(model.get_ops()))  # of compiling: not the same in every model
        executables = compile_copies(calls, devices, _constant_bytes(model), seconds, order, failures)
        copies = race_copies(executables, seconds, seed, failures)
    return Race(tuple(devices), copies.samples, failures, answers, copies.medians)


def compiled_for(placement: Placement, devices: Sequence[str]) -> tuple[str, Placement | None]:
    """What AUTOPLACE compiles a placement for: the one device that it uses, or HETERO with its affinities."""
    chosen = set(placement.to_dict().values())
    used = [device for device in devices if device in chosen]
    return (used[0], None) if len(used) == 1 else (f"HETERO:{','.join(used)}", placement)


def _constant_bytes(model: ov.Model) -> int:
    return sum(op.output(0).get_tensor().size for op in model.get_ops() if op.get_type_name() == "Constant")


def _short(seconds: float) -> float:
    """Six digits are more than any clock here is good for, and a third of the file."""
    return float(f"{seconds:.6g}")


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
def _compiler(core: ov.Core, model: ov.Model, devices: Sequence[str]) -> Iterator[_Compile]:
    static = formed(model, (static_shapes(), *NAMED))
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        ir = str(save_ir(static, Path(folder)))
        yield _Compile(core, devices, ir, input_ranges(static))


@dataclass(frozen=True, eq=False)
class _Compile:
    """Compiles one contender on a profiler of its own.

    In this process, which is one of the suite's children: executables of several children cannot be raced.
    """

    core: ov.Core
    devices: Sequence[str]
    ir: str
    input_high: dict[str, int]

    def __call__(self, name: str, device: str, placement: Placement | None = None) -> Executable:
        properties = device_properties(self.core, self.devices)
        affinities = None if placement is None else placement.to_dict()
        profiler = profiler_for(self.core, self.devices, properties, isolation=False)
        return profiler.compile(self.ir, device, _PROPERTIES.get(name, {}), affinities, self.input_high, 0)
