"""Bounds and placements from single devices' choices, against trying everything."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pytest
from test_memory_programs import any_placement, table_with_copies

from ov_autoplace import _core
from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import decomposition, solve
from ov_autoplace.solvers.decomposition import Ascent, Decomposition, in_and_out
from ov_autoplace.solvers.milp_model import solve_model
from ov_autoplace.solvers.pooling import pooled
from random_tables import legal_assignments, make_table, random_table, relaxed_seconds


@pytest.mark.seeds(40)
def test_the_sweep_finds_the_cheapest_subset(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, stars = int(rng.integers(1, 9)), int(rng.integers(0, 9))
    head = rng.integers(0, nodes, stars).astype(np.int32)
    members = [sorted(set(rng.integers(0, nodes, 3).tolist()) - {int(h)}) for h in head]
    offsets, flat = csr_from_lists(members)
    price, weight = rng.normal(-0.5, 1, nodes), rng.integers(0, 10, nodes).astype(float)
    leaving, entering = rng.exponential(0.5, (2, stars))
    capacity = float(rng.integers(0, 30)) if seed % 5 else np.inf

    def cost(chosen: np.ndarray) -> float:
        total = float(price[chosen].sum())
        for k, own in enumerate(members):
            if own and chosen[head[k]] and not chosen[own].all():
                total += leaving[k]
            if own and not chosen[head[k]] and chosen[own].any():
                total += entering[k]
        return total

    every = [np.array(c) for c in itertools.product([False, True], repeat=nodes)]
    least = min(cost(c) for c in every if weight[c].sum() <= capacity)
    sweep = _core.SubsetSweep(nodes, head, offsets, flat, 10_000)
    assert sweep.is_narrow
    bound, chosen = sweep.cheapest(price, weight, capacity, leaving, entering, 10_000)
    chosen = chosen.astype(bool)
    assert bound == pytest.approx(least, abs=1e-9)
    assert cost(chosen) == pytest.approx(least, abs=1e-9)
    assert weight[chosen].sum() <= capacity
    few, _ = sweep.cheapest(price, weight, capacity, leaving, entering, 1)
    assert few <= least + 1e-9


def test_a_sweep_that_is_too_wide_or_names_no_node_is_refused() -> None:
    head, members = np.arange(6, dtype=np.int32), np.arange(6, 12, dtype=np.int32)
    offsets = np.arange(7, dtype=np.int32)
    assert not _core.SubsetSweep(12, head, offsets, members, 60).is_narrow
    assert _core.SubsetSweep(12, head, offsets, members, 64).is_narrow
    with pytest.raises(ValueError, match="names no node"):
        _core.SubsetSweep(11, head, offsets, members, 64)


@pytest.mark.parametrize("most_states", [1_000, 0])
@pytest.mark.parametrize("limited", [True, False])
def test_the_bound_is_below_every_placement(
    monkeypatch: pytest.MonkeyPatch, limited: bool, most_states: int
) -> None:
    monkeypatch.setattr(decomposition, "_MOST_STATES", most_states)
    compared = 0
    for seed in range(12):
        table = random_table(seed, 6, 3)
        share = np.random.default_rng(seed).uniform(0.4, 0.7, 3) if limited else np.inf
        table = replace(table, memory_capacity=share * np.full(3, table.memory_bytes.sum()))
        every = legal_assignments(table) if any_placement(table) else np.empty((0, 6))
        if not len(every):
            continue
        units = Problem.of(table).units
        parts = Decomposition(units)
        if not parts.is_affordable or not len(units.producer):
            assert most_states == 0
            continue
        optimum = min(relaxed_seconds(table, a) for a in every)
        ascent = Ascent(parts)
        ascent.climb(optimum, 60)
        assert 0 < ascent.bound <= optimum * (1 + 1e-6), f"seed {seed}"
        compared += 1
    assert compared >= 6 or (limited and most_states == 0)


@pytest.mark.seeds(6)
def test_transfers_between_copies_are_in_the_bound_and_sets_become_placements(seed: int) -> None:
    table = table_with_copies(seed)
    units = Problem.of(table).units
    best = min(legal_assignments(table), key=lambda a: relaxed_seconds(table, a))
    optimum = relaxed_seconds(table, best)
    ascent = Ascent(Decomposition(units))
    ascent.climb(optimum, 150)
    pool = pooled(units, [[0, 1, 2], [3]])
    pool_bound = solve_model(pool, np.isfinite(pool.op_seconds)).bound
    assert ascent.bound <= optimum * (1 + 1e-6)
    assert ascent.bound >= pool_bound * 0.95
    device = ascent.assemble(None, 50)
    assert units.fits(device)
    ascent.add(best)
    assert units.relaxed_seconds(ascent.assemble(None, 50)) <= optimum * 1.01


def test_shares_of_ways_never_exceed_them_and_are_the_whole_where_there_is_a_bus() -> None:
    rng = np.random.default_rng(0)
    out, into = rng.uniform(0, 1, (2, 4))
    bus = out[:, None] + into
    enter, leave = in_and_out(bus, [0, 1, 2, 3])
    off = ~np.eye(4, dtype=bool)
    assert (leave[:, None] + enter)[off] == pytest.approx(bus[off], rel=1e-6)
    prices = rng.lognormal(0, 1, (4, 4))
    enter, leave = in_and_out(prices, [0, 2, 3])
    assert ((leave[:, None] + enter <= prices) | ~off)[np.ix_([0, 2, 3], [0, 2, 3])].all()
    assert enter.min() >= 0
    assert leave.min() >= 0


def test_many_different_devices_are_bounded_closely() -> None:
    rng = np.random.default_rng(3)
    seconds = rng.lognormal(0, 1, (60, 1)) * rng.lognormal(0, 0.7, (60, 12))
    tensors = [(g, float(rng.lognormal(-2, 1)), [g + 1]) for g in range(59)]
    answer = solve(make_table(seconds, tensors))
    assert answer.latency_seconds <= answer.lower_bound_seconds * 1.05
