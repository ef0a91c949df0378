"""Mixtures of placements and whole placements for a rate, against programs over all legal placements."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, PlacementError
from ov_autoplace.plan.mixture import Mixture
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SolverOptions, solve, solve_mixture
from ov_autoplace.solvers.rate import mixture_and_whole
from random_tables import legal_assignments, make_table, random_table

ALL_TRIED = SolverOptions()
SEARCHED = SolverOptions(enumerated=1)


def searched(table: CostTable) -> Mixture:
    """The mixture that is found where placements are not all tried."""
    return mixture_and_whole(Problem.of(table, objective="rate"), SEARCHED)[0]


def best_rates(table: CostTable, legal: np.ndarray) -> tuple[float, float]:
    """Requests per second of the best mixture, each placement fitting alone, and of the best placement."""
    found = [simulate(table, a, "rate") for a in legal]
    busy = np.array([s.device_seconds for s in found if np.isfinite(s.seconds_per_request)])
    solved = linprog(-np.ones(len(busy)), A_ub=busy.T, b_ub=np.ones(table.num_devices), method="highs")
    return -solved.fun, 1 / busy.max(axis=1).min()


def check_consistent(table: CostTable, mixture: Mixture) -> None:
    """What a mixture says of itself follows from its placements."""
    assert mixture.fractions.sum() == pytest.approx(1.0)
    assert (mixture.fractions > 0).all()
    busy = np.zeros(table.num_devices)
    for placement, fraction in zip(mixture.placements, mixture.fractions, strict=True):
        busy += fraction * np.array(simulate(table, placement, "rate").device_seconds)
    assert mixture.rate_per_second == pytest.approx(1 / busy.max(), rel=1e-6)
    assert mixture.device_load == pytest.approx(mixture.rate_per_second * busy, rel=1e-6)
    assert mixture.rate_per_second <= mixture.bound_per_second * (1 + 1e-9)


@pytest.mark.parametrize("all_at_once", [True, False])
@pytest.mark.seeds(40, cost=6)
def test_two_devices_against_all_placements(seed: int, all_at_once: bool) -> None:
    table = random_table(seed + 50_000, 8, 2)
    legal = legal_assignments(table)
    if not len(legal):
        with pytest.raises(PlacementError):
            solve_mixture(table)
        return
    best, whole = best_rates(table, legal)
    options = ALL_TRIED if all_at_once else SEARCHED
    mixture, placement = mixture_and_whole(Problem.of(table, objective="rate"), options)
    check_consistent(table, mixture)
    rate = simulate(table, placement, "rate").rate_per_second
    assert mixture.rate_per_second <= best * (1 + 1e-6)
    assert mixture.bound_per_second >= best * (1 - 1e-6)
    assert rate <= whole * (1 + 1e-9)
    assert placement.lower_bound_seconds <= 1 / whole * (1 + 1e-9)
    if np.isinf(table.memory_capacity).all():
        # Whatever shares out the requests is a mixture.
        assert mixture.rate_per_second >= rate * (1 - 1e-6)
        assert len(mixture.placements) <= 2
        assert mixture.rate_per_second >= (best if all_at_once else 0.9 * best) * (1 - 1e-6)
    assert rate >= (whole if all_at_once else 0.7 * whole) * (1 - 1e-9)


@pytest.mark.seeds(60)
def test_chains_on_two_devices_are_solved_to_the_bound(seed: int) -> None:
    # Without launches, what a cut counts is all that a chain pays; so nothing is lost between cut and
    # simulator.
    rng = np.random.default_rng(seed + 60_000)
    groups = int(rng.integers(10, 40))
    seconds = rng.lognormal(0, 1, (groups, 1)) * rng.lognormal(0, 0.8, (groups, 2))
    sizes = rng.lognormal(0, 1, groups - 1) * 10.0 ** rng.uniform(-1.5, 0.5)
    table = make_table(seconds, [(g, sizes[g], [g + 1]) for g in range(groups - 1)])
    mixture = searched(table)
    check_consistent(table, mixture)
    assert mixture.gap <= 1e-6
    assert mixture.rate_per_second >= (1 / seconds.sum(axis=0)).sum() * (1 - 1e-9)  # replication
    assert mixture.device_prices.sum() == pytest.approx(1.0)


@pytest.mark.seeds(60, cost=10)
def test_a_mixture_is_never_below_its_special_cases(seed: int) -> None:
    devices = 2 + seed % 3
    table = random_table(seed + 70_000, 14, devices, constrained=False)
    mixture = solve_mixture(table)
    check_consistent(table, mixture)
    singles = [
        simulate(table, np.full(14, d, dtype=np.int32), "rate").rate_per_second for d in range(devices)
    ]
    pipelines = [
        simulate(table, np.where(np.arange(14) < end, first, second).astype(np.int32), "rate").rate_per_second
        for end in range(1, 14)
        for first in range(devices)
        for second in range(devices)
    ]
    whole = 1 / solve(table, objective="rate").latency_seconds
    assert mixture.rate_per_second >= max(sum(singles), *pipelines, whole) * (1 - 1e-6)
    assert mixture.rate_per_second >= 0.6 * mixture.bound_per_second


@pytest.mark.seeds(40, cost=3)
def test_three_devices_against_all_placements(seed: int) -> None:
    table = random_table(seed + 80_000, 6, 3)
    legal = legal_assignments(table)
    if not len(legal):
        return
    best, _ = best_rates(table, legal)
    mixture = searched(table)
    assert mixture.rate_per_second <= best * (1 + 1e-6)
    assert mixture.bound_per_second >= best * (1 - 1e-6)
    if np.isinf(table.memory_capacity).all():
        assert mixture.rate_per_second >= 0.85 * best


@pytest.mark.seeds(40, cost=2)
def test_the_weights_of_all_placements_fit_together(seed: int) -> None:
    table = random_table(seed + 90_000, 8, 2, constrained=False)
    share = np.random.default_rng(seed).uniform(0.6, 1.6, 2)
    limits = {d: float(s * table.memory_bytes.sum()) for d, s in zip(table.devices, share, strict=True)}
    mixture = solve_mixture(table, memory_limits=limits)
    held = sum(np.bincount(p.assignment, table.memory_bytes, minlength=2) for p in mixture.placements)
    assert mixture.memory_bytes == pytest.approx(held)
    for device, bytes_held in zip(table.devices, held, strict=True):
        assert bytes_held <= limits[device] * (1 + 1e-9)
    # The best placement alone fits, so what is found for all is never worse.
    whole = solve(table, objective="rate", memory_limits=limits)
    assert mixture.rate_per_second >= (1 - 1e-6) / whole.latency_seconds


def test_lanes_are_copies_of_the_model_that_share_its_memory() -> None:
    table = make_table(
        [[1.0], [1.0]], [(0, 1.0, [1])], memory_bytes=[10.0, 10.0], memory_capacity=[np.inf], devices=("CPU",)
    )
    lanes = with_lanes(table, "CPU", 4, hand_over_seconds=0.1, corun_factor=1.25)
    mixture = solve_mixture(lanes)
    assert mixture.rate_per_second == pytest.approx(4 / (2 * 1.25))  # four requests at once, all slowed down
    assert mixture.bound_per_second == pytest.approx(mixture.rate_per_second)
    assert len(mixture.placements) == 4
    held = solve_mixture(lanes, memory_limits={"CPU": 45.0})
    assert len(held.placements) == 2
    assert held.memory_bytes.tolist() == [40.0] * 4
    # There is room for two copies of the weights: two pipelines, and a hand-over for each second stage.
    assert held.rate_per_second == pytest.approx(2 / (1.1 * 1.25))
    assert held.gap > 0.05  # the bound does not know that copies need room


def test_one_lane_that_nothing_slows_down_beats_two_that_slow_each_other() -> None:
    table = make_table(
        [[1.0, 9.0]], devices=("CPU#0", "CPU#1"), lane_devices=("CPU", "CPU"), corun_factor=1.5
    )
    mixture = solve_mixture(table)
    assert mixture.rate_per_second == pytest.approx(1.0)
    assert [p.devices[p.assignment[0]] for p in mixture.placements] == ["CPU#0"]


def test_pins_hold_in_every_placement() -> None:
    table = random_table(5, 14, 2, constrained=False)
    mixture = solve_mixture(table, pins={table.names[3]: table.devices[1]})
    assert all(p.assignment[3] == 1 for p in mixture.placements)


def test_answers_are_repeatable() -> None:
    table = random_table(77, 12, 3, constrained=False)
    first, second = (solve_mixture(table, seed=3) for _ in range(2))
    assert first.rate_per_second == second.rate_per_second
    for one, other in zip(first.placements, second.placements, strict=True):
        assert np.array_equal(one.assignment, other.assignment)


def test_bad_requests_are_refused() -> None:
    table = random_table(0, 4, 2, constrained=False)
    with pytest.raises(OptionError, match="time limit is 0"):
        solve_mixture(table, time_limit=0)
    with pytest.raises(OptionError, match="unknown solver of the objective rate 'milp'"):
        solve(table, "milp", objective="rate")
    with pytest.raises(PlacementError, match="bytes"):
        solve_mixture(table, memory_limits=dict.fromkeys(table.devices, 1.0))
