"""What is written of models, to be measured, shipped or run on lanes, is read as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from ov_autoplace._base import releases
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.stored_submodels import store
from ov_autoplace.plugin.annotated_files import save_annotated


def measured(model: ov.Model, folder: Path) -> ov.Model:
    return ov.Core().read_model(save_ir(model, folder))


def annotated(model: ov.Model, folder: Path) -> ov.Model:
    return ov.Core().read_model(save_annotated(model, Placement.on_device(model, "CPU"), folder, "net").model)


def stored(model: ov.Model, folder: Path) -> ov.Model:
    (text,), weights = store([model])
    return ov.Core().read_model(text.data.tobytes(), ov.Tensor(weights.data))


@pytest.mark.parametrize("written", [measured, annotated, stored])
def test_infinite_bounds_are_not_read_as_zeros(
    written: Callable[[ov.Model, Path], ov.Model], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    facts = releases.facts
    monkeypatch.setattr(releases, "facts", lambda _=None: facts("2026.1.0"))
    x = ops.parameter([3], name="inf")
    above = ops.clamp(x, 0.0, float("inf"), name='above "inf"')
    below = ops.clamp(above, -float("inf"), 5.0, name="below")

    read = written(ov.Model([ops.result(below)], [x], "bounds"), tmp_path)

    found = {op.get_friendly_name(): op.get_attributes() for op in read.get_ops()}
    largest = float(np.finfo(np.float32).max)
    assert (found['above "inf"']["min"], found['above "inf"']["max"]) == (0.0, largest)
    assert (found["below"]["min"], found["below"]["max"]) == (-largest, 5.0)
    assert "inf" in found
