"""What the networks of the papers see of a problem."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.structure import NODE_FEATURES, fractal_dimension
from ov_autoplace.policy.vocabulary import OP_TYPES, UNKNOWN, op_type_indices
from ov_autoplace.problem.problem import Problem
from random_tables import make_table, random_table


def test_groups_that_must_share_a_device_are_one_unit_with_their_costs_added():
    table = make_table(
        [[1.0, 2.0], [10.0, np.inf], [3.0, 1.0]],
        [(0, 1.0, [1]), (1, 1.0, [2])],
        colocation=np.array([0, 0, -1]),
        op_types=("Relu", "MatMul", "Add"),
    )
    graph = PolicyGraph.of(Problem.of(table))
    assert graph.problem.units.unit_of.tolist() == [0, 0, 1]
    assert graph.allowed.tolist() == [[True, False], [True, True]]
    assert [OP_TYPES[i] for i in graph.op_type] == ["MatMul", "Add"]
    assert graph.node_cost[0, 0] == pytest.approx(11.0 / graph.scale_seconds)
    assert graph.node_cost[0, 1] > graph.node_cost[0, 0]  # dear, not infinite


def test_features_have_one_width_for_every_table():
    small = PolicyGraph.of(Problem.of(random_table(1, groups=3)))
    large = PolicyGraph.of(
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
