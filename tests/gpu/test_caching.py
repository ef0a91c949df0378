"""Compiled models that leave and come back: CACHE_DIR, export and import, with a GPU among the devices."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest
from gpu_models import new_core

from model_checks import outputs_of, relative_error

TIGHT = 5e-4
MIXED = {"AUTOPLACE_MODE": "ZERO_SHOT", "AUTOPLACE_PINS": {"query0": "GPU", "outer0": "CPU"}}
WAYS = [("GPU", {}), ("HETERO:GPU,CPU", {}), ("AUTOPLACE:GPU,CPU", MIXED)]


@pytest.mark.parametrize(("device", "config"), WAYS)
def test_the_second_compile_reads_what_the_first_wrote(
    model, inputs, expected, tmp_path, device, config
) -> None:
    def compile_and_check() -> dict[Path, int]:
        compiled = new_core().compile_model(model, device, {**config, "CACHE_DIR": str(tmp_path)})
        assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT
        return {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*.blob")}

    first = compile_and_check()
    assert first
    assert compile_and_check() == first


@pytest.mark.parametrize(("device", "config"), WAYS)
def test_export_and_import(model, inputs, expected, device, config) -> None:
    # A name for the Core: HETERO crashes while it exports a model whose Core is gone.
    exporting, importing = new_core(), new_core()
    blob = exporting.compile_model(model, device, config).export_model()
    compiled = importing.import_model(blob, device.split(":")[0])
    assert relative_error(outputs_of(compiled, inputs), expected) < TIGHT
    if config:
        assert set(compiled.get_property("EXECUTION_DEVICES")) == {"GPU", "CPU"}


def test_a_cached_model_is_not_taken_for_one_of_another_precision(model, inputs, expected, tmp_path) -> None:
    """A blob of the GPU holds kernels of one precision."""
    errors = []
    for hint in ("f16", "f32", "f16"):
        config = {**MIXED, "CACHE_DIR": str(tmp_path), "INFERENCE_PRECISION_HINT": hint}
        compiled = ov.Core().compile_model(model, "AUTOPLACE:GPU,CPU", config)
        errors.append(relative_error(outputs_of(compiled, inputs), expected))
    assert errors[1] < 0.1 * errors[0]
    assert errors[2] == pytest.approx(errors[0], rel=0.1)
