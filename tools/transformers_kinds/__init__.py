"""Small networks of many kinds from the transformers library, to judge predictions and legality by.

Like :mod:`transformers_models`: made from configurations with seeded random weights, nothing is downloaded.
The networks of :data:`HELD_OUT` are of kinds that the others show too, but no setting of the cost model was
chosen with them.
"""

from __future__ import annotations

import openvino as ov

from transformers_kinds.recipes import network, store_in_eight_bits
from transformers_kinds.signals import SIGNALS
from transformers_kinds.text import TEXT
from transformers_kinds.vision import VISION

HELD_OUT = (
    *("regnet", "pvt", "owlvit", "glpn", "mpnet", "gemma2", "bart", "olmoe", "hubert", "univnet", "blip"),
)
"""Networks that nobody looks at while the cost model is worked on."""

_RECIPES = VISION | TEXT | SIGNALS

NAMES = tuple(name for name in _RECIPES if name not in HELD_OUT)
"""Networks to work with."""


def build(name: str, seed: int = 0) -> ov.Model:
    """One network with static shapes; ``name:dynamic`` has open ones, ``name:int8`` weights in eight bits.

    Args:
        name: One of :data:`NAMES` or :data:`HELD_OUT`, perhaps with what varies it.
        seed: Of the weights.

    Raises:
        ValueError: There is no such network.
    """
    kind, _, variant = name.partition(":")
    if kind not in _RECIPES or variant not in ("", "dynamic", "int8"):
        raise ValueError(f"there is no network {name!r}; known are {', '.join(_RECIPES)}")
    model = network(_RECIPES[kind], seed, open_shapes=variant == "dynamic")
    model.friendly_name = name
    if variant == "int8":
        store_in_eight_bits(model)
    return model


def shapes_of(name: str) -> dict[str, list[int]]:
    """Shapes of the inputs that a network was traced with, by their names."""
    inputs = _RECIPES[name.partition(":")[0]].inputs
    return {key: list(value.shape) for key, value in inputs.items()}
