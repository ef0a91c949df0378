"""``AUTOPLACE:CPU`` beside plain ``CPU`` under quotas of processor time, in a control group of its own.

Each network is compiled as a user's would be, in a process of its own that is in the group. Both compiled
models then run in turns of a second, each after a period of the quota that does not count. What is compared
is what a server shows: requests a second, and the 99th percentile of the latencies of all turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import ov_autoplace  # noqa: F401 (the device AUTOPLACE)
import zoo
from control_groups import ControlGroup, NoGroupError, control_group
from harness.process import Pieces
from harness.result import Case, Result, Table, bar
from ov_autoplace.graph.shapes import with_static_shapes

PLAIN, OURS = "CPU", "AUTOPLACE:CPU"
_TIMEOUT, _WHOLE = 90.0, 700.0
_PERIOD, _TURN, _TURNS = 0.1, 1.0, 3
_TAIL = 99
# 0.05 to 50 ms on two cores.
_NETWORKS = (
    "small/mobilenet_v2",
    "small/bert_base",
    "small/unet",
    "small/inception_v3",
    "small/amoebanet",
    "full/mobilenet_v2",
    "full/efficientnet_b0",
    "full/ssdlite",
    "full/resnet50",
    "full/inception_v3",
)
_QUICK = ("small/mobilenet_v2", "full/mobilenet_v2")
# A 99th percentile above plain CPU's by more than this is worse and no noise.
_NEVER_ABOVE = 1.05
# Under a quota of one core: of networks that take more seconds, the percentile is to be so many times better,
# and the rate of all at least so many times plain CPU's.
_LONG, _BETTER, _FASTER = 1e-3, 4.0, 1.05


def run(
    quick: bool, seed: int, models: tuple[str, ...] = (), quotas: tuple[float, ...] = (0.6, 1.0, 1.5)
) -> Result:
    """A row for each network and quota.

    Args:
        quick: Two networks under a quota of one core.
        seed: Of inputs.
        models: Parts of names; those that have one of them in theirs. All when empty.
        quotas: In cores.
    """
    pieces = Pieces(timeout=_TIMEOUT, whole=_WHOLE)
    every = _QUICK if quick else _NETWORKS
    names = [name for name in every if not models or any(part in name for part in models)]
    found: dict[float, dict[str, Mapping[str, Any]]] = {}
    for cores in (1.0,) if quick else quotas:
        try:
            with control_group(f"ov-autoplace-bench-{os.getpid()}") as group:
                group.limit(cores, _PERIOD)
                what = {"cores": cores, "folder": str(group.folder), "is_v2": group.is_v2, "seed": seed}
                outcomes = {n: pieces(f"{n} under {cores:g} cores", compare, name=n, **what) for n in names}
                found[cores] = {name: one for name, one in outcomes.items() if one is not None}
        except (NoGroupError, OSError) as cause:
            pieces.remarks.append(f"{cores:g} cores: not measured: {cause}")
    return result_of(found, seed, pieces.remarks)


def compare(
    name: str, cores: float, folder: str, is_v2: bool, seed: int, turn_seconds: float = _TURN
) -> dict[str, Any]:
    """Compile one network both ways in a control group, and run both in turns.

    Args:
        name: Of the network, after its size.
        cores: The group's quota, which names the piece.
        folder: Of the group.
        is_v2: Its version.
        seed: Of inputs.
        turn_seconds: Length of a turn.

    Returns:
        ``threads`` of ours, ``decision_seconds``; by contestant ``rates`` in requests a second of each turn,
        ``median`` and ``tail`` of all latencies in seconds.
    """
    ControlGroup(Path(folder), is_v2).enter()
    size, _, network = name.partition("/")
    model = with_static_shapes(zoo.build(network, "full" if size == "full" else "small"))
    core, compiled, seconds = ov.Core(), {}, {}
    for who in (PLAIN, OURS):
        start = time.perf_counter()
        compiled[who] = core.compile_model(model, who)
        seconds[who] = time.perf_counter() - start
    requests = {who: one.create_infer_request() for who, one in compiled.items()}
    random = np.random.default_rng(seed)
    for value in model.inputs:
        data = random.integers(0, 2, list(value.shape)).astype(value.element_type.to_dtype())
        for request in requests.values():
            request.set_tensor(value.any_name, ov.Tensor(data))
    rates: dict[str, list[float]] = {who: [] for who in requests}
    latencies: dict[str, list[float]] = {who: [] for who in requests}
    for turn in range(_TURNS):
        for who in (PLAIN, OURS)[:: 1 if turn % 2 == 0 else -1]:
            _run_for(requests[who], _PERIOD)
            rate, found = _run_for(requests[who], turn_seconds)
            rates[who].append(rate)
            latencies[who] += found
    return {
        "threads": int(compiled[OURS].get_property("INFERENCE_NUM_THREADS")) or 1,  # 0 = the calling one
        "decision_seconds": seconds[OURS],
        "rates": rates,
        "median": {who: float(np.median(found)) for who, found in latencies.items()},
        "tail": {who: float(np.percentile(found, _TAIL)) for who, found in latencies.items()},
    }


def _run_for(request: ov.InferRequest, seconds: float) -> tuple[float, list[float]]:
    """Requests a second, the part of the last one that is within the turn included, and all latencies."""
    latencies: list[float] = []
    start = last = time.perf_counter()
    while last - start < seconds:
        request.infer()
        now = time.perf_counter()
        latencies.append(now - last)
        last = now
    beyond = (last - start - seconds) / latencies[-1]
    return (len(latencies) - beyond) / seconds, latencies


def result_of(
    found: Mapping[float, Mapping[str, Mapping[str, Any]]], seed: int, failures: Sequence[str]
) -> Result:
    """What :func:`compare` found by quota and network, and whether it is as wanted."""
    rows, cases, remarks = [], [], list(failures)
    for cores, networks in found.items():
        rates: list[float] = []
        worse: list[str] = []
        short: list[str] = []
        for name, outcome in networks.items():
            plain, ours = (np.array(outcome["rates"][who]) for who in (PLAIN, OURS))
            before, after = (1e3 * outcome["tail"][who] for who in (PLAIN, OURS))
            median = outcome["median"][PLAIN]
            rates.append(float(ours.mean() / plain.mean()))
            worse += [f"{name} {after / before:.2f}"] if after > _NEVER_ABOVE * before else []
            is_short = cores == 1.0 and median > _LONG and before < _BETTER * after
            short += [f"{name} {before / after:.1f}"] if is_short else []
            spread = f"[{(ours / plain).min():.2f}, {(ours / plain).max():.2f}]"
            cells = (f"{rates[-1]:.2f} {spread}", f"{before:.3g}", f"{after:.3g}", f"{before / after:.2f}")
            known = (outcome["threads"], f"{outcome['decision_seconds']:.1f}")
            rows.append((name, f"{cores:g}", f"{1e3 * median:.3g}", *cells, *known))
            detail = f"99th percentile, {cores:g} cores, threads {outcome['threads']}"
            cases.append(Case(name, PLAIN, after / before, detail))
        remarks.append(f"{cores:g} cores: 99th percentile worse than {PLAIN}'s: {', '.join(worse) or 'none'}")
        if cores == 1.0 and rates:
            named = ", ".join(short) or "none"
            remarks.append(f"1 core: above 1 ms and less than {_BETTER:g} times better: {named}")
            mean = float(np.exp(np.mean(np.log(rates))))
            remarks.append(bar(f"1 core: {PLAIN}'s rate over ours, geometric mean", 1 / _FASTER, 1 / mean))
    columns = (
        "network", "cores", f"{PLAIN} median ms", "rate [of a turn]", f"{PLAIN} p99 ms", f"{OURS} p99 ms",
        "better", "threads", "decision s",
    )  # fmt: skip
    table = Table(f"{OURS} over {PLAIN} under quotas", columns, rows)
    data = {"seed": seed, "found": {f"{cores:g}": dict(networks) for cores, networks in found.items()}}
    return Result("Quotas of processor time", (table,), (), tuple(cases), tuple(remarks), data)
