"""The objective ``overlap``: against a plain Python simulator, what every schedule honours, and by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import reference_overlap as reference
from ov_autoplace import _core
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.wiring import Wiring
from ov_autoplace.errors import CostTableError, OptionError, PlacementError
from ov_autoplace.plan.placement import Schedule
from ov_autoplace.plan.simulator import parts_of, simulate, simulate_batch, simulator_of
from random_tables import consumers_of, make_table, random_table


def lane_table(seed: int) -> tuple[CostTable, np.random.Generator]:
    """Unequal devices or equal lanes, with and without all that a table may hold besides."""
    random = np.random.default_rng((seed, 90))
    groups, lanes = int(random.integers(1, 22)), int(random.integers(1, 4))
    table = random_table(seed + 50_000, groups, lanes, constrained=bool(random.random() < 0.5))
    table = replace(table, mix_seconds=float(random.choice([0.0, 0.5])))
    if random.random() < 0.3:
        kinds = np.where(random.random(groups) < 0.15, "Parameter", "MatMul")
        table = replace(table, op_types=tuple(kinds.tolist()))
    if random.random() < 0.5:
        table = with_lanes(table, table.devices[0], int(random.integers(1, 4)), hand_over_seconds=0.3)
    return replace(table, corun_factor=float(random.choice([1.0, 1.04, 1.25]))), random


def runs_of_lanes(random: np.random.Generator, table: CostTable) -> np.ndarray:
    """Lanes that change with every group, or every few groups."""
    changes = random.random(len(table)) < random.choice([0.15, 0.5, 1.0])
    return (random.integers(table.num_devices, size=len(table))[np.cumsum(changes) - 1]).astype(np.int32)


@pytest.mark.seeds(250)
def test_schedules_are_those_of_the_plain_simulator(seed: int) -> None:
    table, random = lane_table(seed)
    for _ in range(4):
        lanes = runs_of_lanes(random, table)
        plan = reference.Overlap(table, lanes.tolist()).plan()
        schedule = simulate(table, lanes, "overlap")
        if plan is None:
            assert schedule.latency_seconds == np.inf
            assert len(schedule.lane_of) == 0
            continue
        assert schedule.latency_seconds == pytest.approx(plan.makespan, rel=1e-9)
        submodels = [frozenset(np.flatnonzero(schedule.subgraph_of == s)) for s in range(schedule.subgraphs)]
        assert set(submodels) == set(plan.submodels)
        start = {members: plan.start[s] for s, members in enumerate(plan.submodels)}
        assert schedule.start_seconds == pytest.approx([start[members] for members in submodels])


def check_feasible(table: CostTable, lanes: np.ndarray, schedule: Schedule) -> None:
    """What holds for every schedule, whatever cut it."""
    of, start, finish = schedule.subgraph_of, schedule.start_seconds, schedule.finish_seconds
    assert schedule.latency_seconds == finish.max(initial=0.0)
    assert (schedule.lane_of[of[of >= 0]] == lanes[of >= 0]).all()
    # A submodel takes its launch and its work, and at most corun_factor times that.
    work = table.launch_seconds[schedule.lane_of].astype(float)
    np.add.at(work, of[of >= 0], table.op_seconds[np.arange(len(table)), lanes][of >= 0])
    took = finish - start
    assert (took >= work * (1 - 1e-9)).all()
    assert (took <= work * table.corun_factor * (1 + 1e-9)).all()
    paid = 0.0
    for t, p in enumerate(table.tensor_producer.tolist()):
        if table.tensor_is_constant[t] or of[p] < 0:
            continue
        for lane in {int(lanes[c]) for c in consumers_of(table, t)} - {int(lanes[p])}:
            paid += table.transfer_latency[lanes[p], lane]
            paid += table.transfer_seconds_per_byte[lanes[p], lane] * table.tensor_bytes[t]
        for c in consumers_of(table, t):
            way = table.transfer_latency[lanes[p], lanes[c]]
            way += table.transfer_seconds_per_byte[lanes[p], lanes[c]] * table.tensor_bytes[t]
            arrival = finish[of[p]] + (way if lanes[p] != lanes[c] else 0.0)
            assert of[p] == of[c] or arrival <= start[of[c]] * (1 + 1e-12)
    assert schedule.transfer_seconds == pytest.approx(paid)
    for lane in range(table.num_devices):
        own = np.flatnonzero(schedule.lane_of == lane)
        own = own[np.lexsort((finish[own], start[own]))]
        assert (finish[own[:-1]] <= start[own[1:]]).all()
        assert schedule.device_seconds[lane] == pytest.approx(took[own].sum())


@pytest.mark.seeds(60)
def test_schedules_honour_precedence_transfers_and_lanes(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random_table(seed + 80_000, int(random.integers(30, 200)), 3, constrained=False)
    table = replace(table, corun_factor=float(random.choice([1.0, 1.06])))
    for _ in range(3):
        lanes = runs_of_lanes(random, table)
        check_feasible(table, lanes, simulate(table, lanes, "overlap"))


@pytest.mark.seeds(20)
def test_one_lane_takes_one_launch_and_the_sum_of_its_groups(seed: int) -> None:
    table = random_table(seed, 50, 3, constrained=False)
    for lane in range(3):
        schedule = simulate(table, np.full(50, lane), "overlap")
        total = table.op_seconds[:, lane].sum() + table.launch_seconds[lane]
        assert schedule.latency_seconds == pytest.approx(total)
        assert schedule.subgraphs == 1
        assert schedule.transfer_seconds == 0


def lanes_of(op_seconds, tensors, *, launch=0.5, hand_over=1.0, **fields) -> CostTable:
    """Two equal lanes; seconds of each group, tensors as ``(producer, consumers)``."""
    table = make_table(
        [[s] for s in op_seconds],
        [(p, 0.0, list(consumers)) for p, consumers in tensors],
        launch_seconds=np.array([launch]),
        **fields,
    )
    return with_lanes(table, "DEV0", 2, hand_over_seconds=hand_over, corun_factor=1.0)


def test_a_submodel_ends_where_another_lane_waits() -> None:
    # Stem 0; branch 1, 2 stays, branch 3, 4 goes; join 5. Stem and branch are connected, but two submodels.
    table = lanes_of([2, 4, 4, 4, 4, 1], [(0, (1, 3)), (1, (2,)), (3, (4,)), (2, (5,)), (4, (5,))])
    schedule = simulate(table, [0, 0, 0, 1, 1, 0], "overlap")
    assert schedule.subgraph_of.tolist() == [0, 1, 1, 2, 2, 3]
    assert schedule.start_seconds.tolist() == [0.0, 2.5, 3.5, 13.0]
    assert schedule.finish_seconds.tolist() == [2.5, 11.0, 12.0, 14.5]
    assert schedule.lane_of.tolist() == [0, 0, 1, 0]
    assert schedule.latency_seconds == 14.5
    assert schedule.transfer_seconds == 2.0


def test_what_nobody_waits_for_is_not_cut_and_need_not_be_connected() -> None:
    table = lanes_of([1, 1, 1, 1], [(0, (1,)), (2, (3,))])
    assert simulate(table, [0, 0, 0, 0], "overlap").subgraphs == 1
    apart = simulate(table, [0, 0, 1, 1], "overlap")
    assert (apart.subgraphs, apart.latency_seconds) == (2, 2.5)


def test_a_cut_for_which_nobody_starts_earlier_is_not_made() -> None:
    # Lane 1 is busy with 3 until 10.5, so that 0 and 1 may as well hand over together.
    table = lanes_of([1, 1, 2, 10, 1], [(0, (1, 2)), (1, (4,)), (2, (4,)), (3, (4,))])
    schedule = simulate(table, [0, 0, 1, 1, 0], "overlap")
    assert schedule.subgraph_of.tolist()[:2] == [0, 0]


def test_many_small_hand_overs_become_one_where_launches_cost_more_than_waiting() -> None:
    chain = [(g, (g + 1, 6 + g)) for g in range(5)] + [(5, (11,))] + [(6 + g, (7 + g,)) for g in range(5)]
    dear = lanes_of([1] * 12, chain, launch=10.0)
    cheap = lanes_of([1] * 12, chain, launch=0.0)
    lanes = [0] * 6 + [1] * 6
    assert simulate(dear, lanes, "overlap").subgraphs == 2
    assert simulate(dear, lanes, "overlap").latency_seconds == 2 * 16 + 1
    assert simulate(cheap, lanes, "overlap").latency_seconds == 8


def test_lanes_that_compute_at_once_slow_each_other_and_only_then() -> None:
    # 4 seconds beside 8: both at 1.5 until lane 0 is done after 6, then lane 1 alone with 4 left.
    table = replace(lanes_of([4, 8], [], launch=0.0), corun_factor=1.5)
    schedule = simulate(table, [0, 1], "overlap")
    assert schedule.finish_seconds.tolist() == [6.0, 10.0]
    assert schedule.device_seconds == (6.0, 10.0)
    assert simulate(table, [0, 0], "overlap").latency_seconds == 12.0


def test_the_longest_way_to_the_end_goes_first() -> None:
    # Lane 0 may begin with 0 (a short way) or with 1, for which 2 on lane 1 waits.
    table = lanes_of([3, 3, 9], [(1, (2,))], launch=0.0)
    schedule = simulate(table, [0, 0, 1], "overlap")
    assert schedule.start_seconds.tolist() == [3.0, 0.0, 4.0]


def test_lanes_and_devices_that_work_at_once_wake_up_once() -> None:
    table = replace(with_lanes(make_table([[3.0, 1.0], [3.0, 1.0]]), "DEV0", 2), mix_seconds=5.0)
    assert simulate(table, [0, 0], "overlap").start_seconds.tolist() == [0.0]
    assert simulate(table, [0, 1], "overlap").start_seconds.tolist() == [5.0, 5.0]
    assert simulate(table, [0, 2], "overlap").start_seconds.tolist() == [5.0, 5.0]


def wired(kinds: list[int], tensors: list[tuple[int, list[int]]], **changes: object) -> CostTable:
    """A table of two lanes and one group per node of a wiring."""
    table = lanes_of([0.0 if k else 2.0 for k in kinds], tensors, launch=0.0)
    fields = {
        "node_group": np.arange(len(kinds)),
        "node_kind": np.array(kinds),
        "tensor_producer": np.array([p for p, _ in tensors]),
        "tensor_bytes": np.zeros(len(tensors)),
        "tensor_offsets": np.concatenate([[0], np.cumsum([len(c) for _, c in tensors])]),
        "tensor_consumers": np.array([c for _, row in tensors for c in row]),
        "bonds": np.empty((0, 2)),
    }
    return replace(table, wiring=Wiring(**{**fields, **changes}))


def test_inputs_are_there_from_the_start_and_outputs_keep_nobody_waiting() -> None:
    # Parameter 0 is read on both lanes, Result 3 is on the wrong one: no transfers, nothing waits.
    table = wired([1, 0, 0, 3], [(0, [1, 2]), (1, [3])])
    schedule = simulate(table, [0, 0, 1, 1], "overlap")
    assert schedule.latency_seconds == 2.0
    assert schedule.subgraph_of.tolist() == [-1, 0, 1, -1]
    assert schedule.transfer_seconds == 0.0


def test_bonds_keep_all_between_their_ends_in_one_submodel() -> None:
    # 0 and 2 are bound; 1 is between them and so must be with them.
    tensors = [(0, [1]), (1, [2])]
    free, bound = wired([0, 0, 0], tensors), wired([0, 0, 0], tensors, bonds=np.array([[0, 2]]))
    assert parts_of(bound).piece_of.tolist() == [0, 0, 0]
    for lanes in ([0, 1, 0], [0, 0, 1], [1, 0, 0]):
        assert np.isfinite(simulate(free, lanes, "overlap").latency_seconds)
        assert simulate(bound, lanes, "overlap").latency_seconds == np.inf
    assert simulate(bound, [1, 1, 1], "overlap").latency_seconds == 6.0


def test_a_shape_that_a_submodel_would_forget_is_not_handed_over() -> None:
    # The value of 0 decides the shape of 1 (a Reshape's pattern), which 2 reads: cut before 1, 1 forgets it.
    links = np.array([[0, 1, 1 | 4], [1, 2, 2]])
    table = wired([0, 0, 0], [(0, [1]), (1, [2])], links=links)
    assert np.isfinite(simulate(table, [0, 0, 1], "overlap").latency_seconds)
    assert np.isfinite(simulate(table, [1, 0, 0], "overlap").latency_seconds)
    assert simulate(table, [1, 0, 1], "overlap").latency_seconds == np.inf


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_batch_is_simulate_of_each_row(threads: int) -> None:
    random = np.random.default_rng(threads)
    table = random_table(threads, 60, 3)
    rows = random.integers(3, size=(100, 60))
    latencies = simulate_batch(table, rows, threads=threads, objective="overlap")
    assert latencies.tolist() == [simulate(table, row, "overlap").latency_seconds for row in rows]


@pytest.mark.seeds(10)
def test_a_limit_changes_only_what_is_slower(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = random_table(seed, 40, 2, constrained=False)
    rows = np.stack([runs_of_lanes(random, table) for _ in range(20)])
    exact = simulate_batch(table, rows, objective="overlap")
    for limit in [0.0, *np.sort(exact)[[2, 10, 18]]]:
        limited = simulate_batch(table, rows, limit_seconds=limit, objective="overlap")
        slower = exact > limit
        assert limited[~slower].tolist() == exact[~slower].tolist()
        assert (limited[slower] > limit).all()
        assert (limited[slower] <= exact[slower] * (1 + 1e-12)).all()


def test_thousands_of_groups_on_many_lanes_are_cut_and_scheduled() -> None:
    random = np.random.default_rng(1)
    table = random_table(3, 4_000, 8, constrained=False)
    lanes = random.integers(8, size=4_000).astype(np.int32)
    schedule = simulate(table, lanes, "overlap")
    check_feasible(table, lanes, schedule)
    assert schedule.subgraphs > 1_000


@pytest.mark.seeds(40)
def test_hetero_subgraphs_run_one_after_the_other(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = replace(random_table(seed, 40, 3, constrained=False), mix_seconds=float(seed % 2))
    schedule = simulate(table, runs_of_lanes(random, table))
    order = np.argsort(schedule.finish_seconds, kind="stable")
    start, finish = schedule.start_seconds[order], schedule.finish_seconds[order]
    assert len(order) == schedule.subgraphs
    assert finish.max() == pytest.approx(schedule.latency_seconds)
    assert (finish[:-1] <= start[1:]).all()
    busy = np.bincount(schedule.lane_of[order], finish - start, 3)
    assert busy == pytest.approx(schedule.device_seconds)
    of = schedule.subgraph_of
    for t, p in enumerate(table.tensor_producer.tolist()):
        for c in consumers_of(table, t):
            if of[p] != of[c]:
                assert schedule.finish_seconds[of[p]] <= schedule.start_seconds[of[c]]


def test_bad_arguments_are_refused_in_words() -> None:
    table = lanes_of([1, 1], [(0, (1,))])
    with pytest.raises(OptionError, match="unknown objective 'overlapp'; did you mean 'overlap'"):
        simulate(table, [0, 0], "overlapp")
    with pytest.raises(OptionError, match="unknown objective '-'; valid: hetero, overlap"):
        simulate_batch(table, [[0, 0]], objective="-")
    with pytest.raises(PlacementError, match="group 1 is placed on device 2"):
        simulate_batch(table, [[0, 2]], objective="overlap")
    with pytest.raises(CostTableError, match=r"corun_factor is 0\.9"):
        replace(table, corun_factor=0.9)


ARRAYS = {
    "op_seconds": np.ones((2, 2)),
    "piece_of": np.array([0, 1], np.int32),
    "runs": np.ones(2, np.uint8),
    "tensor_producer": np.array([0], np.int32),
    "tensor_bytes": np.zeros(1),
    "tensor_offsets": np.array([0, 1], np.int32),
    "tensor_consumers": np.array([1], np.int32),
    "node_group": np.array([0, 1], np.int32),
    "links": np.empty((0, 3), np.int32),
    "transfer_latency": np.zeros((2, 2)),
    "transfer_seconds_per_byte": np.zeros((2, 2)),
    "launch_seconds": np.zeros(2),
    "lane_device": np.array([0, 0], np.int32),
    "mix_seconds": 0.0,
    "corun_factor": 1.0,
}


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"piece_of": np.array([0, 2], np.int32)}, "piece_of holds 2"),
        ({"piece_of": np.array([0, 0], np.int32)}, "a piece has no group"),
        ({"runs": np.array([1, 0], np.uint8)}, "names piece 1, which does not run"),
        ({"tensor_consumers": np.array([0], np.int32)}, "not in topological order"),
        ({"tensor_offsets": np.array([0, 2], np.int32)}, "tensor_offsets do not rise"),
        ({"links": np.array([[0, 5, 1]], np.int32)}, "a link holds 5"),
        ({"lane_device": np.array([0], np.int32)}, "lane_device has 1 entries instead of 2"),
        ({"corun_factor": 0.5}, "corun_factor is 0.5"),
        ({"mix_seconds": float("nan")}, "mix_seconds"),
    ],
)
def test_the_core_refuses_arrays_that_do_not_fit_together(changes: dict, sentence: str) -> None:
    assert _core.OverlapSimulator(**ARRAYS).simulate(np.array([0, 1], np.int32)) == 2.0
    with pytest.raises(ValueError, match=sentence):
        _core.OverlapSimulator(**{**ARRAYS, **changes})


def test_each_objective_has_a_simulator_of_its_own_and_keeps_it() -> None:
    table = lanes_of([1, 1], [(0, (1,))])
    assert simulator_of(table, "overlap") is simulator_of(table, "overlap")
    assert simulator_of(table, "overlap") is not simulator_of(table)
