"""Copies of contenders: how many, in which order, and what their samples become."""

from __future__ import annotations

from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest

from harness.copies import compile_copies, copies_for, race_copies
from ov_autoplace._core import ProfilerError

AMPLE = 1e9


class Scripted:
    """An executable that always takes as long, until it fails."""

    def __init__(self, seconds: float, fails_after: float = np.inf) -> None:
        self.seconds = seconds
        self.left = fails_after

    def sample(self) -> float:
        self.left -= 1
        if self.left < 0:
            raise ProfilerError("the device is lost")
        return self.seconds

    def run(self, runs: int, warmup: int) -> np.ndarray:
        return np.array([self.sample() for _ in range(warmup + runs)])


def scripted_race(executables, budget, *, seed, min_rounds, max_rounds):
    """All rounds that are allowed, or one where there is no time; who fails leaves."""
    rounds = max_rounds if budget > 0 else 1
    entries = [SimpleNamespace(samples=[], dropped="") for _ in executables]
    for _ in range(rounds):
        for executable, entry in zip(executables, entries, strict=True):
            try:
                if not entry.dropped:
                    entry.samples.append(executable.sample())
            except ProfilerError as cause:
                entry.dropped = f"failed: {cause}"
    return SimpleNamespace(entries=entries, rounds=rounds)


def raced(contenders, failures=None):
    failures = {} if failures is None else failures
    return race_copies(contenders, AMPLE, 0, failures, scripted_race)


def compiled(calls, devices=("CPU",), constant_bytes=0.0, seconds=AMPLE, seed=0, failures=None):
    failures = {} if failures is None else failures
    return compile_copies(calls, devices, constant_bytes, seconds, seed, failures)


@pytest.mark.parametrize(("milliseconds", "copies"), [(0.2, 5), (0.99, 5), (1.1, 3), (4.9, 3), (5.1, 1)])
def test_shorter_models_are_compiled_more_often(milliseconds, copies):
    assert copies_for(milliseconds / 1e3, constant_bytes=1e6, compiling=0.1, allowed=10.0) == copies


def test_a_model_with_large_constants_is_compiled_once():
    assert copies_for(0.2e-3, constant_bytes=101e6, compiling=0.1, allowed=10.0) == 1


@pytest.mark.parametrize(("compiling", "copies"), [(2.0, 5), (4.0, 3), (9.0, 2), (11.0, 1), (100.0, 1)])
def test_other_copies_fit_into_the_time_that_is_allowed_for_them(compiling, copies):
    assert copies_for(0.2e-3, constant_bytes=1e6, compiling=compiling, allowed=10.0) == copies


def test_the_fastest_device_decides_how_many_copies_of_everybody_there_are():
    calls = {
        "GPU": lambda: Scripted(0.020),
        "CPU": lambda: Scripted(0.002),
        "AUTO": lambda: Scripted(0.0001),  # is no device
    }
    executables = compiled(calls, devices=("GPU", "CPU"))
    assert {name: len(copies) for name, copies in executables.items()} == {"GPU": 3, "CPU": 3, "AUTO": 3}


def test_everybody_is_compiled_once_before_anybody_is_again_and_the_order_is_drawn():
    def order(seed):
        compiled_names = []

        def call(name):
            compiled_names.append(name)
            return Scripted(1e-4)

        compiled({name: lambda name=name: call(name) for name in "ABCDEF"}, devices=("A",), seed=seed)
        return ["".join(compiled_names[i : i + 6]) for i in range(0, 30, 6)]

    blocks = order(0)
    assert [sorted(block) for block in blocks] == [list("ABCDEF")] * 5
    assert len(set(blocks)) == 5
    assert order(0) == blocks
    assert order(1) != blocks


def test_who_can_be_compiled_only_at_times_is_left_out_and_told():
    number = count(1)

    def once() -> Scripted:
        if next(number) > 1:
            raise ProfilerError("out of memory")
        return Scripted(1e-4)

    failures = {}
    executables = compiled({"CPU": lambda: Scripted(1e-4), "GPU": once}, failures=failures)
    assert set(executables) == {"CPU"}
    assert len(executables["CPU"]) == 5
    assert "out of memory" in failures["GPU"]


def test_who_cannot_be_warmed_up_is_left_out_and_told():
    failures = {}
    executables = compiled(
        {"CPU": lambda: Scripted(1e-4), "GPU": lambda: Scripted(1e-4, fails_after=1)}, failures=failures
    )
    assert set(executables) == {"CPU"}
    assert "the device is lost" in failures["GPU"]


def test_a_sample_is_the_mean_over_copies_of_the_same_round():
    copies = raced({"CPU": [Scripted(0.001), Scripted(0.004)], "GPU": [Scripted(0.002)]})
    assert set(copies.samples["CPU"]) == {0.0025}
    assert set(copies.samples["GPU"]) == {0.002}
    assert copies.medians == {"CPU": (0.001, 0.004), "GPU": (0.002,)}
    assert len(copies.samples["CPU"]) == len(copies.samples["GPU"]) == 515


@pytest.mark.parametrize("fails_after", [0, 7, 100])
def test_a_contender_of_which_one_copy_fails_fails_and_the_others_keep_their_rounds(fails_after):
    failures = {}
    copies = raced(
        {
            "CPU": [Scripted(0.001), Scripted(0.001)],
            "GPU": [Scripted(0.002), Scripted(0.002, fails_after), Scripted(0.002)],
            "AUTO": [Scripted(0.003)],
        },
        failures,
    )
    assert set(copies.samples) == set(copies.medians) == {"CPU", "AUTO"}
    assert {len(samples) for samples in copies.samples.values()} == {515}
    assert "the device is lost" in failures["GPU"]


def test_a_race_without_time_still_has_the_fewest_rounds():
    copies = race_copies({"CPU": [Scripted(0.001)], "GPU": [Scripted(0.002)]}, 0.0, 0, {}, scripted_race)
    assert len(copies.samples["CPU"]) == 16  # and one of those that end when the time does
