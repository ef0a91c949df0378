"""XRBench's scenarios, of its layer lists with random weights: our plan beside OpenVINO's own settings.

With all channels the networks of a scenario ask for 436 to 1694 GMAC a second, which few CPUs compute in
time. So channels are divided by four, which leaves about a sixteenth; rates and deadlines are XRBench's.
With ``divisor=1 slowdown=10`` there are all channels and ten times longer intervals instead.

XRBench's score is of a network the mean of ``1 / (1 + exp(15 (end - deadline)))``, in milliseconds, over its
frames, of which those that are dropped count nothing, times the share that is not dropped; of a scenario it
is the mean over its networks. Here it is taken at the rates that are asked for, over what begins at the
sources, with which networks that follow count, and without its factor for energy. Nothing is dropped before
the end of a run: what is late makes later frames late, where XRBench leaves out those that did not begin in
time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.special import expit

from harness.applications import OWN, decided, each
from harness.process import Pieces
from harness.result import Result
from ov_autoplace.application.race import Result as Ran
from ov_autoplace.application.workload import Demand
from problems.xrbench import SCENARIOS, scenario
from sections.application_rates import result_of

_TIMEOUT = 240.0
_NAMES = ("VR gaming", "AR gaming", "outdoor activity B")
_DIVISOR = 4
_ROUNDS, _SECONDS = 3, 1.0
_STEEPNESS = 15e3  # per second


def run(
    quick: bool,
    seed: int,
    applications: tuple[str, ...] = (),
    divisor: int = _DIVISOR,
    slowdown: float = 1.0,
) -> Result:
    """A row for each of three scenarios, in about four minutes, or for those that are named.

    Args:
        quick: The first of them.
        seed: Of deciding.
        applications: Parts of the names of all seven.
        divisor: Of the channels of all networks.
        slowdown: Times the intervals between frames.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    names = _NAMES[:1] if quick else SCENARIOS if applications else _NAMES
    found = each(pieces, names, applications, decide_and_load, seed=seed, divisor=divisor, slowdown=slowdown)
    title = f"XRBench's scenarios, its layer lists with channels divided by {divisor}"
    return result_of(found, pieces.remarks, title)


def decide_and_load(name: str, seed: int, divisor: int, slowdown: float) -> dict[str, Any]:
    """Decide one scenario; headroom and score of its plan and of OpenVINO's own settings."""
    application = scenario(name, divisor, slowdown)
    with decided(application, seed) as found:
        joints = [joint for joint in found.joints if joint is found.plan or joint.name in OWN]
        levels = found.race.headrooms(joints)
        found.race.rounds(joints, _ROUNDS, _SECONDS)
        scores = {joint.name: score(application.load, found.race.results[joint]) for joint in joints}
    return {
        "chosen": found.plan.name,
        "decision_seconds": found.seconds,
        "headrooms": {joint.name: level for joint, level in levels.items()},
        "scores": scores,
    }


def score(load: Sequence[Demand], ran: Ran) -> float:
    """XRBench's real-time score, as the mean over the loads.

    Args:
        load: Each with a deadline.
        ran: What was done at the rates that are asked for.
    """
    found = []
    for number, demand in enumerate(load):
        assert demand.deadline_seconds is not None
        latencies = ran.latencies(number)
        kept = np.isfinite(latencies)
        found.append(np.mean(expit(_STEEPNESS * (demand.deadline_seconds - latencies))) * np.mean(kept))
    return float(np.mean(found))
