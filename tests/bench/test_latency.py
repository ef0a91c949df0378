"""Races of real devices: what is compared with what."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from harness.race import Answer, Race, compiled_for, race_model
from harness.result import Result
from ov_autoplace.placement.placement import Placement
from problems.models import MODELS, build, names
from sections.latency import cases_of, race_rows, ratio_rows

R = 40


def race_with(profile: float, **more: float) -> Race:
    """Thirty paired rounds of which the speed changes; contenders are the given multiples of CPU's time."""
    random = np.random.default_rng(0)
    speed = np.exp(random.normal(0, 0.3, R))
    factors = {"GPU": 2.0, "CPU": 1.0, "AUTO": 1.5, "HETERO": 2.5, "PROFILE": profile, **more}
    samples = {
        name: 0.01 * factor * speed * random.uniform(0.99, 1.01, R) for name, factor in factors.items()
    }
    answer = Answer("CPU", ("CPU",), 1, 0.01, 1.0)
    copies = {name: (float(np.median(s)), 1.1 * float(np.median(s))) for name, s in samples.items()}
    return Race(("GPU", "CPU"), samples, {"NPU": "is not there"}, {"PROFILE": answer}, copies)


def test_a_placement_that_uses_one_of_its_devices_is_compiled_for_that_one_alone():
    devices, names = ("GPU", "CPU", "NPU"), ("a", "b")
    one = Placement(devices, names, np.array([1, 1], dtype=np.int32))
    assert compiled_for(one, devices) == ("CPU", None)
    two = Placement(("NPU", "GPU", "CPU"), names, np.array([0, 1], dtype=np.int32))
    assert compiled_for(two, devices) == ("HETERO:GPU,NPU", two)


def test_the_best_device_is_chosen_among_devices_only():
    assert race_with(0.5).best_device == "CPU"


def test_pairing_takes_the_speed_of_the_machine_out_of_a_ratio():
    ratio = race_with(0.8).ratio("PROFILE", "CPU")
    assert ratio.median == pytest.approx(0.8, rel=0.01)
    assert ratio.high - ratio.low < 0.02


def test_an_answer_slower_than_the_best_device_is_a_losing_case_and_a_winning_one_against_others():
    result = Result("", cases=tuple(cases_of({"net": race_with(1.2)})))
    losing, winning = result.losing, result.winning
    assert [(case.what, case.rival) for case in losing] == [("net, profile", "best device, CPU")]
    assert losing[0].ratio == pytest.approx(1.2, rel=0.01)
    assert {case.rival for case in winning} == {"AUTO", "HETERO"}
    # The answer is that device compiled apart, so nothing but luck can have lost, and it is said.
    assert "that device" in losing[0].detail
    assert not any("that device" in case.detail for case in winning)


def test_a_tie_is_neither_lost_nor_won():
    assert "best device, CPU" not in {case.rival for case in cases_of({"net": race_with(1.0)})}


def test_a_race_survives_json():
    race = race_with(0.8)
    again = Race.from_dict(json.loads(json.dumps(race.to_dict())))
    assert again.answers == race.answers
    assert again.failures == race.failures
    assert again.runs == race.runs
    assert again.spread("GPU") == pytest.approx(1.1, rel=1e-5)
    assert all(np.allclose(again.samples[name], race.samples[name], rtol=1e-5) for name in race.samples)


def test_rows_have_a_cell_for_every_contender_also_for_those_that_are_missing():
    races = {"net": race_with(0.8), "other": race_with(1.0, TUNE=0.9)}
    assert {len(row) for row in race_rows(races)} == {9}
    assert {len(row) for row in ratio_rows(races)} == {10}
    assert race_rows(races)[0][-2] == "-"
    assert ratio_rows(races)[0][-2] == f"{R} x 2"


@pytest.mark.parametrize(
    ("copies", "told"),
    [
        ({"A": (1.0,), "B": (2.0,)}, "40"),
        ({"A": (1.0, 1.1), "B": (2.0, 2.2)}, "40 x 2"),
        ({"A": (1.0,), "B": (2.0, 2.2, 2.1)}, "40 x 1-3"),
    ],
)
def test_the_number_of_copies_is_told_where_there_are_several(copies, told):
    race = replace(race_with(0.8), copy_medians=copies)
    assert race.runs == told


@pytest.mark.parametrize("pair", ["alias", "gpu"])
def test_whole_runs_have_at_least_twelve_models_and_quick_ones_fewer(pair):
    whole, quick = names(pair, False), names(pair, True)
    assert len(whole) >= 12
    assert 0 < len(quick) < len(whole)
    if pair == "alias":
        assert set(whole) <= set(MODELS)


def test_models_are_chosen_by_parts_of_their_names_or_all_of_them():
    assert set(names("alias", True, ("zoo/unet", "zoo/gn"))) == {"zoo/unet", "zoo/gnmt"}
    assert names("alias", True, ("all",)) == tuple(MODELS)


@pytest.mark.parametrize("name", ["bert 2x128, 32 tokens", "zoo/mobilenet_v2"])
def test_models_of_both_pairs_can_be_built_by_name(name):
    assert len(build(name).get_ops()) > 10


def test_everybody_runs_in_the_same_rounds_and_who_cannot_is_told():
    x = ops.parameter([1, 64], np.float32, name="x")
    model = ov.Model([ops.result(ops.relu(x))], [x], "tiny")
    race = race_model(
        "alias",
        model,
        0.01,
        modes=("ZERO_SHOT",),
        rivals=("AUTO", "HETERO", "NOSUCH"),
    )
    # AUTO takes several times as long over one op, and stays all the same.
    assert set(race.samples) == {"XCPU", "CPU", "AUTO", "HETERO", "ZERO_SHOT"}
    assert {len(samples) for samples in race.samples.values()} == {race.rounds}
    assert race.rounds >= 15
    assert set(race.failures) == {"NOSUCH"}
    assert set(race.copy_medians) == set(race.samples)
    assert all(race.spread(name) >= 1 for name in race.samples)
    assert race.answers["ZERO_SHOT"].subgraphs == 1
