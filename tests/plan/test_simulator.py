"""The simulator against a plain Python one, term by term, and against what HETERO would compile."""

from __future__ import annotations

import gc
import weakref

import numpy as np
import pytest

import reference_hetero as reference
from ov_autoplace._base import releases
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CostTableError, OptionError, PlacementError
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate, simulate_batch, simulator_of


def random_assignment(random: np.random.Generator, table: CostTable) -> np.ndarray:
    """Half of the time device by device, half of the time in runs."""
    draws = random.integers(table.num_devices, size=len(table))
    run = int(random.choice([1, 3]))
    return np.repeat(draws, run)[: len(table)]


@pytest.mark.usefixtures("by_either_rules")
@pytest.mark.seeds(150)
def test_schedule_agrees_with_the_plain_simulator(seed: int) -> None:
    random = np.random.default_rng(seed)
    groups, devices = int(random.integers(1, 26)), int(random.integers(1, 4))
    table = reference.random_table(random, groups, devices, constants=int(random.integers(4)))
    for _ in range(3):
        assignment = random_assignment(random, table)
        latency, subgraph_of = reference.latency_seconds(table, assignment.tolist())
        schedule = simulate(table, assignment)
        assert schedule.latency_seconds == pytest.approx(latency, rel=1e-12)
        assert schedule.subgraph_of.tolist() == subgraph_of
        assert schedule.subgraphs == max(subgraph_of) + 1
        assert sum(schedule.device_seconds) + schedule.transfer_seconds == pytest.approx(latency, rel=1e-12)
        memory = [table.memory_bytes[assignment == d].sum() for d in range(devices)]
        assert schedule.memory_bytes == pytest.approx(memory)
        many = simulate(table, assignment, "rate")
        busy = reference.busy_seconds(table, assignment.tolist())
        assert many.seconds_per_request == pytest.approx(busy.max(), rel=1e-12)
        if np.isfinite(latency):
            assert many.device_seconds == pytest.approx(busy, rel=1e-12)


@pytest.mark.parametrize("threads", [0, 1, 3])
def test_batch_is_simulate_of_each_row(threads: int) -> None:
    random = np.random.default_rng(threads)
    table = reference.random_table(random, 60, 3, constants=2)
    rows = random.integers(3, size=(100, 60))
    latencies = simulate_batch(table, rows, threads=threads)
    assert latencies.tolist() == [simulate(table, row).latency_seconds for row in rows]
    assert simulate_batch(table, rows[:0]).shape == (0,)


@pytest.mark.usefixtures("by_either_rules")
@pytest.mark.seeds(40)
def test_a_limit_changes_only_what_is_slower(seed: int) -> None:
    random = np.random.default_rng(seed)
    table = reference.random_table(random, int(random.integers(2, 120)), 2, constants=int(random.integers(3)))
    rows = np.stack([random_assignment(random, table) for _ in range(20)])
    exact = simulate_batch(table, rows)
    for limit in [0.0, *np.sort(exact)[[2, 10, 18]]]:
        limited = simulate_batch(table, rows, limit_seconds=limit)
        slower = exact > limit
        assert limited[~slower].tolist() == exact[~slower].tolist()
        assert (limited[slower] > limit).all()
        assert (limited[slower] <= exact[slower] * (1 + 1e-12)).all()


def test_a_hopeless_placement_is_not_cut_to_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(releases, "installed", lambda: "2026.3.0")  # before, three submodels run
    # One stray group makes HETERO cut hundreds of subgraphs; the first few show that it does not pay.
    table = reference.random_table(np.random.default_rng(4), 4000, 2)
    rows = (np.arange(4000) == np.arange(1000, 3000, 100)[:, None]).astype(np.int32)
    exact = simulate_batch(table, rows)
    slowest = int(np.argmax(np.where(np.isfinite(exact), exact, 0)))
    best_single = min(simulate(table, np.full(4000, d)).latency_seconds for d in (0, 1))
    limited = simulate_batch(table, rows[slowest : slowest + 1], limit_seconds=best_single)[0]
    assert simulate(table, rows[slowest]).subgraphs > 400
    assert best_single < limited < exact[slowest]


def small_table(**changes: object) -> CostTable:
    """Three groups, 0 -> {1, 2} over one tensor of 1000 bytes, on two devices."""
    fields = {
        "devices": ("GPU", "CPU"),
        "names": ("a", "b", "c"),
        "op_seconds": np.array([[1.0, 2.0], [3.0, 4.0], [5.0, np.inf]]),
        "tensor_producer": np.array([0], np.int32),
        "tensor_bytes": np.array([1000.0]),
        "tensor_offsets": np.array([0, 2], np.int32),
        "tensor_consumers": np.array([1, 2], np.int32),
        "tensor_is_constant": np.array([False]),
        "tensor_uncuttable": np.array([False]),
        "transfer_latency": np.array([[0.0, 10.0], [20.0, 0.0]]),
        "transfer_seconds_per_byte": np.array([[0.0, 0.1], [0.2, 0.0]]),
        "launch_seconds": np.array([7.0, 9.0]),
        "memory_bytes": np.array([1.0, 2.0, 4.0]),
        "memory_capacity": np.full(2, np.inf),
    }
    return CostTable(**{**fields, **changes})


def test_terms_of_a_table_worked_by_hand() -> None:
    # a runs on the CPU, b and c on the GPU; they share nothing, so they are two subgraphs and the tensor
    # is transferred twice: 2 + 3 + 5, launches 9 + 7 + 7, transfers 2 * (20 + 0.2 * 1000).
    schedule = simulate(small_table(), [1, 0, 0])
    assert schedule.latency_seconds == pytest.approx(10 + 23 + 440)
    assert schedule.subgraphs == 3
    assert schedule.subgraph_of.tolist() == [0, 1, 2]
    assert schedule.device_seconds == (3 + 5 + 14, 2 + 9)
    assert schedule.transfer_seconds == pytest.approx(440)
    assert schedule.memory_bytes == (6.0, 1.0)


def test_mixing_devices_is_paid_once_and_only_by_a_mix() -> None:
    table, free = small_table(mix_seconds=1000.0), small_table()
    mixed, alone = [1, 0, 0], [0, 0, 0]
    paid = simulate(table, mixed)
    assert paid.latency_seconds == pytest.approx(simulate(free, mixed).latency_seconds + 1000)
    assert paid.transfer_seconds == pytest.approx(440 + 1000)
    assert simulate(table, alone).latency_seconds == simulate(free, alone).latency_seconds
    assert simulate_batch(table, [mixed, alone]).tolist() == [paid.latency_seconds, 16.0]


def test_a_tensor_is_paid_once_per_receiving_subgraph() -> None:
    # A constant shared by b and c glues them: one subgraph, one transfer.
    table = small_table(
        tensor_producer=np.array([0, 1], np.int32),
        tensor_bytes=np.array([1000.0, 1e9]),
        tensor_offsets=np.array([0, 2, 3], np.int32),
        tensor_consumers=np.array([1, 2, 2], np.int32),
        tensor_is_constant=np.array([False, True]),
        tensor_uncuttable=np.array([False, False]),
    )
    schedule = simulate(table, [1, 0, 0])
    assert schedule.subgraphs == 2
    assert schedule.latency_seconds == pytest.approx(10 + 16 + 220)


def test_a_group_where_it_cannot_run_makes_the_latency_infinite() -> None:
    assert simulate(small_table(), [0, 0, 1]).latency_seconds == np.inf
    assert simulate_batch(small_table(), [[0, 0, 1], [0, 0, 0]]).tolist() == [np.inf, 16.0]


def test_breakdown_tells_op_launch_and_transfer_seconds_apart() -> None:
    parts = simulator_of(small_table()).breakdown(np.array([1, 0, 0], np.int32))
    assert (parts.op_seconds, parts.launch_seconds, parts.transfer_seconds) == (10, 23, pytest.approx(440))
    assert parts.latency_seconds == parts.op_seconds + parts.launch_seconds + parts.transfer_seconds
    assert parts.subgraph_of.tolist() == [0, 1, 2]


def test_a_placement_object_of_groups_or_of_ops_is_accepted() -> None:
    table = small_table(members=(("a", "a2"), ("b",), ("c",)))
    expected = simulate(table, [1, 0, 0]).latency_seconds
    groups = Placement.of_groups(table, np.array([1, 0, 0], np.int32))
    ops = Placement.from_dict({"a": "CPU", "a2": "CPU", "b": "GPU", "c": "GPU"})
    assert simulate(table, groups).latency_seconds == expected
    assert simulate(table, ops).latency_seconds == expected


def test_a_problem_is_made_once_and_lives_no_longer_than_its_table() -> None:
    table = small_table()
    assert simulator_of(table) is simulator_of(table)
    alive = weakref.ref(table)
    del table
    gc.collect()
    assert alive() is None


def test_bad_arguments_are_refused_in_words() -> None:
    table = small_table()
    with pytest.raises(OptionError, match="threads is -1"):
        simulate_batch(table, [[0, 0, 0]], threads=-1)
    with pytest.raises(PlacementError, match="group 'b' is placed on device 2"):
        simulate(table, [0, 2, 0])
    with pytest.raises(PlacementError, match=r"group 1 is placed on device -1"):
        simulate_batch(table, [[0, -1, 0]])
    with pytest.raises(PlacementError, match=r"has 3 groups, not \[2\]"):
        simulate(table, [0, 0])
    with pytest.raises(PlacementError, match=r"int\[B, 3\]"):
        simulate_batch(table, [0, 0, 0])
    with pytest.raises(PlacementError, match="not values of type float64"):
        simulate(table, [0.0, 1.0, 0.0])


def test_groups_out_of_topological_order_are_refused() -> None:
    with pytest.raises(CostTableError):
        simulator_of(
            small_table(tensor_producer=np.array([2], np.int32), tensor_consumers=np.array([0, 1], np.int32))
        )
