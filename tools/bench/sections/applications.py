"""Several models at once: the plan of an application beside what people set by hand.

Each application is decided as a user's would be, in a process of its own. Its plan and every rival are then
compiled anew and run in turns, the whole application at once, whoever is slower. What is compared is the
geometric mean over the models of their rates, and of their 99th percentiles, within the same rounds; the best
rival is the one that is best in these rounds, not in the decision. ``held out`` are networks that nothing was
tuned to.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.environment import PAIRS, core_of
from harness.process import Pieces
from harness.result import Case, Result, Table, bar, measured_ratio
from ov_autoplace._base.budget import Budget
from ov_autoplace._base.statistics import Interval, median_interval
from ov_autoplace.application.bench import Bench
from ov_autoplace.application.candidates import predict, proposals, rivals
from ov_autoplace.application.place import place_application
from ov_autoplace.application.race import JointRace
from ov_autoplace.application.workload import Application
from ov_autoplace.devices.widths import Cores
from ov_autoplace.plan.decision import Load
from problems.models import MODELS

_TIMEOUT = 180.0
_DEFAULT, _OWN = (
    "OpenVINO's default",
    ("OpenVINO's default", "THROUGHPUT", "no pinning", "best hint of each alone"),
)
_ROUNDS, _SECONDS = 15, 0.1
_NEVER_BELOW = 0.98
# Of the rates over the default, over the best of OpenVINO's own settings, over the best rival of all.
_WANTED = {"over the default": 1.7, "over the best of OpenVINO's": 1.15, "over the best rival": 1.0}
_TAIL, _DISTANCE, _ERROR = 0.75, 0.15, 0.12

CLOSED: Mapping[str, tuple[str, ...]] = {
    "two of 0.1 ms": ("tiny/anomaly_detection", "zoo/lstm_lm"),
    "two classifiers": ("zoo/mobilenet_v2", "zoo/inception_v3"),
    "detector and classifier": ("light/squeezenet", "zoo/mobilenet_v2"),
    "encoder and decoder": ("zoo/bert_base", "zoo/gnmt"),
    "segmenter and language model": ("zoo/unet", "zoo/lstm_lm"),
    "squeezenet and bert": ("light/squeezenet", "zoo/bert_base"),
    "full resnet and small": ("zoo-full/resnet50", "zoo/mobilenet_v2"),
    "full inception and resnet": ("zoo-full/inception_v3", "zoo-full/resnet50"),
    "full bert and small": ("zoo-full/bert_base", "zoo/two_tower"),
    "three small": ("zoo/mobilenet_v2", "zoo/unet", "zoo/bert_base"),
    "three, one full": ("zoo-full/resnet50", "light/squeezenet", "zoo/lstm_lm"),
    "three of a server": ("zoo/two_tower", "zoo/bert_base", "zoo/gnmt"),
    "four small": ("zoo/mobilenet_v2", "zoo/inception_v3", "zoo/unet", "zoo/lstm_lm"),
    "four customers": ("light/squeezenet", "zoo/two_tower", "zoo/bert_base", "tiny/anomaly_detection"),
    "the same twice": ("zoo/mobilenet_v2", "zoo/mobilenet_v2"),
    "four, one full": ("zoo-full/inception_v3", "zoo/mobilenet_v2", "zoo/bert_base", "zoo/unet"),
}
HELD_OUT: Mapping[str, tuple[str, ...]] = {
    "held out: ghostnet-like pair": ("light/shufflenet", "light/bvlc_alexnet"),
    "held out: densenet and small": ("light/densenet121", "tiny/keyword_spotting"),
    "held out: transformers": ("transformers/bert", "transformers/vit"),
    "held out: three": ("transformers/segformer", "tiny/resnet8", "zoo/wavenet"),
}
_QUICK = ("two of 0.1 ms", "two classifiers")


OPEN: Mapping[str, tuple[tuple[str, ...], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "camera": (
        ("light/squeezenet", "zoo/mobilenet_v2"),
        [{"start": "a", "rate": 20, "deadline_ms": 50}],
        [{"from": "a", "to": "b", "times": 2.5}],
    ),
    "two cameras": (
        ("zoo/ssdlite", "zoo/mobilenet_v2", "zoo/ssdlite"),
        [{"start": "a", "rate": 30, "deadline_ms": 33}, {"start": "c", "rate": 15, "deadline_ms": 66}],
        [{"from": "a", "to": "b", "times": 3}],
    ),
    "camera and background": (
        ("light/squeezenet", "zoo/bert_base"),
        [{"start": "a", "rate": 20, "deadline_ms": 50}, {"start": "b", "in_flight": 1}],
        [],
    ),
    "server of two": (
        ("zoo/bert_base", "zoo/two_tower"),
        [
            {"start": "a", "rate": 200, "arrivals": "poisson", "deadline_ms": 10},
            {"start": "b", "rate": 400, "arrivals": "poisson", "deadline_ms": 10},
        ],
        [],
    ),
    "speech": (
        ("tiny/keyword_spotting", "zoo/gnmt"),
        [{"start": "a", "rate": 50, "deadline_ms": 20}],
        [{"from": "a", "to": "b", "times": 0.2}],
    ),
    "search": (
        ("zoo/two_tower", "zoo/bert_base", "tiny/wide_and_deep"),
        [{"start": "a", "rate": 100, "arrivals": "poisson", "deadline_ms": 20}],
        [{"from": "a", "to": "b", "times": 1}, {"from": "b", "to": "c", "times": 10}],
    ),
    "inspection": (
        ("zoo-full/resnet50", "zoo/unet"),
        [{"start": "a", "rate": 10, "deadline_ms": 100}, {"start": "b", "rate": 50, "deadline_ms": 40}],
        [],
    ),
    "four streams": (
        ("zoo/mobilenet_v2", "zoo/inception_v3", "zoo/unet", "zoo/lstm_lm"),
        [{"start": start, "rate": 100, "deadline_ms": 10} for start in "abcd"],
        [],
    ),
}
"""Networks, called a, b, c ..., with their load and chains."""

_HEADROOM = 1.3


def _run_open(quick: bool, seed: int, applications: tuple[str, ...] = ()) -> Result:
    """A row for each application of given rates.

    Args:
        quick: One of them.
        seed: Of deciding and of arrivals.
        applications: Parts of their names; all when empty.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    known = ("camera",) if quick else tuple(OPEN)
    found = {}
    for name in known:
        if not applications or any(part in name for part in applications):
            outcome = pieces(name, decide_and_load, name=name, seed=seed)
            if outcome is not None:
                found[name] = outcome
    rows, gains = [], []
    for name, one in found.items():
        ours = one["headrooms"][one["chosen"]]
        rival = max((who for who in one["headrooms"] if who in _OWN), key=one["headrooms"].__getitem__)
        gains.append(ours / max(one["headrooms"][rival], 1e-9))
        every = ", ".join(f"{who} {value:.2f}" for who, value in one["headrooms"].items())
        seconds = f"{one['decision_seconds']:.1f}"
        rows.append((name, one["chosen"], f"{ours:.2f}", rival, f"{gains[-1]:.2f}", every, seconds))
    remarks = list(pieces.remarks)
    if gains:
        mean = float(np.exp(np.mean(np.log(gains))))
        remarks.append(bar("headroom of OpenVINO's own settings over ours", 1 / _HEADROOM, 1 / mean))
    columns = ("application", "plan", "headroom", "best of OpenVINO's", "over it", "all", "decision s")
    table = Table("The largest factor on all rates with which deadlines are kept", columns, rows)
    return Result("Rates and deadlines of several models", (table,), (), (), tuple(remarks), {"found": found})


def decide_and_load(name: str, seed: int) -> dict[str, Any]:
    """Decide one application of given rates; the headroom of its plan and of every rival, measured anew."""
    core, devices = core_of("cpu"), PAIRS["cpu"]
    models, load, chains = OPEN[name]
    built = {letter: MODELS[model]() for letter, model in zip("abcdefgh", models, strict=False)}
    application = Application(built, load, chains)
    start = time.perf_counter()
    answer = place_application(application, devices, core, seed=seed)
    seconds = time.perf_counter() - start
    with Bench(application, core, devices, budget=Budget(90.0), seed=seed) as bench:
        bench.measure_alone()
        cores = Cores.of_this_process().usable
        known = rivals(bench.models, cores)
        plan = next(j for j in (*known, *proposals(bench.models, cores)) if j.plan.key == answer.plan.key)
        raced = list(dict.fromkeys([*known, plan]))
        for joint in raced:
            predict(joint, bench.models, application, cores)
        race = JointRace(bench, Budget(90.0), seed)
        found = {joint.name: level for joint, level in race.headrooms(raced).items()}
    return {"chosen": plan.name, "decision_seconds": seconds, "headrooms": found}


def run(
    quick: bool,
    seed: int,
    rates: bool = False,
    applications: tuple[str, ...] = (),
    held_out: bool = False,
) -> Result:
    """A row for each application.

    Args:
        quick: Two of them.
        seed: Of deciding.
        rates: Requests come at given rates, and headroom is compared.
        applications: Parts of their names; all when empty.
        held_out: Those that nothing was tuned to instead.
    """
    if rates:
        return _run_open(quick, seed, applications)
    pieces = Pieces(timeout=_TIMEOUT)
    known = HELD_OUT if held_out else CLOSED
    names = [n for n in (_QUICK if quick else known) if not applications or any(p in n for p in applications)]
    found = {}
    for name in names:
        outcome = pieces(name, decide_and_run, models=list(known[name]), seed=seed)
        if outcome is not None:
            found[name] = outcome
    return result_of(found, seed, pieces.remarks)


def decide_and_run(models: Sequence[str], seed: int) -> dict[str, Any]:
    """Decide one application, and run its plan and all rivals in turns.

    Args:
        models: Names of networks.
        seed: Of deciding.

    Returns:
        Of each plan ``rates`` and ``tails`` by round, as geometric means over the models; what was decided.
    """
    core, devices = core_of("cpu"), PAIRS["cpu"]
    built = {f"{i}: {name}": MODELS[name]() for i, name in enumerate(models)}
    application = Application(built)
    start = time.perf_counter()
    answer = place_application(application, devices, core, seed=seed)
    seconds = time.perf_counter() - start
    decision = answer.decision
    assert decision is not None
    with Bench(application, core, devices, budget=Budget(60.0), seed=seed) as bench:
        bench.measure_alone()
        cores = Cores.of_this_process().usable
        known = rivals(bench.models, cores)
        plan = next(j for j in (*known, *proposals(bench.models, cores)) if j.plan.key == answer.plan.key)
        raced = list(dict.fromkeys([*known, plan]))
        slowest = max(model.fastest(lambda _: True).median(Load.APPLICATION) for model in bench.models)
        race = JointRace(bench, Budget(60.0), seed)
        race.rounds(raced, _ROUNDS, max(_SECONDS, 4 * slowest))
        results = {joint.name: race.results[joint] for joint in raced}
        chosen = plan.name
    loads = range(len(application.load))
    return {
        "chosen": chosen,
        "decision_seconds": seconds,
        "compile_seconds": decision.seconds,
        "bound": decision.rate_bound,
        "predicted": {c.name: c.predicted_seconds for c in decision.candidates},
        "measured": {
            c.name: c.median(Load.APPLICATION) for c in decision.candidates if len(c.on(Load.APPLICATION))
        },
        "rates": {
            name: [float(np.exp(np.mean(np.log(o.rates)))) for o in result.outcomes]
            for name, result in results.items()
        },
        "tails": {
            name: float(np.exp(np.mean([np.log(result.percentile(load)) for load in loads])))
            for name, result in results.items()
        },
        "each": {name: [result.rate(load) for load in loads] for name, result in results.items()},
    }


def result_of(found: Mapping[str, Mapping[str, Any]], seed: int, failures: Sequence[str]) -> Result:
    """What was found of all applications, and whether it is as wanted."""
    rows, cases, ratios = [], [], []
    gains: dict[str, list[float]] = {name: [] for name in _WANTED}
    tails: list[float] = []
    distances: list[float] = []
    errors: list[float] = []
    losses: list[str] = []
    for name, one in found.items():
        rates = {who: np.array(values) for who, values in one["rates"].items()}
        ours = one["chosen"]
        others = [who for who in rates if who != ours] or [ours]
        own = [who for who in rates if who in _OWN]
        best = {
            "over the default": _DEFAULT,
            "over the best of OpenVINO's": max(own, key=lambda who: np.median(rates[who])),
            "over the best rival": max(others, key=lambda who: np.median(rates[who])),
        }
        cells = []
        for what, who in best.items():
            gain = _interval(rates[ours], rates[who])
            gains[what].append(gain.median)
            cells.append(f"{gain.median:.2f} [{gain.low:.2f}, {gain.high:.2f}]")
            if what == "over the best rival":
                cases.append(Case(name, who, 1 / gain.median, f"plan: {ours}"))
                losses += [f"{name} {gain.median:.3f}"] if gain.high < _NEVER_BELOW else []
            if what == "over the default":
                inverse = Interval(1 / gain.median, 1 / gain.high, 1 / gain.low)
                ratios.append(measured_ratio(f"{name}: default's rates over ours", inverse, len(rates[ours])))
        tails.append(one["tails"][ours] / one["tails"][best["over the best of OpenVINO's"]])
        distances.append(one["bound"] / float(np.median(rates[ours])) - 1)
        errors += [abs(one["predicted"][who] / seconds - 1) for who, seconds in one["measured"].items()]
        rivals_best = best["over the best rival"]
        numbers = (f"{tails[-1]:.2f}", f"{100 * distances[-1]:.0f} %", f"{one['decision_seconds']:.1f}")
        rows.append((name, ours, *cells, rivals_best, *numbers))
    columns = (
        "application",
        "plan",
        *_WANTED,
        "best rival",
        "p99 over OpenVINO's",
        "below the bound",
        "decision s",
    )
    remarks = list(failures)
    if found:
        for what, wanted in _WANTED.items():
            mean = float(np.exp(np.mean(np.log(gains[what]))))
            remarks.append(bar(f"rates {what}, inverse of the geometric mean", 1 / wanted, 1 / mean))
        mean = float(np.exp(np.mean(np.log(tails))))
        remarks.append(bar("99th percentile over the best of OpenVINO's own settings", _TAIL, mean))
        remarks.append(
            bar("distance from the capacity bound, median", _DISTANCE, float(np.median(distances)))
        )
        remarks.append(bar("error of predicted rates, median", _ERROR, float(np.median(errors))))
        remarks.append(f"worse than {_NEVER_BELOW} of the best rival: {', '.join(losses) or 'none'}")
    table = Table("Rates of all models, geometric mean", columns, rows)
    data = {"seed": seed, "found": dict(found)}
    return Result("Several models at once", (table,), tuple(ratios), tuple(cases), tuple(remarks), data)


def _interval(ours: Any, theirs: Any) -> Interval:
    """Median with its interval of paired ratios."""
    return median_interval(np.asarray(ours) / np.asarray(theirs))
