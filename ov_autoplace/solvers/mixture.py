"""The best mixture of placements for many requests: a linear program over placements, which cuts bring in.

Let ``busy[p, d]`` be how long placement p keeps device d busy for one request, and ``x[p]`` how many requests
a second run by p. The best mixture is

    maximise sum of x[p]   such that   sum over p of busy[p, d] * x[p] <= 1   for every device d

Its columns are all placements, so they are generated (Dantzig and Wolfe, "Decomposition Principle for Linear
Programs", 1960; Gilmore and Gomory, "A Linear Programming Approach to the Cutting-Stock Problem", 1961): with
a price ``y[d]`` per second of a device, which the program over the known columns gives, a placement is worth
taking in if ``sum of y[d] * busy[p, d]`` is below what the known ones cost. The cheapest placement at prices
is the fastest one of a table whose columns are multiplied by them, under the objective ``hetero``: with two
devices a minimum cut.

Whatever the prices, a rate of R requests a second spends at least R times the cost of the cheapest placement
and at most the sum of all prices. So each round proves a bound, from the bound of its cut: where no placement
needs more subgraphs than one per device, the last of them is the optimum.

One device, all devices side by side (replication) and one placement over several (a pipeline) are mixtures,
of which the best one is never slower. A basis of the program has as many columns as devices.

Weights have to fit: a device holds those of every placement that is used. Where the optimum is too large, a
small program with a binary per known placement chooses among these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import log

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray, frozen_array
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.mixture import Mixture
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.units import UnitGraph
from ov_autoplace.solvers.columns import Columns
from ov_autoplace.solvers.cuts import cheapest
from ov_autoplace.solvers.local import improve
from ov_autoplace.solvers.milp_model import solve_model
from ov_autoplace.solvers.pooling import copies_of
from ov_autoplace.solvers.search import allowed_assignments
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["mixture_of", "searched_columns"]

_MOST_CUTS = 80
_MOST_CUTS_OF_LARGE = 8
_ENUMERATED = 1 / 8  # of the placements that are all tried where one of them is looked for
_POLISHES = 12  # local searches on the true objective, where cuts bring nothing new
_SAME = 1e-7
# Of three and more devices: the program that bounds the cheapest placement.
_PROGRAM_UNITS, _PROGRAM_NODES, _PROGRAM_SECONDS = 400, 20, 10.0


def mixture_of(problem: Problem, columns: Columns) -> Mixture:
    """The best mixture of a problem of the objective ``rate`` among :func:`searched_columns`."""
    units, table = problem.units, problem.table
    used, rates = columns.mixture(units)
    single, single_rate = columns.best_on_one(table.corun_factor)
    if single is not None and single_rate >= float(rates.sum()) * (1 - _SAME):
        used, rates = [single], np.array([single_rate])  # nothing else is in its way
    order = np.argsort(-rates, kind="stable").tolist()
    used, rates = [used[i] for i in order], rates[order]
    rate = float(rates.sum())
    placements = []
    for i in used:
        assignment = units.to_groups(columns.assignments[i])
        placement = Placement.of_groups(table, assignment, solver="mixture")
        latency = simulate(table, assignment, "rate").latency_seconds
        placements.append(replace(placement, latency_seconds=latency))
    slowed = 1.0 if columns.use_one(used) else table.corun_factor
    load = slowed * (rates @ np.array([columns.busy[i] for i in used]))
    return Mixture(
        placements=tuple(placements),
        fractions=frozen_array(rates / rate, np.float64),
        rate_per_second=rate,
        bound_per_second=max(columns.bound, rate),
        device_load=frozen_array(load, np.float64),
        device_prices=frozen_array(columns.prices, np.float64),
        memory_bytes=frozen_array(
            np.sum([units.memory_of(columns.assignments[i]) for i in used], axis=0), np.float64
        ),
        cuts=columns.cuts,
    )


def searched_columns(problem: Problem, options: SolverOptions) -> Columns:
    """Placements among which the best mixture is found, with the bound that proves how good it is.

    Raises:
        PlacementError: Nothing that fits into memory was found.
    """
    units = problem.units
    columns = Columns(problem)
    for device in problem.evaluator.singles().values():
        columns.add(device)
    choices = np.isfinite(units.op_seconds).sum(axis=1)
    if np.log(choices).sum() <= log(max(_ENUMERATED * options.enumerated, 1.0)) + 1e-9:
        return _all_columns(problem, columns)
    prices = _first_prices(columns, units)
    classes = [members for members in copies_of(units) if len(members) > 1]
    most = _MOST_CUTS_OF_LARGE if len(units) >= options.large else _MOST_CUTS
    polishes, are_solved = 0, False
    while columns.cuts < most and not options.expired:
        priced = _priced(problem, prices)
        proposals = cheapest(priced, options)
        columns.prove(proposals.bound)
        added = sum(
            columns.add(turned) for found in proposals.assignments for turned in _exchanged(found, classes)
        )
        columns.solve()
        if columns.is_proven(_SAME):
            break
        if not added and are_solved:
            # Cuts do not see launches and cycles of subgraphs; searching on what a placement really costs
            # does.
            polishes += 1
            if polishes > _POLISHES or not _polished(priced, columns, classes, options, polishes):
                break
        prices, are_solved = columns.prices, True
    _check_any(columns)
    columns.solve()
    if len(units.usable_devices) > 2 and not columns.is_proven(_SAME) and not options.expired:
        _prove_by_program(problem, columns)
    return columns


def _all_columns(problem: Problem, columns: Columns) -> Columns:
    """Every allowed placement, whose best mixture is the optimum."""
    for device in allowed_assignments(problem):
        columns.add(device)
    _check_any(columns)
    columns.solve()
    columns.prove(1.0 / columns.rate)
    return columns


def _check_any(columns: Columns) -> None:
    if not columns.assignments:
        raise PlacementError("no placement was found that can run; relax the pins or the memory limits")


def _first_prices(columns: Columns, units: UnitGraph) -> FloatArray:
    """Those of all devices side by side, where each can run everything; else equal ones."""
    columns.solve()
    usable = np.zeros(units.num_devices, dtype=np.bool_)
    usable[units.usable_devices] = True
    return columns.prices if (columns.prices[usable] > 0).all() else usable / usable.sum()


def _priced(problem: Problem, prices: FloatArray) -> Problem:
    """The problem whose latency under ``hetero`` is what a placement costs at prices of the devices."""
    table = problem.table
    seconds = np.where(np.isfinite(table.op_seconds), table.op_seconds, 0.0) * prices
    priced = replace(
        table,
        op_seconds=np.where(np.isfinite(table.op_seconds), seconds, np.inf),
        transfer_latency=table.transfer_latency * prices,  # a column is who receives
        transfer_seconds_per_byte=table.transfer_seconds_per_byte * prices,
        launch_seconds=table.launch_seconds * prices,
        mix_seconds=0.0,
    )
    return replace(problem, table=priced, objective="hetero")


def _polished(
    priced: Problem, columns: Columns, classes: Sequence[Sequence[int]], options: SolverOptions, seed: int
) -> bool:
    """Whether local search from the placements that are cheapest finds one that is worth taking in."""
    evaluator = priced.evaluator
    costs = columns.costs_at(columns.prices)
    starts = np.argsort(costs, kind="stable")[: 1 + len(columns.prices)]
    start = columns.assignments[int(starts[seed % len(starts)])]
    found = improve(evaluator, start, replace(options, seed=options.seed + seed))
    added = [columns.add(turned) for turned in _exchanged(found, classes)]
    columns.solve()
    return any(added)


def _exchanged(device: IntArray, classes: Sequence[Sequence[int]]) -> list[IntArray]:
    """A placement, and what it becomes when the copies of a device take each other's parts in turn."""
    turns = max((len(members) for members in classes), default=1)
    found = []
    for turn in range(turns):
        turned = device.copy()
        for members in classes:
            for i, member in enumerate(members):
                turned[device == member] = members[(i + turn) % len(members)]
        found.append(turned)
    return found


def _prove_by_program(problem: Problem, columns: Columns) -> None:
    """A better bound for three and more devices: isolating cuts are weak where these are equally good."""
    priced = _priced(problem, columns.prices)
    units = priced.units
    if len(units) > _PROGRAM_UNITS:
        return
    solved = solve_model(
        units, np.isfinite(units.op_seconds), node_limit=_PROGRAM_NODES, time_limit=_PROGRAM_SECONDS
    )
    columns.prove(priced.evaluator.bound(solved.bound))
    if solved.assignment is not None:
        columns.add(solved.assignment)
        columns.solve()
