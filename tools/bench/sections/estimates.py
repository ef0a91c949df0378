"""What is lost when only an estimate of the costs is known: the policy beside the exact solver.

Two kinds of estimate. *Real*: held-out networks of the zoo are profiled on two devices of this machine
(XCPU is the CPU plugin on one thread, CPU the same on two); placements are made on the analytic table of
the same network and devices, which nothing was compiled for, and scored on the profiled one. *Synthetic*:
random machines whose estimates are wrong by random factors per op type, per op and for all transfers.

The analytic table has smaller groups than the profiled one, which knows what the devices fuse: a profiled
group goes where most of the estimated time of its ops was placed. How well the analytic times of groups and
of whole models rank and hit the profiled ones is shown too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from rich.progress import track
from scipy.stats import spearmanr

from harness.comparison import Comparison, compare, rows_of, table_of
from harness.environment import PAIRS, core_of
from harness.methods import SINGLE, Outcome, immediate_methods
from harness.result import Result, Table, bar
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.table import CostTable
from ov_autoplace.measure.calibrate import calibrate
from ov_autoplace.measure.profiled import profile
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import Problem
from problems.best_known import BestKnown, best_known
from problems.tables import Instance, coarse_graph, held_out_models, random_instances
from rivals import RivalOptions
from sections.zero_shot import ZERO_SHOT, pipeline_methods

__all__ = ["carried_over", "rank_and_ratio", "run"]

_DEVICES = PAIRS["alias"]
_MEAN_REGRET = 0.10
_SECONDS = {True: 0.5, False: 5.0}
_COUNT = 105


def run(quick: bool, seed: int, checkpoint: str = "", workers: int = 1, cache: str = "") -> Result:
    """Both kinds.

    Args:
        quick: Small networks, a quarter of the random machines.
        seed: Of the methods. Machines have seeds of their own.
        checkpoint: Folder of the policy; the one that is shipped when empty.
        workers: Processes that search for the best placements.
        cache: JSON file that keeps the best placements' latencies on random machines.
    """
    policy = PolicyRunner(checkpoint or None)
    methods = immediate_methods(policy)
    methods = {
        "policy": methods["policy"],
        "exact solver": methods["portfolio"],
        ZERO_SHOT: pipeline_methods(policy)[ZERO_SHOT],
        "best single device by estimate": methods[SINGLE],
    }
    comparison, ranks = _profiled(methods, quick, workers)
    comparisons = {"analytic tables, scored on profiled ones": comparison}
    for devices in (2, 3):
        title = f"estimates of random machines, {devices} devices"
        instances = random_instances(-(-_COUNT // 4) if quick else _COUNT, devices, estimates=True)
        known = best_known([i.true for i in instances], _SECONDS[quick], workers, cache)
        outcomes = compare(title, instances, methods, seed, estimated=tuple(methods))
        outcomes |= compare(title, instances, {SINGLE: immediate_methods(policy)[SINGLE]}, seed)
        comparisons[title] = _comparison(instances, outcomes, known)
    rows = {title: rows_of(title, c, seed) for title, c in comparisons.items()}
    columns = ("model", "device", "target", "groups", "rank correlation", "analytic / profiled")
    return Result(
        title="What estimates of the costs lose",
        tables=(*map(table_of, rows.values()), Table("Analytic against profiled op times", columns, ranks)),
        remarks=tuple(
            bar(
                f"policy on the analytic table ({kind} target): mean regret to the profiled optimum, %",
                100 * _MEAN_REGRET,
                100 * float(comparison.gaps(f"policy, {kind} target").mean()),
            )
            for kind in ("generic", "calibrated")
        ),
        data={title: {"rows": rows[title], "problems": c.to_list(title)} for title, c in comparisons.items()},
    )


def _comparison(
    instances: list[Instance], outcomes: dict[str, list[Outcome]], known: list[BestKnown]
) -> Comparison:
    seconds, bounds = (np.array([getattr(best, end) for best in known]) for end in ("seconds", "bound"))
    return Comparison(instances, outcomes, seconds, bounds)


def _profiled(methods: dict[str, Any], quick: bool, workers: int) -> tuple[Comparison, list[tuple[Any, ...]]]:
    """Methods read an analytic table and are scored on the profiled one; and how well the former ranks."""
    core = core_of("alias")
    targets = {
        "generic": generic_target(core, _DEVICES),
        "calibrated": calibrate(core, _DEVICES, quick=True),
    }
    transfers = targets["calibrated"].transfers
    instances: list[Instance] = []
    outcomes: dict[str, list[Outcome]] = {}
    ranks = []
    for name, family, model in track(list(held_out_models(full=not quick)), "profiling"):
        true = profile(model, _DEVICES, core, transfers=transfers)
        problem = Problem.of(true)
        answers = {
            "policy, profiled table": methods["policy"](problem, RivalOptions())[0].assignment,
            SINGLE: methods["best single device by estimate"](problem, RivalOptions())[0].assignment,
        }
        coarse = coarse_graph(model.clone())
        for kind, target in targets.items():
            estimate = analytic_table(coarse, target, _DEVICES)
            for title, method in methods.items():
                (placement,) = method(Problem.of(estimate), RivalOptions())
                answers[f"{title}, {kind} target"] = carried_over(estimate, placement.assignment, problem)
            for d, device in enumerate(_DEVICES):
                groups, rank, ratio = rank_and_ratio(estimate, true, d)
                ranks.append((name, device, kind, groups, f"{rank:.2f}", f"{ratio:.2f}"))
        instances.append(Instance(name, family, true, true))
        for title, assignment in answers.items():
            seconds = simulate(true, assignment).latency_seconds
            outcomes.setdefault(title, []).append(Outcome(seconds))
    # Not from the cache, and not into it: no two profiles are equal.
    known = best_known([instance.true for instance in instances], _SECONDS[quick], workers)
    return _comparison(instances, outcomes, known), ranks


def carried_over(estimate: CostTable, assignment: np.ndarray, problem: Problem) -> np.ndarray:
    """A placement of one table's groups as one of another table of the same model, ``int32[G]``.

    Each unit of the problem goes where most of the estimated time of its ops is placed.

    Args:
        estimate: Knows its ops.
        assignment: Device of each of its groups.
        problem: Its table has the same devices, and knows its ops.
    """
    share: dict[str, tuple[int, float]] = {}
    for ops, device, seconds in zip(
        estimate.members or (), assignment.tolist(), estimate.op_seconds.mean(axis=1).tolist(), strict=True
    ):
        # Ops without time still have a say where nothing else has.
        share.update(dict.fromkeys(ops, (device, (seconds + 1e-12) / len(ops))))
    unit_of = problem.units.unit_of
    votes = np.zeros((len(problem.units), problem.table.num_devices))
    for unit, ops in zip(unit_of.tolist(), problem.table.members or (), strict=True):
        for op in ops:
            if op in share:
                device, weight = share[op]
                votes[unit, device] += weight
    return np.asarray(votes.argmax(axis=1)[unit_of], dtype=np.int32)


def rank_and_ratio(analytic: CostTable, profiled: CostTable, device: int) -> tuple[int, float, float]:
    """Groups that take time, the rank correlation over them, and the ratio of the analytic to their total.

    A profiled group is compared with the sum of the analytic groups whose ops it holds.
    """
    group_of = {op: g for g, ops in enumerate(profiled.members or ()) for op in ops}
    estimate = np.zeros(len(profiled))
    for g, ops in enumerate(analytic.members or ()):
        shares = np.bincount([group_of[op] for op in ops if op in group_of], minlength=len(profiled))
        if shares.sum():
            estimate += analytic.op_seconds[g, device] * shares / shares.sum()
    measured = profiled.op_seconds[:, device]
    busy = (measured > 0) & np.isfinite(measured)
    correlation = float(spearmanr(estimate[busy], measured[busy]).statistic)
    return int(busy.sum()), correlation, float(estimate[busy].sum() / measured[busy].sum())
