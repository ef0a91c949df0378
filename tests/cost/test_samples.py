"""Collected costs come back from their file as they were, and damaged files are refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace

import numpy as np
import pytest

from collected import NETWORKS, samples_of
from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples, Setting
from ov_autoplace.cost.target import THREAD_SCALING
from ov_autoplace.errors import TrainingError


def test_samples_come_back_from_their_file(tmp_path):
    made = samples_of(NETWORKS)
    made.save(tmp_path / "costs.npz")
    read = CostSamples.load(tmp_path / "costs.npz")
    assert [n.name for n in read.networks] == [n.name for n in made.networks]
    assert [(s.name, s.device, len(s.targets), s.reference_seconds) for s in read.settings] == [
        (s.name, s.device, len(s.targets), s.reference_seconds) for s in made.settings
    ]
    for own, other in zip(made.networks, read.networks, strict=True):
        for field in fields(OpGraph):
            np.testing.assert_array_equal(
                np.array(getattr(own.ops, field.name), dtype=object),
                np.array(getattr(other.ops, field.name), dtype=object),
                err_msg=field.name,
            )
    for one, other in zip(made.measurements, read.measurements, strict=True):
        assert (one.network, one.setting, one.seconds) == (other.network, other.setting, other.seconds)
        np.testing.assert_array_equal(one.kernel_of, other.kernel_of)
        np.testing.assert_allclose(one.kernel_seconds, other.kernel_seconds, rtol=1e-6)


def test_an_empty_file_is_read_too(tmp_path):
    CostSamples().save(tmp_path / "costs.npz")
    assert CostSamples.load(tmp_path / "costs.npz").networks == ()


@pytest.mark.parametrize("lost", ["kernel_of", "op_types.sizes", "targets", "seconds"])
def test_a_file_without_a_part_is_refused(tmp_path, lost):
    samples_of(NETWORKS).save(tmp_path / "costs.npz")
    with np.load(tmp_path / "costs.npz") as stored:
        arrays = {name: value for name, value in stored.items() if name != lost}
    np.savez(tmp_path / "less.npz", **arrays)
    with pytest.raises(TrainingError, match="holds no costs"):
        CostSamples.load(tmp_path / "less.npz")


def test_of_fewer_threads_is_known_what_follows_from_all_of_them():
    samples = samples_of(NETWORKS)
    names = [setting.name for setting in samples.settings]
    wide, narrow = (names.index(f"a CPU, {threads} threads, f32") for threads in (2, 1))
    assert len(samples.known[wide]) == len(samples.settings[wide].targets)
    calibrated, *_, followed = samples.known[narrow]
    assert calibrated[0].threads == followed[0].threads == 1
    there = samples.settings[wide].targets[-1].devices[0]
    assert followed[0].rate("matmul").at(np.ones(1))[0] == pytest.approx(
        there.rate("matmul").at(np.ones(1))[0] / 2**THREAD_SCALING
    )


def test_settings_of_other_hours_are_of_one_device():
    first, second = samples_of(NETWORKS).settings
    assert replace(first, device=f"{first.device}; later").without_hour == first.without_hour
    assert first.without_hour != second.without_hour  # fewer threads
    assert first.without_hour != replace(first, device=f"{first.device}, AVX2; later").without_hour


def in_two_hours(slowness: float, factors: Sequence[float], reference: float = 1e-4) -> CostSamples:
    """Measurements, and the same in an hour that is slower, where each network takes another factor more."""
    one = samples_of(NETWORKS)
    first = [replace(own, reference_seconds=reference) for own in one.settings]
    second = [
        replace(own, device=f"{own.device}; later", reference_seconds=slowness * reference) for own in first
    ]
    later = [
        replace(
            m,
            setting=m.setting + len(first),
            seconds=m.seconds * slowness * factors[m.network],
            kernel_seconds=m.kernel_seconds * slowness * factors[m.network],
        )
        for m in one.measurements
    ]
    return CostSamples(one.networks, (*first, *second), (*one.measurements, *later))


def test_of_several_hours_the_least_disturbed_counts_of_each_network():
    one = samples_of(NETWORKS)
    both = in_two_hours(2.0, [0.8, *[1.5] * (len(NETWORKS) - 1)])
    expected = {(m.network, m.setting) for m in one.measurements if m.network}
    expected |= {(m.network, m.setting + len(one.settings)) for m in one.measurements if not m.network}
    assert {(m.network, m.setting) for m in both.undisturbed} == expected
    assert len(both.undisturbed) == len(expected)
    assert [(m.network, m.setting, m.seconds) for m in one.undisturbed] == [
        (m.network, m.setting, m.seconds) for m in one.measurements
    ]


def test_measurements_are_as_long_as_in_the_fastest_hour():
    both = in_two_hours(1.25, [1.0] * len(NETWORKS))
    half = len(both.measurements) // 2
    before = both.measurements[:half]
    for of_hour in (both.comparable[:half], both.comparable[half:]):
        for own, other in zip(of_hour, before, strict=True):
            assert own.seconds == pytest.approx(other.seconds)
            np.testing.assert_allclose(own.kernel_seconds, other.kernel_seconds)


def test_a_calibration_of_a_slow_hour_says_what_one_of_the_fastest_hour_would():
    both = in_two_hours(1.25, [1.0] * len(NETWORKS))

    def calibrated_in_its_hour(setting: Setting) -> Setting:
        if "later" not in setting.device:
            return setting
        calibrated, told = setting.targets
        slow = replace(calibrated, devices=(calibrated.devices[0].slower(1.25),))
        return replace(setting, targets=(slow, told))

    settings = tuple(map(calibrated_in_its_hour, both.settings))
    found = replace(both, settings=settings)
    half = len(settings) // 2
    for number in range(half):
        first, later = found.known[number], found.known[half + number]
        for (one, _), (other, _) in zip(first, later, strict=True):
            assert other.rate("matmul").at(np.ones(1)) == pytest.approx(one.rate("matmul").at(np.ones(1)))
            assert other.op_overhead_seconds == pytest.approx(one.op_overhead_seconds)
        assert later[0][1] == pytest.approx(first[0][1] / 1.25)  # which is left as slow as it was


def test_without_a_reference_measurements_remain_as_they_are():
    both = in_two_hours(1.25, [1.0] * len(NETWORKS), reference=0.0)
    assert [m.seconds for m in both.comparable] == [m.seconds for m in both.measurements]


def test_a_file_with_sizes_that_are_not_known_is_refused(tmp_path):
    network = NETWORKS[0]
    ops = replace(network.ops, shapes=((-1,), *network.ops.shapes[1:]))
    path = tmp_path / "costs.npz"
    CostSamples((replace(network, ops=ops),)).save(path)
    with pytest.raises(TrainingError, match="not known"):
        CostSamples.load(path)
