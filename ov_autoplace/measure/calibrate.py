"""Calibration: measures this machine's devices once, as a target that needs no model."""

from __future__ import annotations

import datetime
import hashlib
import logging
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray, frozen_array
from ov_autoplace._base.files import temporary_folder
from ov_autoplace._base.progress import Progress
from ov_autoplace.cost.estimate import fitted_factors
from ov_autoplace.cost.generic_target import default_precision, memory_of
from ov_autoplace.cost.target import MEASURED, SHARE_OF_MATMUL, DeviceProfile, Rate, RateSample, Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.conditions import generation
from ov_autoplace.devices.device_config import config_for
from ov_autoplace.devices.names import (
    device_properties,
    device_settings,
    emulation,
    fingerprint,
    full_device_name,
)
from ov_autoplace.devices.widths import Cores, Width, is_cpu
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.passes import FOLDED, static_shapes
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.microbenchmarks import (
    OVERHEAD_CHAINS,
    Benchmark,
    benchmarks,
    overhead_chain,
    shared_chain,
)
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.transfers import DEFAULT_SIZES, measure_transfers

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Profiler

__all__ = ["calibrate", "reported_precisions"]


_PRECISION_OF_CAPABILITY = {"FP32": "f32", "FP16": "f16", "BF16": "bf16", "INT8": "i8"}
_PRECISION_HINT = "INFERENCE_PRECISION_HINT"
_MIN_RUNS, _MAX_RUNS = 3, 100
_PASSES = 5
# Fixed times are subtracted from a sample, but a rate is never read from less than this share of it.
_LEAST_SHARE = 0.1
_TELLING_SHARE = 0.3  # of the time that is not fixed, from which on a size tells a rate
# Other work makes a sample longer and nothing makes it shorter; the very shortest are luck.
_UNDISTURBED = 0.2
_BUSY = 1.25  # times as long as undisturbed: how slow a machine usually is that is too busy to be calibrated

_Run = Callable[[float], FloatArray]  # runs a model for so many seconds, and tells its latencies

_log = logging.getLogger("ov_autoplace")


def calibrate(
    core: ov.Core,
    devices: Sequence[str],
    *,
    properties: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    quick: bool = False,
    isolation: bool = True,
    models: Sequence[ov.Model] = (),
) -> Target:
    """Measure matmul, convolution, elementwise and memory speed, transfers and launches.

    A CPU takes about fifteen seconds, a quarter of that when ``quick``.

    Args:
        core: Where the devices are.
        devices: Real devices, D.
        properties: Compile properties as ``compile_model`` takes them, ``DEVICE_PROPERTIES`` included.
        progress: Called with (done, total, text).
        quick: Fewer sizes and less time for each, and only the precision that each device uses by itself.
        isolation: Compile and run in a child process; see ``AUTOPLACE_ISOLATION``.
        models: Whole models to run on every device, by which its estimates are corrected. They are not
            modified; dynamic inputs take the documented defaults. A device that cannot run one does without.

    Raises:
        ProfilingError: A device fails at a model of one op.
        DeviceError: A device that the Core does not know.
        OptionError: A property that no device knows, or a value that one refuses.
    """
    by_device = device_properties(core, devices, config_for(core, devices, properties or {}))
    profiler = profiler_for(core, devices, by_device, isolation=isolation)
    sources = {device: MEASURED + emulation(core, (device,)) for device in devices}
    bench = _Bench(profiler, seconds=0.015 if quick else 0.06, sources=sources)
    plan = [
        (d, p) for d in devices for p in reported_precisions(core, d, by_device[d])[: 1 if quick else None]
    ]
    prepared = [PreparedModel.of(model).then((static_shapes(), *FOLDED)) for model in models]
    pairs = len(devices) * (len(devices) - 1) // 2
    steps = _Steps(progress, total=len(plan) + len(devices) + pairs + bool(models))

    overheads: dict[str, tuple[float, float]] = {}
    threads: dict[str, tuple[int, float]] = {}
    for device in devices:
        steps.next(f"{device}: launch and op overhead")
        count = _threads(core, device, by_device[device])
        launch, overhead, waiting = bench.overheads(device, count)
        # Most ops are shared by the threads; those of the chain that tells the overhead are too small for it.
        overheads[device] = launch, overhead + waiting
        threads[device] = count, waiting / math.log2(max(count, 2))
    rates: dict[str, list[Rate]] = {device: [] for device in devices}
    for device, precision in plan:
        steps.next(f"{device}: {precision}")
        try:
            rates[device] += bench.rates(device, precision, *overheads[device], quick)
        except ProfilingError:
            if not rates[device]:  # the device's own precision comes first, and must work
                raise
            _log.warning("%s reports %s but fails at it; its rates are left out", device, precision)
    steps.next("transfers")
    transfers = measure_transfers(
        profiler, devices, sizes=DEFAULT_SIZES, seconds_per_placement=0.01 if quick else 0.05
    )
    if len(devices) == 1:  # nothing was transferred, so the launch time is that of the chains
        transfers = _with_launch(transfers, overheads[devices[0]][0])
    if models:
        steps.next("whole models")
    profiles = [
        _profile(core, device, rates[device], overheads[device][1], *threads[device], sources[device])
        for device in devices
    ]
    profiles = [replace(p, factors=bench.factors(p, overheads[p.name][0], prepared)) for p in profiles]
    steps.finish()
    if bench.slowness > _BUSY:
        _log.warning(
            "other work made this machine %.1f times slower while it was calibrated; do it when it is idle",
            bench.slowness,
        )
    return Target(
        name=" + ".join(full_device_name(core, device) or device for device in devices),
        openvino=ov.get_version(),
        created=datetime.date.today().isoformat(),
        fingerprint=hashlib.sha256(fingerprint(core, devices).encode()).hexdigest()[:16],
        devices=tuple(profiles),
        transfers=transfers,
        transfers_source=MEASURED + emulation(core, devices),
        samples=tuple(bench.samples),
    )


class _Steps:
    """Counts steps for a progress callback that may be missing."""

    def __init__(self, progress: Progress | None, total: int) -> None:
        self._progress = progress or (lambda done, total, text: None)
        self._total = total
        self._done = 0

    def next(self, text: str) -> None:
        self._progress(min(self._done, self._total), self._total, text)
        self._done += 1

    def finish(self) -> None:
        self._progress(self._total, self._total, "done")


class _Bench:
    """Runs micro-benchmarks and keeps their raw samples."""

    def __init__(self, profiler: Profiler, seconds: float, sources: Mapping[str, str]) -> None:
        self._profiler = profiler
        self._seconds = seconds
        self._sources = sources
        self._slowness: list[float] = []
        self.samples: list[RateSample] = []

    def overheads(self, device: str, threads: int) -> tuple[float, float, float]:
        """Seconds of a launch, of an op that has nothing to do, and of sharing an op among all threads.

        The first two are a line through chains of several lengths. The last is by how much longer an op
        takes on all threads than on one, where it is too small for them.
        """
        widths: list[Mapping[str, str]] = [Width(1).properties, {}] if threads > 1 else []
        chains = [(overhead_chain, {}), *((shared_chain, properties) for properties in widths)]
        models = [(chain(length), properties) for chain, properties in chains for length in OVERHEAD_CHAINS]
        seconds = [self._undisturbed(samples) for samples in self._in_turns(device, models)]
        lines = np.polyfit(OVERHEAD_CHAINS, np.reshape(seconds, (-1, len(OVERHEAD_CHAINS))).T, deg=1)
        slope, intercept = np.maximum(lines, 0.0)
        waiting = max(float(slope[2] - slope[1]), 0.0) if widths else 0.0
        return float(intercept[0]), float(slope[0]), waiting

    def rates(
        self, device: str, precision: str, launch_seconds: float, op_seconds: float, quick: bool
    ) -> list[Rate]:
        """Rates of every class at one precision; the raw samples are kept.

        What takes hardly longer than an op that has nothing to do says nothing of a rate: of such sizes only
        the largest counts, and only where there is no larger one.
        """
        hint = {} if precision == "i8" else {_PRECISION_HINT: precision}
        measured: dict[str, list[tuple[float, float, float]]] = {}
        able = self._able(device, benchmarks(quantized=precision == "i8", quick=quick), hint)
        ran = iter(self._turns([run for _, runs in able for run in runs]))
        for benchmark, _ in able:
            took = {count: next(ran) for count in benchmark.counts}
            self.samples += [
                RateSample(device, benchmark.op_class, precision, benchmark.work, count, samples)
                for count, samples in took.items()
            ]
            seconds = self._of_an_op(took, launch_seconds)
            share = 1.0 - benchmark.steps * op_seconds / seconds
            speed = benchmark.work / (max(share, _LEAST_SHARE) * seconds)
            measured.setdefault(benchmark.op_class, []).append((benchmark.work, speed, share))
        rates = []
        for op_class, points in measured.items():
            points.sort()
            told = [point for point in points if point[2] >= _TELLING_SHARE] or points[-1:]
            sizes, speeds, _ = frozen_array(told, np.float64).T
            rates.append(Rate(op_class, precision, sizes, speeds, self._sources[device]))
        return rates

    def _able(
        self, device: str, plan: Sequence[Benchmark], hint: Mapping[str, str]
    ) -> list[tuple[Benchmark, list[_Run]]]:
        """The benchmarks that the device can run, each with its models, compiled.

        Only what is also told by the speed of products may be missing: OpenVINO 2025.4 fails at attention in
        bf16 on some processors.
        """
        able, left_out = [], set()
        for benchmark in plan:
            models = [benchmark.build(count) for count in benchmark.counts]
            try:
                able.append((benchmark, [self._compiled(model, device, hint) for model in models]))
            except ProfilingError as cause:
                if benchmark.op_class not in SHARE_OF_MATMUL:
                    raise
                if benchmark.op_class not in left_out:
                    _log.warning("%s is assumed from products of matrices: %s", benchmark.op_class, cause)
                left_out.add(benchmark.op_class)
        return able

    def _of_an_op(self, took: Mapping[int, FloatArray], launch_seconds: float) -> float:
        """What an op takes, by latencies of a model of one, and of a model of several where there is one.

        What both have in common is no op's: the launch, and turning tensors to the layout that ops ask for.
        """
        (_, first), *further = ((count, self._undisturbed(samples)) for count, samples in took.items())
        seconds = [(several - first) / (count - 1) for count, several in further] or [first - launch_seconds]
        return max(seconds[0], _LEAST_SHARE * first / max(took))

    def _undisturbed(self, samples: FloatArray) -> float:
        """What was run takes where nothing else runs."""
        undisturbed = float(np.quantile(samples, _UNDISTURBED))
        self._slowness.append(float(np.median(samples)) / undisturbed)
        return undisturbed

    @property
    def slowness(self) -> float:
        """Median over all that was run of how much longer it usually took than undisturbed."""
        return float(np.median(self._slowness))

    def factors(
        self, profile: DeviceProfile, launch_seconds: float, models: Sequence[PreparedModel]
    ) -> Mapping[str, float]:
        """By how much estimates of a device are to be multiplied so that whole models come out."""
        ran = []
        for model in models:
            try:
                (samples,) = self._in_turns(profile.name, [(model.model, {})])
            except ProfilingError as cause:
                _log.warning("a model is left out of the calibration of %s: %s", profile.name, cause)
            else:
                ran.append((model.graph, max(self._undisturbed(samples) - launch_seconds, 0.0)))
        return fitted_factors(profile, ran) if ran else {}

    def _in_turns(
        self, device: str, models: Sequence[tuple[ov.Model, Mapping[str, str]]]
    ) -> list[FloatArray]:
        """Latencies of each model, ``float64[n]``."""
        return self._turns([self._compiled(model, device, properties) for model, properties in models])

    def _turns(self, compiled: Sequence[_Run]) -> list[FloatArray]:
        """Latencies of each, ``float64[n]``.

        A shared processor is slow for longer than a model takes, so each comes again after all others.
        """
        passes = [[run(self._seconds / _PASSES) for run in compiled] for _ in range(_PASSES)]
        return [frozen_array(np.concatenate(parts), np.float64) for parts in zip(*passes, strict=True)]

    def _compiled(self, model: ov.Model, device: str, properties: Mapping[str, str]) -> _Run:
        """Runs a model for so many seconds and tells its latencies, ``float64[n]``."""
        name = model.get_friendly_name()
        with _failing(device, name), temporary_folder() as folder:
            path, high = save_ir(model, folder), input_ranges(model)
            executable = self._profiler.compile(str(path), device, dict(properties), None, high)
            once = float(executable.run(2, warmup=2).min())

        def run(seconds: float) -> FloatArray:
            with _failing(device, name):
                runs = int(np.clip(seconds / once, _MIN_RUNS, _MAX_RUNS))
                return frozen_array(executable.run(runs, warmup=1), np.float64)

        return run


@contextmanager
def _failing(device: str, name: str) -> Iterator[None]:
    """What a device fails at while this is open.

    Raises:
        ProfilingError: It failed.
    """
    try:
        yield
    except RuntimeError as cause:
        raise ProfilingError(f"{device} fails at the model {name}: {cause}") from cause


def reported_precisions(core: ov.Core, device: str, properties: Mapping[str, Any]) -> list[str]:
    """The precision that the device uses by itself, then the others that it reports."""
    asked = properties.get(_PRECISION_HINT)
    own = default_precision(core, device) if asked is None else _type_name(asked)
    reported = core.get_property(device, "OPTIMIZATION_CAPABILITIES")
    others = [_PRECISION_OF_CAPABILITY[c] for c in reported if c in _PRECISION_OF_CAPABILITY]
    return list(dict.fromkeys([own, *others]))


def _type_name(value: Any) -> str:
    return str(value.to_string()) if isinstance(value, ov.Type) else str(value)


def _threads(core: ov.Core, device: str, properties: Mapping[str, Any]) -> int:
    """Threads that a CPU runs a model on; 0 of any other device."""
    if not is_cpu(core, device):
        return 0
    settings = {**device_settings(core, (device,))[device], **properties}
    return int(settings.get("INFERENCE_NUM_THREADS", 0)) or Cores.of_this_process().all


def _profile(
    core: ov.Core,
    device: str,
    rates: Sequence[Rate],
    op_overhead: float,
    threads: int,
    synchronisation: float,
    source: str,
) -> DeviceProfile:
    memory, memory_source = memory_of(core, device)
    return DeviceProfile(
        name=device,
        full_name=full_device_name(core, device) or device,
        precision=rates[0].precision,
        rates=tuple(rates),
        op_overhead_seconds=op_overhead,
        memory_bytes=memory,
        sources={
            "op_overhead_seconds": source,
            "memory_bytes": memory_source,
            **({"synchronisation_seconds": source} if threads else {}),
        },
        threads=threads,
        synchronisation_seconds=synchronisation,
        generation=generation() if threads else "",
    )


def _with_launch(transfers: TransferFit, launch_seconds: float) -> TransferFit:
    return TransferFit(
        devices=transfers.devices,
        latency=transfers.latency,
        seconds_per_byte=transfers.seconds_per_byte,
        launch_seconds=frozen_array([launch_seconds], np.float64),
    )
