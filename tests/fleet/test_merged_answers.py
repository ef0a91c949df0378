"""Targets and placements of several machines as one, without a cluster."""

from __future__ import annotations

import dataclasses
import json
from typing import Any

import numpy as np
import openvino as ov
import pytest

import ov_autoplace
from command_line import two_layers
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.errors import FleetError
from ov_autoplace.fleet.answers import placement_of, placement_values
from ov_autoplace.fleet.targets import merge_targets


def test_rates_of_a_kind_are_the_medians_of_its_machines(unequal_pair: ov.Core) -> None:
    first = generic_target(unequal_pair, ["CPU"])

    def faster(factor: float) -> Any:
        (device,) = first.devices
        rates = tuple(dataclasses.replace(r, per_second=r.per_second * factor) for r in device.rates)
        return dataclasses.replace(first, devices=(dataclasses.replace(device, rates=rates),))

    merged = merge_targets("kind", [faster(1.0), faster(8.0), faster(1.5)])
    assert merged.name == "kind"
    for rate, own in zip(merged.devices[0].rates, first.devices[0].rates, strict=True):
        np.testing.assert_allclose(rate.per_second, 1.5 * own.per_second)


def test_targets_of_different_sizes_are_not_mixed(unequal_pair: ov.Core) -> None:
    first = generic_target(unequal_pair, ["CPU"])
    (device,) = first.devices
    rates = tuple(dataclasses.replace(r, sizes=r.sizes * 2) for r in device.rates)
    other = dataclasses.replace(first, devices=(dataclasses.replace(device, rates=rates),))

    with pytest.raises(FleetError, match="different sizes"):
        merge_targets("kind", [first, other])


@pytest.mark.smoke
@pytest.mark.parametrize("mode", ["PROFILE", "ZERO_SHOT"])
@pytest.mark.parametrize("executor", ["HETERO", "OVERLAP"])
def test_a_placement_survives_its_way_through_json(unequal_pair: ov.Core, mode: str, executor: str) -> None:
    model = two_layers([1, 3, 16, 16])
    placement = ov_autoplace.place(model, "XCPU,CPU", mode, core=unequal_pair, executor=executor)

    values = json.loads(json.dumps(placement_values(placement), allow_nan=False))
    again = placement_of(values, "m")
    assert again.decided() == placement.decided()
    assert again.to_dict() == placement.to_dict()
    assert again.solver == placement.solver
    assert again.decision is not None
    assert placement.decision is not None
    assert again.decision.reason == placement.decision.reason
    assert [c.name for c in again.decision.candidates] == [c.name for c in placement.decision.candidates]
    assert again.plan.to_json() == placement.plan.to_json()
    assert json.loads(json.dumps(placement_values(again))) == values


@pytest.mark.parametrize(("field", "value"), [("chosen", 1), ("candidates", None), ("placement", ["CPU"])])
def test_what_is_no_answer_is_refused_with_a_sentence(unequal_pair: ov.Core, field: str, value: Any) -> None:
    placement = ov_autoplace.place(two_layers([1, 3, 16, 16]), "CPU", "ZERO_SHOT", core=unequal_pair)
    values = placement_values(placement) | {field: value}

    with pytest.raises(FleetError, match="the answer of m"):
        placement_of(values, "m")
