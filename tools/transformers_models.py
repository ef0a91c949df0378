"""Models that nobody here wrote: networks of the transformers library with seeded random weights.

Nothing is downloaded: each network is made from a configuration and converted in memory. Needs torch
and transformers, which are imported only when a network is built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import openvino as ov

from transformers_kinds.recipes import BODY, image, name_input, network, recipe, tokens, traced

if TYPE_CHECKING:
    import torch


_RECIPES = {
    "bert": recipe(
        "Bert",
        "Model",
        tokens("input_ids", "attention_mask", "token_type_ids"),
        ["last_hidden_state", "pooler_output"],
        vocab_size=200,
        attn_implementation="eager",
        **BODY,
    ),
    "vit": recipe("ViT", "ForImageClassification", image(64), image_size=64, **BODY),
    "resnet": recipe(
        "ResNet", "ForImageClassification", image(64), embedding_size=16, hidden_sizes=[32, 64], depths=[1, 2]
    ),
    "segformer": recipe(
        "Segformer",
        "ForSemanticSegmentation",
        image(64),
        depths=[1, 1, 1, 1],
        hidden_sizes=[16, 32, 48, 64],
        decoder_hidden_size=64,
    ),
    "yolos": recipe(
        "Yolos", "ForObjectDetection", image(64, 96), image_size=[64, 96], num_detection_tokens=10, **BODY
    ),
}

NAMES = ("bert", "vit", "resnet", "gpt2", "segformer", "yolos")


def build(name: str, seed: int = 0) -> ov.Model:
    """One network of 2 or 3 layers and 64 channels, with static shapes (the decoder's sequence excepted).

    Args:
        name: One of :data:`NAMES`.
        seed: Of the weights.

    Raises:
        ValueError: There is no such network.
    """
    if name not in NAMES:
        raise ValueError(f"there is no network {name!r}; known are {', '.join(NAMES)}")
    model = _gpt2(seed) if name == "gpt2" else network(_RECIPES[name], seed)
    model.friendly_name = name
    return model


def _gpt2(seed: int) -> ov.Model:
    """A decoder whose keys and values are OpenVINO state; any number of tokens goes in at once."""
    import torch
    from openvino._offline_transformations import apply_make_stateful_transformation
    from transformers import DynamicCache, GPT2Config, GPT2LMHeadModel

    torch.manual_seed(seed)
    sizes = {"n_embd": 64, "n_layer": 2, "n_head": 2, "vocab_size": 200, "n_positions": 64}
    sizes |= {"bos_token_id": 0, "eos_token_id": 0}
    config = GPT2Config(attn_implementation="eager", **sizes)

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

    states = [f"{i // 2}.{('key', 'value')[i % 2]}" for i in range(2 * config.n_layer)]
    past = torch.zeros(1, config.n_head, 3, config.n_embd // config.n_head)
    words = {
        "input_ids": torch.ones(1, 2, dtype=torch.int64),
        "attention_mask": torch.ones(1, 5, dtype=torch.int64),
    }
    inputs = words | {f"past.{state}": past for state in states}
    model = traced(WithCache(), list(inputs.values()))
    for port, (name, value) in zip(model.inputs, inputs.items(), strict=True):
        name_input(port, name, [1, -1] if value.dim() == 2 else [1, config.n_head, -1, value.shape[3]])
    for port, name in zip(model.outputs, ["logits", *(f"present.{state}" for state in states)], strict=True):
        port.set_names({name})
    model.validate_nodes_and_infer_types()
    apply_make_stateful_transformation(model, {f"past.{state}": f"present.{state}" for state in states})
    return model
