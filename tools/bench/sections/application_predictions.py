"""Predicted rates of joint plans beside measured ones, of plans that nobody would choose as well.

Every model of an application is timed alone in each way to run it; then random combinations of these ways are
predicted as a decision predicts them, compiled, and run in turns.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from harness.applications import each, opened
from harness.process import Pieces
from harness.result import Claim, Result, Table, percent
from ov_autoplace.application.candidates import fairness, predict, proposals
from ov_autoplace.devices.widths import Cores
from problems.applications import closed

_TIMEOUT = 180.0
_NAMES = ("two classifiers", "squeezenet and bert", "three small", "four customers")
_PLANS, _ROUNDS, _SECONDS, _REQUESTS = 15, 7, 0.1, 3  # seconds at least, and requests of the slowest model
_ERROR = 0.12


def run(quick: bool, seed: int, applications: tuple[str, ...] = (), plans: int = _PLANS) -> Result:
    """A row for each of four applications; about a minute and a half.

    Args:
        quick: Five plans of one of them.
        seed: Of the combinations.
        applications: Parts of their names; all when empty.
        plans: Of each application.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names, count = (_NAMES[:1], 5) if quick else (_NAMES, plans)
    found = each(pieces, names, applications, predict_and_run, seed=seed, count=count)
    rows, errors, of_models = [], [], []
    for name, one in found.items():
        predicted, measured = (np.array(one[what]) for what in ("predicted", "measured"))
        off = np.abs(predicted / measured - 1)
        errors += off.tolist()
        of_models += (np.abs(np.array(one["rates"]) / one["measured rates"] - 1)).ravel().tolist()
        rank = f"{spearmanr(predicted, measured).statistic:.2f}" if len(off) > 2 else ""
        too_fast = np.mean(predicted < measured)
        rows.append((name, len(off), percent(np.median(off)), percent(np.max(off)), rank, percent(too_fast)))
    remarks, claims = list(pieces.remarks), []
    if errors:
        claims.append(Claim("error of predicted rates, median", _ERROR, float(np.median(errors))))
        remarks.append(f"error of the predicted rate of each model, median: {np.median(of_models):.3g}")
    columns = ("application", "plans", "median error %", "largest %", "rank correlation", "too optimistic %")
    table = Table("Seconds per request, as the mean over the models: predicted over measured", columns, rows)
    return Result(
        "Predicted rates of random plans",
        (table,),
        remarks=tuple(remarks),
        data={"found": found},
        claims=tuple(claims),
    )


def predict_and_run(name: str, seed: int, count: int) -> dict[str, Any]:
    """Predict and run random plans of an application.

    Args:
        name: Of the application.
        seed: Of the plans.
        count: How many.

    Returns:
        Of each plan, in the same order: ``predicted`` and ``measured`` seconds per request, and ``rates`` and
        ``measured rates`` of each model.
    """
    application = closed(name)
    with opened(application, seed) as race:
        models, cores = race.bench.models, Cores.of_this_process().usable
        known = list(proposals(models, cores))
        joints = random.Random(seed).sample(known, min(count, len(known)))
        for joint in joints:
            predict(joint, models, application, cores)
        race.rounds(joints, _ROUNDS, max(_SECONDS, _REQUESTS * max(max(j.expected) for j in joints)))
        starts = [demand.start for demand in application.load]
        rates = [[race.results[joint].rate(load) for load in range(len(starts))] for joint in joints]
    return {
        "plans": [joint.name for joint in joints],
        "predicted": [joint.predicted_seconds for joint in joints],
        "measured": [fairness(application, dict(zip(starts, own, strict=True))) for own in rates],
        "rates": [[joint.rates[start] for start in starts] for joint in joints],
        "measured rates": rates,
    }
