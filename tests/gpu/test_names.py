"""Names of a single GPU: OpenVINO lists it as GPU and takes GPU.0 for it too."""

from __future__ import annotations

import openvino as ov
import pytest
from gpu_models import encoder

from ov_autoplace.devices.names import fingerprint, resolve_devices
from ov_autoplace.errors import DeviceError


def test_both_names_are_taken(core: ov.Core) -> None:
    assert resolve_devices(core) == ("GPU", "CPU")
    assert resolve_devices(core, "GPU.0,CPU") == ("GPU.0", "CPU")
    assert fingerprint(core, ("GPU.0",)).split("; ")[1:] == [
        part.replace("GPU=", "GPU.0=") for part in fingerprint(core, ("GPU",)).split("; ")[1:]
    ]


@pytest.mark.parametrize(
    ("devices", "message"),
    [
        ("GPU.1,CPU", "no device 'GPU.1'"),
        ("CPU.0", "no device 'CPU.0'"),
        ("GPU,GPU.0", "'GPU' is listed twice"),
        ("GPU.0,CPU,GPU.0", "'GPU.0' is listed twice"),
    ],
)
def test_others_are_refused(core: ov.Core, devices: str, message: str) -> None:
    with pytest.raises(DeviceError, match=message):
        resolve_devices(core, devices)


def test_a_model_is_placed_on_the_numbered_name(core: ov.Core) -> None:
    config = {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_PINS": {"query0": "GPU.0", "outer0": "CPU"}}
    compiled = core.compile_model(encoder(), "AUTOPLACE:GPU.0,CPU", config)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"GPU.0", "CPU"}
