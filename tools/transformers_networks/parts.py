"""Sizes, example inputs and ways of making that many networks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    import torch

__all__ = ["ENCODER_DECODER", "WIDTHS", "Made", "image", "made_of", "masked", "part_of", "tokens", "values"]

Made: TypeAlias = tuple[Any, dict[str, Any], list[str]]
"""A network, its example inputs, and the fields of its answer that are outputs; none = all of it."""

WIDTHS: dict[str, int] = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 48,
}
ENCODER_DECODER = {
    "vocab_size": 99,
    "d_model": 32,
    "encoder_layers": 1,
    "decoder_layers": 2,
    "encoder_attention_heads": 2,
    "decoder_attention_heads": 2,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
    "decoder_start_token_id": 1,
    "use_cache": False,
}


def tokens(length: int = 7, name: str = "input_ids") -> dict[str, torch.Tensor]:
    import torch

    return {name: torch.ones(1, length, dtype=torch.int64)}


def masked(length: int = 7) -> dict[str, torch.Tensor]:
    return {**tokens(length), **tokens(length, name="attention_mask")}


def image(height: int = 32, width: int = 32) -> dict[str, torch.Tensor]:
    import torch

    return {"pixel_values": torch.zeros(1, 3, height, width)}


def values(name: str, *shape: int) -> dict[str, torch.Tensor]:
    import torch

    return {name: torch.zeros(*shape)}


def made_of(kind: str, config: str, inputs: dict[str, Any], outputs: list[str], **sizes: Any) -> Made:
    """The class ``kind`` of transformers made from its class ``config`` with ``sizes``."""
    import transformers

    made = getattr(transformers, kind)(getattr(transformers, config)(**sizes))
    return made, inputs, outputs


def part_of(whole: str, config: str, part: str, inputs: dict[str, Any], **sizes: Any) -> Made:
    """The submodule ``part`` of a network, such as a decoder."""
    network, _, _ = made_of(whole, config, {}, [], **sizes)
    for name in part.split("."):
        network = getattr(network, name)
    return network, inputs, ["last_hidden_state"]
