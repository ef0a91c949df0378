from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace.policy.arcs import ARC_FEATURES, beyond_best_other, signed_log
from ov_autoplace.policy.features import PAIR_FEATURES, policy_graph
from ov_autoplace.policy.groupings import GROUPINGS
from ov_autoplace.policy.structure import NODE_FEATURES, fractal_dimension
from ov_autoplace.policy.vocabulary import OP_TYPES, UNKNOWN, op_type_indices
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table


def scaled(table, factor):
    """The same table with all times in another unit."""
    fields = ("op_seconds", "transfer_latency", "transfer_seconds_per_byte", "launch_seconds")
    times = {field: frozen_array(getattr(table, field) * factor, np.float64) for field in fields}
    return replace(table, **times)


@pytest.mark.seeds(5)
def test_a_policy_sees_the_same_whatever_the_unit_of_time(seed):
    table = random_table(seed, groups=12)
    graph, other = policy_graph(Problem.of(table)), policy_graph(Problem.of(scaled(table, 1e-6)))
    np.testing.assert_allclose(graph.pair_features, other.pair_features, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(graph.node_cost, other.node_cost, rtol=1e-5)
    np.testing.assert_allclose(graph.edge_cost, other.edge_cost, rtol=1e-5, atol=1e-6)
    assert other.scale_seconds == pytest.approx(1e-6 * graph.scale_seconds)


def test_an_edge_costs_its_transfers_and_one_launch():
    table = make_table(
        [[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]],
        [(0, 10.0, [1, 2]), (0, 5.0, [1])],
        transfer_latency=np.array([[0.0, 0.5], [0.25, 0.0]]),
        transfer_seconds_per_byte=np.array([[0.0, 0.1], [0.2, 0.0]]),
        launch_seconds=np.array([2.0, 4.0]),
    )
    graph = policy_graph(Problem.of(table))  # the mean time on the fastest device is 1 s
    assert list(zip(graph.edge_source, graph.edge_target, strict=True)) == [(0, 1), (0, 2)]
    both = [[0.0, 2 * 0.5 + 15 * 0.1 + 4.0], [2 * 0.25 + 15 * 0.2 + 2.0, 0.0]]
    one = [[0.0, 0.5 + 10 * 0.1 + 4.0], [0.25 + 10 * 0.2 + 2.0, 0.0]]
    np.testing.assert_allclose(graph.edge_cost, [both, one], rtol=1e-6)
    # The tensor with two consumers is half paid for by each, the other one wholly by its one consumer.
    np.testing.assert_allclose(graph.edge_share, [0.75, 0.5])


def test_groups_that_must_share_a_device_are_one_unit_with_their_costs_added():
    table = make_table(
        [[1.0, 2.0], [10.0, np.inf], [3.0, 1.0]],
        [(0, 1.0, [1]), (1, 1.0, [2])],
        colocation=np.array([0, 0, -1]),
        op_types=("Relu", "MatMul", "Add"),
    )
    graph = policy_graph(Problem.of(table))
    assert graph.problem.units.unit_of.tolist() == [0, 0, 1]
    assert graph.allowed.tolist() == [[True, False], [True, True]]
    assert [OP_TYPES[i] for i in graph.op_type] == ["MatMul", "Add"]
    assert graph.node_cost[0, 0] == pytest.approx(11.0 / graph.scale_seconds)
    forbidden = graph.pair_features[:, :, PAIR_FEATURES.index("forbidden")]
    assert forbidden.tolist() == [[0.0, 1.0], [0.0, 0.0]]


def test_pins_are_seen_as_forbidden_devices():
    table = random_table(3, groups=6, constrained=False)
    graph = policy_graph(Problem.of(table, pins={table.names[2]: table.devices[1]}))
    assert graph.allowed[2].tolist() == [False, True]
    assert graph.allowed[[0, 1, 3, 4, 5]].all()


def test_estimates_are_told_from_measurements():
    table = random_table(0)
    assert policy_graph(Problem.of(replace(table, source="analytic"))).is_estimate
    assert not policy_graph(Problem.of(replace(table, source="profiled"))).is_estimate


def test_features_have_one_width_for_every_table():
    small = policy_graph(Problem.of(random_table(1, groups=3)))
    large = policy_graph(
        Problem.of(replace(random_table(2, groups=30), output_shapes=((1, 64, 7, 7, 2, 2, 2, 2),) * 30))
    )
    assert small.node_features.shape == (len(small), len(NODE_FEATURES))
    assert large.node_features.shape == (len(large), len(NODE_FEATURES))
    assert np.isfinite(large.node_features).all()


def test_fractal_dimension_is_the_slope_over_balls():
    # A long path has 2 r + 1 nodes within r hops; a line through the four radii by numpy's own fit.
    n = 40
    source, target = np.arange(n - 1), np.arange(1, n)
    radius = np.arange(1, 5)
    expected = np.polyfit(np.log(radius), np.log(2 * radius + 1), 1)[0]
    assert fractal_dimension(source, target, n)[20] == pytest.approx(expected)
    # A star's balls hold everything from its centre, whatever the radius.
    assert fractal_dimension(np.zeros(9, dtype=int), np.arange(1, 10), 10)[0] == pytest.approx(0.0)


def test_unknown_op_types_share_one_slot():
    assert op_type_indices(("MatMul", "NoSuchOp"), 2).tolist() == [OP_TYPES.index("MatMul"), UNKNOWN]
    assert op_type_indices(None, 3).tolist() == [UNKNOWN] * 3
    assert len(set(OP_TYPES)) == len(OP_TYPES)


def test_beyond_best_other_is_what_a_wrong_choice_costs():
    cost = np.array([[1.0, 4.0, 2.0], [5.0, 5.0, 9.0]])
    np.testing.assert_allclose(beyond_best_other(cost), [[-1.0, 3.0, 1.0], [0.0, 0.0, 4.0]])
    assert beyond_best_other(np.array([[3.0]])).tolist() == [[0.0]]
    np.testing.assert_allclose(signed_log(np.array([-1.0, 0.0, 1.0])), np.log(51) / 4 * np.array([-1, 0, 1]))


@pytest.mark.parametrize("objective", ["hetero", "overlap"])
@pytest.mark.seeds(8)
def test_every_grouping_joins_neighbouring_groups_of_the_one_before(seed, objective):
    table = random_table(seed, groups=25, devices=3, constrained=False)
    graph = policy_graph(Problem.of(table, objective=objective))
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
    group = policy_graph(Problem.of(make_table(seconds, tensors))).groupings[0]
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
    group = policy_graph(Problem.of(table, objective="overlap")).groupings[0]
    assert [len(set(group[branch].tolist())) for branch in branches] == [1] * 4
    assert len({int(group[branch[0]]) for branch in branches}) == 4
    assert policy_graph(Problem.of(table)).groupings[0].max() != group.max()


def test_units_know_when_they_could_run():
    # A chain of three beside a single op: that one may wait for two seconds.
    tensors = [(0, 1.0, [1]), (1, 1.0, [2])]
    table = make_table(np.ones((4, 2)), tensors, lane_devices=("CPU", "CPU"))
    timing = policy_graph(Problem.of(table, objective="overlap")).timing
    start, tail, slack = timing.features[:, :3].T
    np.testing.assert_allclose(start, [0, 1 / 3, 2 / 3, 0], atol=1e-6)
    np.testing.assert_allclose(tail, [1, 2 / 3, 1 / 3, 1 / 3], atol=1e-6)
    np.testing.assert_allclose(slack, [0, 0, 0, 2 / 3], atol=1e-6)
    assert timing.width == pytest.approx(4 / 3)
    assert (np.diff(timing.window_of[:3]) > 0).all()


def test_copies_are_told_from_devices_that_differ():
    seconds = np.tile([1.0, 2.0, 1.0, 1.0], (3, 1))
    graph = policy_graph(Problem.of(make_table(seconds, [(0, 1.0, [1, 2])])))
    assert graph.copy_of.tolist() == [0, 1, 0, 0]
    np.testing.assert_allclose(graph.copy_phase, [0, np.nan, 1 / 3, 2 / 3])
    latency = np.ones((4, 4))
    latency[0, 1] = 5.0  # the first one is farther from the second
    other = make_table(seconds, [(0, 1.0, [1, 2])], transfer_latency=latency)
    assert policy_graph(Problem.of(other)).copy_of.tolist() == [0, 1, 2, 2]


@pytest.mark.parametrize("devices", [1, 3])
def test_every_edge_is_two_arcs_with_what_its_ends_pay(devices: int) -> None:
    graph = policy_graph(Problem.of(random_table(5, groups=40, devices=devices, constrained=False)))
    arcs, expected = graph.arcs, []
    pull = np.zeros((len(graph), devices))
    for source, target, price, share in zip(
        graph.edge_source, graph.edge_target, graph.edge_cost, graph.edge_share, strict=True
    ):
        # Prices have the device of the arc's own unit, the one that it goes to, on their rows.
        for own, other, paid in ((target, source, price.T), (source, target, price)):
            between = [[paid[a, b] for b in range(devices) if b != a] or [0.0] for a in range(devices)]
            elsewhere = [[paid[b, a] for b in range(devices) if b != a] or [0.0] for a in range(devices)]
            columns = {
                "price_if_other_leaves": signed_log(np.mean(between, axis=1)),
                "price_if_self_leaves": signed_log(np.mean(elsewhere, axis=1)),
                "cheapest": signed_log(np.min(between, axis=1)),
                "share": np.full(devices, share),
                "forward": np.full(devices, float(own == target)),
            }
            features = np.stack([columns[name] for name in ARC_FEATURES], axis=1)
            expected.append((own, other, features))
            pull[own] += np.mean(between, axis=1)
    found = {
        (int(own), int(other), bool(features[0, -1])): features
        for own, other, features in zip(arcs.target, arcs.source, arcs.features, strict=True)
    }
    assert (np.diff(arcs.target) >= 0).all()
    assert len(found) == len(expected) == len(arcs.target)
    for own, other, features in expected:
        of_arc = found[int(own), int(other), bool(features[0, -1])]
        np.testing.assert_allclose(of_arc, features, rtol=1e-5, atol=1e-6)
    edges = graph.pair_features[:, :, PAIR_FEATURES.index("edges")]
    np.testing.assert_allclose(edges, signed_log(pull), rtol=1e-5, atol=1e-6)
    degree = np.bincount(arcs.target, minlength=len(graph))
    np.testing.assert_allclose(arcs.inverse_root_degree[degree > 0], degree[degree > 0] ** -0.5, rtol=1e-6)
    assert not arcs.inverse_root_degree[degree == 0].any()
