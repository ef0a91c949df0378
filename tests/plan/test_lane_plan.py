"""Plans for lanes: from simulated schedules, as plain values, and what is refused."""

from __future__ import annotations

import copy
import json
from typing import Any

import numpy as np
import openvino as ov
import pytest

from lane_models import by_name, towers
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.plan.lane import Form, Lane
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import LanePlan, read_plan
from ov_autoplace.plan.planning import lane_plan
from ov_autoplace.plan.simulator import simulate
from random_tables import make_table

LANES = (Lane.of("CPU"), Lane.of("CPU"))


@pytest.fixture(scope="module")
def table() -> CostTable:
    coarse = coarsen(prepare(towers()).graph)
    target = generic_target(ov.Core(), ["CPU"])
    return with_lanes(analytic_table(coarse, target, ["CPU"]), "CPU", 2)


def one_tower_each(table: CostTable) -> np.ndarray:
    """Groups that hold an op of tower 1 on lane 1."""
    return np.array([any(op.startswith("1/") for op in ops) for ops in table.members], dtype=np.int32)


def test_a_plan_is_what_the_simulator_cuts(table) -> None:
    lanes = one_tower_each(table)
    schedule = simulate(table, lanes, "overlap")

    plan = lane_plan(table, lanes, LANES)

    assert plan.lane_of == tuple(schedule.lane_of.tolist())
    of_group = dict(zip(table.members, schedule.subgraph_of.tolist(), strict=True))
    assert plan.submodel_of == {op: s for ops, s in of_group.items() if s >= 0 for op in ops}
    starts = schedule.start_seconds[np.argsort(plan.rank)]
    assert (np.diff(starts) >= 0).all()
    assert {plan.lane_of[plan.submodel_of[f"{tower}/relu0"]] for tower in range(2)} == {0, 1}


def test_a_plan_ranks_submodels_in_the_order_in_which_they_start() -> None:
    # Lane 0 may begin with 0, for which 3 waits, or with 1, for which 2 waits for longer: so it does.
    table = make_table([[3.0] * 2, [3.0] * 2, [9.0] * 2, [1.0] * 2], [(1, 0.0, [2]), (0, 0.0, [3])])
    free = Placement.of_groups(table, np.array([0, 0, 1, 1], dtype=np.int32))
    assert lane_plan(table, free, LANES).rank == (1, 0, 2, 3)


def test_a_plan_survives_as_json(table) -> None:
    lanes = (Lane.of("CPU", {"INFERENCE_NUM_THREADS": 1, "PERF_COUNT": True}), Lane.of("GPU.1"))
    forms = {"0/relu0": Form(channels_last=True), "1/relu0": Form(True, True)}
    plan = lane_plan(table, one_tower_each(table), lanes, forms)

    again = read_plan(json.loads(json.dumps(plan.to_json())))

    assert again.lanes == lanes
    assert lanes[0].properties == (("INFERENCE_NUM_THREADS", "1"), ("PERF_COUNT", "YES"))
    assert again.submodel_of == plan.submodel_of
    assert (again.lane_of, again.rank, again.forms) == (plan.lane_of, plan.rank, plan.forms)


DAMAGES: dict[str, tuple[tuple[Any, ...], Any]] = {
    "an empty device": (("lanes", 0, "device"), ""),
    "a device with a control character": (("lanes", 0, "device"), "CPU\n"),
    "a property without a name": (("lanes", 0, "properties"), {"": "1"}),
    "a property that nothing can write": (("lanes", 0, "properties"), {"NUM_STREAMS": "\ud800"}),
    "a lane that is not there": (("submodels", 0, "lane"), 2),
    "an op of two submodels": (("submodels", 0, "ops"), ["2/sum"]),
    "a form that is none": (("forms",), {"2/sum": "upside_down"}),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_plan_is_refused_in_one_sentence(damage: str) -> None:
    path, value = DAMAGES[damage]
    data = copy.deepcopy(by_name(towers(), (0, 1, 0)).to_json())
    target = data
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value

    with pytest.raises(PlacementError) as failure:
        read_plan(data)

    assert "\n" not in str(failure.value)


def test_a_plan_whose_parts_do_not_fit_is_refused() -> None:
    with pytest.raises(PlacementError, match="lane 2; it has 2 lanes"):
        LanePlan(LANES, {}, (0, 2), (0, 1))
    with pytest.raises(PlacementError, match="2 submodels a lane, but 1 a rank"):
        LanePlan(LANES, {}, (0, 1), (0,))
    with pytest.raises(PlacementError, match="'relu' into submodel 2; it has 2 submodels"):
        LanePlan(LANES, {"relu": 2}, (0, 1), (0, 1))


def test_a_lane_is_needed_for_each_column(table) -> None:
    with pytest.raises(PlacementError, match="1 lanes are given for a cost table of 2 columns"):
        lane_plan(table, one_tower_each(table), LANES[:1])
