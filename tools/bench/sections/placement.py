"""Placement quality on cost tables: our solvers and the learned policy beside published rivals.

Every method gets the same tables and is scored on the same objective, the simulated latency of one request on
HETERO. The gap of a placement is its latency over the fastest placement known, minus 1; where the fastest is
proven to be optimal, the table says of how many. List schedulers assume devices that run side by side, which
HETERO's do not: what is measured is what they are worth here, not how good they are at their own task.

Rivals that learn are trained from scratch on each single graph, as in their papers' comparisons, with a
budget of simulated placements of which the best counts; so they run on a few graphs only, beside all other
methods and as many random placements. Times are processor time, which other users of the machine leave alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
from rich.progress import track

from harness.comparison import Comparison, cases_of, compare, ratios_of, rows_of, table_of
from harness.methods import SINGLE, UNTRAINED, Outcome, immediate_methods, missing_libraries, searches, try_it
from harness.result import Result
from ov_autoplace.policy.runner import PolicyRunner
from problems.best_known import best_known
from problems.tables import MACHINES, SPLITS, Instance, networks, on_catalogue, on_random_machines, published
from rivals import RivalOptions

__all__ = ["FROM_SCRATCH", "problem_sets", "rivals_on", "run"]

FROM_SCRATCH = "rivals trained from scratch on each graph"


@dataclass(frozen=True)
class _Effort:
    """How much is done.

    Attributes:
        longer_search: Seconds of each of three further searches for the fastest placement.
        evaluations: Budget of a rival that learns.
        seeds: How many seeds of each of them.
        graphs: How many graphs they run on.
        sizes: Groups of those graphs, from and to.
    """

    longer_search: float
    evaluations: int
    seeds: int
    graphs: int
    sizes: tuple[int, int]


_QUICK = _Effort(longer_search=0.0, evaluations=200, seeds=1, graphs=3, sizes=(20, 60))
_FULL = _Effort(longer_search=2.0, evaluations=2000, seeds=3, graphs=5, sizes=(20, 200))


def run(quick: bool, seed: int) -> Result:
    """All sets of problems, then the rivals that learn.

    Args:
        quick: Fewer and smaller problems, for less than two minutes on one core.
        seed: Of everything random.
    """
    effort = _QUICK if quick else _FULL
    comparisons: dict[str, Comparison] = {}
    methods = immediate_methods(PolicyRunner())
    with _one_thread():
        for name, instances in problem_sets(quick, seed).items():
            outcomes = compare(name, instances, methods, seed)
            known = np.full(len(instances), np.inf)
            if effort.longer_search:
                tables = [instance.true for instance in instances]
                known = np.array([best.seconds for best in best_known(tables, effort.longer_search)])
            comparisons[name] = Comparison(instances, outcomes, known)
        comparisons[FROM_SCRATCH] = _train(list(comparisons.values()), effort, seed)
    rows = {name: rows_of(name, c, seed) for name, c in comparisons.items() if c.instances}
    return Result(
        title="Placement quality on cost tables",
        tables=tuple(table_of(of_set) for of_set in rows.values()),
        ratios=tuple(
            ratio for name in rows if name != FROM_SCRATCH for ratio in ratios_of(name, comparisons[name])
        ),
        cases=tuple(case for name in rows for case in cases_of(name, comparisons[name], rivals_on(name))),
        remarks=tuple(f"{method} was not run: {reason}" for method, reason in missing_libraries().items()),
        data={
            "rows": [row for of_set in rows.values() for row in of_set],
            "problems": [p for name in rows for p in comparisons[name].to_list(name)],
        },
    )


def rivals_on(name: str) -> tuple[str, ...]:
    """Whom ours are compared with on a set; those that learn are compared on their own graphs only."""
    return tuple(searches()) if name == FROM_SCRATCH else (SINGLE, *UNTRAINED)


def problem_sets(quick: bool, seed: int) -> dict[str, list[Instance]]:
    """All problems by set.

    Args:
        quick: Fewer problems, and none that are large.
        seed: Of the random machines.
    """
    sets: dict[str, list[Instance]] = {}
    for split, families in SPLITS.items():
        chosen = list(track(networks(families, quick), f"{split} networks"))
        for devices in MACHINES:
            sets[f"{split} zoo on catalogue machines, {devices} devices"] = on_catalogue(
                chosen, devices, quick
            )
        machines = 1 if quick else 3
        sets[f"{split} zoo on random machines, 2 devices"] = on_random_machines(chosen, machines, seed)
    sets["dnn-partitioning graphs, CPU and 1 accelerator"] = published(quick, 1)
    sets["dnn-partitioning graphs, all accelerators, memory limits"] = published(quick, None)
    return sets


def _train(comparisons: Sequence[Comparison], effort: _Effort, seed: int) -> Comparison:
    """The rivals that learn, on graphs where no single device is best, beside all other methods."""
    chosen: dict[str, Comparison] = {}  # one graph of each family, in the order of the sets
    for part in (part for comparison in comparisons for part in comparison.parts()):
        (instance,) = part.instances
        if part.is_worth_placing[0] and effort.sizes[0] <= len(instance.true) <= effort.sizes[1]:
            chosen.setdefault(instance.family, part)
    parts = list(chosen.values())[: effort.graphs]
    outcomes = {
        name: [part.outcomes[name][0] for part in parts]
        for name in (parts[0].outcomes if parts else (SINGLE,))
    }
    for name, method in searches().items():
        outcomes[name] = []
        for part in track(parts, f"{name}, {effort.evaluations:,} evaluations"):
            tries = [
                try_it(
                    method,
                    part.instances[0].true,
                    RivalOptions(seed=seed + i, evaluations=effort.evaluations),
                )
                for i in range(effort.seeds)
            ]
            outcomes[name].append(_mean(tries))
    known, proven = (np.array([getattr(part, end)[0] for part in parts]) for end in ("best", "bound"))
    return Comparison([part.instances[0] for part in parts], outcomes, known, proven)


def _mean(outcomes: Sequence[Outcome]) -> Outcome:
    """The mean over seeds; a refusal is one of all."""
    refusal = next((o.refusal for o in outcomes if o.refusal), "")
    latency, seconds = np.mean([(o.latency_seconds, o.seconds) for o in outcomes], axis=0).tolist()
    return Outcome(latency, seconds, refusal=refusal)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Times are those of one core, also where torch would take all."""
    if "hsdag" in missing_libraries():
        yield
        return
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)
