"""Tests on OpenVINO's real GPU plugin. ``make test-gpu`` gives them a virtual GPU."""

from __future__ import annotations

import sys
from pathlib import Path

import openvino as ov
import pytest

DEVICES = ("GPU", "CPU")
HERE = Path(__file__).resolve().parent
# A network on which a mix of devices is the fastest is one of the benchmarks'.
sys.path.insert(0, str(HERE.parents[1] / "tools" / "bench"))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = [item for item in items if HERE in item.path.parents]
    for item in here:
        item.add_marker(pytest.mark.gpu)
    if here and not any(device.startswith("GPU") for device in ov.Core().available_devices):
        for item in here:
            item.add_marker(pytest.mark.skip(reason="OpenVINO lists no GPU here; run `make test-gpu`"))


@pytest.fixture(scope="session")
def core() -> ov.Core:
    """A Core on which both devices compute in f32, so that their outputs can be compared tightly."""
    core = ov.Core()
    for device in DEVICES:
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32"})
    # HETERO would make them share an executor; see ov_autoplace.devices.names.device_properties.
    core.set_property("CPU", {"EXCLUSIVE_ASYNC_REQUESTS": False})
    return core
