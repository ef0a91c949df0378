"""Tests on OpenVINO's real GPU plugin. ``make test-gpu`` gives them a virtual GPU."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import openvino as ov
import pytest

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
    from gpu_models import new_core

    return new_core()


@pytest.fixture(scope="session")
def model() -> ov.Model:
    from gpu_models import encoder

    return encoder()


@pytest.fixture(scope="session")
def inputs(model: ov.Model) -> Any:
    from model_checks import random_inputs

    return random_inputs(model, seed=1)


@pytest.fixture(scope="session")
def expected(core: ov.Core, model: ov.Model, inputs: Any) -> Any:
    """What the CPU computes."""
    from model_checks import outputs_of

    return outputs_of(core.compile_model(model, "CPU"), inputs)
