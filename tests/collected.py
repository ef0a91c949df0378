"""Costs that nobody had to collect: small networks on a made-up CPU that takes what a formula says.

And little of what collecting does otherwise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from ov_autoplace.cost.op_graph import OpGraph
from ov_autoplace.cost.samples import CostSamples, Measurement, Network, Setting
from ov_autoplace.cost.target import OP_CLASSES, DeviceProfile, Rate, Target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure import calibrate, collect, timing
from ov_autoplace.measure.microbenchmarks import benchmarks
from random_models import random_model

LAUNCH = 4e-6
FACTOR = {"MatMul": 3.0, "Convolution": 0.5}
"""By how much ops of a type take longer than the roofline; 1.5 for all others."""


def profile(threads: int, speed: float = 1.0) -> DeviceProfile:
    """A CPU whose speed does not depend on sizes."""
    rates = {"matmul": 4e10, "convolution": 3e10, "depthwise": 5e9, "elementwise": 4e9, "copy": 1e10}
    scale = speed * threads**0.7
    return DeviceProfile(
        name="CPU",
        full_name="a CPU",
        precision="f32",
        rates=tuple(Rate(c, "f32", np.ones(1), np.array([scale * rates[c]]), "test") for c in OP_CLASSES),
        op_overhead_seconds=1e-6 / speed,
        memory_bytes=1e9,
        sources=dict.fromkeys(("op_overhead_seconds", "memory_bytes", "synchronisation_seconds"), "test"),
        threads=threads,
        synchronisation_seconds=0.2e-6,
    )


def target(device: DeviceProfile) -> Target:
    """A machine with that device alone."""
    zeros = np.zeros((1, 1))
    transfers = TransferFit(("CPU",), zeros, zeros, np.array([LAUNCH]))
    return Target("made up", "", "", "", (device,), transfers, "test")


SETTINGS = tuple(
    Setting(f"a CPU, {n} threads, f32", "a CPU", (target(profile(n)), target(profile(n, 0.8))), 1e-4)
    for n in (2, 1)
)


def networks(count: int, first: int = 0) -> tuple[Network, ...]:
    """Small random networks."""
    made = []
    for seed in range(first, first + count):
        ops, _ = OpGraph.of(extract(random_model(seed)))
        made.append(Network(f"random-{seed}", "random", ops))
    return tuple(made)


def samples_of(made: Sequence[Network]) -> CostSamples:
    """What the networks take on both settings: every op a kernel that takes a multiple of its roofline."""
    from ov_autoplace.cost.features import OpInputs

    measurements = []
    for n, network in enumerate(made):
        for s, setting in enumerate(SETTINGS):
            roofline = OpInputs.of(network.ops, setting.targets[0].devices[0]).seconds
            factors = np.array([FACTOR.get(op_type, 1.5) for op_type in network.ops.op_types])
            seconds = roofline * factors
            count = len(network.ops)
            measurements.append(
                Measurement(
                    n,
                    s,
                    float(seconds.sum()) + LAUNCH,
                    0.02,
                    np.arange(count, dtype=np.int32),
                    seconds,
                    np.ones(count, dtype=np.int32),
                )
            )
    return CostSamples(tuple(made), SETTINGS, tuple(measurements))


NETWORKS = networks(3)


def collect_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have ``collect`` take one precision, one size and calibration, and little time, at any speed."""
    smallest = {benchmark.op_class: benchmark for benchmark in reversed(benchmarks())}
    monkeypatch.setattr(calibrate, "benchmarks", lambda **_: list(smallest.values()))
    monkeypatch.setattr(collect, "_MOST_SLOWNESS", np.inf)
    monkeypatch.setattr(collect, "_FLOATS", frozenset({"f32"}))
    monkeypatch.setattr(collect, "_LOOKS", 1)
    monkeypatch.setattr(collect, "_COUNTING_SECONDS", 0.01)
    monkeypatch.setattr(timing, "SECONDS", 0.02)
