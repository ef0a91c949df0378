"""A search for networks where a mix of GPU and CPU is measured faster than every single device.

First, where do the two plugins' kernels differ? Zoo models are profiled on both devices, op type by op
type; then single layers of many types are timed against the same model without the layer. Second,
networks that need both: layers of one type that the GPU plugin runs faster, then layers of one that the
CPU plugin does, as many of each as pay for the transfer; and networks out of publications that hold such
types by nature. Third, AUTOPLACE places each of them in PROFILE and TUNE mode, and its answer races with
every device alone. All are shown.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import ceil, prod
from pathlib import Path
from typing import Any

import numpy as np

import ov_autoplace
from harness.environment import PAIRS, core_of
from harness.process import Pieces
from harness.race import RIVALS, Race, race_model, transfers_of
from harness.result import Ratio, Result, Table, interval_cell, measured_ratio, milliseconds
from ov_autoplace._base.statistics import Interval, paired_ratio
from ov_autoplace.cost.target_json import load_target
from problems.models import build
from problems.networks import LAYERS, NETWORKS, SHAPE, composite, layer_model
from sections.latency import cases_of

__all__ = ["Kernel", "amounts", "kernel_of", "race_network", "run", "transfer_seconds", "types_of"]

DEVICES = PAIRS["gpu"]
WANTED = 0.9
"""A mix that takes at most this share of the best device's time is what is searched for."""

_MODES = ("PROFILE", "TUNE")
_SECONDS = {True: 3.0, False: 8.0}
_TUNE_MS = {True: 4_000.0, False: 10_000.0}
_PROFILED = {
    True: ("bert 2x128, 32 tokens",),
    False: ("bert 4x256, 32 tokens", "gnmt", "mixture_of_experts", "mobilenet_v2"),
}
_QUICK_LAYERS = ("Sin", "Asinh", "Softmax", "CumSum")
_QUICK_NETWORKS = ("radiance_field",)
_COMPOSITES = {True: 1, False: 4}
_PAID = 5.0  # transfers that each half of a composite has to earn
_MOST_LAYERS = 8
_RUNS, _LAYER_SECONDS = 9, 1.0
_TIMEOUT = {True: 180.0, False: 300.0}  # of a model, or of a layer
# Of a run: idle, two cores need about 18 minutes for a whole one.
_WHOLE = {True: 600.0, False: 1800.0}


@dataclass(frozen=True, slots=True)
class Kernel:
    """One layer of an op type: seconds by device, and the paired ratio of the first over the second."""

    kind: str
    seconds: tuple[float, float]
    ratio: Interval


def run(quick: bool, seed: int) -> Result:
    """Search.

    Args:
        quick: Few op types and networks.
        seed: Of placing and of the order in each round.
    """
    pieces = Pieces(_TIMEOUT[quick], _WHOLE[quick])
    by_type = _profiled(pieces, _PROFILED[quick])
    kernels = _kernels(pieces, _QUICK_LAYERS if quick else tuple(LAYERS))
    networks: dict[str, dict[str, Any]] = {}
    # Without them, no layers are combined.
    target = pieces("transfers", transfers_of, pair="gpu") or ""
    if target:
        networks |= _composites(kernels, transfer_seconds(target), _COMPOSITES[quick])
    networks |= {name: {"name": name} for name in (_QUICK_NETWORKS if quick else NETWORKS)}
    races = {}
    for name, arguments in networks.items():
        fields = pieces(name, race_network, **arguments, quick=quick, seed=seed, target=target)
        if fields is not None:
            races[name] = Race.from_dict(fields)
    return Result(
        title="Search for mixes of GPU and CPU that are faster than every single device",
        tables=(_type_table(by_type), _kernel_table(kernels), _network_table(races)),
        ratios=tuple(_ratios(races)),
        cases=tuple(cases_of(races)),
        remarks=(*_verdict(races), *pieces.remarks),
        data={
            "types": by_type,
            "kernels": {k.kind: {"seconds": k.seconds, "ratio": k.ratio} for k in kernels},
            "races": {name: race.to_dict() for name, race in races.items()},
        },
    )


def types_of(name: str) -> dict[str, list[float]]:
    """Seconds of a model's groups on each device, summed up by the type of their heaviest op."""
    core = core_of("gpu")
    table = ov_autoplace.profile(build(name), DEVICES, core)
    kinds = table.op_types or ("other",) * len(table)
    return {
        kind: table.op_seconds[[other == kind for other in kinds]].sum(axis=0).tolist()
        for kind in dict.fromkeys(kinds)
    }


def kernel_of(kind: str) -> list[list[float]]:
    """Seconds that one layer adds to a reduction on each device, ``[2, R]``, from rounds in turns."""
    core = core_of("gpu")
    values = np.random.default_rng(0).uniform(-1, 1, SHAPE).astype(np.float32)
    requests = []
    for device, layer in product(DEVICES, (kind, None)):
        request = core.compile_model(layer_model(layer), device).create_infer_request()
        request.infer([values])
        requests.append(request)
    return _in_turns(requests).tolist()


def _in_turns(requests: Sequence[Any]) -> np.ndarray:
    """What each second request takes less than the one before it, ``float64[2, R]`` for four of them."""
    rounds: list[list[float]] = []
    end = time.perf_counter() + _LAYER_SECONDS
    while len(rounds) < _RUNS or time.perf_counter() < end:
        row = []
        for request in requests:
            begin = time.perf_counter()
            request.infer()
            row.append(time.perf_counter() - begin)
        rounds.append(row)
    taken = np.array(rounds).T
    return np.maximum(taken[0::2] - taken[1::2], 1e-6)


def transfer_seconds(target: str) -> float:
    """Seconds of one transfer of a tensor of layers there and the launch of another submodel.

    Args:
        target: A target profile, as :func:`transfers_of` gives it.
    """
    with tempfile.TemporaryDirectory(prefix="ov-autoplace-bench-") as folder:
        path = Path(folder) / "target.json"
        path.write_text(target, encoding="utf-8")
        fit = load_target(path).transfers.for_devices(DEVICES)
    moved = fit.latency + fit.seconds_per_byte * 4.0 * prod(SHAPE)
    return float(moved[0, 1] + np.max(fit.launch_seconds))


def amounts(first: Kernel, second: Kernel, crossing: float) -> tuple[int, int]:
    """How many layers of each kind: both halves save several transfers on their device.

    Args:
        first: Faster on the first device.
        second: Faster on the second.
        crossing: Seconds of one transfer.
    """
    gains = (first.seconds[1] - first.seconds[0], second.seconds[0] - second.seconds[1])
    return tuple(int(np.clip(ceil(_PAID * crossing / gain), 1, _MOST_LAYERS)) for gain in gains)  # type: ignore[return-value]


def race_network(
    quick: bool, seed: int, target: str, name: str = "", layers: Sequence[Any] | None = None
) -> dict[str, Any]:
    """The race of a network of publications, or of a composite, for JSON."""
    model = composite(*layers) if layers else NETWORKS[name]()
    race = race_model("gpu", model, _SECONDS[quick], _MODES, _TUNE_MS[quick], seed=seed, target=target)
    return race.to_dict()


def _profiled(pieces: Pieces, models: Sequence[str]) -> dict[str, list[float]]:
    sums: dict[str, list[float]] = {}
    for name in models:
        for kind, seconds in (pieces(name, types_of, name=name) or {}).items():
            sums[kind] = (np.array(sums.get(kind, [0.0, 0.0])) + seconds).tolist()
    return sums


def _kernels(pieces: Pieces, kinds: Sequence[str]) -> list[Kernel]:
    kernels = []
    for kind in kinds:
        rounds = pieces(f"layer {kind}", kernel_of, kind=kind)
        if rounds is None:
            continue
        gpu, cpu = np.array(rounds)
        kernels.append(Kernel(kind, (float(np.median(gpu)), float(np.median(cpu))), paired_ratio(gpu, cpu)))
    return sorted(kernels, key=lambda kernel: kernel.ratio.median)


def _composites(kernels: Sequence[Kernel], crossing: float, count: int) -> dict[str, dict[str, Any]]:
    """The pairs of op types that differ most in opposite directions."""
    gpu = [k for k in kernels if k.ratio.high < 1]
    cpu = [k for k in reversed(kernels) if k.ratio.low > 1]
    pairs = sorted(product(range(len(gpu)), range(len(cpu))), key=lambda ij: (sum(ij), ij))
    chosen = {}
    for i, j in pairs[:count]:
        first, second = amounts(gpu[i], cpu[j], crossing)
        layers = [gpu[i].kind, first, cpu[j].kind, second]
        chosen[f"{first} {gpu[i].kind}, {second} {cpu[j].kind}"] = {"layers": layers}
    return chosen


def _type_table(by_type: Mapping[str, Sequence[float]]) -> Table:
    ranked = sorted(by_type.items(), key=lambda item: item[1][0] / max(item[1][1], 1e-9))
    return Table(
        "Op types of profiled models: milliseconds of all groups of a type, by their heaviest op",
        ("op type", *(f"{device} ms" for device in DEVICES), f"{DEVICES[0]} / {DEVICES[1]}"),
        [
            (kind, *(f"{1e3 * s:.3f}" for s in seconds), f"{seconds[0] / max(seconds[1], 1e-9):.2f}")
            for kind, seconds in ranked
        ],
    )


def _kernel_table(kernels: Sequence[Kernel]) -> Table:
    shape = "x".join(map(str, SHAPE))
    return Table(
        f"Single layers on {shape}: milliseconds over the same model without the layer",
        ("layer", *(f"{device} ms" for device in DEVICES), f"{DEVICES[0]} / {DEVICES[1]}"),
        [
            (kernel.kind, *(f"{1e3 * s:.3f}" for s in kernel.seconds), interval_cell(kernel.ratio))
            for kernel in kernels
        ],
    )


def _network_table(races: Mapping[str, Race]) -> Table:
    rows = []
    for name, race in races.items():
        best = race.best_device
        ratios = [interval_cell(race.ratio(mode, best)) if mode in race.samples else "-" for mode in _MODES]
        contenders = (*DEVICES, *RIVALS, *_MODES)
        medians = [milliseconds(race.samples[c]) if c in race.samples else "-" for c in contenders]
        answer = race.answers.get("TUNE") or race.answers.get("PROFILE")
        mix = "-" if answer is None else f"{'+'.join(answer.devices)}, {answer.subgraphs}"
        rows.append((name, *medians, *ratios, race.runs, mix))
    return Table(
        "Networks of both sorts: milliseconds, and AUTOPLACE over the best single device",
        (
            "network",
            *DEVICES,
            *RIVALS,
            "profile",
            "tune",
            "profile / best",
            "tune / best",
            "rounds x copies",
            "devices, submodels (tune)",
        ),
        rows,
        "A sample of a round is the mean over all copies of a contender.",
    )


def _ratios(races: Mapping[str, Race]) -> list[Ratio]:
    # Composites are chosen anew in every run, so their names come and go: only the others are held to.
    return [
        measured_ratio(
            f"{name}: {mode.lower()} over the best device", race.ratio(mode, race.best_device), race.rounds
        )
        for name, race in races.items()
        if name in NETWORKS
        for mode in _MODES
        if mode in race.samples
    ]


def _verdict(races: Mapping[str, Race]) -> list[str]:
    found = []
    for name, race in races.items():
        best = min(
            (race.ratio(mode, race.best_device) for mode in _MODES if mode in race.samples),
            key=lambda ratio: ratio.median,
            default=None,
        )
        if best is not None and best.high < WANTED:
            found.append(f"{name} ({interval_cell(best)})")
    if not found:
        return ["no network was found on which a mix takes less than 0.9 of the best device's time"]
    return [
        f"{len(found)} of {len(races)} networks take, with the whole interval, less than {WANTED} of the "
        f"best single device's time: {', '.join(found)}"
    ]
