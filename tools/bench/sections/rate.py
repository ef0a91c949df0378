"""``AUTOPLACE`` under ``PERFORMANCE_HINT=THROUGHPUT`` over the best of OpenVINO's own hints for a rate.

Each network is compiled in a process of its own by AUTOPLACE, by each device under its THROUGHPUT hint and by
AUTO under CUMULATIVE_THROUGHPUT. All run in turns, called in two ways: by as many threads as the compiled
model asks for (``OPTIMAL_NUMBER_OF_INFER_REQUESTS``), each waiting in ``infer()``, and by one thread through
``AsyncInferQueue``. Ratios are of rates, in the same way of calling, over the best rival in it: above 1 is
faster. Both are measured from Python, as a program has it, where the interpreter's lock is part of every
call; and the same compiled models from C++.

With ``hints=1`` it compares the one device ``AUTOPLACE:CPU`` with ``CPU`` instead, under every hint and with
two streams, beside a second ``CPU`` that says how much equals differ.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import openvino as ov

import ov_autoplace
from harness.process import Pieces
from harness.result import Case, Result, Table
from ov_autoplace import _core
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.names import plugin_library
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.measure.loads import Load
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.plan import Plan, PoolPlan, WholePlan
from ov_autoplace.plugin.compilation import compile_placed
from problems.models import MODELS

__all__ = ["compare", "compare_hints", "run"]

_OURS = "AUTOPLACE"
_WAYS = ("threads", "queue", "threads in C++", "queue in C++")
_ROUNDS, _SAMPLE_SECONDS, _TIMEOUT = 12, 0.03, 240.0
_FLOOR, _WANTED, _SHORT = 0.98, 1.5, 1e-3
_HINTS: Mapping[str, Mapping[str, str]] = {
    **{hint: {"PERFORMANCE_HINT": hint} for hint in ("LATENCY", "THROUGHPUT", "CUMULATIVE_THROUGHPUT")},
    "2 streams": {"NUM_STREAMS": "2"},
}
_RUNS_AS = ("NUM_STREAMS", "INFERENCE_NUM_THREADS", "OPTIMAL_NUMBER_OF_INFER_REQUESTS")
_QUICK = ("tiny/anomaly_detection", "zoo/lstm_lm", "zoo/unet")


def run(
    quick: bool,
    seed: int,
    models: tuple[str, ...] = (),
    groups: int = 0,
    group: int = 0,
    alias: int = 0,
    hints: int = 0,
) -> Result:
    """One row per network, or per network and hint.

    Args:
        quick: Three networks.
        seed: Of the decision and the orders.
        models: Parts of names; those that have one of them in theirs. All when empty.
        groups: Into how many parts the networks are divided, for a machine that is idle for short times only.
        group: Which of the parts to run, from 0.
        alias: 1 = a second device, which is the CPU plugin on one thread, beside the CPU.
        hints: 1 = one device under every hint.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names = [n for n in (_QUICK if quick else MODELS) if not models or any(part in n for part in models)]
    names = names[group::groups] if groups else names
    if hints:
        by_hint = {name: pieces(name, compare_hints, name=name, seed=seed) for name in names}
        return _hints_result({name: found for name, found in by_hint.items() if found}, seed, pieces.remarks)
    found = {name: pieces(name, compare, name=name, seed=seed, alias=bool(alias)) for name in names}
    return _result({name: outcome for name, outcome in found.items() if outcome}, seed, pieces.remarks)


def compare(name: str, seed: int, alias: bool) -> dict[str, Any]:
    """Decide for one network, and run the answer and its rivals in turns.

    Returns:
        ``chosen``, ``reason``, ``decision_seconds``, ``latency`` of the CPU alone, and ``rates``: by way of
            calling and
        name, requests per second in the same rounds.
    """
    model = with_static_shapes(MODELS[name]())
    core = ov.Core()
    devices = ["CPU"]
    if alias:
        core.register_plugin(str(plugin_library(core, "CPU")), "XCPU")
        core.set_property("XCPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1})
        devices = ["XCPU", "CPU"]
    hint = {"PERFORMANCE_HINT": "THROUGHPUT"}
    start = time.perf_counter()
    placement = ov_autoplace.place(model, devices, core=core, seed=seed, properties=hint)
    decision_seconds = time.perf_counter() - start
    machine = Machine(core, tuple(devices), PlacerOptions(properties=hint))
    plans = {_OURS: placement.plan}
    plans |= {f"{d} THROUGHPUT": PoolPlan(d, WholePlan(d, properties=hint)) for d in devices}
    cumulative = {"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT", "ENABLE_STARTUP_FALLBACK": "NO"}
    plans["AUTO CUMULATIVE_THROUGHPUT"] = PoolPlan(
        "AUTO", WholePlan("AUTO:" + ",".join(devices), properties=cumulative)
    )
    compiled = {
        who: compile_placed(
            machine, model.clone(), core.compile_model, search=lambda *_, plan=plan: _with(placement, plan)
        )
        for who, plan in plans.items()
    }
    callers: dict[str, dict[str, Callable[[], float]]] = {way: {} for way in _WAYS}
    with ProfilingSession(core, model, devices, isolation=False, seed=seed) as session:
        latency = float(np.median(session.compile_device("CPU").run(20)))
        for who, plan in plans.items():
            callers["threads"][who] = _threads(compiled[who])
            callers["queue"][who] = _queue(compiled[who])
            for way, load in zip(_WAYS[2:], _loads(session, plan), strict=True):
                callers[way][who] = _native(load)
        rates = _in_turns(callers, seed)
    return {
        "chosen": placement.plan.name,
        "reason": str(placement.decision),
        "decision_seconds": decision_seconds,
        "latency": latency,
        "rates": rates,
    }


def compare_hints(name: str, seed: int) -> dict[str, Any]:
    """Run one network on ``AUTOPLACE:CPU`` and twice on ``CPU``, in turns.

    Returns:
        By hint: ``is_device``, whether the answer runs as CPU does by itself, and ``rates`` as in
        :func:`compare`.
    """
    model = with_static_shapes(MODELS[name]())
    core, found = ov.Core(), {}
    for hint, config in _HINTS.items():
        where = {_OURS: "AUTOPLACE:CPU", "CPU": "CPU", "CPU again": "CPU"}
        compiled = {who: core.compile_model(model.clone(), device, config) for who, device in where.items()}
        told = [[str(compiled[who].get_property(key)) for key in _RUNS_AS] for who in (_OURS, "CPU")]
        callers = {
            "threads": {who: _threads(model) for who, model in compiled.items()},
            "queue": {who: _queue(model) for who, model in compiled.items()},
        }
        found[hint] = {"is_device": told[0] == told[1], "rates": _in_turns(callers, seed)}
    return found


def _with(placement: ov_autoplace.Placement, plan: Plan) -> ov_autoplace.Placement:
    from dataclasses import replace

    return replace(placement, plan=plan)


def _loads(session: ProfilingSession, plan: PoolPlan) -> tuple[Load, Load]:
    """The same plan from C++: its callers' requests, and its queue."""
    base = plan.base.compile(session)
    dealt = [member.compile(session) for member in plan.members]
    members = tuple(dealt[turn] for turn in plan.order) or (base,)
    requests = plan.requests if plan.members else base.optimal_requests
    return Load(members, requests, False), Load((base,), base.optimal_requests, True)


def _native(load: Load) -> Callable[[], float]:
    return lambda: (
        1 / _core.load_seconds(list(load.members), load.requests, load.asynchronous, _SAMPLE_SECONDS)
    )


def _threads(compiled: ov.CompiledModel) -> Callable[[], float]:
    """Requests per second of a thread per request; inputs stay where they are."""
    count = compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS")
    requests = [_filled(compiled.create_infer_request()) for _ in range(count)]

    def rate() -> float:
        rates = [0.0] * count
        ready = threading.Barrier(count)

        def work(i: int) -> None:
            infer = requests[i].infer
            infer()
            ready.wait()
            start, finished, now = time.perf_counter(), 0, 0.0
            while now < _SAMPLE_SECONDS:
                infer()
                finished += 1
                now = time.perf_counter() - start
            rates[i] = finished / now

        callers = [threading.Thread(target=work, args=(i,)) for i in range(count)]
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        return sum(rates)

    return rate


def _queue(compiled: ov.CompiledModel) -> Callable[[], float]:
    """Requests per second of one thread with a queue of as many requests as OpenVINO makes by itself."""
    queue = ov.AsyncInferQueue(compiled)
    for request in queue:
        _filled(request)

    def rate() -> float:
        for _ in range(len(queue)):
            queue.start_async()
        queue.wait_all()
        start, finished = time.perf_counter(), 0
        while time.perf_counter() - start < _SAMPLE_SECONDS or finished < 2 * len(queue):
            queue.start_async()
            finished += 1
        queue.wait_all()
        return finished / (time.perf_counter() - start)

    return rate


def _filled(request: ov.InferRequest) -> ov.InferRequest:
    """With zeros, which are valid for every network here, whatever the memory held."""
    for tensor in request.input_tensors:
        if tensor.element_type != ov.Type.string:
            tensor.data[...] = 0
    return request


def _in_turns(
    callers: Mapping[str, Mapping[str, Callable[[], float]]], seed: int
) -> dict[str, dict[str, list[float]]]:
    random = np.random.default_rng(seed)
    turns = [(way, who) for way, contestants in callers.items() for who in contestants]
    rates: dict[str, dict[str, list[float]]] = {way: {who: [] for who in c} for way, c in callers.items()}
    for _ in range(_ROUNDS):
        for turn in random.permutation(len(turns)).tolist():
            way, who = turns[turn]
            rates[way][who].append(callers[way][who]())
    return rates


def _result(found: Mapping[str, Mapping[str, Any]], seed: int, failures: Sequence[str]) -> Result:
    rows, cases, remarks = [], [], list(failures)
    below: dict[str, list[str]] = {way: [] for way in _WAYS}
    reached: dict[str, list[str]] = {way: [] for way in (*_WAYS, "best in C++", "best over queue in C++")}
    for name, outcome in sorted(found.items(), key=lambda item: item[1]["latency"]):
        rates = outcome["rates"]
        cells = []
        for way in _WAYS:
            rival = _best_rival(rates[way])
            ratio = paired_ratio(np.array(rates[way][_OURS]), np.array(rates[way][rival]))
            cells.append(f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]")
            cases.append(Case(name, f"{rival}, {way}", 1 / ratio.median, outcome["chosen"]))
            if ratio.high < 1 and ratio.median < _FLOOR:
                below[way].append(f"{name} {ratio.median:.2f}")
            if ratio.median >= _WANTED and outcome["latency"] < _SHORT:
                reached[way].append(name)
        ours, theirs = (_best_of(rates, whose) for whose in (True, False))
        queue = max(float(np.median(r)) for who, r in rates[_WAYS[3]].items() if who != _OURS)
        for what, ratio in (("best in C++", ours / theirs), ("best over queue in C++", ours / queue)):
            cells.append(f"{ratio:.2f}")
            if ratio >= _WANTED and outcome["latency"] < _SHORT:
                reached[what].append(name)
        rows.append(
            (
                name,
                f"{1e3 * outcome['latency']:.3f}",
                outcome["chosen"],
                *cells,
                f"{outcome['decision_seconds']:.1f}",
            )
        )
    for way, names in below.items():
        remarks.append(f"{way}: below {_FLOOR} of the best rival: {', '.join(names) or 'none'}")
    for way, names in reached.items():
        remarks.append(
            f"{way}: {_WANTED} and more below 1 ms on {len(names)} networks: {', '.join(names) or '-'}"
        )
    columns = (
        "network", "CPU ms", "answer", *_WAYS, "best in C++", "best over queue in C++", "decision s",
    )  # fmt: skip
    note = (
        "Rates over the best rival's in the same way of calling. The last two: our best way over their "
        "best way, and over their queue, which is how the hint is meant to be used."
    )
    return Result(
        "A rate of requests",
        (Table("AUTOPLACE under THROUGHPUT over the best of OpenVINO's hints", columns, rows, note),),
        cases=tuple(cases),
        remarks=tuple(remarks),
        data={"seed": seed, "networks": dict(found)},
    )


def _hints_result(found: Mapping[str, Mapping[str, Any]], seed: int, failures: Sequence[str]) -> Result:
    rows, cases = [], []
    for name, by_hint in found.items():
        for hint, outcome in by_hint.items():
            cells = []
            for rates in outcome["rates"].values():
                for who in (_OURS, "CPU again"):
                    ratio = paired_ratio(np.array(rates[who]), np.array(rates["CPU"]))
                    cells.append(f"{ratio.median:.2f} [{ratio.low:.2f}, {ratio.high:.2f}]")
                    if who == _OURS:
                        cases.append(Case(f"{name}, {hint}", "CPU", 1 / ratio.median))
            rows.append((name, hint, "yes" if outcome["is_device"] else "no", *cells))
    columns = (
        "network",
        "hint",
        "runs as CPU",
        *(f"{who}, {way}" for way in _WAYS[:2] for who in (_OURS, "CPU again")),
    )
    note = "Rates over those of CPU in the same way of calling, from Python."
    return Result(
        "A rate of requests on one device",
        (Table("AUTOPLACE:CPU under every hint over CPU under the same", columns, rows, note),),
        cases=tuple(cases),
        remarks=tuple(failures),
        data={"seed": seed, "networks": dict(found)},
    )


def _best_rival(rates: Mapping[str, Sequence[float]]) -> str:
    return max((who for who in rates if who != _OURS), key=lambda who: float(np.median(rates[who])))


def _best_of(rates: Mapping[str, Mapping[str, Sequence[float]]], ours: bool) -> float:
    """The highest median of ours or theirs over both ways from C++."""
    return max(
        float(np.median(samples))
        for way in _WAYS[2:]
        for who, samples in rates[way].items()
        if (who == _OURS) == ours
    )
