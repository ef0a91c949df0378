"""Mixtures of placements for many requests: how near to the bound, and what they are worth, on tables alone.

Networks of the zoo on machines of the catalogue, and on machines whose speeds and transfers are drawn at
random. Each table's mixture is compared with the linear program's bound, with the best device, with
replication over all devices that can run the network (what MULTI and AUTO's CUMULATIVE_THROUGHPUT do) and
with the best placement that all requests share (a pipeline). Everything is simulated (objective ``rate``).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import islice

import numpy as np

from harness.result import Case, Result, Table, bar
from ov_autoplace.cost.table import CostTable
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.solvers import Problem, solve, solve_mixture
from problems.tables import MACHINES, SPLITS, Instance, networks, on_catalogue, on_random_machines

__all__ = ["run"]

_WANTED = 0.90  # of the bound
_CLEARLY = 1.05


@dataclass(frozen=True, slots=True)
class _Found:
    """Requests per second on one table, and what finding the mixture took."""

    name: str
    groups: int
    mixture: float
    bound: float
    best_device: float
    replication: float
    whole: float
    placements: int
    cuts: int
    seconds: float


def run(quick: bool, seed: int, devices: int = 2, machines: int = 1, tables: int = 0) -> Result:
    """One row per table.

    Args:
        quick: Networks of moderate size of the held-out families, each on one machine of the catalogue.
        seed: Of random machines and solvers.
        devices: Of each machine of the catalogue, 2 or 3.
        machines: Random machines of two devices for each network; none where there are more devices.
        tables: Most tables; all when 0.
    """
    chosen = list(islice(_tables(quick, seed, devices, machines), tables or None))
    found = [_compared(instance.name, instance.true, seed) for instance in chosen]
    rows = [
        (
            f.name,
            f.groups,
            f"{f.mixture:.1f}",
            f"{f.mixture / f.bound:.3f}",
            f"{f.mixture / f.best_device:.3f}" if f.best_device else "-",
            f"{f.mixture / f.replication:.3f}" if f.replication else "-",
            f"{f.mixture / f.whole:.3f}",
            f.placements,
            f.cuts,
            f"{f.seconds:.2f}",
        )
        for f in found
    ]
    columns = (
        "table", "groups", "requests/s", "of the bound", "over best device", "over replication",
        "over one placement", "placements", "cuts", "s",
    )  # fmt: skip
    return Result(
        "Mixtures of placements for a rate",
        (Table("Rates (simulated; higher is better)", columns, rows),),
        cases=tuple(
            Case(f.name, "replication", f.replication / f.mixture, "simulated")
            for f in found
            if f.replication
        ),
        remarks=_remarks(found),
        data={"seed": seed, "devices": devices, "tables": {f.name: asdict(f) for f in found}},
    )


def _tables(quick: bool, seed: int, devices: int, machines: int) -> Iterator[Instance]:
    """Networks on the catalogue's machines, then on random ones."""
    assert devices in MACHINES
    for families in list(SPLITS.values())[: 1 if quick else None]:
        known = list(networks(families, quick))
        yield from on_catalogue(known, devices, quick)
        if devices == 2:
            yield from on_random_machines(known, machines, seed)


def _remarks(found: Sequence[_Found]) -> tuple[str, ...]:
    over_bound = np.array([f.mixture / f.bound for f in found])
    over_replication = np.array([f.mixture / f.replication for f in found if f.replication > 0])
    over_whole = np.array([f.mixture / f.whole for f in found])
    below = [f.name for f in found if f.mixture < _WANTED * f.bound]
    remarks = [
        bar("largest bound over the rate", 1 / _WANTED, float(1 / over_bound.min())),
        f"further than 10 % from the bound: {', '.join(below) or 'none'}",
        f"over the best single placement: {_geometric(over_whole):.3f} in the geometric mean",
    ]
    if len(over_replication):
        remarks.append(
            f"over replication: {_geometric(over_replication):.3f} in the geometric mean, "
            f"{over_replication.max():.3f} at best; {int((over_replication >= _CLEARLY).sum())} of "
            f"{len(over_replication)} tables gain 5 % or more, "
            f"{int((over_replication < 1 + 1e-6).sum())} nothing"
        )
    return tuple(remarks)


def _compared(name: str, table: CostTable, seed: int) -> _Found:
    start = time.perf_counter()
    mixture = solve_mixture(table, seed=seed)
    seconds = time.perf_counter() - start
    problem = Problem.of(table, objective="rate")
    singles = [
        simulate(table, problem.units.to_groups(device), "rate").rate_per_second
        for device in problem.evaluator.singles().values()
    ]
    whole = solve(table, objective="rate", seed=seed)
    assert whole.latency_seconds is not None
    return _Found(
        name=name,
        groups=len(table),
        mixture=mixture.rate_per_second,
        bound=mixture.bound_per_second,
        best_device=max(singles, default=0.0),
        replication=sum(singles) if len(singles) == table.num_devices else 0.0,
        whole=1 / whole.latency_seconds,
        placements=len(mixture.placements),
        cuts=mixture.cuts,
        seconds=seconds,
    )


def _geometric(values: np.ndarray) -> float:
    return float(np.exp(np.mean(np.log(values))))
