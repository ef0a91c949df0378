"""``AUTOPLACE:CPU`` over OpenVINO's default ``CPU``: what choosing the number of threads is worth.

Each network is placed as a user's would be, in a process of its own. The answer and plain ``CPU`` are then
compiled several times each and run in turns: back to back, and once after each pause of 3 ms, when threads
have gone to sleep. Bands are by the shorter of the two latencies back to back. An answer that is plain
``CPU`` is measured like any other, so that its ratio shows the noise.

Networks: the zoo, and networks that nobody here wrote.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import ov_autoplace
from harness.copies import race_copies
from harness.process import Pieces, shared_folder
from harness.result import Case, Ratio, Result, Table, bar, interval_cell, measured_ratio, milliseconds
from ov_autoplace._base.statistics import Interval, median_interval, paired_ratio
from ov_autoplace._core import Profiler
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.graph.shapes import with_static_shapes
from problems.models import MODELS

__all__ = ["compare", "run"]

PLAIN, OURS = "CPU", "AUTOPLACE:CPU"
_PAUSE = 3e-3
_COPIES, _SECONDS, _TIMEOUT = 3, 1.5, 180.0
_MOST = 1.02  # slower than this is a loss that counts
# Seconds below which a network belongs to a band, its name, and what its geometric mean is wanted to be.
_BANDS = (
    (60e-6, "below 60 us", 0.55),
    (200e-6, "60 to 200 us", 0.70),
    (1e-3, "0.2 to 1 ms", 0.88),
    (np.inf, "above", 1.00),
)
_QUICK = ("zoo/lstm_lm", "zoo/mobilenet_v2", "zoo/unet", "light/squeezenet")


def run(quick: bool, seed: int, models: tuple[str, ...] = (), groups: int = 0, group: int = 0) -> Result:
    """Every network's ratio, and the geometric mean of each band.

    Args:
        quick: Four networks.
        seed: Of inputs and orders.
        models: Parts of names; those that have one of them in theirs. All when empty.
        groups: Into how many parts the networks are divided, for a machine that is idle for short times only.
        group: Which of the parts to run, from 0.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names = [
        name for name in (_QUICK if quick else MODELS) if not models or any(part in name for part in models)
    ]
    names = names[group::groups] if groups else names
    folder = shared_folder()
    found: dict[str, Mapping[str, Any]] = {}
    for name in names:
        outcome = pieces(name, compare, name=name, folder=str(folder), seed=seed)
        if outcome is not None:
            found[name] = outcome
    return _result(found, seed, pieces.remarks)


def compare(name: str, folder: str, seed: int) -> dict[str, Any]:
    """Place one network and race the answer with plain ``CPU``.

    Args:
        name: Of the network.
        folder: For its file.
        seed: Of inputs and orders.

    Returns:
        ``width``, ``reason``, ``decision_seconds``; ``back_to_back`` and ``after_pauses``: seconds of both by
        name, in the same rounds.
    """
    model = with_static_shapes(MODELS[name]())
    start = time.perf_counter()
    placement = ov_autoplace.place(model, "CPU", seed=seed)
    decision_seconds = time.perf_counter() - start
    if placement.decision is None:
        raise AutoplaceError(f"{name} was placed without a decision")
    path = Path(folder) / f"width-{name.replace('/', '-')}.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    profiler = Profiler([], {"CPU": {}})
    width = placement.plan.width
    threads = {PLAIN: {}, OURS: width.properties if width else {}}
    executables: dict[str, list[Any]] = {PLAIN: [], OURS: []}
    for copy in range(_COPIES):
        # Where a copy lies in memory depends on those before it, so they take turns.
        for who in (PLAIN, OURS)[:: 1 if copy % 2 else -1]:
            executables[who].append(profiler.compile(str(path), "CPU", threads[who]))
    failures: dict[str, str] = {}
    copies = race_copies(executables, _SECONDS, seed, failures)
    paused = race_copies(executables, _SECONDS, seed, failures, partial(Profiler.race, pause_seconds=_PAUSE))
    if failures:
        raise AutoplaceError("; ".join(f"{who} failed: {why}" for who, why in failures.items()))
    return {
        "width": str(width or ""),
        "reason": str(placement.decision),
        "decision_seconds": decision_seconds,
        "back_to_back": {who: samples.tolist() for who, samples in copies.samples.items()},
        "after_pauses": {who: samples.tolist() for who, samples in paused.samples.items()},
    }


def _result(found: Mapping[str, Mapping[str, Any]], seed: int, failures: Sequence[str]) -> Result:
    rows, cases, ratios, remarks = [], [], [], list(failures)
    bands: dict[str, list[float]] = {band: [] for _, band, _ in _BANDS}
    paused_bands: dict[str, list[float]] = {band: [] for _, band, _ in _BANDS}
    slower: dict[str, list[str]] = {"back to back": [], "after pauses": []}
    for name, outcome in found.items():
        best = min(float(np.median(samples)) for samples in outcome["back_to_back"].values())
        band = next(band for limit, band, _ in _BANDS if best < limit)
        direct, paused = _ratio(outcome["back_to_back"]), _ratio(outcome["after_pauses"])
        bands[band].append(direct.median)
        paused_bands[band].append(paused.median)
        for how, ratio in (("back to back", direct), ("after pauses", paused)):
            detail = f"{how}, width {outcome['width'] or 'default'}"
            cases.append(Case(name, PLAIN, ratio.median, detail))
            if ratio.low > 1 and ratio.median > _MOST:
                slower[how].append(f"{name} {ratio.median:.3f}")
        plain = milliseconds(np.array(outcome["back_to_back"][PLAIN]))
        seconds = f"{outcome['decision_seconds']:.1f}"
        rows.append(
            (
                name,
                band,
                plain,
                outcome["width"] or "-",
                interval_cell(direct),
                interval_cell(paused),
                seconds,
            )
        )
    order = {band: number for number, (_, band, _) in enumerate(_BANDS)}
    rows.sort(key=lambda row: (order[row[1]], row[0]))
    table = Table(
        f"{OURS} over plain {PLAIN}, medians of paired rounds",
        ("network", "band", f"{PLAIN} ms", "width", "back to back", "after 3 ms", "decision s"),
        rows,
        "A width of - is plain CPU: its ratio is what noise there was.",
    )
    summary = []
    for _, band, wanted in _BANDS:
        if not bands[band]:
            continue
        mean, paused_mean = _geometric(bands[band]), _geometric(paused_bands[band])
        summary.append((band, len(bands[band]), f"{mean:.3f}", f"{paused_mean:.3f}", f"{wanted:.2f}"))
        remarks.append(bar(f"geometric mean {band}", wanted, mean))
        ratios.append(_spread_ratio(f"width: {band}", bands[band]))
    for how, names in slower.items():
        remarks.append(f"slower than {_MOST} {how}: {', '.join(names) or 'none'}")
    bands_table = Table(
        "Geometric means", ("band", "networks", "back to back", "after 3 ms", "wanted"), summary
    )
    return Result(
        "The width of the CPU",
        (bands_table, table),
        tuple(ratios),
        tuple(cases),
        tuple(remarks),
        {"seed": seed, "networks": dict(found)},
    )


def _ratio(samples: Mapping[str, Sequence[float]]) -> Interval:
    return paired_ratio(np.array(samples[OURS]), np.array(samples[PLAIN]))


def _geometric(values: Sequence[float]) -> float:
    return float(np.exp(np.mean(np.log(values))))


def _spread_ratio(name: str, values: Sequence[float]) -> Ratio:
    """The geometric mean for the gate, with the interval of the networks' median around it."""
    _, low, high = median_interval(np.array(values))
    return measured_ratio(name, Interval(_geometric(values), low, high), len(values))
