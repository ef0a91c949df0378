"""The models of the benchmarks: the zoo, networks that nobody here wrote, those of each pair of devices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import openvino as ov

import light_onnx
import transformers_models
import zoo
from networks.attention import BertConfig, bert
from networks.builder import NetworkBuilder
from networks.vision_transformer import VitConfig, vit
from problems import tiny

__all__ = ["MODELS", "build", "names"]

_FULL = ("inception_v3", "resnet50", "bert_base")


def _all_models() -> dict[str, Callable[[], ov.Model]]:
    models = {f"light/{name}": partial(light_onnx.build, name) for name in light_onnx.NAMES}
    if find_spec("torch") and find_spec("transformers"):
        models |= {
            f"transformers/{name}": partial(transformers_models.build, name)
            for name in transformers_models.NAMES
        }
    models |= {f"tiny/{name}": partial(tiny.build, name) for name in tiny.NETWORKS}
    models |= {f"zoo/{name}": partial(zoo.build, name) for name in zoo.NAMES}
    return models | {f"zoo-full/{name}": partial(zoo.build, name, "full") for name in _FULL}


MODELS = _all_models()
"""Builder by name; those from transformers are missing where torch or transformers is not installed."""


def _sized(make: Callable[[Any, NetworkBuilder], ov.Model], config: Any) -> Callable[[], ov.Model]:
    return lambda: make(config, NetworkBuilder(0, np.float32))


_BERT = BertConfig(vocabulary=1000, positions=128, tokens=32)
# Convolutions are a hundred times slower on the virtual GPU: CNNs are small there, and transformers of the
# sizes that one meets.
_GPU: dict[str, Callable[[], ov.Model]] = {
    "bert 2x128, 32 tokens": _sized(bert, replace(_BERT, layers=2, width=128, heads=2)),
    "bert 4x256, 32 tokens": _sized(bert, replace(_BERT, layers=4, width=256, heads=4)),
    "bert 12x768, 32 tokens": _sized(bert, _BERT),
    "vit 4x192, 64 pixels": _sized(vit, VitConfig(image=64, patch=16, layers=4, width=192, heads=3)),
    "vit 12x384, 96 pixels": _sized(vit, VitConfig(image=96, patch=16, layers=12, width=384, heads=6)),
    "transformer_xl": partial(zoo.build, "transformer_xl"),
    "mixture_of_experts": partial(zoo.build, "mixture_of_experts"),
    "two_tower": partial(zoo.build, "two_tower"),
    "gnmt": partial(zoo.build, "gnmt"),
    "rnnlm": partial(zoo.build, "rnnlm"),
    "wavenet": partial(zoo.build, "wavenet"),
    "mobilenet_v2": partial(zoo.build, "mobilenet_v2"),
    "resnet50": partial(zoo.build, "resnet50"),
}
_QUICK = {
    "alias": ("light/squeezenet", "zoo/mobilenet_v2", "zoo/bert_base", "zoo/inception_v3"),
    "gpu": ("bert 2x128, 32 tokens", "bert 4x256, 32 tokens"),
}
_WHOLE_ALIAS = (
    "light/squeezenet",
    "light/resnet50",
    "light/densenet121",
    "transformers/bert",
    "transformers/vit",
    "transformers/segformer",
    "zoo/inception_v3",
    "zoo/mobilenet_v2",
    "zoo/bert_base",
    "zoo/two_tower",
    "zoo/unet",
    "zoo/gnmt",
    "zoo-full/inception_v3",
    "zoo-full/resnet50",
    "zoo-full/bert_base",
)


def names(pair: str, quick: bool, parts: Sequence[str] = ()) -> tuple[str, ...]:
    """Models of a pair; those from transformers only where torch and transformers are installed.

    Args:
        pair: Of devices.
        quick: Few of them.
        parts: Of names; all models that have one of them in theirs, or really all for ``all``.
    """
    if parts:
        every = _GPU if pair == "gpu" else MODELS
        return tuple(name for name in every if "all" in parts or any(part in name for part in parts))
    if quick:
        return _QUICK[pair]
    return tuple(_GPU) if pair == "gpu" else tuple(name for name in _WHOLE_ALIAS if name in MODELS)


def build(name: str) -> ov.Model:
    """One of either pair.

    Raises:
        KeyError: There is no such model.
    """
    return (_GPU.get(name) or MODELS[name])()
