"""The bound that knows each device's subgraphs, against trying everything."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from ov_autoplace import _core
from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import decomposition, solve
from ov_autoplace.solvers import portfolio as portfolio_module
from ov_autoplace.solvers.decomposition import Ascent, Decomposition
from ov_autoplace.solvers.rounding import rounded
from random_tables import legal_assignments, make_table, random_table

Graph = list[tuple[int, list[int]]]  # producer and consumers of each tensor


def random_stars(rng: np.random.Generator, nodes: int) -> Graph:
    stars = []
    for head in range(nodes - 1):
        for _ in range(int(rng.integers(0, 3))):
            members = rng.choice(np.arange(head + 1, nodes), min(nodes - 1 - head, 3), replace=True)
            stars.append((head, sorted(set(members.tolist()))))
    return stars


def sweep_of(stars: Graph, nodes: int, most_states: int = 100_000) -> _core.PieceSweep:
    offsets, members = csr_from_lists([m for _, m in stars])
    head = np.array([h for h, _ in stars], dtype=np.int32)
    return _core.PieceSweep(nodes, head, offsets, members, most_states)


def least_cost_of_pieces(
    chosen: set[int], stars: Graph, prices: dict[str, np.ndarray], launch: float
) -> float:
    """The cheapest way to part a set into connected subgraphs without paths that leave one and come back."""
    nodes = len(prices["price"])
    reach = [{m for h, members in stars if h == v for m in members} for v in range(nodes)]
    for v in reversed(range(nodes)):
        reach[v] |= {w for u in set(reach[v]) for w in reach[u]}

    def is_convex(piece: set[int]) -> bool:
        return not any(
            b not in piece and reach[b] & piece and any(b in reach[a] for a in piece) for b in range(nodes)
        )

    def is_connected(piece: set[int]) -> bool:
        reached = {min(piece)}
        for _ in piece:
            for head, members in stars:
                for m in set(members) & piece:
                    if head in piece and reached & {head, m}:
                        reached |= {head, m}
        return reached == piece

    def receivers_outside(members: list[int]) -> int:
        """Subgraphs elsewhere that read a tensor: no path from one reader to another passes the set."""
        outside = [m for m in members if m not in chosen]
        parted = {(a, c) for a in outside for c in outside for x in chosen if x in reach[a] and c in reach[x]}
        grouped = [
            p for p in partitions(outside) if not any((a, c) in parted for g in p for a in g for c in g)
        ]
        return min(len(p) for p in grouped)

    def cost(pieces: list[set[int]]) -> float:
        total = launch * len(pieces) + sum(prices["price"][v] for v in chosen)
        for t, (head, members) in enumerate(stars):
            readers = sum(bool(p & set(members)) and head not in p for p in pieces)
            total += readers * prices["returning" if head in chosen else "entering"][t]
            if head in chosen:
                total += receivers_outside(members) * prices["leaving"][t]
        return total

    allowed = [p for p in partitions(sorted(chosen)) if all(is_convex(q) and is_connected(q) for q in p)]
    return min(cost(p) for p in allowed)


def partitions(items: list[int]) -> list[list[set[int]]]:
    if not items:
        return [[]]
    first, *rest = items
    found = []
    for parts in partitions(rest):
        found.append([{first}, *parts])
        found += [[*parts[:i], parts[i] | {first}, *parts[i + 1 :]] for i in range(len(parts))]
    return found


@pytest.mark.seeds(25)
def test_no_set_costs_less_than_the_sweep_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    nodes, devices = int(rng.integers(2, 7)), 2
    stars = random_stars(rng, nodes)
    sweep = sweep_of(stars, nodes)
    price = rng.normal(-1.0, 1.0, (nodes, devices))
    kinds = {k: rng.exponential(0.5, (len(stars), devices)) for k in ("leaving", "entering", "returning")}
    launch = rng.exponential(0.5, devices)
    bounds, _ = sweep.cheapest(price, *kinds.values(), launch)
    for d in range(devices):
        own = {"price": price[:, d], **{k: v[:, d] for k, v in kinds.items()}}
        every = (set(np.flatnonzero(c).tolist()) for c in itertools.product([0, 1], repeat=nodes))
        assert bounds[d] <= min(least_cost_of_pieces(s, stars, own, launch[d]) for s in every) + 1e-9


@pytest.mark.parametrize(
    ("stars", "taken", "expected"),
    [
        # A chain that is left and entered again: two launches.
        ([(0, [1]), (1, [2])], [1, 0, 1], 2 * 1 + 10 + 100),
        # 0 feeds 2 directly and through 1, which is elsewhere: 2 receives what its own device made.
        ([(0, [1, 2]), (1, [2])], [1, 0, 1], 2 * 1 + 10 + 100 + 1000),
        # 1 and 3 read the same tensor from outside; 2 between them is elsewhere: it is received twice.
        ([(0, [1, 3]), (1, [2]), (2, [3])], [0, 1, 0, 1], 2 * 1 + 2 * 100 + 10 + 100),
        # Seen from the other device: two subgraphs receive what 0 made.
        ([(0, [1, 3]), (1, [2]), (2, [3])], [1, 0, 1, 0], 2 * 1 + 2 * 10 + 100 + 10),
    ],
)
def test_what_is_paid_by_hand(stars: Graph, taken: list[int], expected: float) -> None:
    sweep = sweep_of(stars, len(taken))
    price = np.where(taken, -1e6, np.inf)[:, None]
    kinds = [np.full((len(stars), 1), value) for value in (10.0, 100.0, 1000.0)]
    bounds, chosen = sweep.cheapest(price, *kinds, np.array([1.0]))
    assert chosen.tolist() == taken
    assert bounds[0] == pytest.approx(expected - 1e6 * sum(taken), abs=1e-6)


@pytest.mark.parametrize("most_states", [100_000, 30, 0])
@pytest.mark.parametrize("devices", [2, 3])
def test_the_bound_is_below_every_placement_on_the_true_objective(
    monkeypatch: pytest.MonkeyPatch, devices: int, most_states: int
) -> None:
    monkeypatch.setattr(decomposition, "_MOST_PIECE_STATES", most_states)
    counted, close = 0, []
    for seed in range(40):
        table = random_table(seed, 7 if devices == 2 else 6, devices, constrained=False)
        units = Problem.of(table).units
        parts = Decomposition(units, units_are_nodes=True)
        optimum = float(simulate_batch(table, legal_assignments(table)).min())
        if not parts.counts_pieces:
            continue
        counted += 1
        ascent = Ascent(parts)
        ascent.climb(optimum, 80)
        assert 0 < ascent.bound <= optimum * (1 + 1e-9), f"seed {seed}"
        close.append(ascent.bound >= 0.99 * optimum)
    assert counted == {0: 0, 30: counted, 100_000: 40}[most_states]
    if most_states == 100_000:
        print(f"{devices} devices: within 1 % of the optimum on {np.mean(close):.2f}")
        assert np.mean(close) >= 0.6


def test_a_sweep_that_is_too_wide_or_not_in_order_is_refused() -> None:
    wide: Graph = [(h, [h + 10]) for h in range(10)]
    assert not sweep_of(wide, 20, 500).is_narrow
    assert sweep_of(wide, 20, 5_000).is_narrow
    with pytest.raises(ValueError, match="names no node"):
        sweep_of(wide, 19)
    with pytest.raises(ValueError, match="not before its members"):
        sweep_of([(1, [0])], 2)


def test_launches_and_tensors_received_twice_are_in_the_bound_of_many_devices() -> None:
    """Residual blocks on devices that each run some ops fast: the relaxed objective counts neither."""
    rng = np.random.default_rng(3)
    seconds = rng.lognormal(0, 1, (61, 1)) * rng.lognormal(0, 1, (61, 8))
    tensors = [(g, float(rng.lognormal(-1, 1)), [g + 1] + ([g + 4] if g % 4 == 0 else [])) for g in range(57)]
    table = make_table(seconds, tensors, launch_seconds=np.full(8, 0.2))
    answer = solve(table)
    assert answer.latency_seconds <= answer.lower_bound_seconds * 1.02


def test_many_devices_are_placed_near_the_optimum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(portfolio_module, "_ENUMERATED_PLACEMENTS", 1)
    ratios = []
    for seed in range(10):
        table = random_table(seed, 5, 5, constrained=seed % 2 == 0)
        every = legal_assignments(table)
        if not len(every):
            continue
        optimum = float(simulate_batch(table, every).min())
        answer = solve(table)
        assert answer.lower_bound_seconds <= optimum * (1 + 1e-6), f"seed {seed}"
        ratios.append(answer.latency_seconds / optimum)
    print(f"{len(ratios)} tables, worst {max(ratios):.4f}")
    assert len(ratios) >= 7
    assert max(ratios) <= 1.001


def test_rounding_keeps_whole_shares_and_draws_the_others_as_often_as_they_weigh() -> None:
    rng = np.random.default_rng(0)
    table = make_table([[1, 1, 1], [1, 1, 1], [1, np.inf, 2], [3, 1, 2]])
    units = Problem.of(table).units
    shares = np.array([[0, 1.0, 0], [0.5, 0, 0.5], [0, 1.0, 0], [0, 0, 0]])
    drawn = rounded(units, shares, 2_000, rng)
    assert (drawn[:, 0] == 1).all()
    assert set(drawn[:, 1].tolist()) == {0, 2}
    assert abs((drawn[:, 1] == 0).mean() - 0.5) < 0.05
    assert (drawn[:, 2] == 0).all()  # it may not run where its share is, and is fastest there
    assert (drawn[:, 3] == 1).all()
