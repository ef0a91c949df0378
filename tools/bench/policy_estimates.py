"""What is lost when only an estimate of the costs is known: the policy beside the exact solver.

Two kinds of estimate. *Real*: held-out networks of the zoo are profiled on two devices of this machine
(XCPU is the CPU plugin on one thread, CPU the same on two); placements are made on the analytic table of
the same network and devices, which nothing was compiled for, and scored on the profiled one. *Synthetic*:
random machines whose estimates are wrong by random factors per op type, per op and for all hand-overs.

The analytic table has smaller groups than the profiled one, which knows what the devices fuse: a profiled
group goes where most of the estimated time of its ops was placed.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from common import unequal_pair
from policy_gaps import Judged
from policy_pipeline import zero_shot_choice
from policy_problems import Problem, held_out_workloads, random_problems, real_models, solve_all
from policy_request import Bar, Request, Section
from policy_zero_shot import policy_answer
from rich.progress import track

from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.table import CostTable
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.measure.calibrate import calibrate
from ov_autoplace.measure.profiled import profile
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.solvers import Constraints, solve

__all__ = ["carried_over", "estimates"]

DEVICES = ("XCPU", "CPU")
MEAN_REGRET = 0.10

Method = Callable[[CostTable], np.ndarray]


def estimates(request: Request) -> Section:
    """Both kinds."""
    methods: dict[str, Method] = {
        "policy": lambda table: policy_answer(request.policy, table),
        "exact solver": lambda table: solve(table).assignment,
        "ZERO_SHOT pipeline": zero_shot_choice(request.policy),
        "best single device by estimate": lambda table: solve(table, "single").assignment,
    }
    data: dict[str, Any] = {}
    bars = []
    profiled = _profiled(request, methods)
    profiled.show(
        "Analytic tables, scored on profiled ones; regret", "policy, generic target", families=False
    )
    data["profiled"] = profiled.to_dict()
    for kind in ("generic", "calibrated"):
        mean = float(profiled.gaps(f"policy, {kind} target").mean())
        what = f"policy on the analytic table ({kind} target): mean regret to the profiled optimum, %"
        bars.append(Bar(what, 100 * MEAN_REGRET, 100 * mean))
    for devices in (2, 3):
        judged = _synthetic(request, devices, methods)
        title = f"estimates of random machines, {devices} devices"
        judged.show(title, "policy")
        data[title] = judged.to_dict()
    return Section(data, bars)


def _synthetic(request: Request, devices: int, methods: dict[str, Method]) -> Judged:
    """Methods read the estimate and are scored on the truth."""
    workloads = held_out_workloads(request.workloads)
    problems = random_problems(workloads, request.count(105), devices, estimates=True)
    solved = solve_all(problems, request.seconds, request.workers, request.cache)
    seconds = {name: np.full(len(solved), np.nan) for name in (*methods, "best single device")}
    for i, s in enumerate(track(solved, f"estimates, {devices} devices")):
        for name, method in methods.items():
            seconds[name][i] = _seconds(s.problem.true, method(s.problem.shown))
        seconds["best single device"][i] = _single(s.problem.true)
    return Judged(solved, seconds)


def _profiled(request: Request, methods: dict[str, Method]) -> Judged:
    """Methods read an analytic table and are scored on the profiled one."""
    core = unequal_pair()
    targets = {
        "generic": generic_target(core, DEVICES),
        "calibrated": calibrate(core, DEVICES, quick=True),
    }
    transfers = targets["calibrated"].transfers
    problems: list[Problem] = []
    rows: list[dict[str, float]] = []
    for name, family, model in track(list(real_models(full=not request.quick)), "profiling"):
        true = profile(model, DEVICES, core, transfers=transfers)
        folded = model.clone()
        fold_static_shapes(folded)
        coarse = coarsen(extract(folded))
        row = {
            "policy, profiled table": _seconds(true, policy_answer(request.policy, true)),
            "best single device": _single(true),
        }
        for kind, target in targets.items():
            estimate = analytic_table(coarse, target, DEVICES)
            for method, answer in methods.items():
                placed = carried_over(estimate, answer(estimate), true)
                row[f"{method}, {kind} target"] = _seconds(true, placed)
        problems.append(Problem(name, family, true, true))
        rows.append(row)
    # Not from the cache, and not into it: no two profiles are equal.
    solved = solve_all(problems, request.seconds, request.workers)
    return Judged(solved, {name: np.array([row[name] for row in rows]) for name in rows[0]})


def carried_over(estimate: CostTable, assignment: np.ndarray, true: CostTable) -> np.ndarray:
    """A placement of one table's groups as one of another table of the same model, ``int32[G]``.

    Each unit of ``true`` goes where most of the estimated time of its ops is placed.

    Args:
        estimate: Knows its ops.
        assignment: Device of each of its groups.
        true: Has the same devices, and knows its ops.
    """
    share: dict[str, tuple[int, float]] = {}
    for ops, device, seconds in zip(
        estimate.members or (), assignment.tolist(), estimate.op_seconds.mean(axis=1).tolist(), strict=True
    ):
        # Ops without time still have a say where nothing else has.
        share.update(dict.fromkeys(ops, (device, (seconds + 1e-12) / len(ops))))
    unit_of = Constraints.of(true).unit_of
    votes = np.zeros((int(unit_of.max()) + 1, true.num_devices))
    for unit, ops in zip(unit_of.tolist(), true.members or (), strict=True):
        for op in ops:
            if op in share:
                device, weight = share[op]
                votes[unit, device] += weight
    return np.asarray(votes.argmax(axis=1)[unit_of], dtype=np.int32)


def _seconds(table: CostTable, assignment: np.ndarray) -> float:
    return simulate(table, assignment).latency_seconds


def _single(table: CostTable) -> float:
    latency = solve(table, "single").latency_seconds
    assert latency is not None
    return latency
