"""Placement quality on cost tables: our solvers beside published rivals.

Every method gets the same tables and is scored on the same objective, the simulated latency of one request on
HETERO. The gap of a placement is its latency over the fastest placement known, minus 1; where the fastest is
proven to be optimal, the table says of how many. List schedulers assume devices that run side by side, which
HETERO's do not: what is measured is what they are worth here, not how good they are at their own task. Rivals
that are trained on each problem are in the section ``rivals``. Times are processor time, which other users of
the machine leave alone.
"""

from __future__ import annotations

from dataclasses import replace

from rich.progress import track

from harness.methods import (
    OURS,
    SINGLE,
    UNTRAINED,
    Comparison,
    Instance,
    compare,
    immediate_methods,
    missing_libraries,
)
from harness.result import Result, exact_ratio
from ov_autoplace.solvers import solve
from problems.tables import MACHINES, SPLITS, networks, on_catalogue, on_random_machines, published
from rivals import RivalOptions

_SECONDS = 2.0  # of a further search for the fastest placement of each problem


def run(quick: bool, seed: int) -> Result:
    """All sets of problems.

    Args:
        quick: Fewer and smaller problems, for less than two minutes on one core.
        seed: Of everything random.
    """
    methods = immediate_methods()
    comparisons = []
    for name, instances in problem_sets(quick, seed).items():
        found = compare(name, instances, methods, RivalOptions(seed=seed))
        comparisons.append(found if quick else _searched_longer(found))
    rivals = [name for name in (SINGLE, *UNTRAINED) if name in methods]
    return Result(
        title="Placement quality on cost tables",
        tables=tuple(replace(found.table(), published=_is_published(found.name)) for found in comparisons),
        # They depend on the seed and on the code alone: no search that feeds them is ended by a clock.
        ratios=tuple(
            exact_ratio(
                f"{method}: {found.name}",
                found.over_bound(method),
                int(found.row(method)["answered"]),
            )
            for found in comparisons
            for method in OURS
            if found.row(method)["answered"]
        ),
        cases=tuple(case for found in comparisons for case in found.cases(rivals)),
        remarks=tuple(f"{method} was not run: {reason}" for method, reason in missing_libraries().items()),
        data={found.name: found.to_list() for found in comparisons},
    )


def _is_published(name: str) -> bool:
    """Whether the page of results has a table; on machines of the catalogue one device is mostly best."""
    return any(part in name for part in ("random machines", "1 accelerator"))


def _searched_longer(found: Comparison) -> Comparison:
    """With what a longer search of the default solver finds, where the fastest placement is not proven."""
    instances = []
    for i, instance in enumerate(found.instances):
        best, bound = found.best[i], found.bound[i]
        if best > bound * (1 + 1e-9):
            best = min(best, solve(instance.table, time_limit=_SECONDS).latency_seconds)
        instances.append(replace(instance, known=float(best)))
    return replace(found, instances=instances)


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
        machines = 1 if quick else 2
        sets[f"{split} zoo on random machines, 2 devices"] = on_random_machines(chosen, machines, seed)
    sets["dnn-partitioning graphs, CPU and 1 accelerator"] = published(quick, 1)
    sets["dnn-partitioning graphs, all accelerators, memory limits"] = published(quick, None)
    return sets
