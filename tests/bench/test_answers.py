"""Answers beside what they replace: figures that are made up, and races that are run."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest

from harness.race import Load, Race, race, session_of
from lane_models import towers
from ov_autoplace.plan.plan import PoolPlan, WholePlan
from sections import answers


def found(best: float, other: float, ours: float) -> answers.Found:
    """A network whose devices and answer take so many seconds, twice as long after pauses."""
    seconds = {"XCPU": best, "CPU": other, "profile": ours, "HETERO": 2 * best}
    noise = np.linspace(0.99, 1.01, 31)
    samples = {
        load: {who: factor * value * noise for who, value in seconds.items()}
        for load, factor in ((Load.STEADY, 1.0), (Load.PAUSED, 2.0))
    }
    copies = {"XCPU": [best, 1.1 * best], "CPU": [other]}
    answer = answers.Answer("XCPU", ("XCPU",), 2 * ours, 1.5, "because", True)
    return answers.Found({"profile": answer}, ["XCPU", "CPU"], Race(samples, copies, {"AUTO": "it failed"}))


def test_ratios_are_over_the_best_rival_and_losses_are_named():
    told = answers.CONTESTS["latency-alias"]
    networks = {"fast": found(2e-3, 3e-3, 1e-3), "slow": found(50e-6, 40e-6, 44e-6)}
    result = answers.result_of(told, networks, 0, ["x: not measured"])
    named = {ratio.name: ratio.value for ratio in result.ratios}
    assert named["fast: profile over the best device"] == 0.5
    assert named["slow: profile over the best device"] == pytest.approx(1.1)
    # Each over the best device, and over HETERO, which is beside.
    assert {(case.what, case.rival) for case in result.losing} == {("slow, profile", "CPU")}
    assert {(case.what, case.rival) for case in result.winning} == {
        ("fast, profile", "XCPU"), ("fast, profile", "HETERO"), ("slow, profile", "HETERO"),
    }  # fmt: skip
    assert any("certainly slower" in remark and "slow 1.100" in remark for remark in result.remarks)
    assert "x: not measured" in result.remarks
    assert any("AUTO" in remark and "it failed" in remark for remark in result.remarks)
    assert {(claim.limit, claim.holds) for claim in result.claims} == {(1.01, True), (0.05, False)}
    assert [(p.what, p.seconds, p.ratio) for p in result.points] == [
        ("fast", pytest.approx(2e-3), pytest.approx(0.5)), ("slow", pytest.approx(40e-6), pytest.approx(1.1)),
    ]  # fmt: skip
    bands = result.tables[0].rows
    assert [row[0] for row in bands] == ["below 60 us", "above", "all"]
    again = answers.Found.from_dict(
        {"answers": {}, "rivals": ["CPU"], "race": networks["slow"].race.to_dict()}
    )
    assert again.best(Load.STEADY) == "CPU"


def test_plans_run_in_the_same_rounds_under_every_load_and_one_that_cannot_is_named():
    plans = {"CPU": WholePlan("CPU"), "again": WholePlan("CPU"), "none": WholePlan("NO_SUCH_DEVICE")}
    with session_of(ov.Core(), towers(2), ("CPU",), 0) as session:
        found = race(session, plans, 0.05, 0, (Load.STEADY, Load.PAUSED), copies=2)
        pools = {"hint": PoolPlan("hint", WholePlan("CPU", properties={"PERFORMANCE_HINT": "THROUGHPUT"}))}
        rates = race(session, pools, 0.05, 0, (Load.WAITING, Load.QUEUED), copies=1)
    for samples in found.samples.values():
        assert set(samples) == {"CPU", "again"}
        assert len(samples["CPU"]) == len(samples["again"]) >= 15
    assert {who: len(medians) for who, medians in found.copies.items()} == {"CPU": 2, "again": 2}
    assert list(found.failures) == ["none"]
    assert all((samples["hint"] > 0).all() for samples in rates.samples.values())


def test_a_network_is_decided_and_raced_with_what_it_replaces():
    fields = answers.decide_and_race("width", "tiny/table_classifier", ("answer",), quick=True, seed=0)
    one = answers.Found.from_dict(fields)
    assert one.best(Load.STEADY) == "CPU"
    assert set(one.ratios(Load.PAUSED)) == {"answer"}
    assert one.answers["answer"].devices == ("CPU",)
