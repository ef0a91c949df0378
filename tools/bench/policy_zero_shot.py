"""Zero-shot: the policy's greedy answer alone, and its rivals, on held-out networks and machines.

Every method sees the same tables and is scored on the same objective, the simulated latency of one request on
HETERO. HEFT ("list scheduling") assumes devices that run side by side, which HETERO's do not; it is scored on
HETERO's objective like all others. ``hsdag`` and ``gdp`` follow the papers' protocol: trained from scratch on
each single problem, 2,000 simulated placements, of which the best one counts, mean over three seeds; so they
run on a part of the problems only, and the other methods are shown on the same part.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
from policy_gaps import Judged, summary_of
from policy_problems import (
    Problem,
    Solved,
    catalogue_problems,
    held_out_workloads,
    random_problems,
    solve_all,
)
from policy_request import Bar, Request, Section
from rich.progress import track

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.baselines import BASELINES
from ov_autoplace.cost.table import CostTable
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.runner import PolicyRunner
from ov_autoplace.solvers import SOLVERS, Constraints, SolverOptions

__all__ = ["answers", "from_scratch", "judge", "policy_answer", "problem_sets", "zero_shot"]

MEAN_GAP = {2: 0.015, 3: 0.03}
P95_GAP = 0.05
RANDOM_DRAWS = 10
_WORTH = 0.01  # a mix is worth the name when it is that much faster than every device
EVALUATIONS = 2_000
SEARCH_SEEDS = (0, 1, 2)
SIZES_FOR_SEARCH = (10, 200)  # groups: larger ones take the papers' protocol minutes each

Answer = Callable[[Problem], list[IntArray]]


def zero_shot(request: Request) -> Section:
    """All sets of problems, and the papers' protocol on a part of the first."""
    data: dict[str, Any] = {}
    bars = []
    for devices, sets in problem_sets(request).items():
        judged = {}
        for name, solved in sets.items():
            title = f"{name}, {devices} devices"
            judged[name] = judge(solved, answers(request.policy), title)
            judged[name].show(title, "policy")
            data[title] = judged[name].to_dict()
        bars += _bars(devices, judged)
    return Section(data, bars)


def from_scratch(request: Request) -> Section:
    """The papers' protocol, on some of the problems with two devices."""
    solved = problem_sets(request)[2]["random machines"]
    judged = judge(solved, answers(request.policy), "random machines, 2 devices")
    return Section({"trained from scratch on each problem": _from_scratch(judged, request.count(3))})


@cache
def problem_sets(request: Request) -> dict[int, dict[str, list[Solved]]]:
    """Problems by number of devices and where their machines come from, solved."""
    workloads = held_out_workloads(request.workloads)
    sets: dict[int, dict[str, list[Solved]]] = {}
    for devices, count in ((2, 210), (3, 105)):
        sets[devices] = {
            "random machines": _solved(request, random_problems(workloads, request.count(count), devices)),
            "catalogue": _solved(request, catalogue_problems(devices, scaled=not request.quick)),
        }
    return sets


def _solved(request: Request, problems: list[Problem]) -> list[Solved]:
    return solve_all(problems, request.seconds, request.workers, request.cache)


def policy_answer(policy: PolicyRunner, table: CostTable) -> IntArray:
    """The policy's greedy answer, ``int32[G]``."""
    graph = policy_graph(table)
    return np.asarray(policy.greedy(graph)[graph.unit_of], dtype=np.int32)


def answers(policy: PolicyRunner) -> dict[str, Answer]:
    """The methods that answer at once; each gives placements, of which the mean latency counts."""

    def of_solver(name: str) -> Answer:
        def answer(problem: Problem) -> list[IntArray]:
            table = problem.true
            return [SOLVERS[name](table, Constraints.of(table), SolverOptions()).assignment]

        return answer

    def of_baseline(name: str, draws: int = 1) -> Answer:
        def answer(problem: Problem) -> list[IntArray]:
            table = problem.true
            constraints = Constraints.of(table)
            options = [SolverOptions(seed=seed) for seed in range(draws)]
            return [BASELINES[name](table, constraints, o).assignment for o in options]

        return answer

    return {
        "policy": lambda problem: [policy_answer(policy, problem.true)],
        "policy, told that costs are estimates": lambda problem: [policy_answer(policy, problem.shown)],
        "best single device": of_solver("single"),
        "greedy": of_solver("greedy"),
        "list scheduling": of_baseline("list scheduling"),
        "random": of_baseline("random", RANDOM_DRAWS),
    }


def judge(solved: Sequence[Solved], methods: dict[str, Answer], text: str) -> Judged:
    """Run methods on problems; the default solver's answers are known from solving them."""
    if all(s.problem.shown is s.problem.true for s in solved):
        methods = {name: answer for name, answer in methods.items() if "told" not in name}
    seconds = {name: np.full(len(solved), np.nan) for name in methods}
    for i, s in enumerate(track(solved, text)):
        for name, answer in methods.items():
            rows = np.stack(answer(s.problem))
            seconds[name][i] = simulate_batch(s.problem.true, rows).mean()
    seconds["exact solver"] = np.array([s.best.usual for s in solved])
    return Judged(solved, seconds)


def _bars(devices: int, judged: dict[str, Judged]) -> list[Bar]:
    """The mean, and with two devices the 95th percentile, over each set and over all."""
    gaps = {name: j.gaps("policy") for name, j in judged.items()}
    proven = {name: j.is_proven for name, j in judged.items()}
    gaps["all problems"] = np.concatenate(list(gaps.values()))
    proven["all problems"] = np.concatenate(list(proven.values()))
    bars = []
    for name, all_gaps in gaps.items():
        kinds = {"best known": np.ones(len(all_gaps), dtype=bool)}
        if devices == 2:
            kinds = {"proven optimum": proven[name], **kinds}
        for kind, where in kinds.items():
            if not where.any():
                continue
            found = summary_of(all_gaps[where])
            what = f"zero-shot, {devices} devices, {name}: %s gap to the {kind}, %%"
            bars.append(Bar(what % "mean", 100 * MEAN_GAP[devices], 100 * found.mean))
            if devices == 2:
                bars.append(Bar(what % "95th percentile of the", 100 * P95_GAP, 100 * found.p95))
    return bars


def _from_scratch(judged: Judged, per_family: int) -> dict[str, Any]:
    """``hsdag`` and ``gdp``, and as many random placements, on the first problems of each family."""
    import torch

    from ov_autoplace.training.search import search

    torch.set_num_threads(1)
    part = judged.part(_moderate(judged.solved, per_family))
    placements = BASELINES["random"]
    drawn = []
    for s in part.solved:
        table = s.problem.true
        constraints = Constraints.of(table)
        rows = [placements(table, constraints, SolverOptions(seed=i)).assignment for i in range(EVALUATIONS)]
        drawn.append(simulate_batch(table, np.stack(rows)).min())
    part.seconds[f"best of {EVALUATIONS:,} random placements"] = np.array(drawn)
    spread, needed = {}, {}
    for network in ("hsdag", "gdp"):
        histories = np.array(
            [
                [search(s.problem.true, network, EVALUATIONS, seed).history for seed in SEARCH_SEEDS]
                for s in track(part.solved, f"{network} from scratch")
            ]
        )
        found = histories[:, :, -1]
        part.seconds[f"{network} from scratch"] = found.mean(axis=1)
        spread[network] = (found / part.best[:, None] - 1).mean(axis=0).tolist()
        needed[network] = _evaluations_until(histories, part.seconds["policy"])
    part.show(f"{EVALUATIONS:,} evaluations from scratch on each problem, 2 devices", "policy")
    for network, means in spread.items():
        print(f"{network}: mean gap with each seed {', '.join(f'{100 * mean:.2f} %' for mean in means)}")
    is_mix = part.seconds["policy"] < (1 - _WORTH) * part.seconds["best single device"]
    for network, counts in needed.items():
        for what, chosen in (("all problems", np.ones(len(is_mix), bool)), ("where it found a mix", is_mix)):
            own = np.array(counts)[chosen].ravel()
            print(
                f"{network}, evaluations until as fast as the policy's first answer, {what}: "
                f"median {np.median(own) if len(own) else np.nan:.0f} of {len(own)} runs, "
                f"{int(np.isinf(own).sum())} never in {EVALUATIONS:,}"
            )
    until = {name: [[_finite(n) for n in row] for row in counts] for name, counts in needed.items()}
    return {**part.to_dict(), "mean_gap_by_seed": spread, "evaluations_until_policy": until}


def _evaluations_until(histories: np.ndarray, wanted: np.ndarray) -> list[list[float]]:
    """Placements tried until one was as fast as wanted; infinite = never.

    Args:
        histories: Best latency after each evaluation, ``[problems, seeds, evaluations]``.
        wanted: Of each problem, seconds.
    """
    there = histories <= wanted[:, None, None] * (1 + 1e-9)
    counts = np.where(there.any(axis=2), there.argmax(axis=2) + 1.0, np.inf)
    return [[float(n) for n in row] for row in counts]


def _finite(count: float) -> float | None:
    """For JSON, which knows no infinity."""
    return count if np.isfinite(count) else None


def _moderate(solved: Sequence[Solved], per_family: int) -> np.ndarray:
    """The first problems of each family that are neither tiny nor large, ``bool[P]``."""
    chosen = np.zeros(len(solved), dtype=bool)
    counts: Counter[str] = Counter()
    for i, s in enumerate(solved):
        family, groups = s.problem.family, len(s.problem.true)
        if SIZES_FOR_SEARCH[0] <= groups <= SIZES_FOR_SEARCH[1] and counts[family] < per_family:
            chosen[i] = True
            counts[family] += 1
    return chosen
