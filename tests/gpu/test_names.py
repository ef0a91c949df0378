"""Names of a single GPU: OpenVINO lists it as GPU and takes GPU.0 for it too."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import openvino as ov
import pytest
from gpu_models import encoder

import ov_autoplace
from ov_autoplace.devices.names import fingerprint, resolve_devices
from ov_autoplace.errors import DeviceError
from ov_autoplace.plugin.annotated_files import save_annotated


@pytest.mark.smoke
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


@pytest.mark.smoke
def test_a_model_is_placed_on_the_numbered_name(core: ov.Core) -> None:
    config = {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_PINS": {"query0": "GPU.0", "outer0": "CPU"}}
    compiled = core.compile_model(encoder(), "AUTOPLACE:GPU.0,CPU", config)
    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"GPU.0", "CPU"}


@pytest.mark.parametrize("names", [("GPU",), ("GPU.0",), ("GPU", "GPU.0")])
def test_the_library_for_other_programs_takes_both_names_for_one_device(
    core: ov.Core, names: tuple[str, ...], tmp_path: Path
) -> None:
    model = encoder()
    pins = {"query0": "GPU", "outer0": "CPU"}
    placement = ov_autoplace.place(model, ["GPU", "CPU"], mode="ZERO_SHOT", pins=pins, core=core)
    file = save_annotated(model, placement, tmp_path, "net").model
    others = itertools.cycle(names)
    file.write_text(re.sub('(?<=autoplace" value=)"GPU"', lambda _: f'"{next(others)}"', file.read_text()))

    program = ov.Core()
    program.add_extension(ov_autoplace.extension_path())
    compiled = program.compile_model(file, "HETERO:GPU,CPU")

    assert set(compiled.get_property("EXECUTION_DEVICES")) == {"GPU", "CPU"}
    expected = ov_autoplace.count_subgraphs(model, placement)
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == expected > 1
