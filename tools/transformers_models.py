"""Models that nobody here wrote: networks of the transformers library with seeded random weights.

Nothing is downloaded: each network is made from a configuration and converted in memory. Needs torch
and transformers, which are imported only when a network is built.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import openvino as ov

if TYPE_CHECKING:
    import torch

__all__ = ["NAMES", "build", "converted"]


def build(name: str, size: Literal["small", "full"] = "small", seed: int = 0) -> ov.Model:
    """One network, converted to OpenVINO with static shapes (the decoder's sequence excepted).

    Args:
        name: One of :data:`NAMES`.
        size: ``"small"`` for tests (2 or 3 layers, 64 channels); ``"full"`` for the dimensions of the
            library's default configuration.
        seed: Of the weights.

    Raises:
        ValueError: There is no such network.
    """
    import torch

    if name not in _BUILDERS:
        raise ValueError(f"there is no network {name!r}; known are {', '.join(NAMES)}")
    torch.manual_seed(seed)
    model = _BUILDERS[name](size == "small")
    model.friendly_name = name
    return model


def converted(network: torch.nn.Module, inputs: dict[str, torch.Tensor], outputs: list[str]) -> ov.Model:
    """``network`` traced on ``inputs``; of the fields that it returns, ``outputs`` are kept."""
    import torch

    class Fields(torch.nn.Module):
        """The network with plain tensors as output, which is what tracing understands."""

        def __init__(self) -> None:
            super().__init__()
            self.network = network

        def forward(self, *values: torch.Tensor) -> tuple[torch.Tensor, ...]:
            answer = self.network(**dict(zip(inputs, values, strict=True)))
            return tuple(getattr(answer, field) for field in outputs)

    model = _traced(Fields(), tuple(inputs.values()))
    for port, (name, value) in zip(model.inputs, inputs.items(), strict=True):
        port.set_names({name})
        port.get_node().set_friendly_name(name)
        port.get_node().set_partial_shape(ov.PartialShape(list(value.shape)))
    for port, name in zip(model.outputs, outputs, strict=True):
        port.set_names({name})
    model.validate_nodes_and_infer_types()
    return model


def _traced(network: torch.nn.Module, inputs: tuple[torch.Tensor, ...]) -> ov.Model:
    import torch

    network.eval()
    with torch.no_grad(), warnings.catch_warnings():
        # Tracing warns about every shape that becomes a constant; shapes are meant to be constant here.
        warnings.simplefilter("ignore")
        return ov.convert_model(network, example_input=inputs)


def _bert(small: bool) -> ov.Model:
    import torch
    from transformers import BertConfig, BertModel

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = BertConfig(vocab_size=200, attn_implementation="eager", **sizes) if small else BertConfig()
    tokens = 16 if small else 128
    ids = torch.ones(1, tokens, dtype=torch.int64)
    inputs = {"input_ids": ids, "attention_mask": ids, "token_type_ids": ids}
    return converted(BertModel(config), inputs, ["last_hidden_state", "pooler_output"])


def _vit(small: bool) -> ov.Model:
    from transformers import ViTConfig, ViTForImageClassification

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = ViTConfig(image_size=64, **sizes) if small else ViTConfig()
    return converted(ViTForImageClassification(config), _image(config.image_size), ["logits"])


def _resnet(small: bool) -> ov.Model:
    from transformers import ResNetConfig, ResNetForImageClassification

    sizes = {"embedding_size": 16, "hidden_sizes": [32, 64], "depths": [1, 2]}
    config = ResNetConfig(**sizes) if small else ResNetConfig()
    return converted(ResNetForImageClassification(config), _image(64 if small else 224), ["logits"])


def _segformer(small: bool) -> ov.Model:
    from transformers import SegformerConfig, SegformerForSemanticSegmentation

    sizes = {"depths": [1, 1, 1, 1], "hidden_sizes": [16, 32, 48, 64], "decoder_hidden_size": 64}
    config = SegformerConfig(**sizes) if small else SegformerConfig()
    network = SegformerForSemanticSegmentation(config)
    return converted(network, _image(64 if small else 512), ["logits"])


def _yolos(small: bool) -> ov.Model:
    from transformers import YolosConfig, YolosForObjectDetection

    sizes = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
    config = YolosConfig(image_size=[64, 96], num_detection_tokens=10, **sizes) if small else YolosConfig()
    network = YolosForObjectDetection(config)
    return converted(network, _image(*config.image_size), ["logits", "pred_boxes"])


def _image(height: int, width: int | None = None) -> dict[str, torch.Tensor]:
    import torch

    return {"pixel_values": torch.zeros(1, 3, height, width or height)}


def _gpt2(small: bool) -> ov.Model:
    """A decoder whose keys and values are OpenVINO state; any number of tokens goes in at once."""
    import torch
    from openvino._offline_transformations import apply_make_stateful_transformation
    from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 200, "n_positions": 64}
    sizes |= {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(attn_implementation="eager", **(sizes if small else {}))

    class WithCache(torch.nn.Module):
        """Past keys and values in, present ones out, all as plain tensors."""

        def __init__(self) -> None:
            super().__init__()
            self.network = GPT2LMHeadModel(config)

        def forward(self, ids: torch.Tensor, mask: torch.Tensor, *past: torch.Tensor) -> tuple[Any, ...]:
            cache = DynamicCache(config=config)
            for layer, key, value in zip(cache.layers, past[::2], past[1::2], strict=True):
                # Set, not appended: update() would concatenate to an empty tensor of rank 1, which
                # torch forgives and OpenVINO does not.
                layer.lazy_initialization(key, value)
                layer.keys, layer.values = key, value
            answer = self.network(input_ids=ids, attention_mask=mask, past_key_values=cache, use_cache=True)
            present = (tensor for layer in cache.layers for tensor in (layer.keys, layer.values))
            return answer.logits, *present

    past = torch.zeros(1, config.n_head, 3, config.n_embd // config.n_head)
    example = (
        torch.ones(1, 2, dtype=torch.int64),
        torch.ones(1, 5, dtype=torch.int64),
        *[past] * (2 * config.n_layer),
    )
    model = _traced(WithCache(), example)
    states = [f"{i // 2}.{('key', 'value')[i % 2]}" for i in range(2 * config.n_layer)]
    names = ["input_ids", "attention_mask", *(f"past.{state}" for state in states)]
    for port, name, value in zip(model.inputs, names, example, strict=True):
        port.set_names({name})
        port.get_node().set_friendly_name(name)
        shape = ov.PartialShape(list(value.shape))
        shape[1 if value.dim() == 2 else 2] = -1
        port.get_node().set_partial_shape(shape)
    for port, name in zip(model.outputs, ["logits", *(f"present.{state}" for state in states)], strict=True):
        port.set_names({name})
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, {f"past.{state}": f"present.{state}" for state in states})
    return model


_BUILDERS: dict[str, Callable[[bool], ov.Model]] = {
    "bert": _bert,
    "vit": _vit,
    "resnet": _resnet,
    "gpt2": _gpt2,
    "segformer": _segformer,
    "yolos": _yolos,
}

NAMES = tuple(_BUILDERS)
