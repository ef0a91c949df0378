"""What the learned policy is worth under every objective, on shapes and machines that training cannot draw.

``hetero`` with 2, 3, 4 and 8 devices, with and without memory limits, ``overlap`` on 2 to 8 lanes and
devices, ``rate`` on 2 to 4. Gaps are to the best placement known: of the default solver, of searches of
another family with more time (constraint programming up to 60 groups where OR-tools is installed, mixed-
integer programs above), and of everybody here. Placing *matters* where the best single device is more than a
percent off, or none can take everything. Under ``overlap``, each list scheduler with local search has as long
as the policy took. Under ``rate``, the remarks hold the mixture of placements to the bound
of the linear program: a placement that all requests share cannot reach it where there are few groups to
divide between devices.

``split=validation`` has other families, shapes and machines; design choices are made by it alone.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np

from examples import JUDGED
from harness.methods import SINGLE, Comparison, Method, compare, solver
from harness.result import Result, bar
from ov_autoplace.plan.placement import Placement
from ov_autoplace.policy.card import NO_POLICY
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SOLVERS_OF, solve_mixture
from problems.judged import Kind, best_seconds, instance_of, problems_of
from rivals import RivalOptions

_COUNT = {True: 5, False: 24}  # problems of each kind
_SECONDS = {True: 1.0, False: 30.0}
_LARGE = 60  # groups; above, constraint programming is out of reach
_ALONE, _LISTS = "portfolio without the policy", "list schedulers with local search"
_NO_LISTS = ("policy", "single", "exact", "oracle")
_MEAN = {2: 0.004, 3: 0.006, 4: 0.007, 8: 0.015}  # wanted of ``hetero`` by number of devices
_P95, _WORST, _LIMITED, _OVER_LISTS, _OVERLAP, _RATE, _BOTH = 0.02, 0.10, 0.03, 0.97, 0.02, 0.05, 0.5


def run(
    quick: bool,
    seed: int,
    checkpoint: str = "",
    split: str = "held-out",
    problems: int = 0,
    seconds: float = 0.0,
    workers: int = 1,
    only: tuple[str, ...] = (),
) -> Result:
    """One table per objective, number of devices, and with or without memory limits.

    Args:
        quick: Few problems of each, short searches for the best placements.
        seed: Of graphs and machines.
        checkpoint: Folder of the policy; the one that is shipped when empty.
        split: ``held-out`` or ``validation``.
        problems: Of each row; 0 = 24, or 5 if quick.
        seconds: How long to search for the best placement of each problem; 0 = 30, or 1 if quick.
        workers: Processes that search.
        only: Parts of the names of tables, such as ``limited``; all when empty.
    """
    found: dict[Kind, Comparison] = {}
    for kind in JUDGED:
        objective, devices, limited = kind
        columns = "columns" if objective == "overlap" else "devices"
        title = f"{objective}, {devices} {columns}{', limited' * limited}"
        if only and not any(part in title for part in only):
            continue
        labelled = problems_of(split, kind, problems or _COUNT[quick], seed)
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            known = list(pool.map(partial(best_seconds, seconds=seconds or _SECONDS[quick]), labelled))
        instances = [instance_of(problem, best) for problem, best in zip(labelled, known, strict=True)]
        found[kind] = compare(title, instances, _methods(objective, checkpoint or None), RivalOptions())
    bars = [text for kind, comparison in found.items() for text in _bars(kind, comparison)]
    return Result(
        f"The policy under every objective, {split}",
        tuple(comparison.table() for comparison in found.values()),
        cases=tuple(case for comparison in found.values() for case in comparison.cases([SINGLE])),
        remarks=(*bars, *_in_all(found)),
        data={"seed": seed, "split": split}
        | {comparison.name: comparison.to_list() for comparison in found.values()},
    )


def _methods(objective: str, checkpoint: str | None) -> dict[str, Method]:
    methods = {SINGLE: solver("single"), "policy": solver("policy", policy=checkpoint)}
    if objective == "hetero":
        return methods | {"portfolio": solver("portfolio")}
    methods["portfolio"] = solver("portfolio", policy=checkpoint)
    methods[_ALONE] = solver("portfolio", policy=NO_POLICY)
    return methods | ({_LISTS: partial(_lists, methods["policy"])} if objective == "overlap" else {})


def _lists(policy: Method, problem: Problem, options: RivalOptions) -> list[Placement]:
    """The best answer of the list schedulers, each with as long as the policy takes."""
    start = time.perf_counter()
    policy(problem, options)
    limit = max(time.perf_counter() - start, 1e-3)
    answers = []
    for name in SOLVERS_OF["overlap"]:
        if name not in _NO_LISTS:
            answers += solver(name)(problem, replace(options, deadline=time.monotonic() + limit))
    return [min(answers, key=lambda answer: answer.latency_seconds or np.inf)]


def _bars(kind: Kind, found: Comparison) -> list[str]:
    """What is wanted of one kind of problem."""
    objective, devices, limited = kind
    title, gaps = found.name, found.gaps("policy")
    groups = np.array([len(instance.table) for instance in found.instances])
    answered = np.isfinite(gaps)
    if not answered.any():
        return [f"{title}: the policy does not answer"]
    if objective == "overlap":
        bars = []
        if (small := answered & (groups <= _LARGE)).any():
            what = f"{title}, up to {_LARGE} groups: mean gap, %"
            bars.append(bar(what, 100 * _OVERLAP, 100 * float(gaps[small].mean())))
        if (large := answered & (groups > _LARGE)).any():
            over = np.log((found.latency("policy") / found.latency(_LISTS))[large])
            what = f"{title}, more: over {_LISTS} at equal time"
            bars.append(bar(what, _OVER_LISTS, float(np.exp(np.nanmean(over)))))
        return bars
    if objective == "rate":
        mixtures = [solve_mixture(instance.table) for instance in found.instances]
        bounds = np.array([1 / mixture.bound_per_second for mixture in mixtures])
        rates = np.array([1 / mixture.rate_per_second for mixture in mixtures])
        one = 100 * float(np.nanmean(found.latency("policy") / bounds - 1))
        return [
            bar(
                f"{title}: the mixture above the bound, %",
                100 * _RATE,
                100 * float((rates / bounds - 1).mean()),
            ),
            f"{title}: one placement for all requests is {one:.2f} % above the bound",
        ]
    row = found.row("policy")
    wanted = {"mean": _LIMITED} if limited else {"mean": _MEAN[devices], "p95": _P95, "worst": _WORST}
    return [bar(f"{title}: {key}, %", 100 * most, 100 * row[key]) for key, most in wanted.items()]


def _in_all(found: Mapping[Kind, Comparison]) -> list[str]:
    """Over all kinds that the policy answers: what it misses, and what it adds to the default solver."""
    slower, missed, ratios = 0, 0, []
    for comparison in found.values():
        row, gaps = comparison.row("policy"), comparison.gaps("policy")
        if not row["answered"]:
            continue
        slower += int(row["slower"])
        missed += len(gaps) - int(row["answered"])
        matters = comparison.is_worth_placing
        alone = comparison.gaps(_ALONE if _ALONE in comparison.outcomes else "portfolio")
        if matters.any() and alone[matters].mean() > 0:
            ratios.append(float(np.fmin(gaps, alone)[matters].mean() / alone[matters].mean()))
    text = "min(portfolio alone, policy) over portfolio alone where placing matters, mean over the tables"
    added = [bar(text, _BOTH, float(np.mean(ratios)))] if ratios else []
    return [bar("worse than the best single device", 0, slower), bar("missed", 0, missed), *added]
