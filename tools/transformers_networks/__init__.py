"""Networks of the transformers library for checks of legality: many architectures, tiny, random weights.

Each is traced as it comes, so that shape arithmetic, data-dependent sizes and odd constants stay in the
graph. ``name`` has static inputs, ``name:dynamic`` leaves all dimensions of the inputs open, and
``name:int8`` has static inputs and weights stored in eight bits with their decompression in the graph.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from transformers_networks.families import BUILDERS

if TYPE_CHECKING:
    import torch

__all__ = ["NAMES", "Network", "build"]


class Network(NamedTuple):
    """A converted network and the shapes of the inputs that it was traced with, by input name."""

    model: ov.Model
    shapes: dict[str, list[int]]


_DYNAMIC = (
    "bert",
    "roberta",
    "distilbert",
    "mpnet",
    "gpt_neox",
    "llama",
    "llama_eager",
    "mistral",
    "mixtral",
    "mixtral_eager",
    "qwen2",
    "phi",
    "bart",
    "t5",
    "whisper_decoder",
    "unet",
    "wav2vec2",
    "convnext",
    "segformer",
    "mobilevit",
    "deberta",
    "dpt",
    "detr",
)
_INT8 = ("bert", "swin", "vit", "llama", "t5")

NAMES = (*BUILDERS, *(f"{name}:dynamic" for name in _DYNAMIC), *(f"{name}:int8" for name in _INT8))


def build(name: str, seed: int = 0) -> Network:
    """One network of :data:`NAMES`, with weights from ``seed``.

    Raises:
        ValueError: There is no such network.
    """
    import torch

    kind, _, variant = name.partition(":")
    if name not in NAMES:
        raise ValueError(f"there is no network {name!r}; known are {', '.join(NAMES)}")
    torch.manual_seed(seed)
    network, inputs, outputs = BUILDERS[kind]()
    model = _traced(network.eval(), inputs, outputs)
    model.friendly_name = name
    shapes = {}
    for port, (key, value) in zip(model.inputs, inputs.items(), strict=True):
        shapes[key] = list(value.shape)
        port.set_names({key})
        port.get_node().set_friendly_name(key)
        if variant != "dynamic":
            port.get_node().set_partial_shape(ov.PartialShape(list(value.shape)))
    model.validate_nodes_and_infer_types()
    if variant == "int8":
        _store_in_eight_bits(model)
    return Network(model, shapes)


def _traced(network: torch.nn.Module, inputs: dict[str, torch.Tensor], outputs: list[str]) -> ov.Model:
    import torch

    class Fields(torch.nn.Module):
        """The network with plain tensors as output, which is what tracing understands."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *values: torch.Tensor) -> Any:
            answer = self.network(**dict(zip(inputs, values, strict=True)))
            return tuple(getattr(answer, field) for field in outputs) if outputs else answer

    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ov.convert_model(Fields().eval(), example_input=tuple(inputs.values()))


def _store_in_eight_bits(model: ov.Model) -> None:
    """Replace the weights of MatMul and Convolution by i8 with a scale per row, as NNCF stores them."""
    for op in model.get_ordered_ops():
        if (
            op.get_type_name() not in ("MatMul", "Convolution")
            or op.input_value(1).get_node().get_type_name() != "Constant"
        ):
            continue
        weights = op.input_value(1).get_node().get_data().astype(np.float32)
        axes = tuple(range(1, weights.ndim))
        scale = np.maximum(np.abs(weights).max(axis=axes, keepdims=True), 1e-9) / 127
        stored = opset.constant(np.round(weights / scale).astype(np.int8))
        whole = opset.multiply(opset.convert(stored, "f32"), opset.constant(scale.astype(np.float32)))
        op.input(1).replace_source_output(whole.output(0))
