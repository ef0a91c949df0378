"""``ov_autoplace.place_application``: how several models should share one machine."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.bench import Bench
from ov_autoplace.application.bounds import capacity_bound
from ov_autoplace.application.candidates import Joint, predict, proposals, rivals
from ov_autoplace.application.race import JointRace
from ov_autoplace.application.workload import Application
from ov_autoplace.decide.option_values import PARSERS
from ov_autoplace.devices.conditions import machine_lines
from ov_autoplace.devices.extra_devices import own_core
from ov_autoplace.devices.names import resolve_devices
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.plan.decision import Decision

__all__ = ["field_of", "place_application"]

_BUDGET_SECONDS, _PROPOSED = 10.0, 6


def place_application(
    application: Application | str | os.PathLike[str],
    devices: str | Sequence[str] | None = None,
    core: ov.Core | None = None,
    *,
    time_budget_ms: float | None = None,
    seed: int = 0,
    processes: bool = False,
    isolation: bool = True,
) -> ApplicationPlan:
    """Decide how each model of an application runs, and measure all of it at once beside OpenVINO's settings.

    Args:
        application: The models and what is asked of them, or the file that says so.
        devices: Real devices, ``"GPU,CPU"`` or a sequence; all of the Core's when ``None``.
        core: Where the devices are; ``None`` means a new Core.
        time_budget_ms: Milliseconds for the whole decision, 10,000 when ``None``; what was begun is finished.
        seed: Of everything random.
        processes: Each model is to run in a process of its own, and so on processors of its own.
        isolation: Measure in child processes.

    Returns:
        A plan for every model; ``decision`` says how it was chosen.

    Raises:
        AutoplaceError: One of its kinds, when the request or a model cannot be met.
    """
    time_budget_ms = PARSERS["time_budget_ms"](time_budget_ms)
    if not isinstance(application, Application):
        application = Application.load_file(application)
    core = core or own_core()
    names = resolve_devices(core, devices)
    if not names:
        raise OptionError("OpenVINO finds no device on this machine; install the driver of one")
    budget = Budget(_BUDGET_SECONDS if time_budget_ms is None else time_budget_ms / 1e3)
    seconds: dict[str, float] = {}

    def note(phase: str, since: float) -> float:
        seconds[phase] = time.perf_counter() - since
        return time.perf_counter()

    start = time.perf_counter()
    with Bench(application, core, names, budget=budget, seed=seed, isolation=isolation) as bench:
        start = note("prepare", start)
        bench.measure_alone()
        start = note("measure alone", start)
        field = field_of(bench, machine_lines(core, names), processes=processes)
        start = note("propose", start)
        race = JointRace(bench, budget, seed)
        verdict = race.decide(field)
        note("race", start)
        race.watch([joint for joint in field if joint in (verdict.winner, field[0])])
        decision = Decision(
            chosen=verdict.winner.name,
            findings=verdict.findings,
            mode="PROFILE",
            candidates=tuple(verdict.candidates),
            seconds=seconds,
            disturbed=verdict.disturbed,
            quota=Cores.of_this_process().quota,
            rate_bound=capacity_bound(bench.models, application, Cores.of_this_process().usable),
        )
        return ApplicationPlan.of(application, decision, race.results)


def field_of(bench: Bench, machine: tuple[str, ...], *, processes: bool = False) -> list[Joint]:
    """What people set by hand, and the combinations that are predicted to be best.

    Args:
        bench: Has timed each model alone.
        machine: What the plans are for, a line each.
        processes: Only plans of which each model can run in a process of its own.

    Raises:
        PlacementError: There is none.
    """
    cores = Cores.of_this_process().usable
    known = rivals(bench.models, cores, machine)
    plans = {joint.plan for joint in known}
    others = [joint for joint in proposals(bench.models, cores, machine) if joint.plan not in plans]
    if processes:
        # Models of one process lend each other threads, and reserve cores from each other; processes do not.
        known, others = ([joint for joint in some if _is_apart(joint)] for some in (known, others))
        if not known and not others:
            raise PlacementError(
                f"no plan gives each of {len(bench.models)} models processors of its own, with {cores} "
                "to be divided; decide fewer models, or let them share a process"
            )
    for joint in (*known, *others):
        predict(joint, bench.models, bench.application, cores)
    others.sort(key=lambda joint: joint.expected_seconds)
    return [*known, *others[:_PROPOSED]]


def _is_apart(joint: Joint) -> bool:
    """Whether the processor mask of its process is all that keeps each model on its part of the machine."""
    return not joint.is_reserved and all(part.cores for part in joint.joint_plan.parts)
