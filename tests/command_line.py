"""What the tests of the command line share: running it, and small models; a plugin of tests/conftest.py."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace.cli import arguments, main

__all__ = ["EXTRA_DEVICES", "Command", "Outcome", "cli", "small_ir", "two_layers"]

EXTRA_DEVICES = "XCPU=CPU,INFERENCE_NUM_THREADS=1"


class Outcome(NamedTuple):
    """What a command left behind."""

    code: int
    out: str
    err: str

    def json(self) -> dict[str, Any]:
        """The one JSON object that is all of stdout."""
        assert self.code == 0, self.err
        value = json.loads(self.out)
        assert isinstance(value, dict)
        return value


Command = Callable[..., Outcome]


def two_layers(shape: list[int] | ov.PartialShape) -> ov.Model:
    """A convolution with ReLU and a second convolution; the input is called ``image``."""
    rng = np.random.default_rng(3)
    x = ops.parameter(shape, name="image")
    x.output(0).set_names({"image"})
    kernels = [
        ops.constant(rng.normal(size=(4, channels, 3, 3)).astype(np.float32), name=f"weights{channels}")
        for channels in (3, 4)
    ]
    same = {"strides": [1, 1], "pads_begin": [1, 1], "pads_end": [1, 1], "dilations": [1, 1]}
    first = ops.convolution(x, kernels[0], **same, name="first")
    second = ops.convolution(ops.relu(first, name="relu"), kernels[1], **same, name="second")
    return ov.Model([ops.result(second, name="answer")], [x], "two_layers")


def gated_unit() -> ov.Model:
    """``swish(x A) * (x B)`` times ``C``, as in language models."""
    x = ops.parameter([4, 64], np.float32)
    weights = np.full((64, 64), 0.1, np.float32)
    gate, value = (ops.matmul(x, weights, False, True) for _ in range(2))
    return ov.Model([ops.matmul(ops.multiply(ops.swish(gate), value), weights, False, True)], [x], "gated")


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Command:
    """Runs a command line in this process; XCPU is there beside CPU."""
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", EXTRA_DEVICES)

    def run(*arguments: object) -> Outcome:
        capfd.readouterr()
        code = main([str(argument) for argument in arguments])
        return Outcome(code, *capfd.readouterr())

    return run


@pytest.fixture
def fail_with() -> Iterator[Callable[[BaseException], None]]:
    """Gives the program a command ``fail`` that raises an exception."""
    from ov_autoplace.cli.app import app

    before = list(app.registered_commands)

    def add(error: BaseException) -> None:
        @app.command("fail")
        def fail(as_json: arguments.Json = False) -> None:
            raise error

    yield add
    app.registered_commands[:] = before


@pytest.fixture
def small_ir(tmp_path: Path) -> Path:
    """A small IR in a folder that holds nothing else."""
    folder = tmp_path / "models"
    folder.mkdir()
    path = folder / "net.xml"
    ov.save_model(two_layers([1, 3, 16, 16]), path, compress_to_fp16=False)
    return path


def candidates_of(report: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """What a command printed of each candidate with ``--json``, by name."""
    return {candidate["name"]: candidate for candidate in report["candidates"]}


def proposers_of(report: Mapping[str, Any]) -> set[str]:
    """Everybody who proposed something."""
    return {name for c in report["candidates"] for name in (c["name"], *c["also_proposed_by"])}
