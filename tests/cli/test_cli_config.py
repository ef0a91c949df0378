"""``--config``: OpenVINO's properties, for all devices or for one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from refusals import DEVICES, assert_refused

from command_line import Command
from ov_autoplace.decide import comparison

BENCH = ("bench", "--seconds", "0.1", "--no-isolation", "--mode", "zero-shot", "--json")


@pytest.fixture
def compiled_with(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The properties by device of each session that is opened."""
    seen: list[dict[str, Any]] = []

    class Noted(comparison.ProfilingSession):
        def __init__(self, *arguments: Any, **named: Any) -> None:
            super().__init__(*arguments, **named)
            seen.append({device: dict(named["properties"][device]) for device in named["devices"]})

    monkeypatch.setattr(comparison, "ProfilingSession", Noted)
    return seen


@pytest.mark.parametrize(
    "config",
    [
        {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 1}}},
        {"DEVICE_PROPERTIES": "{CPU:{NUM_STREAMS:1}}"},
        {"CPU": {"NUM_STREAMS": 1}},
    ],
    ids=["mapping", "OpenVINO's text", "benchmark_app's file"],
)
def test_a_property_of_one_device_goes_to_no_other(
    cli: Command, small_ir: Path, tmp_path: Path, compiled_with: list[dict[str, Any]], config: dict[str, Any]
) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config))

    cli(*BENCH, small_ir, *DEVICES, "--config", file).json()

    (own,) = compiled_with
    assert str(own["CPU"]["NUM_STREAMS"]) == "1"
    assert "NUM_STREAMS" not in own["XCPU"]


def test_a_property_may_have_a_value_for_each_device(
    cli: Command, small_ir: Path, compiled_with: list[dict[str, Any]]
) -> None:
    cli(*BENCH, small_ir, *DEVICES, "--config", json.dumps({"NUM_STREAMS": "{XCPU:1,CPU:2}"})).json()

    (own,) = compiled_with
    assert {device: str(properties["NUM_STREAMS"]) for device, properties in own.items()} == {
        "XCPU": "1",
        "CPU": "2",
    }


@pytest.mark.alone
def test_threads_that_are_set_for_a_device_are_not_chosen_for_it(cli: Command, small_ir: Path) -> None:
    def rows(config: dict[str, Any]) -> set[str]:
        asked = cli(*BENCH, small_ir, "-d", "CPU", "--config", json.dumps(config)).json()
        return {row["name"] for row in asked["rows"]}

    assert {"CPU", "CPU (1 thread)"} <= rows({}), "this test needs a CPU of two threads"
    assert "CPU (1 thread)" not in rows({"CPU": {"INFERENCE_NUM_THREADS": 2}})


@pytest.mark.parametrize("command", ["annotate", "explain", "bench", "calibrate"])
@pytest.mark.parametrize(
    ("config", "words"),
    [
        ({"CPU": {"NUM_STRAEMS": 1}}, ("CPU has no property 'NUM_STRAEMS'", "did you mean NUM_STREAMS?")),
        ({"CPU": {"NUM_STREAMS": "many"}}, ("NUM_STREAMS is 'many', which CPU refuses",)),
        ({"CUP": {"NUM_STREAMS": 1}}, ("there is no device 'CUP' here", "did you mean 'CPU'?")),
        ({"CPU": {}, "DEVICE_PROPERTIES": {}}, ("CPU", "beside DEVICE_PROPERTIES")),
        ({"DEVICE_PROPERTIES": "CPU"}, ("DEVICE_PROPERTIES is 'CPU'", "maps a device to its properties")),
    ],
    ids=["a name", "a value", "a device", "said twice", "no mapping"],
)
def test_what_a_device_does_not_take_is_refused(
    cli: Command, small_ir: Path, tmp_path: Path, command: str, config: dict[str, Any], words: tuple[str, ...]
) -> None:
    given = ["-o", tmp_path / "out.json"] if command == "calibrate" else [small_ir]
    assert_refused(cli(command, *given, *DEVICES, "--config", json.dumps(config)), *words)
    assert not (tmp_path / "out.json").exists()
