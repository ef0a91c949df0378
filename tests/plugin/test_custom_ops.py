"""Models with ops that are not OpenVINO's own: what measures them loads the libraries that the Core has."""

from __future__ import annotations

import ctypes
import logging
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops
from openvino.utils.node_factory import NodeFactory

import ov_autoplace
from command_line import EXTRA_DEVICES
from cpp_programs import build_cpp
from ov_autoplace._base.releases import facts
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.extension import extensions_of
from ov_autoplace.measure.profiled import profile
from places import ROOT

PAIR = "AUTOPLACE:XCPU,CPU"


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("custom_op")
    build_cpp(ROOT / "tests" / "data" / "custom_op", build)
    library = build / "libcustom_op.so"
    # OpenVINO unloads it with the last factory or Core that has it, and crashes when its ops go later.
    ctypes.CDLL(str(library))
    return library


@pytest.fixture(scope="module")
def path(library: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model as a file: a matrix product, the op, another product."""
    factory = NodeFactory()
    factory.add_extension(library)
    x = ops.parameter([1, 64], np.float32, name="x")
    weights = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    first = ops.matmul(x, ops.constant(weights), False, False, name="first")
    doubled = factory.create("Doubled", [first.output(0)], {})
    doubled.set_friendly_name("doubled")
    second = ops.matmul(doubled, ops.constant(weights), False, False, name="second")
    path = tmp_path_factory.mktemp("models") / "custom.xml"
    ov.save_model(ov.Model([ops.result(second, name="y")], [x], "custom"), path, compress_to_fp16=False)
    return path


@pytest.fixture
def core(unequal_pair: ov.Core, library: Path) -> ov.Core:
    unequal_pair.add_extension(str(library))
    return unequal_pair


def run(compiled: ov.CompiledModel) -> np.ndarray:
    return compiled([np.linspace(-1, 1, 64, dtype=np.float32)[None]])[0]


PINS = {"AUTOPLACE_PINS": {"first": "XCPU", "second": "CPU"}}


@pytest.mark.parametrize(
    ("device", "config"),
    [
        *((PAIR, {"AUTOPLACE_ISOLATION": own, **pins}) for own in ("YES", "NO") for pins in ({}, PINS)),
        *(("AUTOPLACE:CPU", {"PERFORMANCE_HINT": hint}) for hint in ("THROUGHPUT", "LATENCY")),
    ],
)
def test_they_are_profiled_and_run(core, path, device, config, caplog):
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        compiled = core.compile_model(path, device, {"AUTOPLACE_TIME_BUDGET_MS": 300, **config})
    assert "left out" not in caplog.text
    np.testing.assert_allclose(run(compiled), run(core.compile_model(path, "CPU")), rtol=1e-4)
    if PINS.items() <= config.items():
        assert set(compiled.get_property("EXECUTION_DEVICES")) == {"XCPU", "CPU"}


def test_costs_of_the_op_are_measured(core, path):
    pair = ("XCPU", "CPU")
    transfers = TransferFit(pair, np.full((2, 2), 5e-6), np.full((2, 2), 1e-10), np.full(2, 1e-6))
    table = profile(core.read_model(path), pair, core, transfers=transfers)
    assert np.isfinite(table.op_seconds).all()


def test_libraries_are_noted_once_and_by_their_whole_path(core, library, monkeypatch):
    assert extensions_of(core) == (str(library),)
    monkeypatch.chdir(library.parent)
    core.add_extension(Path(library.name) if facts().adds_extensions_by_path else library.name)
    assert extensions_of(core) == (str(library),)
    assert extensions_of(ov.Core()) == ()
    own = ov.Core()
    own.add_extension(ov_autoplace.extension_path())
    assert extensions_of(own) == ()


class Halved(ov.Op):
    """An op of this process alone."""

    def __init__(self, inputs: list[ov.Output] | None = None) -> None:
        super().__init__(self)
        if inputs is not None:
            self.set_arguments(inputs)
            self.constructor_validate_and_infer_types()

    def validate_and_infer_types(self) -> None:
        self.set_output_type(0, self.get_input_element_type(0), self.get_input_partial_shape(0))

    def clone_with_new_inputs(self, inputs: list[ov.Output]) -> ov.Node:
        return Halved(inputs)

    def has_evaluate(self) -> bool:
        return True

    def evaluate(self, outputs: list[ov.Tensor], inputs: list[ov.Tensor]) -> bool:
        outputs[0].shape = inputs[0].shape
        outputs[0].data[:] = inputs[0].data / 2
        return True

    def visit_attributes(self, visitor: object) -> bool:
        return True


@pytest.mark.parametrize(
    ("devices", "hint"), [(PAIR, "LATENCY"), (PAIR, "THROUGHPUT"), ("AUTOPLACE:CPU", "THROUGHPUT")]
)
def test_ops_of_this_process_alone_are_placed_by_estimates(unequal_pair, caplog, devices, hint):
    unequal_pair.add_extension(Halved)
    x = ops.parameter([1, 64], np.float32, name="x")
    halved = Halved([ops.tanh(x, name="first").output(0)])
    model = ov.Model([ops.result(ops.relu(halved, name="second"))], [x], "halved")
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        compiled = unequal_pair.compile_model(model, devices, {"PERFORMANCE_HINT": hint})
    assert "costs are estimated" in caplog.text
    x = np.linspace(-1, 1, 64, dtype=np.float32)[None]
    np.testing.assert_allclose(compiled([x])[0], np.maximum(np.tanh(x) / 2, 0), rtol=1e-2, atol=1e-3)


def test_a_library_loaded_before_the_import_is_not_known_and_costs_are_estimated(library, path):
    code = (
        "import sys, openvino as ov; core = ov.Core(); core.add_extension(sys.argv[1]);"
        "import ov_autoplace; c = core.compile_model(sys.argv[2], 'AUTOPLACE:XCPU,CPU');"
        "print(c.get_property('EXECUTION_DEVICES'))"
    )
    command = [sys.executable, "-c", code, str(library), str(path)]
    pair = {**os.environ, "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=pair)
    assert done.stdout in ("['CPU']\n", "['XCPU']\n"), done.stderr
    assert "import ov_autoplace before core.add_extension" in done.stderr


def test_a_library_that_every_new_core_is_given_is_known_whenever_a_core_was_made(library, path):
    # As openvino_tokenizers does it.
    code = """
import sys, openvino as ov
make = ov.Core.__init__
def make_with_library(core, *arguments):
    make(core, *arguments)
    core.add_extension(sys.argv[1])
ov.Core.__init__ = make_with_library
core = ov.Core()
import ov_autoplace
print(core.compile_model(sys.argv[2], "AUTOPLACE:CPU").get_property("EXECUTION_DEVICES"))
"""
    command = [sys.executable, "-c", code, str(library), str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout == "['CPU']\n", done.stderr
    assert "estimated" not in done.stderr
    assert "is not tried" not in done.stderr
