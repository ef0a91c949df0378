"""Inputs of the networks, and the sizes that small transformers share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    import torch

__all__ = ["BODY", "Traceable", "image", "mask", "series", "tokens", "waveform"]

BODY = {"hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 128}
"""Of most encoders and decoders, under the names that most configurations give them."""

VOCABULARY = 200


class Traceable(NamedTuple):
    """A network, the inputs it is traced on, and the fields of its answer that become outputs."""

    network: torch.nn.Module
    inputs: dict[str, torch.Tensor]
    outputs: list[str]


def tokens(count: int = 16, name: str = "input_ids") -> dict[str, torch.Tensor]:
    """Token indices, ``int64[1, count]``, all 1."""
    import torch

    return {name: torch.ones(1, count, dtype=torch.int64)}


def mask(count: int = 16, name: str = "attention_mask") -> dict[str, torch.Tensor]:
    """That every token counts, ``int64[1, count]``."""
    return tokens(count, name)


def image(height: int, width: int | None = None) -> dict[str, torch.Tensor]:
    """``float32[1, 3, height, width]``."""
    import torch

    return {"pixel_values": torch.zeros(1, 3, height, width or height)}


def waveform(samples: int, name: str = "input_values") -> dict[str, torch.Tensor]:
    """``float32[1, samples]``."""
    import torch

    return {name: torch.zeros(1, samples)}


def series(*shape: int, name: str) -> dict[str, torch.Tensor]:
    """``float32[1, *shape]``."""
    import torch

    return {name: torch.zeros(1, *shape)}
