"""What the learned policy is worth: zero-shot, in the whole pipeline, and beside training from scratch.

All sets are of held-out networks: on random machines, and on those of the catalogue. *Policy* is its greedy
answer alone; told that costs are estimates, it hedges against their errors. The pipeline takes the lowest
prediction of single devices, solvers, the policy's answer and draws from it, as PROFILE and TUNE do where
predictions are exact; ZERO_SHOT takes the policy's answer unless it is predicted to be much slower. HEFT
("list scheduling") assumes devices that run side by side, which HETERO's do not.

``scratch`` is how many problems of each family HSDAG and GDP are trained on from random weights, as
published: 2,000 simulated placements, of which the best counts, three seeds; it takes an hour.

The last table holds the three models of the HSDAG paper on a machine that runs them as fast as the paper's
did: the catalogue's Core i9-12900K with a Flex 170, where all rates and overheads of a device are scaled by
one factor per model, such that the simulated latency on this device alone is that of the paper's CPU-only or
GPU-only row (arXiv 2405.14185, table 2). What lies between the two rows is a prediction of the simulator:
which ops gain where, and what crossing costs, are the catalogue's public figures and assumptions.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from rich.progress import track

import zoo
from harness.comparison import Comparison, cases_of, compare, rows_of, table_of
from harness.methods import SINGLE, Method, Outcome, immediate_methods, policy_answer, searches, try_it
from harness.result import Result, Table, bar
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.decide.verdict import predicted
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import Problem
from problems.best_known import best_known
from problems.tables import (
    MACHINES,
    SPLITS,
    Instance,
    coarse_graph,
    networks,
    on_catalogue,
    random_instances,
    scaled_networks,
)
from rivals import RivalOptions

__all__ = ["ZERO_SHOT", "calibrated_to", "pipeline_methods", "run", "runs_until"]

ZERO_SHOT = "as ZERO_SHOT chooses"
_TOLD = "policy, told that costs are estimates"
_PIPELINE = "pipeline"
_RIVALS = ("greedy", "list scheduling", "random")
_MEAN_GAP = {2: 0.015, 3: 0.03}  # wanted, by number of devices
_P95_GAP = 0.05
_PIPELINE_GAP = 0.001
_COUNTS = {2: 210, 3: 105}
_SECONDS = {True: 0.5, False: 5.0}
_EVALUATIONS, _SEEDS = 2_000, (0, 1, 2)
_SIZES = (10, 200)  # groups of what is searched from scratch: larger ones take minutes each
_WORTH = 0.01  # a mix is worth the name when it is that much faster than every device

_COLUMNS = ("CPU-only", "GPU-only", "OpenVINO-CPU", "OpenVINO-GPU", "Placeto", "RNN-based", "HSDAG")
_PUBLISHED_MS: dict[str, tuple[float | None, ...]] = {
    "inception_v3": (12.8, 12.0, 12.8, 13.8, 11.6, 12.8, 10.5),
    "resnet50": (16.0, 7.81, 23.4, 8.76, 9.32, 8.75, 7.66),
    "bert_base": (6.38, 2.77, 6.57, 2.84, 6.51, None, 2.67),  # out of memory
}


def run(
    quick: bool,
    seed: int,
    checkpoint: str = "",
    scratch: int = 0,
    workers: int = 1,
    cache: str = "",
) -> Result:
    """All sets of problems, and the papers' models.

    Args:
        quick: A quarter of the problems, short searches for the best placements.
        seed: Of the rivals. Machines have seeds of their own.
        checkpoint: Folder of the policy; the one that is shipped when empty.
        scratch: Problems of each family on which HSDAG and GDP are trained from scratch.
        workers: Processes that search for the best placements.
        cache: JSON file that keeps the best placements' latencies for the next policy.
    """
    policy = PolicyRunner(checkpoint or None)
    methods = {SINGLE: immediate_methods(policy)[SINGLE], "policy": _greedy(policy), _TOLD: _greedy(policy)}
    methods |= {name: method for name, method in immediate_methods(policy).items() if name in _RIVALS}
    methods |= {"portfolio": immediate_methods(policy)["portfolio"], **pipeline_methods(policy)}
    tables, remarks, cases, data = [], [], [], {}
    for devices, count in _COUNTS.items():
        comparisons = {}
        for name, instances in _sets(devices, -(-count // 4) if quick else count, quick).items():
            title = f"{name}, {devices} devices"
            known = best_known([i.true for i in instances], _SECONDS[quick], workers, cache)
            outcomes = compare(title, instances, methods, seed, estimated=(_TOLD, ZERO_SHOT))
            ends = (np.array([getattr(best, end) for best in known]) for end in ("seconds", "bound"))
            comparison = comparisons[name] = Comparison(instances, outcomes, *ends)
            rows = rows_of(title, comparison, seed)
            tables += [table_of(rows), comparison.by_family()]
            cases += cases_of(title, comparison, (SINGLE, *_RIVALS))
            data[title] = {"rows": rows, "problems": comparison.to_list(title)}
        remarks += _bars(devices, comparisons)
        if scratch and devices == 2:
            table, sentences, data["scratch"] = _from_scratch(comparisons["random machines"], scratch)
            tables.append(table)
            remarks += sentences
    table, data["papers"] = _papers(policy, _SECONDS[quick])
    return Result(
        title="The learned policy on held-out networks",
        tables=(*tables, table),
        cases=tuple(cases),
        remarks=(f"policy {policy.card.name}, {policy.card.digest}", *remarks),
        data=data,
    )


def pipeline_methods(policy: PolicyRunner) -> dict[str, Method]:
    """What decides in place of a race where nothing is run."""

    def lowest(source: ProposalSource) -> Method:
        def choose(problem: Problem, options: RivalOptions) -> list[Placement]:
            best = min(propose(problem, source), key=lambda candidate: candidate.expected_seconds)
            return [Placement.of_groups(problem.table, best.assignment)]

        return choose

    def zero_shot(problem: Problem, options: RivalOptions) -> list[Placement]:
        winner = predicted(propose(problem, ProposalSource(policy=policy))).winner
        return [Placement.of_groups(problem.table, winner.assignment)]

    return {
        _PIPELINE: lowest(ProposalSource(policy=policy)),
        "pipeline without policy": lowest(ProposalSource()),
        ZERO_SHOT: zero_shot,
    }


def _greedy(policy: PolicyRunner) -> Method:
    return lambda problem, options: [policy_answer(policy, problem)]


def _sets(devices: int, count: int, quick: bool) -> dict[str, list[Instance]]:
    """Held-out problems by where their machines come from."""
    chosen = list(networks(SPLITS["held-out"], quick)) + ([] if quick else list(scaled_networks()))
    return {
        "random machines": random_instances(count, devices),
        "catalogue": on_catalogue(chosen, devices, quick=False),
    }


def _bars(devices: int, comparisons: dict[str, Comparison]) -> list[str]:
    """The mean, and with two devices the 95th percentile, over each set and over all."""
    gaps = {name: c.gaps("policy") for name, c in comparisons.items()}
    proven = {name: c.is_proven for name, c in comparisons.items()}
    gaps["all problems"], proven["all problems"] = (np.concatenate([*of.values()]) for of in (gaps, proven))
    found = []
    for name, of_all in gaps.items():
        kinds = {"best known": of_all}
        if devices == 2:
            kinds["proven optimum"] = of_all[proven[name]]
        for kind, of_kind in kinds.items():
            if not len(of_kind):
                continue
            what = f"zero-shot, {devices} devices, {name}: %s gap to the {kind}, %%"
            found.append(bar(what % "mean", 100 * _MEAN_GAP[devices], 100 * of_kind.mean()))
            if devices == 2:
                p95 = float(np.quantile(of_kind, 0.95))
                found.append(bar(what % "95th percentile of the", 100 * _P95_GAP, 100 * p95))
    mean = np.concatenate([c.gaps(_PIPELINE) for c in comparisons.values()]).mean()
    what = f"pipeline, {devices} devices: mean gap to the best known, %"
    return [*found, bar(what, 100 * _PIPELINE_GAP, 100 * mean)]


def _from_scratch(comparison: Comparison, per_family: int) -> tuple[Table, list[str], dict[str, Any]]:
    """The papers' networks, and as many random placements, on the first problems of each family."""
    import torch

    from ov_autoplace.training.environment import Environment
    from ov_autoplace.training.search import search

    torch.set_num_threads(1)
    parts = _moderate(comparison, per_family)
    instances = [part.instances[0] for part in parts]
    names = ("policy", SINGLE, "portfolio")
    outcomes = {name: [part.outcomes[name][0] for part in parts] for name in names}
    chance = searches()["best of random"]
    budget = RivalOptions(evaluations=_EVALUATIONS)
    outcomes["best of random"] = [try_it(chance, instance.true, budget) for instance in instances]
    remarks, data = [], {}
    wanted, single = (np.array([o.latency_seconds for o in outcomes[name]]) for name in ("policy", SINGLE))
    is_mix = wanted < (1 - _WORTH) * single
    best = np.array([part.best[0] for part in parts])
    for network in ("hsdag", "gdp"):
        histories = np.array(
            [
                [search(Environment([Problem.of(i.true)]), network, _EVALUATIONS, s).history for s in _SEEDS]
                for i in track(instances, f"{network} from scratch")
            ]
        )
        found = histories[:, :, -1]
        outcomes[f"{network} from scratch"] = [Outcome(float(mean)) for mean in found.mean(axis=1)]
        gaps = (found / best[:, None] - 1).mean(axis=0)
        remarks.append(
            f"{network}: mean gap with each seed {', '.join(f'{100 * gap:.2f} %' for gap in gaps)}"
        )
        counts = runs_until(histories, wanted)
        data[network] = {
            "gaps": gaps.tolist(),
            "until": [[c if c < np.inf else None for c in r] for r in counts],
        }
        for what, rows in (("all problems", counts), ("where it found a mix", counts[is_mix])):
            middle = np.median(rows) if rows.size else np.nan
            remarks.append(
                f"{network}, evaluations until as fast as the policy's first answer, {what}: "
                f"median {middle:.0f} of {rows.size} runs, {np.isinf(rows).sum()} never in {_EVALUATIONS:,}"
            )
    title = f"{_EVALUATIONS:,} evaluations from scratch on each problem, 2 devices"
    return table_of(rows_of(title, Comparison(instances, outcomes, best), 0)), remarks, data


def runs_until(histories: np.ndarray, wanted: np.ndarray) -> np.ndarray:
    """Placements tried until one was as fast as wanted, ``float64[P, seeds]``; infinite = never.

    Args:
        histories: Best latency after each evaluation, ``[P, seeds, evaluations]``.
        wanted: Of each problem, seconds.
    """
    there = histories <= wanted[:, None, None] * (1 + 1e-9)
    return np.where(there.any(axis=2), there.argmax(axis=2) + 1.0, np.inf)


def _moderate(comparison: Comparison, per_family: int) -> list[Comparison]:
    """The first problems of each family that are neither tiny nor large."""
    chosen, counts = [], Counter[str]()
    for part in comparison.parts():
        (instance,) = part.instances
        if _SIZES[0] <= len(instance.true) <= _SIZES[1] and counts[instance.family] < per_family:
            chosen.append(part)
            counts[instance.family] += 1
    return chosen


def _papers(policy: PolicyRunner, seconds: float) -> tuple[Table, dict[str, Any]]:
    """One column per model of the HSDAG paper."""
    (target_name, devices), *_ = MACHINES[2]
    columns: dict[str, dict[str, float | None]] = {}
    for name, row in _PUBLISHED_MS.items():
        published = dict(zip(_COLUMNS, row, strict=True))
        graph = coarse_graph(zoo.build(name, "full", weights="untouched"))
        table = analytic_table(graph, load_target(target_name), devices)
        wanted = np.array([published[f"{device}-only"] for device in devices], dtype=float) * 1e-3
        problem = Problem.of(calibrated_to(table, wanted))
        schedule = simulate(problem.table, policy_answer(policy, problem).assignment)
        (whole,) = pipeline_methods(policy)[_PIPELINE](problem, RivalOptions())
        columns[name] = {f"paper, measured: {k}": ms for k, ms in published.items()} | {
            f"simulated: {device} only": 1e3 * latency
            for device, latency in zip(devices, _alone(problem.table), strict=True)
        }
        columns[name] |= {
            "simulated: policy alone, zero-shot": 1e3 * schedule.latency_seconds,
            "simulated: whole pipeline": 1e3 * simulate(problem.table, whole.assignment).latency_seconds,
            "simulated: no placement is faster than": 1e3 * best_known([problem.table], seconds)[0].bound,
            "subgraphs of the policy's answer": float(schedule.subgraphs),
        }
    rows = [
        (title, *("-" if (ms := column[title]) is None else f"{ms:.3g}" for column in columns.values()))
        for title in next(iter(columns.values()))
    ]
    title = f"The HSDAG paper's models on {target_name}, scaled to its single-device rows; ms"
    return Table(title, ("", *columns), rows), columns


def calibrated_to(table: CostTable, seconds: Sequence[float] | np.ndarray) -> CostTable:
    """A table as if each device were faster or slower by one factor at all it does.

    Args:
        table: Estimated costs.
        seconds: What the whole model takes on each device alone, ``float64[D]``.
    """
    work = table.op_seconds.sum(axis=0)
    factor = (np.asarray(seconds) - (_alone(table) - work)) / work
    return replace(table, op_seconds=table.op_seconds * factor, source="profiled")


def _alone(table: CostTable) -> np.ndarray:
    """Latency on each device alone, ``float64[D]``."""
    devices = range(table.num_devices)
    return np.array(
        [simulate(table, np.full(len(table), d, dtype=np.int32)).latency_seconds for d in devices]
    )
