from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zoo
from ov_autoplace._base import releases
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.errors import CostTableError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.plan.partition import count_graph_subgraphs, graph_subgraphs
from ov_autoplace.plan.simulator import simulate, wiring_of_groups


@pytest.fixture(scope="module")
def coarse():
    return coarsen(extract(zoo.build("inception_v3")))


@pytest.fixture(scope="module")
def table(coarse) -> CostTable:
    target = load_target("i9-12900k-flex-170")
    return analytic_table(coarse, target, target.device_names[:2])


@pytest.fixture
def newest_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever is installed: older rules of HETERO hardly ever cut single ops otherwise than groups."""
    monkeypatch.setattr(releases, "installed", lambda: releases.KNOWN[-1])


def test_a_models_table_counts_subgraphs_as_hetero_does(table, coarse, newest_rules):
    random = np.random.default_rng(0)
    differing = 0
    by_groups = replace(table, wiring=None)
    for _ in range(30):
        assignment = random.integers(2, size=len(table)).astype(np.int32)
        exact = count_graph_subgraphs(coarse.ops, assignment[coarse.group_of])
        assert simulate(table, assignment).subgraphs == exact
        differing += simulate(by_groups, assignment).subgraphs != exact
    assert differing, "group by group the count must differ at times, or the wiring would be of no use"


def test_a_cut_inside_a_group_is_paid_for(table, coarse):
    free = replace(
        table,
        op_seconds=np.zeros_like(table.op_seconds),
        launch_seconds=np.ones_like(table.launch_seconds),
        transfer_latency=np.zeros_like(table.transfer_latency),
        transfer_seconds_per_byte=np.zeros_like(table.transfer_seconds_per_byte),
    )
    assignment = np.random.default_rng(1).integers(2, size=len(table)).astype(np.int32)
    schedule = simulate(free, assignment)
    assert schedule.latency_seconds == schedule.subgraphs


def test_the_wiring_survives_the_file(table, tmp_path):
    save_table(table, tmp_path / "table.json")
    again = load_table(tmp_path / "table.json").wiring
    for field in ("node_group", "node_kind", "tensor_producer", "tensor_bytes", "tensor_offsets"):
        np.testing.assert_array_equal(getattr(again, field), getattr(table.wiring, field))
    np.testing.assert_array_equal(again.tensor_consumers, table.wiring.tensor_consumers)


def test_a_wiring_of_groups_that_the_table_lacks_is_refused(table):
    wiring = replace(table.wiring, node_group=table.wiring.node_group + 1)
    with pytest.raises(CostTableError, match="the table has"):
        replace(table, wiring=wiring)


@pytest.mark.parametrize(
    ("field", "value", "sentence"),
    [
        ("tensor_consumers", -1, "tensor_consumers must name nodes below"),
        ("tensor_producer", 10**6, "tensor_producer must name nodes below"),
        ("tensor_offsets", 3, "tensor_offsets must rise"),
        ("node_kind", 9, "node kinds must lie between 0 and 4"),
        ("bonds", 10**6, "bonds must name nodes below"),
    ],
)
def test_a_wiring_that_leads_out_of_itself_is_refused(table, field, value, sentence):
    array = np.array([[0, 1]]) if field == "bonds" else getattr(table.wiring, field).copy()
    array.flat[0] = value
    with pytest.raises(CostTableError, match=sentence):
        replace(table.wiring, **{field: array})


def test_a_shared_constant_is_a_node_that_its_group_reads_first(table):
    made = CostTable(
        devices=("A", "B"),
        names=("first", "second"),
        op_seconds=np.ones((2, 2)),
        tensor_producer=np.array([0, 0], np.int32),
        tensor_bytes=np.array([8.0, 4.0]),
        tensor_offsets=np.array([0, 1, 2], np.int32),
        tensor_consumers=np.array([1, 1], np.int32),
        tensor_is_constant=np.array([False, True]),
        tensor_uncuttable=np.zeros(2, np.bool_),
        transfer_latency=np.ones((2, 2)),
        transfer_seconds_per_byte=np.zeros((2, 2)),
        launch_seconds=np.zeros(2),
        memory_bytes=np.zeros(2),
        memory_capacity=np.full(2, np.inf),
    )
    wiring = wiring_of_groups(made)
    assert wiring.node_kind.tolist() == [2, 4, 4]
    assert wiring.node_group.tolist() == [0, 0, 1]
    assert wiring.tensor_producer.tolist() == [1, 0]
    assert wiring.tensor_consumers.tolist() == [2, 1, 2]
    assert simulate(made, np.array([0, 1])).latency_seconds == 3.0


def test_a_placement_that_makes_hetero_part_a_variable_is_no_placement(newest_rules):
    """Groups hold each variable together, but HETERO's cuts of cycles go through groups."""
    coarse = coarsen(extract(zoo.build("decoder")))
    target = load_target("i9-12900k-flex-170")
    table = analytic_table(coarse, target, target.device_names[:2])
    assert len(table.wiring.bonds) >= len(coarse.ops.variables) > 0
    random = np.random.default_rng(7)
    parted = whole = 0
    for _ in range(200):
        assignment = random.integers(2, size=len(table)).astype(np.int32)
        number = graph_subgraphs(coarse.ops, assignment[coarse.group_of])
        split = any(len({number[i] for i in positions}) > 1 for positions in coarse.ops.variables)
        assert np.isinf(simulate(table, assignment).latency_seconds) == split
        parted, whole = parted + split, whole + (not split)
    assert parted
    assert whole
