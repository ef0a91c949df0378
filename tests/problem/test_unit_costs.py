"""Costs of units by one number per table, and what is grouped by them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace.problem.groupings import GROUPINGS
from ov_autoplace.problem.problem import Problem
from ov_autoplace.problem.unit_costs import UnitCosts
from random_tables import make_table, random_table


def scaled(table, factor):
    """The same table with all times in another unit."""
    fields = ("op_seconds", "transfer_latency", "transfer_seconds_per_byte", "launch_seconds")
    times = {field: frozen_array(getattr(table, field) * factor, np.float64) for field in fields}
    return replace(table, **times)


@pytest.mark.seeds(5)
def test_costs_are_the_same_whatever_the_unit_of_time(seed):
    table = random_table(seed, groups=12)
    costs, other = UnitCosts.of(Problem.of(table)), UnitCosts.of(Problem.of(scaled(table, 1e-6)))
    np.testing.assert_allclose(costs.node_cost, other.node_cost, rtol=1e-5)
    np.testing.assert_allclose(costs.edge_cost, other.edge_cost, rtol=1e-5, atol=1e-6)
    assert other.scale_seconds == pytest.approx(1e-6 * costs.scale_seconds)


def test_an_edge_costs_its_transfers_and_one_launch():
    table = make_table(
        [[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]],
        [(0, 10.0, [1, 2]), (0, 5.0, [1])],
        transfer_latency=np.array([[0.0, 0.5], [0.25, 0.0]]),
        transfer_seconds_per_byte=np.array([[0.0, 0.1], [0.2, 0.0]]),
        launch_seconds=np.array([2.0, 4.0]),
    )
    graph = UnitCosts.of(Problem.of(table))  # the mean time on the fastest device is 1 s
    assert list(zip(graph.edge_source, graph.edge_target, strict=True)) == [(0, 1), (0, 2)]
    both = [[0.0, 2 * 0.5 + 15 * 0.1 + 4.0], [2 * 0.25 + 15 * 0.2 + 2.0, 0.0]]
    one = [[0.0, 0.5 + 10 * 0.1 + 4.0], [0.25 + 10 * 0.2 + 2.0, 0.0]]
    np.testing.assert_allclose(graph.edge_cost, [both, one], rtol=1e-6)


def test_pins_are_forbidden_devices():
    table = random_table(3, groups=6, constrained=False)
    graph = UnitCosts.of(Problem.of(table, pins={table.names[2]: table.devices[1]}))
    assert graph.allowed[2].tolist() == [False, True]
    assert graph.allowed[[0, 1, 3, 4, 5]].all()


@pytest.mark.parametrize("objective", ["hetero", "overlap"])
@pytest.mark.seeds(8)
def test_every_grouping_joins_neighbouring_groups_of_the_one_before(seed, objective):
    table = random_table(seed, groups=25, devices=3, constrained=False)
    graph = UnitCosts.of(Problem.of(table, objective=objective))
    assert len(graph.groupings) == GROUPINGS
    assert not graph.groupings[-1].any()
    finer = np.arange(len(graph))
    for group in graph.groupings[:-1]:
        assert set(group.tolist()) == set(range(int(group.max()) + 1))
        for label in range(int(finer.max()) + 1):
            assert len(set(group[finer == label].tolist())) == 1
        for label in range(int(group.max()) + 1):
            inside = (group[graph.edge_source] == label) & (group[graph.edge_target] == label)
            edges = np.stack([graph.edge_source[inside], graph.edge_target[inside]], axis=1).tolist()
            reached = {int(np.flatnonzero(group == label)[0])}
            for _ in range(len(graph)):
                for edge in edges:
                    reached |= {*edge} if {*edge} & reached else set()
            assert reached == set(np.flatnonzero(group == label).tolist())
        finer = group


def test_groups_join_along_the_edge_that_is_dearest_to_cut():
    # 0 and 1 prefer different devices but exchange much; 1 and 2 agree but exchange little.
    seconds = [[1.0, 2.0], [2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]
    tensors = [(0, 1000.0, [1]), (1, 0.01, [2]), (2, 50.0, [3])]
    group = UnitCosts.of(Problem.of(make_table(seconds, tensors))).groupings[0]
    assert group[0] == group[1]
    assert group[2] == group[3]
    assert group[1] != group[2]


def test_under_overlap_nothing_is_joined_that_could_run_at_once():
    # Four branches of five ops between a first and a last one, all as heavy, no transfer dear.
    branches = [list(range(1 + 5 * b, 6 + 5 * b)) for b in range(4)]
    tensors = [(0, 1.0, [branch[0] for branch in branches])]
    for branch in branches:
        tensors += [(g, 1.0, [g + 1]) for g in branch[:-1]] + [(branch[-1], 1.0, [21])]
    table = make_table(np.ones((22, 4)), tensors, lane_devices=("CPU",) * 4)
    group = UnitCosts.of(Problem.of(table, objective="overlap")).groupings[0]
    assert [len(set(group[branch].tolist())) for branch in branches] == [1] * 4
    assert len({int(group[branch[0]]) for branch in branches}) == 4
    assert UnitCosts.of(Problem.of(table)).groupings[0].max() != group.max()
