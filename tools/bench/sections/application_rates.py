"""Several models under rates and deadlines: the headroom of our plan beside that of OpenVINO's own settings.

Each application is decided as a user's would be, in a process of its own; its plan and every rival are then
compiled anew, and each is loaded until it keeps its deadlines no more.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from harness.applications import OWN, decided, each
from harness.process import Pieces
from harness.result import Case, Claim, Result, Table, geometric_mean
from problems.applications import OPEN, of_rates

_TIMEOUT = 180.0
_HEADROOM, _AGAIN = 1.3, 2
_LEAST = 0.01  # headroom that a ratio is made of, where none is kept


def run(quick: bool, seed: int, applications: tuple[str, ...] = ()) -> Result:
    """A row for each application of given rates.

    Args:
        quick: One of them.
        seed: Of deciding and of arrivals.
        applications: Parts of their names; all when empty.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names = ("camera",) if quick else OPEN
    found = each(pieces, names, applications, decide_and_load, seed=seed)
    return result_of(found, pieces.remarks, "Rates and deadlines of several models", _HEADROOM)


def result_of(
    found: Mapping[str, Mapping[str, Any]], failures: Sequence[str], title: str, wanted: float = 0.0
) -> Result:
    """What was found of applications, with scores where they have some.

    Args:
        found: Of each application ``headrooms``, and perhaps ``scores``, of each plan by name.
        failures: Why others are missing.
        title: Of the section.
        wanted: The headroom over that of the best of OpenVINO's own settings, as the mean; 0 = any.
    """
    rows, cases, gains = [], [], []
    for name, one in found.items():
        levels, chosen = one["headrooms"], one["chosen"]
        rival = max((who for who in levels if who in OWN), key=levels.__getitem__)
        gains.append(max(levels[chosen], _LEAST) / max(levels[rival], _LEAST))
        cases.append(Case(name, rival, 1 / gains[-1], f"plan: {chosen}"))
        cells = [", ".join(f"{who} {value:.2f}" for who, value in levels.items())]
        if scores := one.get("scores"):
            best = max(value for who, value in scores.items() if who in OWN)
            cells.append(f"{scores[chosen]:.2f}, {best:.2f}")
        seconds = f"{one['decision_seconds']:.1f}"
        rows.append((name, chosen, f"{levels[chosen]:.2f}", rival, f"{gains[-1]:.2f}", *cells, seconds))
    remarks, claims = list(failures), []
    if gains:
        what, mean = "headroom of OpenVINO's own settings over ours", 1 / geometric_mean(gains)
        if wanted:
            claims.append(Claim(what, 1 / wanted, mean))
        else:
            remarks.append(f"{what}: {mean:.3g}")
    scored = ("score: plan, best of OpenVINO's",) * any("scores" in one for one in found.values())
    columns = (
        "application",
        "plan",
        "headroom",
        "best of OpenVINO's",
        "over it",
        "all",
        *scored,
        "decision s",
    )
    table = Table("The largest factor on all rates with which deadlines are kept", columns, rows)
    return Result(
        title,
        (table,),
        cases=tuple(cases),
        remarks=tuple(remarks),
        data={"found": dict(found)},
        claims=tuple(claims),
    )


def decide_and_load(name: str, seed: int) -> dict[str, Any]:
    """Decide one application of given rates; the headroom of its plan and of every rival, measured anew."""
    with decided(of_rates(name), seed) as found:
        levels = {joint: [level] for joint, level in found.race.headrooms(found.joints).items()}
        best = max((joint for joint in levels if joint.name in OWN), key=levels.__getitem__)
        for _ in range(_AGAIN):  # a level is kept or not by a single late request
            for joint, level in found.race.headrooms([best, found.plan]).items():
                levels[joint].append(level)
    headrooms = {joint.name: float(np.mean(own)) for joint, own in levels.items()}
    return {"chosen": found.plan.name, "decision_seconds": found.seconds, "headrooms": headrooms}
