"""Growth exponents, on times whose law is known."""

from __future__ import annotations

import numpy as np
import pytest

from harness.process import Failure
from problems.growing import BUILDERS
from sections.scaling import PARTS, exponent, measure, measure_policy, rows_within


def rows_of(law, sizes=(100, 1_000, 5_000, 20_000), repeats=3, noise=0.0):
    random = np.random.default_rng(0)
    return [
        {
            "ops": n,
            "seconds": {"part": [law(n) * np.exp(noise * random.standard_normal()) for _ in range(repeats)]},
        }
        for n in sizes
    ]


@pytest.mark.parametrize("slope", [0.5, 1.0, 1.7])
def test_the_exponent_of_a_power_law_is_its_power(slope):
    found = exponent(rows_of(lambda n: 1e-6 * n**slope), "part")
    assert found.median == pytest.approx(slope)
    assert found.high - found.low == pytest.approx(0.0, abs=1e-6)


def test_what_every_model_costs_does_not_hide_the_growth():
    # A constant tenth of a second dominates below 1,000 ops, which are therefore left out.
    found = exponent(rows_of(lambda n: 0.1 * (n < 500) + 1e-6 * n), "part")
    assert found.median == pytest.approx(1.0)


def test_noise_widens_the_interval_around_the_true_exponent():
    found = exponent(rows_of(lambda n: 1e-6 * n**1.2, noise=0.2), "part")
    assert found.low < 1.2 < found.high
    assert found.high - found.low > 0.05


def test_a_part_that_was_measured_on_one_size_has_no_exponent():
    assert exponent(rows_of(lambda n: n, sizes=(5_000,)), "part") is None
    assert exponent(rows_of(lambda n: n), "another part") is None


def test_our_parts_are_measured_on_a_real_model():
    row = measure("transformer", 100, seed=0)
    assert set(row["seconds"]) == set(row["peaks"]) == set(PARTS) - {"policy", "HETERO"}
    assert 50 < row["ops"] < 150
    assert all(len(samples) == 3 for samples in row["seconds"].values())
    assert all(10 < peak < 10_000 for peak in row["peaks"].values())


@pytest.mark.parametrize("kind", BUILDERS)
def test_every_kind_of_model_has_about_as_many_ops_as_asked(kind):
    sizes = [len(BUILDERS[kind](n, np.random.default_rng(5)).get_ops()) for n in (500, 2_000)]
    assert 0.7 * 500 < sizes[0] < 1.3 * 500
    assert 0.8 * 2_000 < sizes[1] < 1.2 * 2_000


def test_hetero_compiles_no_model_for_which_it_would_take_minutes():
    children = Children()
    rows_within(9e9, 9e9, "chain", (1_000, 100_000), 0, call=children.in_child, clock=children.perf_counter)
    assert ("measure_hetero", 1_000) in children.called
    assert ("measure_hetero", 100_000) not in children.called
    assert ("measure_policy", 100_000) in children.called


def test_the_policy_is_measured_on_a_real_model():
    row = measure_policy("chain", 100, seed=0)
    assert len(row["seconds"]["policy"]) == 3
    assert row["groups"] <= row["ops"]


class Children:
    """Stands for the clock and for processes, which take as long as ``durations`` say.

    Args:
        durations: Seconds by function and number of ops; 1 where nothing is said.
        dying: Functions and numbers of ops that die at once.
    """

    def __init__(self, durations=None, dying=()) -> None:
        self.now = 1000.0
        self.durations = durations or {}
        self.dying = dying
        self.called = []

    def perf_counter(self) -> float:
        return self.now

    def in_child(self, function, arguments, timeout):
        key = (function.__name__, arguments["num_ops"])
        self.called.append(key)
        if key in self.dying:
            return Failure("died by SIGSEGV")
        taken = self.durations.get(key, 1.0)
        self.now += min(taken, timeout)
        if taken > timeout:
            return Failure(f"took longer than {timeout:.0f} s")
        return {"ops": key[1], "seconds": {key[0]: [taken]}}


def rows_with(children, seconds=900.0):
    sizes = (100, 1_000, 5_000)
    rows, missing = rows_within(
        seconds, 60.0, "chain", sizes, 0, call=children.in_child, clock=children.perf_counter
    )
    return {row["ops"]: set(row["seconds"]) for row in rows}, missing


ALL = {"measure", "measure_policy", "measure_hetero"}


def test_a_row_has_what_all_its_pieces_gave():
    rows, missing = rows_with(Children())
    assert rows == {100: ALL, 1_000: ALL, 5_000: ALL}
    assert missing == []


def test_a_piece_that_dies_is_told_and_the_rest_of_its_row_is_kept():
    rows, missing = rows_with(Children(dying=[("measure_policy", 1_000)]))
    assert rows == {100: ALL, 1_000: ALL - {"measure_policy"}, 5_000: ALL}
    assert missing == ["chain of 1,000 ops: the policy not measured: died by SIGSEGV"]


def test_a_piece_that_took_too_long_is_not_tried_on_larger_models():
    children = Children(durations={("measure_hetero", 1_000): 61.0})
    rows, missing = rows_with(children)
    assert rows == {100: ALL, 1_000: ALL - {"measure_hetero"}, 5_000: ALL - {"measure_hetero"}}
    assert ("measure_hetero", 5_000) not in children.called
    (sentence,) = missing
    assert "took longer than 60 s; larger ones were not tried" in sentence


def test_nothing_is_started_when_the_time_is_up_and_everything_is_told():
    children = Children(durations={("measure_policy", 100): 30.0})
    rows, missing = rows_with(children, seconds=20.0)
    assert rows == {100: {"measure"}}
    assert children.called == [("measure", 100), ("measure_policy", 100)]
    assert children.now == 1020.0
    assert len(missing) == 3  # the policy ran out of time, the two others had none left
