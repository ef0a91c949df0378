"""Readers of texts that users type or set: options, properties, configurations, names of devices."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.cli.placer_options import options_of, read_config
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.options import PlacerOptions, split_config
from ov_autoplace.devices.extra_devices import EXTRA_DEVICES_VARIABLE, register_extra_devices
from ov_autoplace.devices.names import resolve_devices
from ov_autoplace.graph.shapes import with_static_shapes
from ov_autoplace.problem.constraints import Constraints
from ov_autoplace.training.finetuning.budget import parse_seconds

CONFIGURATION = {"AUTOPLACE_MODE": "TUNE", "AUTOPLACE_PINS": {"*": "CPU"}, "PERFORMANCE_HINT": "LATENCY"}
OPTIONS: tuple[dict[str, Any], ...] = (
    {
        "mode": "profile",
        "time_budget_ms": 100,
        "pins": {"*": "CPU"},
        "memory_limits": {"CPU": "2GiB"},
        "shapes": {"x": [1, 2]},
        "target": "x.json",
        "solvers": "portfolio,local",
        "seed": 3,
    },
    {
        "time_budget_ms": "10",
        "pins": '{"a*": "CPU"}',
        "memory_limits": '{"CPU": "1.5 KB"}',
        "shapes": '{"x": [3]}',
        "solvers": ["greedy"],
        "seed": "7",
    },
)
ARGUMENTS: tuple[dict[str, Any], ...] = (
    {
        "pins": ["a*=CPU", "b=c=GPU.0"],
        "memory_limits": ["CPU=2GiB", "GPU=1e9"],
        "shapes": ["x=[1,3,224]", "y=4"],
        "config": '{"AUTOPLACE_SHAPES": {"z": [2]}, "INFERENCE_PRECISION_HINT": "f32"}',
        "seed": 1,
    },
)
CONSTRAINTS: tuple[dict[str, Any], ...] = (
    {"pins": {"op[0-1]": "GPU", "*b": "CPU"}, "memory_limits": {"CPU": 5, "GPU": "1KB"}},
)
SHAPES: tuple[dict[str, Any], ...] = ({"x": [1, 3, 8, 8]}, {"named": [1, 3, 4, 4], "y": [2]})
EXTRA_DEVICES = ("XCPU=CPU,INFERENCE_NUM_THREADS=1", "XCPU=CPU; YCPU=CPU,PERFORMANCE_HINT=LATENCY")


def _text(data: bytes) -> str:
    """Any text that can reach a program: what is not UTF-8 becomes surrogates, as in ``sys.argv``."""
    return os.fsdecode(data)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def configuration(data: bytes, folder: Path) -> None:
    """``--config`` that is the object itself."""
    text = _text(data).replace("\0", "")
    split_config(read_config("{" + text if not text.lstrip().startswith("{") else text))


def options(given: Any, folder: Path) -> None:
    """The placer's options as Python values."""
    PlacerOptions.from_arguments(_object(given))


def command_line(value: Any, folder: Path) -> None:
    """The options of the command line, which are texts, made into the placer's."""
    given = _object(value)
    lists = {
        name: [text for text in value if isinstance(text, str)]
        for name in ("pins", "memory_limits", "shapes")
        if isinstance(value := given.get(name), list)
    }
    texts = {
        name: value for name in ("target", "solvers", "config") if isinstance(value := given.get(name), str)
    }
    numbers: dict[str, Any] = {}
    if type(given.get("seed")) is int:
        numbers["seed"] = given["seed"]
    if isinstance(given.get("time_budget_ms"), float):
        numbers["time_budget_ms"] = given["time_budget_ms"]
    options_of({"config": None} | numbers | lists | texts)


@cache
def _table() -> CostTable:
    G, D = 4, 2
    return CostTable(
        devices=("GPU", "CPU"),
        names=tuple(f"op{i}" for i in range(G)),
        op_seconds=np.ones((G, D)),
        tensor_producer=np.array([0]),
        tensor_bytes=np.array([4.0]),
        tensor_offsets=np.array([0, 1]),
        tensor_consumers=np.array([1]),
        tensor_is_constant=np.array([False]),
        tensor_uncuttable=np.array([True]),
        transfer_latency=np.zeros((D, D)),
        transfer_seconds_per_byte=np.zeros((D, D)),
        launch_seconds=np.zeros(D),
        memory_bytes=np.ones(G),
        memory_capacity=np.full(D, np.inf),
        members=tuple((f"op{i}", f"op{i}/b") for i in range(G)),
    )


def constraints(value: Any, folder: Path) -> None:
    """Pins and memory limits, as options read them and as a table takes them."""
    given = _object(value)
    read = PlacerOptions.from_arguments(
        {"pins": given.get("pins", {}), "memory_limits": given.get("memory_limits", {})}
    )
    Constraints.of(_table(), read.memory_limits, read.pins)


@cache
def _dynamic() -> ov.Model:
    x = ops.parameter(ov.PartialShape([-1, 3, ov.Dimension(2, 9), -1]), name="x")
    y = ops.parameter(ov.PartialShape([-1]), name="y")
    x.output(0).set_names({"named"})
    return ov.Model([ops.result(ops.relu(x)), ops.result(ops.relu(y))], [x, y], "net")


def shapes(given: Any, folder: Path) -> None:
    """Shapes of a dynamic model's inputs."""
    read = PlacerOptions.from_arguments({"shapes": _object(given)})
    with_static_shapes(_dynamic(), read.shapes)


def budget(data: bytes, folder: Path) -> None:
    """A time such as ``5m``."""
    assert parse_seconds(_text(data)) > 0


@cache
def _core() -> ov.Core:
    return ov.Core()


def devices(data: bytes, folder: Path) -> None:
    """A list of devices."""
    resolve_devices(_core(), _text(data))


def extra_devices(data: bytes, folder: Path) -> None:
    """The variable that registers devices; a Core of its own each time."""
    text = _text(data).replace("\0", "")
    with mock.patch.dict(os.environ, {EXTRA_DEVICES_VARIABLE: text}):
        register_extra_devices(ov.Core())
