"""Changed inputs of every reader, and those that were faults once; `make fuzz` tries many more."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

import ov_autoplace
from fuzz.mutation import mutate
from fuzz.readers import READERS, Reader
from ov_autoplace.cli.outputs import made_folder
from ov_autoplace.cli.placer_options import read_config
from ov_autoplace.devices.models import check_model_file
from ov_autoplace.errors import AutoplaceError
from random_tables import random_table

_INPUTS = {"report": 4, "state-fields": 20, "extra-devices": 20}
_USUAL_INPUTS = 100

ONCE = (
    ("affinity-file", {"x": "\ud800", "kernel": "CPU", "product": "CPU", "relu": "CPU", "answer": "CPU"}),
    ("affinity-file", {"x": "C\0PU", "kernel": "CPU", "product": "CPU", "relu": "CPU", "answer": "CPU"}),
    ("options", {"time_budget_ms": 10**400}),
    ("shapes", {"y": [2**63]}),
    ("command-line", {"config": "\ud800"}),
    ("command-line", {"pins": ["a*=CPU"], "config": "\0"}),
)


def _parameters() -> list[object]:
    return [pytest.param(reader, id=reader.name, marks=_marks(reader)) for reader in READERS]


def _marks(reader: Reader) -> list[pytest.MarkDecorator]:
    if reader.name == "report":
        return [pytest.mark.bokeh]
    return [pytest.mark.torch] if reader.needs_torch else []


@pytest.mark.parametrize("reader", _parameters())
def test_readers_accept_an_input_or_raise_what_they_say(reader: Reader, tmp_path: Path) -> None:
    seeds = reader.seeds()
    for seed in seeds:
        assert reader.read(seed, tmp_path) is not False  # valid inputs are read and accepted
    refused = 0
    for number in range(_INPUTS.get(reader.name, _USUAL_INPUTS)):
        data = mutate(seeds[number % len(seeds)], 16384, number, tuple(seeds))
        try:
            reader.read(data, tmp_path)
        except reader.errors:
            refused += 1
    assert refused or not reader.errors or reader.name in _INPUTS


@pytest.mark.parametrize(("name", "value"), ONCE)
def test_what_was_a_fault_once_is_refused_in_a_sentence(name: str, value: object, tmp_path: Path) -> None:
    reader = next(reader for reader in READERS if reader.name == name)
    with pytest.raises(reader.errors):
        reader.read(json.dumps(value).encode(), tmp_path)


@pytest.mark.parametrize("text", ["XCPU=NONE", "XCPU=CPU,NO_SUCH_PROPERTY=1", "X\x1bCPU=CPU"])
def test_extra_devices_that_cannot_be_are_refused_in_a_sentence(text: str, tmp_path: Path) -> None:
    reader = next(reader for reader in READERS if reader.name == "extra-devices")
    with pytest.raises(reader.errors):
        reader.read(text.encode(), tmp_path)


@pytest.mark.parametrize("name", ["a\0b", "a\ud800b", "a\0b.npz", "a\ud800b.npz"])
def test_a_name_that_no_file_can_have_is_refused_with_a_sentence(name: str) -> None:
    core, table = ov.Core(), random_table(1, 5, 2)
    x = opset.parameter([8], np.float32)
    model = ov.Model([opset.relu(x)], [x])
    config = {"AUTOPLACE_MODE": "ZERO_SHOT"}
    for use in (
        lambda: ov_autoplace.load_table(name),
        lambda: ov_autoplace.save_table(table, name),
        lambda: ov_autoplace.load_target(name),
        lambda: ov_autoplace.load_dnn_partitioning(name),
        lambda: ov_autoplace.place(model, "CPU", core=core, mode="ZERO_SHOT", target=name),
        lambda: core.compile_model(model, "AUTOPLACE:CPU", {**config, "CACHE_DIR": name}),
        lambda: read_config(name),
        lambda: check_model_file(Path(name)),
        lambda: made_folder(Path(name)).__enter__(),
    ):
        with pytest.raises(AutoplaceError):
            use()
