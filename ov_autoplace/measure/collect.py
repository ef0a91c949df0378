"""Collecting costs: what the ops of many networks take on the devices of this machine, to learn from."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import openvino as ov

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace._base.files import temporary_folder
from ov_autoplace._base.progress import Progress
from ov_autoplace.cost.analytic import Roofline
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples, Measurement, Network, Setting
from ov_autoplace.devices.conditions import has_tiles
from ov_autoplace.devices.names import full_device_name
from ov_autoplace.devices.widths import Cores, Width, is_cpu, widths_here
from ov_autoplace.errors import AutoplaceError, ProfilingError
from ov_autoplace.graph.failing import halves_threads
from ov_autoplace.graph.inputs import input_ranges
from ov_autoplace.graph.passes import FOLDED, static_shapes
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.attribution import Attribution, attribute
from ov_autoplace.measure.calibrate import calibrate, reported_precisions
from ov_autoplace.measure.counting import Column
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.microbenchmarks import reference_model
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.node_counts import NodeCount, count_nodes
from ov_autoplace.measure.profiled import calibrated
from ov_autoplace.measure.timing import mood_of, time_in_turns

if TYPE_CHECKING:
    from ov_autoplace.cost.target import Target
    from ov_autoplace.graph.computation_graph import ComputationGraph
    from ov_autoplace.measure.isolation.interface import Executable, Profiler

__all__ = ["NamedModel", "collect"]

_log = logging.getLogger("ov_autoplace")

_FLOATS = frozenset({"f32", "bf16", "f16"})
_TURN_SECONDS = 0.15  # for each setting of a network, and as much for the reference beside it
_LOOKS = 3  # at the reference model on all settings, and calibrations of each
_BESIDE = "reference of "  # begins the names of references among what takes turns
# Numbers below 1e-38 take many times as long as others. What was trained computes none, random weights may.
_NO_DENORMALS = {"CPU_DENORMALS_OPTIMIZATION": "YES"}
_MOST_SLOWNESS = 1.6  # of a machine, or its inverse; beyond, it is no longer the one that was calibrated
_COUNTING_SECONDS, _FEWEST, _MOST = 0.1, 5, 300
# A process that has compiled so many models is ended: what it keeps of them makes later ones slower.
_MODELS_OF_A_PROCESS = 25
_SAVED_EVERY_SECONDS = 60.0


class NamedModel(NamedTuple):
    """A network to measure, its unique name, and which kind of network it is."""

    name: str
    family: str
    model: ov.Model


@dataclass(frozen=True, eq=False)
class _Place:
    """A setting, and how models are compiled for it."""

    setting: Setting
    device: str
    properties: Mapping[str, str]

    @property
    def launch_seconds(self) -> float:
        return float(self.setting.targets[0].transfers.launch_seconds[0])

    @property
    def crashes_gated_units(self) -> bool:
        """Whether OpenVINO's compiler ends its process with what :func:`halves_threads` finds."""
        profile = self.setting.targets[0].devices[0]
        return has_tiles() and profile.threads == 1 and profile.precision != "f32"


def collect(
    models: Iterable[NamedModel],
    path: str | Path,
    core: ov.Core,
    devices: Sequence[str],
    *,
    label: str = "",
    seconds: float = float("inf"),
    progress: Progress | None = None,
) -> CostSamples:
    """Measure networks on every device, width and precision, and keep all of it in one file.

    What the file holds already is not measured again, so that an interrupted collection goes on where it was.
    A processor that is shared changes its speed within minutes. A reference model therefore runs in turns
    with every network, and times are those that would have been when the device was calibrated.
    A network that a device refuses is left out, with a line in the log.

    Args:
        models: The networks; each is made when its turn comes.
        path: The file, which is written about once a minute and at the end.
        core: Where the devices are.
        devices: Their names.
        label: Added to the names of the settings, for what the environment says of a device, such as
            ``ONEDNN_MAX_CPU_ISA``; behind a semicolon, of the hour.
        seconds: After which no further network is begun.
        progress: Called with (done, 0, name of the network).

    Returns:
        All that the file holds now.

    Raises:
        OutputError: The file cannot be written.
        TrainingError: The file is there, and is no such file.
        ProfilingError: No device runs the models of one op by which they are calibrated.
    """
    path, ends = Path(path), time.monotonic() + seconds
    samples = CostSamples.load(path) if path.exists() else CostSamples()
    profiler = profiler_for(core, devices)
    places = [
        place for device in devices for place in _places(core, device, label, samples.settings, profiler)
    ]
    new = tuple(p.setting for p in places if p.setting.name not in {s.name for s in samples.settings})
    samples = replace(samples, settings=(*samples.settings, *new))
    position = {setting.name: s for s, setting in enumerate(samples.settings)}
    done = {(samples.networks[m.network].name, m.setting) for m in samples.measurements}
    saved, count = time.monotonic(), 0
    try:
        for named in models:
            if time.monotonic() >= ends:
                break
            missing = [p for p in places if (named.name, position[p.setting.name]) not in done]
            if not missing:
                continue
            if progress is not None:
                progress(len(samples.names), 0, named.name)
            try:
                samples = _measured(samples, named, missing, position, profiler)
            except (AutoplaceError, RuntimeError) as cause:
                _log.info("%s is left out: %s", named.name, cause)
            count += 1
            if count % _MODELS_OF_A_PROCESS == 0 and isinstance(profiler, IsolatedProfiler):
                profiler.restart()
            if time.monotonic() - saved > _SAVED_EVERY_SECONDS:
                samples.save(path)
                saved = time.monotonic()
    finally:
        if isinstance(profiler, IsolatedProfiler):
            profiler.close()
        samples.save(path)
    return samples


def _places(
    core: ov.Core, device: str, label: str, known: Sequence[Setting], profiler: Profiler
) -> list[_Place]:
    """The settings of a device: each width of a CPU, in each precision that it computes in."""
    # All threads are the last: they do not stop at once, and would slow down what comes after them.
    widths: list[Width | None] = [None]
    references: dict[str, Executable] = {}
    always: dict[str, str] = {}
    if is_cpu(core, device):
        always = _NO_DENORMALS
        widths = [*(width for width in widths_here(core, device) if not width.cores), None]
    places = []
    found = {setting.name: setting for setting in known}
    for width in widths:
        for precision in reported_precisions(core, device, {}):
            if precision not in _FLOATS:
                continue
            threads = Cores.of_this_process().all if width is None else width.threads
            counted = f", {threads} threads" if is_cpu(core, device) else ""
            kind = _labelled(full_device_name(core, device) or device, label)
            name = f"{kind}{counted}, {precision}"
            own = width.properties if width else {}
            properties = {"INFERENCE_PRECISION_HINT": precision, **always, **own}
            setting = found.get(name)
            if setting is None:
                try:
                    measured = _target_of(core, device, properties)
                    references |= _reference(profiler, {name: (device, properties)})
                except (ProfilingError, RuntimeError) as cause:  # a precision that a device only claims
                    _log.warning("%s is left out: %s", name, cause)
                    continue
                told = generic_target(core, (device,), properties)
                setting = Setting(name, kind, (measured, told), math.inf)
            places.append(_Place(setting, device, properties))
    if not places:
        raise ProfilingError(f"{device} cannot be calibrated in any precision", device)
    return _undisturbed(core, places, references)


def _labelled(device: str, label: str) -> str:
    """A device's name with a label; what tells the hour follows a semicolon."""
    if not label or label.startswith(";"):
        return device + label
    return f"{device}, {label}"


def _target_of(core: ov.Core, device: str, properties: Mapping[str, str]) -> Target:
    """A device as calibrated, without the samples that it was told from."""
    return replace(calibrate(core, (device,), properties=properties, quick=True), samples=())


def _undisturbed(
    core: ov.Core, places: Sequence[_Place], references: Mapping[str, Executable]
) -> list[_Place]:
    """The places where a reference model runs, as fast as they are while nothing else runs.

    A slow spell of a machine may last longer than a calibration or a look at the reference. It only makes
    times longer, so both come several times, and of each the fastest counts.
    """
    ops, _ = OpGraph.of(PreparedModel.of(reference_model()).graph)

    def estimate(target: Target) -> float:
        return float(Roofline.of(ops, target.devices[0]).seconds.sum())

    found = {place.setting.name: place for place in places}
    for look in range(_LOOKS):
        for name, parts in time_in_turns(references, seconds=_TURN_SECONDS).items():
            place, own = found[name], found[name].setting
            measured, told = own.targets
            if look:
                measured = min(measured, _target_of(core, place.device, place.properties), key=estimate)
            seconds = min(own.reference_seconds, float(np.median(mood_of([parts]).samples(parts))))
            setting = replace(own, targets=(measured, told), reference_seconds=seconds)
            found[name] = replace(place, setting=setting)
    return list(found.values())


def _measured(
    samples: CostSamples,
    named: NamedModel,
    places: Sequence[_Place],
    position: Mapping[str, int],
    profiler: Profiler,
) -> CostSamples:
    """The samples with one more network, or with more settings of one that is there."""
    prepared = PreparedModel.of(named.model).then((static_shapes(None), *FOLDED))
    ops, kept = OpGraph.of(prepared.graph)
    if halves_threads(prepared.model):
        places = [place for place in places if not place.crashes_gated_units]
    if not places:
        raise ProfilingError("OpenVINO's compiler would crash on one thread")
    counts = {}
    with temporary_folder() as folder:
        ir = str(save_ir(prepared.model, folder))
        high = input_ranges(prepared.model)
        for place in places:
            counting = profiler.compile(
                ir, place.device, {**place.properties, "PERF_COUNT": "YES"}, None, high
            )
            counts[place.setting.name] = count_nodes(counting, _COUNTING_SECONDS, _FEWEST, _MOST)
            del counting
        plain = {
            place.setting.name: profiler.compile(ir, place.device, dict(place.properties), None, high)
            for place in places
        }
        asked = {place.setting.name: (place.device, place.properties) for place in places}
        beside = _reference(profiler, asked)
        # Each reference comes right after what it is to tell the machine's speed of.
        in_turns: dict[str, Executable] = {}
        for name, ran in plain.items():
            in_turns |= {name: ran, _BESIDE + name: beside[name]}
        turns = time_in_turns(in_turns, seconds=_TURN_SECONDS)
    mood = mood_of(list(turns.values()))
    names = [network.name for network in samples.networks]
    networks = samples.networks
    if named.name not in names:
        names.append(named.name)
        networks = (*networks, Network(named.name, named.family, ops))
    measurements, slow = [], []
    for place in places:
        name = place.setting.name
        then = place.setting.reference_seconds
        slowness = float(np.median(mood.samples(turns[_BESIDE + name]))) / then if then else 1.0
        if not 1 / _MOST_SLOWNESS < slowness < _MOST_SLOWNESS:
            slow.append(f"{name} is {slowness:.1f} times as slow as when it was calibrated")
            continue
        latencies = mood.samples(turns[name]) / slowness
        lower, median, upper = np.quantile(latencies, [0.25, 0.5, 0.75])
        kernel_of, seconds, nodes = _kernels(
            prepared.graph, kept, counts[name], float(median), place.launch_seconds
        )
        measurements.append(
            Measurement(
                names.index(named.name),
                position[name],
                float(median),
                float((upper - lower) / median),
                kernel_of,
                seconds,
                nodes,
            )
        )
    if not measurements:
        raise ProfilingError("; ".join(slow))
    for sentence in slow:
        _log.info("%s: %s", named.name, sentence)
    return replace(samples, networks=networks, measurements=(*samples.measurements, *measurements))


def _reference(
    profiler: Profiler, places: Mapping[str, tuple[str, Mapping[str, str]]]
) -> dict[str, Executable]:
    """The reference model compiled for devices with properties, by the name of each setting."""
    with temporary_folder() as folder:
        ir = str(save_ir(reference_model(), folder))
        return {
            name: profiler.compile(ir, device, dict(properties))
            for name, (device, properties) in places.items()
        }


def _kernels(
    graph: ComputationGraph, kept: IntArray, count: NodeCount, seconds: float, launch: float
) -> tuple[IntArray, FloatArray, IntArray]:
    """Kernel of each op that runs, and seconds and nodes of each kernel.

    The times add up to those of an inference without the launch, as in a profile.
    """
    found = attribute(graph, count.nodes, count.seconds)
    label = _labels(graph, found)
    used, kernel = np.unique(label[label >= 0], return_inverse=True)
    kernel_of = np.full(len(graph), -1, dtype=np.int64)
    kernel_of[label >= 0] = kernel
    runs = kernel_of >= 0
    counted = Column(found, float(count.latencies.mean()), other_seconds=found.unassigned_seconds)
    op_seconds = calibrated(counted, seconds, launch)
    times = np.bincount(kernel_of[runs], weights=op_seconds[runs], minlength=len(used))
    nodes = np.bincount(kernel_of[runs], weights=found.nodes_run[runs], minlength=len(used))
    return (
        frozen_array(kernel_of[kept], np.int32),
        frozen_array(times, np.float64),
        frozen_array(nodes, np.int32),
    )


def _labels(graph: ComputationGraph, found: Attribution) -> IntArray:
    """A number for the kernel of each op, ``int64[N]``; -1 = none."""
    label = np.where(found.nodes_run > 0, np.arange(len(graph)), -1)
    for group in found.fused:
        members = [graph.index[name] for name in group]
        label[members] = members[0]
    return np.asarray(label, dtype=np.int64)
