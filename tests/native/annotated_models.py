"""Models with a placement of our own, as the files that ``ov-autoplace annotate`` writes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.annotated_files import save_annotated

__all__ = ["Annotated", "answer_of", "convolutions", "save_placed", "submodels_of"]

DEVICES = ("CPU", "XCPU")
F32 = {"INFERENCE_PRECISION_HINT": "f32"}


class Annotated(NamedTuple):
    """An annotated model in a folder, and the same model without annotation."""

    model: Path
    plain: Path
    submodels: int


def convolutions() -> ov.Model:
    """Three convolutions with ReLU, ``a`` to ``c``, and a mean over each picture."""
    rng = np.random.default_rng(11)
    image = ops.parameter([1, 3, 16, 16], name="image")
    image.output(0).tensor.set_names({"image"})
    value = image
    for name in "abc":
        channels = value.output(0).shape[1]
        kernel = rng.normal(scale=0.3, size=(8, channels, 3, 3)).astype(np.float32)
        weights = ops.constant(kernel, name=f"{name}_weights")
        convolved = ops.convolution(value, weights, [1, 1], [1, 1], [1, 1], [1, 1], name=name)
        value = ops.relu(convolved, name=f"{name}_relu")
    means = ops.reduce_mean(value, ops.constant([2, 3], name="axes"), keep_dims=False, name="means")
    means.output(0).tensor.set_names({"means"})
    return ov.Model([ops.result(means, name="result")], [image], "convolutions")


def save_placed(model: ov.Model, device_of: Mapping[str, str], folder: Path) -> Annotated:
    """Put each op on ``device_of[its friendly name]``, and write it with and without annotation."""
    ov.save_model(model, folder / "plain.xml", compress_to_fp16=False)
    files = save_annotated(model, Placement.from_dict(dict(device_of)), folder, "net")
    return Annotated(files.model, folder / "plain.xml", submodels_of(files.model))


def submodels_of(annotated: Path) -> int:
    """How many submodels HETERO makes where somebody sets the affinities by hand, without any library."""
    core = ov.Core()
    model = core.read_model(annotated)
    for op in model.get_ops():
        marks = op.get_rt_info()
        marks["affinity"] = marks["user_data:autoplace"].astype(str)
    compiled = core.compile_model(model, f"HETERO:{','.join(DEVICES)}")
    return int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"))


def answer_of(plain: Path, inputs: np.ndarray) -> np.ndarray:
    """What the CPU alone answers, in f32."""
    core = ov.Core()
    model = core.read_model(plain)
    model.reshape(list(inputs.shape))
    return np.asarray(core.compile_model(model, "CPU", F32)([inputs])[0])
