"""Several models under rates and deadlines: the headroom of our plan beside that of OpenVINO's own settings.

Each application is decided as a user's would be, in a process of its own; its plan and every rival are then
compiled anew, and each is loaded until it keeps its deadlines no more.
"""

from __future__ import annotations

from typing import Any

from harness.applications import OWN, decided, each
from harness.process import Pieces
from harness.result import Result, Table, bar, geometric_mean
from problems.applications import OPEN, of_rates

_TIMEOUT = 180.0
_HEADROOM = 1.3


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
    rows, gains = [], []
    for name, one in found.items():
        ours = one["headrooms"][one["chosen"]]
        rival = max((who for who in one["headrooms"] if who in OWN), key=one["headrooms"].__getitem__)
        gains.append(ours / max(one["headrooms"][rival], 1e-9))
        every = ", ".join(f"{who} {value:.2f}" for who, value in one["headrooms"].items())
        seconds = f"{one['decision_seconds']:.1f}"
        rows.append((name, one["chosen"], f"{ours:.2f}", rival, f"{gains[-1]:.2f}", every, seconds))
    remarks = list(pieces.remarks)
    if gains:
        mean = geometric_mean(gains)
        remarks.append(bar("headroom of OpenVINO's own settings over ours", 1 / _HEADROOM, 1 / mean))
    columns = ("application", "plan", "headroom", "best of OpenVINO's", "over it", "all", "decision s")
    table = Table("The largest factor on all rates with which deadlines are kept", columns, rows)
    return Result("Rates and deadlines of several models", (table,), (), (), tuple(remarks), {"found": found})


def decide_and_load(name: str, seed: int) -> dict[str, Any]:
    """Decide one application of given rates; the headroom of its plan and of every rival, measured anew."""
    with decided(of_rates(name), seed) as found:
        levels = found.race.headrooms(found.joints)
    headrooms = {joint.name: level for joint, level in levels.items()}
    return {"chosen": found.plan.name, "decision_seconds": found.seconds, "headrooms": headrooms}
