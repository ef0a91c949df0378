"""Changed costs and their best answers, checked against all placements of small tables."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from candidates import on_groups
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.what_if import what_ifs
from ov_autoplace.plan.decision import Candidate, Load
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.plan.simulator import simulate_batch
from random_tables import legal_assignments
from report_tables import diamond, layered_table


def placed(*devices: int) -> np.ndarray:
    return np.array(devices, dtype=np.int32)


def test_every_change_is_answered_with_the_best_of_all_placements() -> None:
    table = diamond()
    every = legal_assignments(table)
    changed = {
        "costs as they are": table,
        "transfers with twice the bandwidth": replace(
            table, transfer_seconds_per_byte=table.transfer_seconds_per_byte / 2
        ),
        "transfers with half the fixed time": replace(table, transfer_latency=table.transfer_latency / 2),
        "transfers and launches that cost nothing": replace(
            table,
            transfer_seconds_per_byte=np.zeros((2, 2)),
            transfer_latency=np.zeros((2, 2)),
            launch_seconds=np.zeros(2),
        ),
        "Y twice as fast": replace(table, op_seconds=table.op_seconds * [1, 0.5]),
    }

    answers = {answer.change: answer for answer in what_ifs(HeteroExplanation(table, placed(0, 0, 0, 0)))}

    assert set(answers) == set(changed)  # X has everything and would keep it if it were faster
    for change, answer in answers.items():
        assert answer.best_seconds == pytest.approx(simulate_batch(changed[change], every).min())
        assert answer.placed_seconds == pytest.approx(
            simulate_batch(changed[change], placed(0, 0, 0, 0)[None])[0]
        )
        assert answer.gain == pytest.approx(1 - answer.best_seconds / answer.placed_seconds)
        assert answer.proven


def test_a_change_that_frees_the_transfers_moves_what_is_faster_elsewhere() -> None:
    free = next(
        a for a in what_ifs(HeteroExplanation(diamond(), placed(0, 0, 0, 0))) if "nothing" in a.change
    )

    # b takes 1 ms instead of 2, its two ops move, and 8 ms become 7.
    assert (free.moved_ops, free.matters) == (2, True)
    assert free.gain == pytest.approx(1 / 8)
    assert free.answer.endswith("on X, Y")


def test_pins_hold_under_every_change() -> None:
    for answer in what_ifs(HeteroExplanation(diamond(), placed(0, 0, 0, 0), {"b*": "X"})):
        assert answer.change == "Y twice as fast" or answer.moved_ops == 0


def test_one_device_leaves_nothing_to_ask() -> None:
    table = diamond()
    alone = replace(
        table,
        devices=("X",),
        op_seconds=table.op_seconds[:, :1],
        transfer_latency=np.zeros((1, 1)),
        transfer_seconds_per_byte=np.zeros((1, 1)),
        launch_seconds=table.launch_seconds[:1],
        memory_capacity=table.memory_capacity[:1],
    )

    (answer,) = what_ifs(HeteroExplanation(alone, placed(0, 0, 0, 0)))

    assert (answer.answer, answer.matters) == ("the same placement", False)


def test_of_very_large_graphs_only_the_bandwidth_is_asked() -> None:
    table = layered_table(10_001)

    changes = [
        answer.change for answer in what_ifs(HeteroExplanation(table, np.zeros(10_001, dtype=np.int32)))
    ]

    assert changes == ["costs as they are", "transfers with twice the bandwidth"]


def near() -> CostTable:
    """The diamond with devices so near to each other that b is worth moving."""
    table = diamond()
    return replace(table, transfer_latency=np.zeros((2, 2)), transfer_seconds_per_byte=np.zeros((2, 2)))


def raced(milliseconds: float, *devices: int) -> Candidate:
    return on_groups("mix", devices, None, np.full(9, milliseconds / 1e3))


def test_a_measurement_has_the_last_word_on_the_costs_as_they_are() -> None:
    table, given = near(), placed(0, 0, 0, 0)
    (alone, *others) = what_ifs(HeteroExplanation(table, given))
    assert (alone.matters, alone.verdict) == (True, "")  # by costs alone, b is better on Y

    (lost, *_) = what_ifs(
        HeteroExplanation(table, given), tried=[raced(9.0, 0, 0, 0, 0), raced(9.9, 0, 1, 0, 0)]
    )
    assert not lost.matters
    assert lost.verdict == "measured 9.900 ms, 10.0 % slower, which decided"
    (won, *rest) = what_ifs(
        HeteroExplanation(table, given), tried=[raced(9.0, 0, 0, 0, 0), raced(8.91, 0, 1, 0, 0)]
    )
    assert won.matters
    assert won.verdict == "measured 8.910 ms, 1.0 % faster, which proved too little"
    assert [other.verdict for other in rest] == [""] * len(others)  # nobody can run changed costs


def test_a_device_that_was_measured_before_there_were_costs_is_told_by_its_name() -> None:
    table = replace(diamond(), op_seconds=diamond().op_seconds * [1, 9])
    devices = [
        Candidate(name, WholePlan(name), times={Load.STEADY: np.full(9, seconds)})
        for name, seconds in (("X", 0.2), ("Y", 0.1))
    ]

    (answer, *_) = what_ifs(HeteroExplanation(table, placed(1, 1, 1, 1)), tried=devices)

    assert (answer.answer, answer.gain > 0.8) == ("all on X", True)
    assert answer.verdict == "measured 200.000 ms, 100.0 % slower, which decided"
    assert not answer.matters


def test_a_placement_that_nobody_ran_is_not_refuted() -> None:
    other = raced(99.0, 0, 0, 1, 0)

    (answer, *_) = what_ifs(
        HeteroExplanation(near(), placed(0, 0, 0, 0)), tried=[raced(9.0, 0, 0, 0, 0), other]
    )

    assert (answer.best_measured_seconds, answer.matters, answer.verdict) == (None, True, "")
