"""The fit of launches and transfers."""

from __future__ import annotations

import numpy as np
import pytest

from ov_autoplace.cost.transfers import TransferSample
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import ProfilingError, TargetError
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.transfers import DEFAULT_SIZES, fit_transfers, measure_transfers

DEVICES = ("A", "B")
LAUNCH = {"A": 5e-6, "B": 9e-6}
LATENCY = {"AA": 1e-6, "AB": 2e-6, "BA": 4e-6, "BB": 3e-6}
PER_BYTE = {"AA": 1e-11, "AB": 3e-10, "BA": 2e-10, "BB": 5e-11}

# Written out by hand: op count per device and kind (f = first or second, j = join), launches, transfers.
PLACEMENTS = {
    "AAAA": ("fA fA fA fA", "A", ""),
    "BBBB": ("fB fB fB fB", "B", ""),
    "AAA": ("fA fA jA", "A", ""),
    "BBB": ("fB fB jB", "B", ""),
    "ABB": ("fA fB jB", "A B", "AB"),
    "AAB": ("fA fA jB", "A B", "AB AB"),
    "ABA": ("fA fB jA", "A B A", "AB BA AA"),
    "BAA": ("fB fA jA", "B A", "BA"),
    "BBA": ("fB fB jA", "B A", "BA BA"),
    "BAB": ("fB fA jB", "B A B", "BA AB BB"),
}


def synthetic(noise: float, seed: int = 7) -> list[TransferSample]:
    generator = np.random.default_rng(seed)
    samples = []
    for size in DEFAULT_SIZES:
        op = {"fA": 1e-6 + size * 2e-11, "fB": 2e-6 + size * 1e-11, "jA": size * 4e-11, "jB": size * 6e-11}
        for placed, (ops, launches, transfers) in PLACEMENTS.items():
            seconds = sum(op[name] for name in ops.split()) + sum(LAUNCH[d] for d in launches.split())
            seconds += sum(LATENCY[pair] + PER_BYTE[pair] * size for pair in transfers.split())
            raw = seconds * (1 + noise * generator.standard_normal(31))
            samples.append(TransferSample(tuple(placed), size, raw))
    return samples


def expected(costs: dict[str, float]) -> np.ndarray:
    return np.array([[costs[source + to] for to in DEVICES] for source in DEVICES])


def test_known_costs_are_found_again_exactly():
    fit = fit_transfers(DEVICES, synthetic(noise=0.0))
    np.testing.assert_allclose(fit.launch_seconds, [LAUNCH["A"], LAUNCH["B"]], rtol=1e-6)
    np.testing.assert_allclose(fit.latency, expected(LATENCY), rtol=1e-5)
    np.testing.assert_allclose(fit.seconds_per_byte, expected(PER_BYTE), rtol=1e-5)


def test_known_costs_are_found_again_through_noise():
    fit = fit_transfers(DEVICES, synthetic(noise=0.05))
    np.testing.assert_allclose(fit.launch_seconds, [LAUNCH["A"], LAUNCH["B"]], rtol=0.2)
    np.testing.assert_allclose(fit.seconds_per_byte[0, 1], PER_BYTE["AB"], rtol=0.2)
    np.testing.assert_allclose(fit.seconds_per_byte[1, 0], PER_BYTE["BA"], rtol=0.2)
    assert (fit.latency >= 0).all()


def test_a_part_of_a_fit_keeps_the_order_asked_for():
    fit = fit_transfers(DEVICES, synthetic(noise=0.0))
    swapped = fit.for_devices(("B", "A"))
    np.testing.assert_array_equal(swapped.latency, fit.latency[::-1, ::-1])
    np.testing.assert_array_equal(swapped.launch_seconds, fit.launch_seconds[::-1])
    assert len(fit.for_devices(("A",)).samples) == 2 * len(DEFAULT_SIZES)
    with pytest.raises(TargetError, match="known for GPU; known: A, B"):
        fit.for_devices(("A", "GPU"))


def test_one_device_hands_nothing_over(unequal_pair):
    fit = measure_transfers(profiler_for(unequal_pair, ("CPU",)), ("CPU",))
    assert fit.samples == ()
    assert fit.latency.tolist() == [[0.0]]


def test_every_ordered_pair_is_measured_through_real_submodels(unequal_pair):
    devices = ("XCPU", "CPU")
    profiler = profiler_for(unequal_pair, devices, device_properties(unequal_pair, devices))
    seen = []
    fit = measure_transfers(
        profiler,
        devices,
        sizes=(1 << 10, 16 << 10),
        seconds_per_placement=0.002,
        progress=lambda done, total, text: seen.append((done, total, text)),
    )
    assert [sample.devices for sample in fit.samples if sample.tensor_bytes == 1 << 10] == [
        ("XCPU",) * 4, ("XCPU",) * 3, ("CPU",) * 4, ("CPU",) * 3,
        ("XCPU", "CPU", "CPU"), ("XCPU", "XCPU", "CPU"), ("XCPU", "CPU", "XCPU"),
        ("CPU", "XCPU", "XCPU"), ("CPU", "CPU", "XCPU"), ("CPU", "XCPU", "CPU"),
    ]  # fmt: skip
    assert all((sample.seconds > 0).all() and len(sample.seconds) >= 2 for sample in fit.samples)
    for costs in (fit.launch_seconds, fit.latency, fit.seconds_per_byte):
        assert np.isfinite(costs).all()
        assert (costs >= 0).all()
    # Crossing devices is never free; few runs on a busy machine do not tell what of it is the launch.
    assert fit.launch_seconds.sum() + fit.latency.sum() > 0
    assert seen == [(0, 2, "transfer XCPU - CPU, 1 KB"), (1, 2, "transfer XCPU - CPU, 16 KB")]


def test_a_device_that_refuses_the_model_is_one_sentence(unequal_pair):
    profiler = profiler_for(unequal_pair, ("XCPU", "CPU"))
    with pytest.raises(ProfilingError, match="cannot measure transfers: FOO refuses a small model"):
        measure_transfers(profiler, ("FOO", "CPU"), sizes=(1024, 2048))
