"""One measurement out of several: random machines of known disagreement, without a cluster."""

from __future__ import annotations

import json
import math
import statistics

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ov_autoplace._base.arrays import frozen_array
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide.machine import KnownCosts
from ov_autoplace.errors import FleetError
from ov_autoplace.fleet.measurement import Measurement
from ov_autoplace.fleet.merging import merge, outliers_of, spread_of
from ov_autoplace.measure.attribution import Attribution
from ov_autoplace.measure.counting import Column, CountedDevices
from ov_autoplace.plan.lane import Form


def measurement(
    op_seconds: list[list[float]], devices: tuple[str, ...] = ("GPU", "CPU"), ops: str = "net"
) -> Measurement:
    """A machine whose device ``d`` takes ``op_seconds[d]``."""
    columns = tuple(
        Column(
            Attribution(
                frozen_array(own, np.float64),
                frozen_array(np.ones(len(own)), np.int32),
                (("a", "b"),),
                0.0,
                {"a": Form(channels_last=True)},
            ),
            counted_seconds=sum(own),
        )
        for own in op_seconds
    )
    D = len(devices)
    samples = {
        device: frozen_array([sum(own)] * 8, np.float64)
        for device, own in zip(devices, op_seconds, strict=True)
    }
    counted = CountedDevices(columns, samples, 1.0, 1.0, np.full(D, math.inf))
    fit = TransferFit(devices, np.full((D, D), 1e-5), np.full((D, D), 1e-10), np.full(D, 2e-5))
    return Measurement(KnownCosts(devices, counted, fit), ops)


seconds = st.floats(min_value=1e-6, max_value=1e-2)
machines = st.integers(1, 6).flatmap(
    lambda n: st.lists(
        st.lists(st.lists(seconds, min_size=n, max_size=n), min_size=2, max_size=2), min_size=1, max_size=7
    )
)


@settings(deadline=None, max_examples=60)
@given(machines)
def test_every_cell_is_the_median_of_the_machines(found: list[list[list[float]]]) -> None:
    merged = merge({f"m{i}": measurement(own) for i, own in enumerate(found)})

    for d in range(2):
        expected = [statistics.median(own[d][n] for own in found) for n in range(len(found[0][0]))]
        actual = merged.measurement.costs.counted.columns[d].attribution.op_seconds
        np.testing.assert_allclose(actual, expected)


@settings(deadline=None, max_examples=60)
@given(machines, st.permutations(range(7)))
def test_the_order_of_the_machines_changes_nothing(found: list[list[list[float]]], order: list[int]) -> None:
    named = {f"m{i}": measurement(own) for i, own in enumerate(found)}
    shuffled = {f"m{i}": named[f"m{i}"] for i in order if i < len(found)}

    one, other = merge(named), merge(shuffled)
    assert one.spread == other.spread
    assert one.outliers == other.outliers


@settings(deadline=None, max_examples=60)
@given(machines)
def test_what_was_measured_survives_json_bit_by_bit(found: list[list[list[float]]]) -> None:
    first = measurement(found[0])
    again = Measurement.from_dict(json.loads(json.dumps(first.to_dict())), "m")

    assert again.to_dict() == first.to_dict()
    assert again.costs.counted.capacity.tolist() == [math.inf, math.inf]


@pytest.mark.parametrize("factor", [0.5, 2.0])
def test_the_one_machine_that_is_far_off_is_named_and_the_median_stays(factor: float) -> None:
    jitter = [1.0, 1.01, 0.98, 1.02]
    found = {f"m{i}": measurement([[1e-3 * j, 2e-3 * j], [4e-3 * j, 1e-3]]) for i, j in enumerate(jitter)}
    without = merge(found)
    found["hot"] = measurement([[1e-3, 2e-3], [4e-3 * factor, 1e-3 * factor]])
    merged = merge(found)

    assert set(merged.outliers) == {"hot"}
    assert "CPU" in merged.outliers["hot"]
    assert "GPU" not in merged.outliers["hot"]
    assert merged.nearest != "hot"
    assert merged.spread["CPU"].median_seconds == pytest.approx(
        without.spread["CPU"].median_seconds, rel=0.03
    )


def test_machines_that_differ_widely_among_each_other_are_no_outliers() -> None:
    assert outliers_of(np.array([1.0, 1.4, 0.7, 1.2, 0.8])) == {}
    assert set(outliers_of(np.array([1.0, 1.01, 0.99, 1.3]))) == {3}
    assert outliers_of(np.array([1.0, 1.01, 0.99, 1.2])) == {}  # below 25 %


def test_of_two_that_disagree_both_are_named() -> None:
    assert set(outliers_of(np.array([1.0, 1.5]))) == {0, 1}
    assert outliers_of(np.array([1.0, 1.2])) == {}
    assert outliers_of(np.array([1.0])) == {}


def test_the_spread_says_how_far_the_fastest_and_the_slowest_are() -> None:
    spread = spread_of(np.array([0.9, 1.0, 1.3]), np.array([[0.4, 0.5], [0.5, 0.5], [0.8, 0.5]]))

    assert (spread.median_seconds, spread.low, spread.high) == (1.0, 0.9, 1.3)
    assert spread.per_op == 0.0  # half of the work is in an op about which all agree


def test_a_machine_on_which_a_device_failed_is_named_and_left_out() -> None:
    broken = measurement([[1e-3, 1e-3]], ("CPU",))
    merged = merge({"a": measurement([[1e-3, 2e-3]] * 2), "b": broken, "c": measurement([[1e-3, 2e-3]] * 2)})

    assert merged.measurement.costs.devices == ("GPU", "CPU")
    assert "b" in merged.outliers


def test_measurements_of_different_ops_are_not_mixed() -> None:
    with pytest.raises(FleetError, match="different ops"):
        merge({"a": measurement([[1e-3]] * 2), "b": measurement([[1e-3]] * 2, ops="other")})


@pytest.mark.parametrize(
    "change",
    [
        {"devices": []},
        {"columns": []},
        {"samples": {"NPU": [1.0]}},
        {"transfers": {"latency": [[0.0]], "seconds_per_byte": [[0.0]], "launch_seconds": [0.0]}},
        {"disturbance": "much"},
        {"capacity": [1.0]},
    ],
)
def test_what_is_no_measurement_is_refused_with_a_sentence(change: dict[str, object]) -> None:
    data = measurement([[1e-3, 2e-3]] * 2).to_dict() | change

    with pytest.raises(FleetError, match="the measurement of m"):
        Measurement.from_dict(data, "m")
