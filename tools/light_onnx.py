"""Models that nobody here wrote: the nine ``light_*.onnx`` networks shipped inside the onnx package."""

from __future__ import annotations

import math
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset15 as ops

NAMES = (
    "bvlc_alexnet",
    "densenet121",
    "inception_v1",
    "inception_v2",
    "resnet50",
    "shufflenet",
    "squeezenet",
    "vgg19",
    "zfnet512",
)


def path_of(name: str) -> Path:
    """The file of one network.

    Raises:
        FileNotFoundError: The onnx package is not installed.
    """
    spec = find_spec("onnx")
    if spec is None or spec.origin is None:
        raise FileNotFoundError("the light networks come with the onnx package: pip install onnx")
    return Path(spec.origin).parent / "backend" / "test" / "data" / "light" / f"light_{name}.onnx"


def build(name: str, seed: int = 0) -> ov.Model:
    """One network with random weights, without the Softmax at its end.

    As shipped, all weights are one number and every class gets the same probability whatever the image
    is, so a comparison of outputs would prove nothing; nor would it behind a saturated Softmax.
    """
    shipped = ov.Core().read_model(path_of(name))
    random = np.random.default_rng(seed)
    for op in shipped.get_ordered_ops():
        if _is_weight(op):
            weight = ops.constant(_values(op, random), name=op.friendly_name)
            op.output(0).replace(weight.output(0))
    softmax = next((op for op in shipped.get_ops() if op.get_type_name() == "Softmax"), None)
    last = shipped.get_results()[0] if softmax is None else softmax
    logits = ops.result(last.input_value(0), name="logits")
    return ov.Model([logits], shipped.get_parameters(), f"light_{name}")


def _is_weight(op: ov.Node) -> bool:
    """A ConstantOfShape of the file, which OpenVINO reads as a Broadcast of a scalar."""
    if op.get_type_name() != "Broadcast":
        return False
    return str(op.input_value(1).get_node().friendly_name).endswith("__SHAPE")


def _values(weight: ov.Node, random: np.random.Generator) -> NDArray[np.float32]:
    shape = tuple(weight.get_output_shape(0))
    if len(shape) > 1:  # He initialisation
        std = np.float32(math.sqrt(2.0 / math.prod(shape[1:])))
        return random.standard_normal(shape, dtype=np.float32) * std
    if _normalizes(weight):
        # Scale, shift, mean and variance near 1: almost the identity, as with trained statistics.
        return random.uniform(0.9, 1.1, shape).astype(np.float32)
    return random.standard_normal(shape, dtype=np.float32) * np.float32(0.1)


def _normalizes(weight: ov.Node) -> bool:
    """A vector of a batch normalisation, or the scale that some files apply behind one."""
    readers = _readers(weight)
    if "Unsqueeze" in readers:
        return "Multiply" in _readers(readers["Unsqueeze"])
    return "BatchNormInference" in readers


def _readers(op: ov.Node) -> dict[str, ov.Node]:
    """The ops that read an op's output, by type."""
    nodes = [target.get_node() for target in op.output(0).get_target_inputs()]
    return {node.get_type_name(): node for node in nodes}
