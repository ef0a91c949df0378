"""CPU beside a paced GPU, **emulated**: what working at once is worth, and whether the simulator foresees it.

The GPU is the virtual one of ``tools/virtual_gpu`` in its paced mode: OpenVINO's real GPU plugin, whose
kernels take a given time without using the processor and compute nothing. So nothing here says how fast a GPU
is, and no output is looked at; what is real is everything around the kernels: both plugins, the executor,
HETERO, copies, waiting. The CPU works on one thread, which leaves the GPU's driver a core.

Per network: a first process runs it on the virtual GPU and records what each kind of kernel takes. A second
one sees what one inference takes, and all times are scaled so that the GPU takes ``speed`` times what the CPU
does. A third profiles both devices, solves for the objective ``overlap``, and runs in turns, a few inferences
: either device alone, the executor, and HETERO with the same placement. In ``two branches``,
the two are equal.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import zoo
from harness.process import Pieces, shared_folder
from harness.race import Load, Race, race
from harness.result import Case, Claim, Result, Table, interval_cell, milliseconds
from model_checks import inputs_in_range
from networks.builder import NetworkBuilder
from ov_autoplace.devices.names import is_emulated
from ov_autoplace.devices.widths import Width
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.measure.profiled import profile_session
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import Plan, WholePlan
from ov_autoplace.plan.planning import lane_plan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.solvers import solve
from problems import branching

_DEVICES = ("GPU", "CPU")
_PROPERTIES = {
    "GPU": {"INFERENCE_PRECISION_HINT": "f32"},
    "CPU": {"INFERENCE_PRECISION_HINT": "f32", "EXCLUSIVE_ASYNC_REQUESTS": False, **Width(1).properties},
}
_OVERLAP, _HETERO = "executor", "HETERO"
_VARIABLE = "VIRTUAL_GPU_PACED"
_WARMUP, _RUNS = 3, 15
_TIMEOUT = 500.0
_MOST_ERROR, _LEAST_GAIN = 0.10, 1.85  # of predictions; over HETERO, where branches are equal
# Microseconds of kernels of a kind that no run has shown, such as copies where a network is cut.
_OTHER = 2.0
_TWO_BRANCHES = "two branches"
NETWORKS: Mapping[str, Callable[[], ov.Model]] = {
    _TWO_BRANCHES: lambda: branching.two_towers(NetworkBuilder(0, np.float32), 16, 128, batch=2048),
    "two_tower": partial(zoo.build, "two_tower"),
    "siamese": partial(branching.build, "siamese/105"),
    "dual encoder": partial(branching.build, "dual encoder/base"),
    "audio and video": partial(branching.build, "audio and video/small"),
    "two streams": partial(branching.build, "two streams/96"),
    "stereo": partial(branching.build, "stereo/128"),
}


def run(
    quick: bool, seed: int, networks: tuple[str, ...] = (), speed: float = 1.0, seconds: float = 8.0
) -> Result:
    """One row per network.

    Args:
        quick: The first network only, for a quarter of the time.
        seed: Of the solver and of orders.
        networks: Of :data:`NETWORKS`; all when empty.
        speed: What the GPU takes for a whole network, over what the CPU takes.
        seconds: Of each race.
    """
    pieces = Pieces(_TIMEOUT)
    folder = shared_folder() / "paced"
    folder.mkdir(exist_ok=True)
    os.environ.setdefault("VIRTUAL_GPU_CACHE", str(folder))
    found: dict[str, Mapping[str, Any]] = {}
    for name in networks or tuple(NETWORKS)[: 1 if quick else None]:
        recorded = folder / f"{name}.txt"
        real = pieces(name, record, name=name, path=str(recorded))
        if real is None:
            continue
        kernels = _read(recorded)
        # The virtual GPU takes a hundred times what a CPU does for some kernels, so this comes in two steps.
        rough = speed * real["CPU"] / real["GPU"]
        alone = pieces(name, times_alone, name=name, kernels=_table(kernels, rough))
        if alone is None:
            continue
        # What an inference takes besides its kernels is not scaled.
        wanted = speed * alone["CPU"] - (alone["GPU"] - alone["kernels"])
        scale = rough * max(wanted, 0.1 * alone["CPU"]) / alone["kernels"]
        race = pieces(
            name,
            overlap,
            name=name,
            kernels=_table(kernels, scale),
            seconds=seconds / 4 if quick else seconds,
            seed=seed,
        )
        if race is not None:
            found[name] = {"alone": alone, "scale": scale, **race}
    return _result(found, speed, seed, pieces.remarks)


def record(name: str, path: str) -> dict[str, float]:
    """Run a network on the virtual GPU, which writes the kernels' times to ``path`` as this process ends.

    Returns:
        Seconds of the shortest of some inferences by device.
    """
    os.environ[_VARIABLE] = f"record:{path}"
    core, model = _core(), _model(name)
    requests = {device: _request(core.compile_model(model, device), model) for device in _DEVICES}
    return {who: min(_seconds(request) for _ in range(_WARMUP)) for who, request in requests.items()}


def times_alone(name: str, kernels: str) -> dict[str, float]:
    """Seconds of the shortest inference on each device, and of the kernels of one on the GPU.

    Args:
        name: Of the network.
        kernels: The table of their times.
    """
    core, model = _paced_core(kernels), _model(name)
    found = {}
    for device in _DEVICES:
        request = _request(core.compile_model(model, device, {"PERF_COUNT": device == "GPU"}), model)
        found[device] = min(_seconds(request) for _ in range(_WARMUP + _RUNS))
        if device == "GPU":
            nodes = request.get_profiling_info()
            found["kernels"] = sum(node.real_time.total_seconds() for node in nodes)
    return found


def overlap(name: str, kernels: str, seconds: float, seed: int) -> dict[str, Any]:
    """Predict a placement that works on both devices at once, and race it.

    Args:
        name: Of the network.
        kernels: The table of the GPU's times.
        seconds: Of the race.
        seed: Of the solver and of orders.

    Returns:
        ``predicted`` seconds of the executor and of HETERO, ``submodels``, and the ``race``.
    """
    core, model = _paced_core(kernels), _model(name)
    with ProfilingSession(core, model, _DEVICES, _PROPERTIES, seed=seed) as session:
        table = profile_session(session).table
        placement = solve(table, "portfolio", objective="overlap", seed=seed)
        schedule = simulate(table, placement, "overlap")
        lanes = [Lane.of(device, _PROPERTIES[device]) for device in _DEVICES]
        plans: dict[str, Plan] = {device: WholePlan(device) for device in _DEVICES}
        plans |= {_OVERLAP: lane_plan(table, placement, lanes), _HETERO: placement.plan}
        raced = race(session, plans, seconds, seed, copies=1)
    if raced.failures:
        raise AutoplaceError("; ".join(f"{who} failed: {why}" for who, why in raced.failures.items()))
    return {
        "predicted": {
            _OVERLAP: schedule.latency_seconds,
            _HETERO: simulate(table, placement).latency_seconds,
        },
        "submodels": schedule.subgraphs,
        "race": raced.to_dict(),
    }


def _request(compiled: ov.CompiledModel, model: ov.Model) -> ov.InferRequest:
    """A request with inputs: memory that nobody wrote holds numbers on which a CPU takes thrice as long."""
    request = compiled.create_infer_request()
    for position, data in inputs_in_range(model, {}, seed=0).items():
        request.set_input_tensor(position, ov.Tensor(data))
    return request


def _seconds(request: ov.InferRequest) -> float:
    start = time.perf_counter()
    request.infer()
    return time.perf_counter() - start


def _model(name: str) -> ov.Model:
    return with_static_shapes(NETWORKS[name]())


def _core() -> ov.Core:
    core = ov.Core()
    for device, properties in _PROPERTIES.items():
        core.set_property(device, properties)
    return core


def _paced_core(kernels: str) -> ov.Core:
    """A Core whose GPU is paced, in this process and in those that it starts; only its first one is."""
    path = Path(tempfile.mkdtemp(prefix="ov-autoplace-paced-")) / "kernels.txt"
    path.write_text(kernels, encoding="utf-8")
    os.environ[_VARIABLE] = f"table:{path}"
    core = _core()
    if not is_emulated(core, "GPU"):
        raise RuntimeError(
            "this section wants the virtual GPU of tools/virtual_gpu, and there is another one"
        )
    return core


def _read(path: Path) -> dict[str, float]:
    """Microseconds of kernels."""
    lines = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return {words[0]: float(words[1]) for words in lines if words and words[0] != "#"}


def _table(kernels: Mapping[str, float], scale: float) -> str:
    """Scaled times: of all kernels of a kind, the median of those that were recorded.

    The plugin chooses other layouts, and so other kernels, for a part of a network than for the whole. Were
    each kernel to take its own time, a part would take times that nobody recorded.
    """
    kinds: dict[str, list[float]] = defaultdict(list)
    for name, time_us in kernels.items():
        kinds[name.split("_")[0]].append(time_us)
    lines = [f"{kind}_* {scale * np.median(times):.3f}" for kind, times in sorted(kinds.items())]
    return "\n".join([*lines, f"* {_OTHER}", ""])


def _result(
    found: Mapping[str, Mapping[str, Any]], speed: float, seed: int, failures: Sequence[str]
) -> Result:
    rows, cases, claims = [], [], []
    for name, outcome in found.items():
        raced, load = Race.from_dict(outcome["race"]), Load.STEADY
        samples = raced.samples[load]
        best = raced.best(_DEVICES, load)
        over_best, gain = raced.ratio(_OVERLAP, best, load), raced.ratio(_HETERO, _OVERLAP, load)
        errors = {
            who: predicted / float(np.median(samples[who])) - 1
            for who, predicted in outcome["predicted"].items()
        }
        cases.append(Case(name, best, over_best.median, f"emulated, {outcome['submodels']} submodels"))
        cells = [milliseconds(samples[who]) for who in ("CPU", "GPU", _OVERLAP, _HETERO)]
        cells += [f"{100 * errors[who]:+.1f}" for who in (_OVERLAP, _HETERO)]
        rows.append((name, outcome["submodels"], *cells, interval_cell(gain), interval_cell(over_best)))
        if name == _TWO_BRANCHES:
            what = "two equal branches, the executor over HETERO with the same placement"
            claims.append(Claim(what, 1 / _LEAST_GAIN, 1 / gain.median))
        claims.append(Claim(f"error of the prediction for {name}", _MOST_ERROR, abs(errors[_OVERLAP])))
    columns = (
        "network", "submodels", "CPU ms", "paced GPU ms", "executor ms", "HETERO, same placement ms",
        "error %", "HETERO's error %", "HETERO over executor", "executor over the best device",
    )  # fmt: skip
    note = (
        "Emulated: the GPU's kernels compute nothing; they take recorded times, scaled so that the GPU "
        f"takes {speed:g} times what the CPU takes."
    )
    return Result(
        "CPU beside a paced GPU (emulated)",
        (Table("One request on both devices at once", columns, rows, note),),
        cases=tuple(cases),
        remarks=tuple(failures),
        claims=tuple(claims),
        data={"seed": seed, "speed": speed, "networks": dict(found)},
    )
