"""``AUTOPLACE:CPU`` beside plain ``CPU`` under quotas of processor time, in a control group of its own.

Each network is placed in a process of its own that is in the group. Both then run in turns over whole periods
of the quota, each after a period that does not count, as decisions under a quota compare. What is compared is
what a server shows: requests a second, and the 99th percentile of the latencies of all turns.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import ov_autoplace
import zoo
from control_groups import ControlGroup, NoGroupError, control_group
from harness.environment import PAIRS, core_of
from harness.process import Pieces
from harness.race import session_of, sustained
from harness.result import Case, Claim, Result, Table, geometric_mean
from ov_autoplace.graph.passes import NAMED, formed, static_shapes
from ov_autoplace.plan.plan import WholePlan

PLAIN, OURS = "CPU", "AUTOPLACE:CPU"
_TIMEOUT, _WHOLE = 90.0, 700.0
_PERIOD, _TIMES = 0.1, 5
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
    name: str, cores: float, folder: str, is_v2: bool, seed: int, times: int = _TIMES
) -> dict[str, Any]:
    """Place one network in a control group, and run it both ways in turns.

    Args:
        name: Of the network, after its size.
        cores: The group's quota, which names the piece.
        folder: Of the group.
        is_v2: Its version.
        seed: Of placing.
        times: How often all turns are run.

    Returns:
        ``plan`` of ours, ``decision_seconds``; by contestant ``rates`` in requests a second of each turn,
        ``median`` and ``tail`` of all latencies in seconds.
    """
    ControlGroup(Path(folder), is_v2).enter()
    size, _, network = name.partition("/")
    model = formed(zoo.build(network, "full" if size == "full" else "small"), (static_shapes(), *NAMED))
    core, start = core_of("cpu"), time.perf_counter()
    plan = ov_autoplace.place(model, PAIRS["cpu"], core=core, seed=seed).plan
    seconds = time.perf_counter() - start
    with session_of(core, model, PAIRS["cpu"], seed) as session:
        timings = sustained(session, {PLAIN: WholePlan("CPU"), OURS: plan}, times)
    return {
        "plan": plan.name,
        "decision_seconds": seconds,
        "rates": {who: (1 / timing.samples).tolist() for who, timing in timings.items()},
        "median": {who: float(np.median(np.concatenate(t.latencies))) for who, t in timings.items()},
        "tail": {who: timing.tail_seconds for who, timing in timings.items()},
    }


def result_of(
    found: Mapping[float, Mapping[str, Mapping[str, Any]]], seed: int, failures: Sequence[str]
) -> Result:
    """What :func:`compare` found by quota and network, and whether it is as wanted."""
    rows, cases, claims, remarks = [], [], [], list(failures)
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
            known = (outcome["plan"], f"{outcome['decision_seconds']:.1f}")
            rows.append((name, f"{cores:g}", f"{1e3 * median:.3g}", *cells, *known))
            detail = f"99th percentile, {cores:g} cores, {outcome['plan']}"
            cases.append(Case(name, PLAIN, after / before, detail))
        remarks.append(f"{cores:g} cores: 99th percentile worse than {PLAIN}'s: {', '.join(worse) or 'none'}")
        if cores == 1.0 and rates:
            named = ", ".join(short) or "none"
            remarks.append(f"1 core: above 1 ms and less than {_BETTER:g} times better: {named}")
            mean = geometric_mean(rates)
            claims.append(Claim(f"1 core: {PLAIN}'s rate over ours, geometric mean", 1 / _FASTER, 1 / mean))
    columns = (
        "network", "cores", f"{PLAIN} median ms", "rate [of a turn]", f"{PLAIN} p99 ms", f"{OURS} p99 ms",
        "better", "plan", "decision s",
    )  # fmt: skip
    table = Table(f"{OURS} over {PLAIN} under quotas", columns, rows)
    data = {"seed": seed, "found": {f"{cores:g}": dict(networks) for cores, networks in found.items()}}
    return Result("Quotas of processor time", (table,), (), tuple(cases), tuple(remarks), data, tuple(claims))
