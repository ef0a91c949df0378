from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.placement import Placement
from reference_hetero import random_table


def test_a_placement_survives_its_file(tmp_path):
    placement = Placement.from_dict({"a": "GPU", "b": "CPU", "ä/<x>": "GPU"})
    placement.save(tmp_path / "p.json")
    assert Placement.load(tmp_path / "p.json").to_dict() == placement.to_dict()
    assert placement.devices == ("GPU", "CPU")


def test_a_placement_is_read_by_name_whatever_order_a_table_has():
    table = random_table(np.random.default_rng(0), 3, 2)
    a, b, c = table.names
    first, second = table.devices
    placement = Placement.from_dict({c: first, a: second, b: first})
    assert placement.groups_of(replace(table, devices=placement.devices)).tolist() == [1, 0, 0]
    own = Placement.of_groups(table, np.array([1, 0, 0], np.int32))
    assert own.groups_of(table).tolist() == [1, 0, 0]
    turned = replace(table, devices=(second, first))
    assert own.groups_of(turned).tolist() == [0, 1, 1]


def test_a_group_that_is_not_placed_and_one_that_is_split_are_told_apart():
    table = random_table(np.random.default_rng(0), 2, 2)
    table = replace(table, members=(("x", "y"), ("z",)))
    name, (first, second) = table.names[0], table.devices
    with pytest.raises(PlacementError, match=f"group '{name}' is not placed"):
        Placement.from_dict({"z": first}).groups_of(table)
    with pytest.raises(PlacementError, match=f"group '{name}' is split over {first}, {second}"):
        Placement.from_dict({"x": first, "y": second, "z": first}).groups_of(table)
