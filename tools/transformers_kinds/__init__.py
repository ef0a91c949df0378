"""Small networks of many kinds from the transformers library, in sections, to judge predictions by.

Like :mod:`transformers_models`: made from configurations with seeded random weights, nothing is downloaded.
The networks of :data:`HELD_OUT` are of kinds that the others show too, but no setting of the cost model was
chosen with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import openvino as ov

import transformers_models
from transformers_kinds import signals, text, vision
from transformers_kinds.inputs import Traceable

__all__ = ["HELD_OUT", "NAMES", "SECTIONS", "build"]

SECTIONS: Mapping[str, Mapping[str, Callable[[], Traceable]]] = {
    "convolutional": vision.CONVOLUTIONAL,
    "vision transformer": vision.TRANSFORMERS,
    "detection": vision.DETECTION,
    "segmentation and depth": vision.DENSE,
    "text encoder": text.ENCODERS,
    "decoder": text.DECODERS,
    "encoder and decoder": text.TRANSLATION,
    "mixture of experts": text.EXPERTS,
    "state space": text.STATE_SPACE,
    "audio": signals.AUDIO,
    "speech": signals.SPEECH,
    "vocoder": signals.VOCODERS,
    "multimodal": signals.MULTIMODAL,
    "time series": signals.TIME_SERIES,
}
"""Builder by name, by section."""

HELD_OUT = (
    "regnet",
    "pvt",
    "owlvit",
    "glpn",
    "mpnet",
    "gemma2",
    "bart",
    "olmoe",
    "hubert",
    "univnet",
    "blip",
)
"""Networks that nobody looks at while the cost model is worked on."""

_BUILDERS = {name: builder for section in SECTIONS.values() for name, builder in section.items()}

NAMES = tuple(name for name in _BUILDERS if name not in HELD_OUT)
"""Networks to work with."""


def build(name: str, seed: int = 0) -> ov.Model:
    """One network with static shapes.

    Args:
        name: One of :data:`NAMES` or :data:`HELD_OUT`.
        seed: Of the weights.

    Raises:
        ValueError: There is no such network.
    """
    import torch

    if name not in _BUILDERS:
        raise ValueError(f"there is no network {name!r}; known are {', '.join(_BUILDERS)}")
    torch.manual_seed(seed)
    model = transformers_models.converted(*_BUILDERS[name]())
    model.friendly_name = name
    return model
