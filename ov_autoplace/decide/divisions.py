"""Ways to divide a machine into lanes, and whether a model could be faster on one of them.

Nothing is compiled or run for that: costs of whole devices are scaled to the threads of a lane, and a quick
list schedule shows what working at once would be worth.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
import openvino as ov

from ov_autoplace._base.statistics import MINIMAL_GAIN
from ov_autoplace.cost.estimate import estimated_table, estimates
from ov_autoplace.cost.generic_target import SYNCHRONISATION_SECONDS, generic_target
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.widths import narrow_seconds, widths_for
from ov_autoplace.devices.widths import Cores, Lanes, Width
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.registry import solve_problem
from ov_autoplace.solvers.solver import SolverOptions

__all__ = [
    "OPTIMISM",
    "Division",
    "could_win",
    "divisions",
    "is_worth_dividing",
    "lanes_for",
    "listed_seconds",
    "total_seconds",
]

# In favour of lanes: what is predicted by costs of whole devices, or of a model that one core runs alone, can
# be so much too long, as two cores have twice the caches of one.
OPTIMISM = 0.85
# In favour of lanes: work on twice as many threads takes this power of two less, at the least.
_LEAST_SCALING = 0.5
# The largest share of a model's time in which threads wait for each other.
_MOST_WAITING = 0.6


@dataclass(frozen=True)
class Division:
    """A way to divide the machine.

    Attributes:
        device: The CPU that is divided; ``None`` = every device is one lane.
        lanes: Into what.
    """

    device: str | None = None
    lanes: Lanes | None = None

    def name(self, devices: Sequence[str]) -> str:
        """Of a candidate, like ``CPU (2 lanes of 1 thread) + GPU``."""
        return " + ".join(
            f"{d} ({self.lanes.label})" if self.lanes is not None and d == self.device else d for d in devices
        )


def lanes_for(machine: Machine, device: str, model: ov.Model) -> tuple[Lanes, ...]:
    """Into which lanes a device may be divided for a model; none where the user chose its threads.

    Args:
        machine: The devices, and what the user asked for.
        device: One of them.
        model: With its shape computations folded.
    """
    asked = machine.options.lanes
    # The setting of a width depends on what the model's ops can do.
    settings = {w.threads: w for w in widths_for(machine, device, model) if not w.cores}
    if asked:
        return tuple(Lanes(n, settings[t]) for n, t in asked if n > 1 and t in settings)
    found = Cores.of_this_process().lanes
    return tuple(Lanes(d.count, settings[d.width.threads]) for d in found if d.width.threads in settings)


def is_worth_dividing(
    machine: Machine,
    device: str,
    model: ov.Model,
    shares: Mapping[int, float] = MappingProxyType({}),
    best: Width | None = None,
) -> bool:
    """Whether lanes could beat a device, by what is estimated of a model that was not measured yet.

    Args:
        machine: The devices.
        device: One of them.
        model: With unique names and its shape computations folded.
        shares: What the model takes on fewer threads over what it takes on all, by their number, where that
            is estimated.
        best: The width that lanes have to beat, one of those; ``None`` = the device on all threads.

    Raises:
        OptionError: A shape does not fit.
    """
    options = machine.options
    if options.executor == "HETERO" or options.calls or not (found := lanes_for(machine, device, model)):
        return False
    if options.executor == "OVERLAP":
        return True
    target = machine.target or generic_target(machine.core, (device,))
    coarse = coarsen(extract(model, options.shapes), light_ops=False)
    table = estimated_table(coarse, target, (device,))
    nodes = estimates(coarse.ops, [target.device(device)])[0].kernels
    whole = total_seconds(table, device)
    # What is fastest on fewer threads is in the caches of one core.
    share, optimism = (1.0, OPTIMISM) if best is None else (shares[best.threads], 1.0)
    return any(
        could_win(
            table, Division(device, lanes), nodes, share * whole, shares.get(lanes.width.threads), optimism
        )
        for lanes in found
    )


def divisions(machine: Machine, model: ov.Model) -> list[Division]:
    """The ways to divide the machine; every device as one lane where there are several."""
    if machine.options.calls:
        return []  # submodels are of one shape
    divided = [
        Division(device, lanes) for device in machine.devices for lanes in lanes_for(machine, device, model)
    ]
    return [Division(), *divided] if len(machine.devices) > 1 else divided


def could_win(
    table: CostTable,
    division: Division,
    nodes: int,
    best: float,
    factor: float | None = None,
    optimism: float = OPTIMISM,
) -> bool:
    """Whether a schedule on lanes could be faster than ``best`` seconds.

    Args:
        table: What the ops take on whole devices.
        division: Into lanes.
        nodes: How many nodes the divided device executes.
        best: To be beaten.
        factor: What the model takes on the threads of a lane over what it takes on all; estimated in favour
            of lanes when ``None``.
        optimism: What a schedule takes of what it is predicted to take, at the least.
    """
    assert division.device is not None
    assert division.lanes is not None
    whole = total_seconds(table, division.device)
    if factor is None:
        share = Cores.of_this_process().all / division.lanes.width.threads
        narrow = narrow_seconds(
            whole, nodes, share, SYNCHRONISATION_SECONDS, 0.0, _LEAST_SCALING, _MOST_WAITING
        )
        factor = narrow / whole if whole > 0 else 1.0
    listed = listed_seconds(with_lanes(table, division.device, division.lanes.count, factor))
    # Where lanes have little to do at once, what is gained is that of a lane's threads alone.
    return listed < (1 - MINIMAL_GAIN) * min(best / optimism, factor * whole)


def listed_seconds(table: CostTable) -> float:
    """Latency of a quick schedule."""
    answer = solve_problem(Problem.of(table, objective="overlap"), "chains", SolverOptions())
    return answer.latency_seconds if answer.latency_seconds is not None else float("inf")


def total_seconds(table: CostTable, device: str) -> float:
    """Seconds of everything that a device can run."""
    seconds = table.op_seconds[:, table.devices.index(device)]
    return float(seconds[np.isfinite(seconds)].sum())
