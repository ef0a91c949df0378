from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.policy.features import PAIR_FEATURES, policy_graph
from ov_autoplace.policy.levels import LEVELS
from ov_autoplace.policy.nodes import ARC_FEATURES, LEVEL_FEATURES, beyond_best_other, signed_log
from ov_autoplace.policy.probes import LOOK_FEATURES, PROBE_FEATURES, look_features, probe_features
from ov_autoplace.policy.structure import NODE_FEATURES, fractal_dimension
from ov_autoplace.policy.vocabulary import OP_TYPES, UNKNOWN, op_type_indices
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table


def scaled(table, factor):
    """The same table with all times in another unit."""
    fields = ("op_seconds", "transfer_latency", "transfer_seconds_per_byte", "launch_seconds")
    times = {field: frozen_array(getattr(table, field) * factor, np.float64) for field in fields}
    return replace(table, **times)


@pytest.mark.parametrize("seed", range(5))
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


@pytest.mark.parametrize("seed", range(8))
def test_every_level_is_the_same_problem_with_groups_for_nodes(seed):
    """The relaxed cost of a placement that keeps groups whole is the same on all levels."""
    graph = policy_graph(Problem.of(random_table(seed, groups=25, devices=3, constrained=False)))
    assert len(graph.levels) == LEVELS
    random = np.random.default_rng(seed)
    members = np.arange(len(graph))
    for depth, level in enumerate(graph.levels):
        placed = random.integers(0, 3, len(level.cost))
        fine = placed[members]
        own = graph.node_cost[np.arange(len(graph)), fine].sum()
        cut = graph.edge_cost[
            np.arange(len(graph.edge_source)), fine[graph.edge_source], fine[graph.edge_target]
        ].sum()
        n, edges = np.arange(len(level.cost)), np.arange(len(level.source))
        crossing = level.price[edges, placed[level.source], placed[level.target]].sum()
        assert level.cost[n, placed].sum() + crossing == pytest.approx(own + cut, rel=1e-4), depth
        assert (np.diff(level.target) >= 0).all()
        members = level.parent[members]
    assert set(members.tolist()) == {0}


def test_probes_find_the_cycles_that_a_greedy_placement_makes():
    # 0 -> 1 -> 2 with a shortcut from 0 to 2: with 1 alone elsewhere, 0 and 2 wait for it and it for them.
    seconds = [[1.0, 9.0], [9.0, 1.0], [1.0, 9.0], [1.0, 9.0]]
    probes = {
        shortcut: probe_features(
            policy_graph(
                Problem.of(
                    make_table(seconds, [(0, 0.1, [1, 2] if shortcut else [1]), (1, 0.1, [2]), (2, 0.1, [3])])
                )
            )
        )
        for shortcut in (True, False)
    }
    own, everywhere = (PROBE_FEATURES.index(f"level0_log_{name}") for name in ("own_cycle", "all_cycles"))
    np.testing.assert_allclose(probes[True][:, own], np.log(2) / 4, rtol=1e-6)
    np.testing.assert_allclose(probes[True][:, everywhere], np.log(3) / 4, rtol=1e-6)
    assert not probes[False][:, [own, everywhere]].any()
    # Without cycles it costs 4 s of work and two transfers of 0.1 s each, against 12 s on one device.
    relaxed, simulated = (
        PROBE_FEATURES.index(f"level0_log_{name}_by_single") for name in ("relaxed", "simulated")
    )
    np.testing.assert_allclose(probes[False][:, relaxed], np.log(4.2 / 12), rtol=1e-5)
    np.testing.assert_allclose(probes[False][:, simulated], np.log(4.2 / 12), rtol=1e-5)
    # The shortcut itself never crosses, but HETERO has to cut it.
    np.testing.assert_allclose(probes[True][:, simulated], np.log(4.3 / 12), rtol=1e-5)


def test_a_look_compares_an_answer_with_every_single_device():
    # 0 -> 1 -> 2 -> 3 with a shortcut from 0 to 2, unit 3 cannot run on the last device.
    seconds = [[1.0, 9.0, 1.0], [9.0, 1.0, 1.0], [1.0, 9.0, 1.0], [1.0, 9.0, np.inf]]
    launch = np.array([0.5, 0.25, 0.0])
    table = make_table(seconds, [(0, 0.1, [1, 2]), (1, 0.1, [2]), (2, 0.1, [3])], launch_seconds=launch)
    placed = np.array([0, 1, 0, 0])
    look = look_features(policy_graph(Problem.of(table)), placed)
    assert look.shape == (4, 3, len(LOOK_FEATURES))
    column = dict(zip(LOOK_FEATURES, look.transpose(2, 0, 1), strict=True))
    assert column["chosen"].argmax(axis=1).tolist() == placed.tolist()
    assert column["chosen"].sum(axis=1).tolist() == [1, 1, 1, 1]
    # HETERO parts the two ends of the shortcut: both wait for the one between them.
    np.testing.assert_allclose(column["log_own_cycle"], np.log(2) / 4, rtol=1e-6)
    np.testing.assert_allclose(column["log_all_cycles"], np.log(3) / 4, rtol=1e-6)
    simulated = simulate(table, placed.astype(np.int32)).latency_seconds
    alone = [12.5, 28.25]
    for device, single in enumerate(alone):
        np.testing.assert_allclose(
            column["log_simulated_by_single"][:, device], np.log(simulated / single), rtol=1e-5
        )
        np.testing.assert_allclose(
            column["log_single_by_best_single"][:, device], np.log(single / 12.5), rtol=1e-5, atol=1e-7
        )
    # A device that cannot run everything is as far away as a ratio goes.
    assert (column["log_simulated_by_single"][:, 2] == -3).all()
    assert (column["log_single_by_best_single"][:, 2] == 3).all()


def test_groups_join_along_the_edge_that_is_dearest_to_cut():
    # 0 and 1 prefer different devices but exchange much; 1 and 2 agree but exchange little.
    seconds = [[1.0, 2.0], [2.0, 1.0], [2.0, 1.0], [2.0, 1.0]]
    tensors = [(0, 1000.0, [1]), (1, 0.01, [2]), (2, 50.0, [3])]
    parent = policy_graph(Problem.of(make_table(seconds, tensors))).levels[0].parent
    assert parent[0] == parent[1]
    assert parent[2] == parent[3]
    assert parent[1] != parent[2]


def test_under_overlap_nothing_is_joined_that_could_run_at_once():
    # Four branches of five ops between a first and a last one, all as heavy, no transfer dear.
    branches = [list(range(1 + 5 * b, 6 + 5 * b)) for b in range(4)]
    tensors = [(0, 1.0, [branch[0] for branch in branches])]
    for branch in branches:
        tensors += [(g, 1.0, [g + 1]) for g in branch[:-1]] + [(branch[-1], 1.0, [21])]
    table = make_table(np.ones((22, 4)), tensors, lane_devices=("CPU",) * 4)
    levels = policy_graph(Problem.of(table, objective="overlap")).levels
    group = levels[0].parent
    assert [len(set(group[branch].tolist())) for branch in branches] == [1] * 4
    assert len({int(group[branch[0]]) for branch in branches}) == 4
    hetero = policy_graph(Problem.of(table)).levels
    assert len(hetero[1].cost) != len(levels[1].cost)


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


def test_nodes_of_all_levels_hear_the_groups_that_they_are_in() -> None:
    graph = policy_graph(Problem.of(random_table(3, groups=30, devices=2, constrained=False)))
    nodes, levels = graph.nodes, graph.levels
    assert len(nodes.cost) == sum(len(level.cost) for level in levels)
    heard = {(int(s), int(t)) for s, t in zip(nodes.member_source, nodes.member_target, strict=True)}
    group, first = np.arange(30), 30
    expected = set()
    for level, above in pairwise(levels):
        group = level.parent[group]
        expected |= {(first + int(g), u) for u, g in enumerate(group)}
        expected |= {(u, first + int(g)) for u, g in enumerate(group)}
        first += len(above.cost)
    assert heard == expected
    assert (np.diff(nodes.member_target) >= 0).all()
    assert (np.diff(nodes.arc_target) >= 0).all()


@pytest.mark.parametrize("devices", [1, 3])
def test_every_edge_of_a_level_is_two_arcs_with_what_its_ends_pay(devices: int) -> None:
    graph = policy_graph(Problem.of(random_table(5, groups=40, devices=devices, constrained=False)))
    nodes, first, expected = graph.nodes, 0, []
    pull = np.zeros((len(nodes.cost), devices))
    for level in graph.levels:
        for source, target, price, shared in zip(
            level.source + first, level.target + first, level.price, level.shared, strict=True
        ):
            # Prices have the device of the arc's own node, the one that it goes to, on their rows.
            for own, other, paid in ((target, source, price.T), (source, target, price)):
                between = [[paid[a, b] for b in range(devices) if b != a] or [0.0] for a in range(devices)]
                elsewhere = [[paid[b, a] for b in range(devices) if b != a] or [0.0] for a in range(devices)]
                columns = {
                    "price_if_other_leaves": signed_log(np.mean(between, axis=1)),
                    "price_if_self_leaves": signed_log(np.mean(elsewhere, axis=1)),
                    "cheapest": signed_log(np.min(between, axis=1)),
                    "share": np.full(devices, shared / max(price.sum(), 1e-30)),
                    "forward": np.full(devices, float(own == target)),
                }
                features = np.stack([columns[name] for name in ARC_FEATURES], axis=1)
                expected.append((own, other, paid, features))
                pull[own] += np.mean(between, axis=1)
        first += len(level.cost)
    arcs = zip(nodes.arc_target, nodes.arc_source, nodes.arc_price, nodes.arc_features, strict=True)
    found = {(int(own), int(other), bool(f[0, -1])): (price, f) for own, other, price, f in arcs}
    assert len(found) == len(expected) == len(nodes.arc_target)
    for own, other, price, features in expected:
        of_arc = found[int(own), int(other), bool(features[0, -1])]
        np.testing.assert_allclose(of_arc[0], price, rtol=1e-6)
        np.testing.assert_allclose(of_arc[1], features, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(
        nodes.features[:, :, LEVEL_FEATURES.index("edges")], signed_log(pull), rtol=1e-5, atol=1e-6
    )
    degree = np.bincount(nodes.arc_target, minlength=len(nodes.cost))
    np.testing.assert_allclose(nodes.inverse_root_degree[degree > 0], degree[degree > 0] ** -0.5, rtol=1e-6)
    assert not nodes.inverse_root_degree[degree == 0].any()


def test_a_look_at_a_schedule_tells_when_units_run_and_which_lanes_are_idle():
    # Two ops of a second on one lane, beside one of a second on the other.
    table = make_table(np.ones((3, 2)), [(0, 0.0, [1])], lane_devices=("CPU", "CPU"))
    graph = policy_graph(Problem.of(table, objective="overlap"))
    look = look_features(graph, np.array([0, 0, 1]))
    column = dict(zip(LOOK_FEATURES, look.transpose(2, 0, 1), strict=True))
    assert column["finish"][2, 0] == pytest.approx(0.5)
    assert column["finish"][1, 0] == pytest.approx(1.0)
    np.testing.assert_allclose(column["log_simulated_by_single"], np.log(2 / 3), rtol=1e-5)
    assert (column["busy"][:, 0] > column["busy"][:, 1])[:2].all()
