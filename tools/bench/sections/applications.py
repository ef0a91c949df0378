"""Several models at once: the plan of an application beside what people set by hand.

Each application is decided as a user's would be, in a process of its own. Its plan and every rival are then
compiled anew and run in turns, the whole application at once, whoever is slower. What is compared is the
geometric mean over the models of their rates, and of their 99th percentiles, within the same rounds; the best
rival is the one that is best in these rounds, not in the decision. ``held out`` are networks that nothing was
tuned to.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.applications import DEFAULT, OWN, decided, each
from harness.process import Pieces
from harness.result import Case, Claim, Result, Table, geometric_mean, interval_cell, measured_ratio
from ov_autoplace._base.statistics import Interval, paired_ratio
from ov_autoplace.plan.decision import Load
from problems.applications import CLOSED, HELD_OUT, closed

_TIMEOUT = 180.0
_ROUNDS, _SECONDS = 15, 0.1
_NEVER_BELOW = 0.98
# Of the rates over the default, over the best of OpenVINO's own settings, over the best rival of all.
_WANTED = {"over the default": 1.7, "over the best of OpenVINO's": 1.15, "over the best rival": 1.0}
_TAIL, _DISTANCE, _ERROR = 0.75, 0.15, 0.12

_QUICK = ("two of 0.1 ms", "two classifiers")


def run(
    quick: bool,
    seed: int,
    applications: tuple[str, ...] = (),
    held_out: bool = False,
) -> Result:
    """A row for each application.

    Args:
        quick: Two of them.
        seed: Of deciding.
        applications: Parts of their names; all when empty.
        held_out: Those that nothing was tuned to instead.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names = _QUICK if quick else HELD_OUT if held_out else CLOSED
    found = each(pieces, names, applications, decide_and_run, seed=seed)
    return result_of(found, seed, pieces.remarks)


def decide_and_run(name: str, seed: int) -> dict[str, Any]:
    """Decide one application, and run its plan and all rivals in turns.

    Args:
        name: Of the application.
        seed: Of deciding.

    Returns:
        Of each plan ``rates`` and ``tails`` by round, as geometric means over the models; what was decided.
    """
    application = closed(name)
    with decided(application, seed) as found:
        decision, race = found.answer.decision, found.race
        assert decision is not None
        slowest = max(m.fastest(lambda _: True).median(Load.APPLICATION) for m in race.bench.models)
        race.rounds(found.joints, _ROUNDS, max(_SECONDS, 4 * slowest))
        results = {joint.name: race.results[joint] for joint in found.joints}
    loads = range(len(application.load))
    return {
        "chosen": found.plan.name,
        "decision_seconds": found.seconds,
        "compile_seconds": decision.seconds,
        "bound": decision.rate_bound,
        "predicted": {c.name: c.predicted_seconds for c in decision.candidates},
        "measured": {
            c.name: c.median(Load.APPLICATION) for c in decision.candidates if len(c.on(Load.APPLICATION))
        },
        "rates": {
            name: [geometric_mean(o.rates) for o in result.outcomes] for name, result in results.items()
        },
        "tails": {
            name: geometric_mean([result.percentile(load) for load in loads])
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
        own = [who for who in rates if who in OWN]
        best = {
            "over the default": DEFAULT,
            "over the best of OpenVINO's": max(own, key=lambda who: np.median(rates[who])),
            "over the best rival": max(others, key=lambda who: np.median(rates[who])),
        }
        cells = []
        for what, who in best.items():
            gain = paired_ratio(rates[ours], rates[who])
            gains[what].append(gain.median)
            cells.append(interval_cell(gain, 2))
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
    remarks, claims = list(failures), []
    if found:
        for what, wanted in _WANTED.items():
            mean = geometric_mean(gains[what])
            claims.append(Claim(f"rates {what}, inverse of the geometric mean", 1 / wanted, 1 / mean))
        mean = geometric_mean(tails)
        claims.append(Claim("99th percentile over the best of OpenVINO's own settings", _TAIL, mean))
        claims.append(
            Claim("distance from the capacity bound, median", _DISTANCE, float(np.median(distances)))
        )
        claims.append(Claim("error of predicted rates, median", _ERROR, float(np.median(errors))))
        remarks.append(f"worse than {_NEVER_BELOW} of the best rival: {', '.join(losses) or 'none'}")
    table = Table("Rates of all models, geometric mean", columns, rows)
    data = {"seed": seed, "found": dict(found)}
    return Result(
        "Several models at once",
        (table,),
        tuple(ratios),
        tuple(cases),
        tuple(remarks),
        data,
        tuple(claims),
    )
