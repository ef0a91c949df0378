"""What a network of the transformers library is made of, and how it becomes a model."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import openvino as ov
from numpy.typing import NDArray
from openvino import opset13 as ops

if TYPE_CHECKING:
    import torch


BODY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
"""Of most encoders and decoders, under the names that most configurations give them."""

VOCABULARY = 200

Inputs = Mapping[str, NDArray[Any]]
"""What a network is traced on, by name."""

_OUTPUTS = {
    "Model": ("last_hidden_state",),
    "ForObjectDetection": ("logits", "pred_boxes"),
    "ForDepthEstimation": ("predicted_depth",),
}
"""Fields of the answer by what the network is for; ``logits`` of all others."""


class Config(NamedTuple):
    """A configuration of the library: its family, and what differs from its defaults."""

    family: str
    sizes: Mapping[str, Any]

    def made(self) -> Any:
        """The library's object."""
        import transformers

        sizes = {key: v.made() if isinstance(v, Config) else v for key, v in self.sizes.items()}
        return getattr(transformers, f"{self.family}Config")(**sizes)


class Recipe(NamedTuple):
    """A network: the class that is made of a configuration, its inputs, the fields of its answer to keep."""

    config: Config
    name: str
    inputs: Inputs
    outputs: Sequence[str]


def recipe(
    family: str, head: str, inputs: Inputs, outputs: Sequence[str] | None = None, **sizes: Any
) -> Recipe:
    """The class ``{family}{head}`` of the library, with these sizes."""
    kept = _OUTPUTS.get(head, ("logits",)) if outputs is None else outputs
    return Recipe(Config(family, sizes), family + head, inputs, kept)


def tokens(*names: str, count: int = 16) -> Inputs:
    """Token indices and masks, ``int64[1, count]``, all 1."""
    return {name: np.ones((1, count), np.int64) for name in names}


def floats(name: str, *shape: int) -> Inputs:
    """``float32[1, *shape]``, all 0."""
    return {name: np.zeros((1, *shape), np.float32)}


def masked() -> Inputs:
    """Tokens, all of which count."""
    return tokens("input_ids", "attention_mask")


def image(height: int, width: int | None = None) -> Inputs:
    """A picture."""
    return floats("pixel_values", 3, height, width or height)


def network(made_of: Recipe, seed: int, open_shapes: bool = False) -> ov.Model:
    """The network with random weights, traced on its inputs, whose shapes it keeps unless they are opened."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = made_of.config.made()
    made = getattr(transformers, made_of.name)(config)
    return converted(made, made_of.inputs, made_of.outputs, open_shapes)


def converted(
    made: torch.nn.Module, inputs: Inputs, outputs: Sequence[str] = (), open_shapes: bool = False
) -> ov.Model:
    """A network of the library, traced on inputs, whose shapes it keeps unless they are opened.

    Args:
        made: The network.
        inputs: By name.
        outputs: Fields of its answer to keep; the first one when empty.
        open_shapes: Whether all dimensions of the inputs are open.
    """
    import torch

    model = traced(_fields(made, inputs, outputs), [torch.from_numpy(value) for value in inputs.values()])
    for port, (name, value) in zip(model.inputs, inputs.items(), strict=True):
        name_input(port, name, [-1] * value.ndim if open_shapes else value.shape)
    for port, name in zip(model.outputs, outputs, strict=bool(outputs)):
        port.set_names({name})
    model.validate_nodes_and_infer_types()
    return model


def _fields(made: torch.nn.Module, inputs: Inputs, outputs: Sequence[str]) -> torch.nn.Module:
    """A network with plain tensors as output, which is what tracing understands."""
    import torch

    class Fields(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.network = made

        def forward(self, *values: torch.Tensor) -> Any:
            answer = self.network(**dict(zip(inputs, values, strict=True)))
            if isinstance(answer, torch.Tensor):
                return answer
            return tuple(getattr(answer, field) for field in outputs) if outputs else answer[0]

    return Fields()


def traced(made: torch.nn.Module, inputs: Sequence[torch.Tensor]) -> ov.Model:
    """A network that takes and gives tensors, traced on some."""
    import torch

    with torch.no_grad(), warnings.catch_warnings():
        # Tracing warns about every shape that becomes a constant; shapes are meant to be constant here.
        warnings.simplefilter("ignore")
        return ov.convert_model(made.eval(), example_input=tuple(inputs))


def name_input(port: ov.Output, name: str, shape: Sequence[int]) -> None:
    """Name an input and its tensor, and give it a shape in which -1 is open."""
    port.set_names({name})
    port.get_node().set_friendly_name(name)
    port.get_node().set_partial_shape(ov.PartialShape(list(shape)))


def store_in_eight_bits(model: ov.Model) -> None:
    """Replace the weights of MatMul and Convolution by i8 with a scale per row, as NNCF stores them."""
    for op in model.get_ordered_ops():
        if op.get_type_name() not in ("MatMul", "Convolution"):
            continue
        stored = op.input_value(1).get_node()
        if stored.get_type_name() != "Constant":
            continue
        weights = stored.get_data().astype(np.float32)
        scale = np.maximum(np.abs(weights).max(axis=tuple(range(1, weights.ndim)), keepdims=True), 1e-9) / 127
        rounded = ops.constant(np.round(weights / scale).astype(np.int8))
        whole = ops.multiply(ops.convert(rounded, "f32"), ops.constant(scale.astype(np.float32)))
        op.input(1).replace_source_output(whole.output(0))
