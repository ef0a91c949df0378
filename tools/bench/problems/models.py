"""The networks that are run, in sets: the usual ones, for a GPU, of both sorts of ops, that branch."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
from problems import branching, networks, tiny

_FULL = ("inception_v3", "resnet50", "bert_base")

Builders = Mapping[str, Callable[[], ov.Model]]


def _usual() -> Builders:
    models = {f"light/{name}": partial(light_onnx.build, name) for name in light_onnx.NAMES}
    if find_spec("torch") and find_spec("transformers"):
        models |= {
            f"transformers/{name}": partial(transformers_models.build, name)
            for name in transformers_models.NAMES
        }
    models |= {f"tiny/{name}": partial(tiny.build, name) for name in tiny.NETWORKS}
    models |= {f"zoo/{name}": partial(zoo.build, name) for name in zoo.NAMES}
    return models | {f"zoo-full/{name}": partial(zoo.build, name, "full") for name in _FULL}


MODELS = _usual()
"""Builder by name; those from transformers are missing where torch or transformers is not installed."""


def _sized(make: Callable[[Any, NetworkBuilder], ov.Model], config: Any) -> Callable[[], ov.Model]:
    return lambda: make(config, NetworkBuilder(0, np.float32))


_BERT = BertConfig(vocabulary=1000, positions=128, tokens=32)
_SMALL = ("transformer_xl", "mixture_of_experts", "two_tower", "gnmt", "rnnlm", "wavenet", "mobilenet_v2")
_WHOLE = (
    *("light/squeezenet", "light/resnet50", "light/densenet121"),
    *("transformers/bert", "transformers/vit", "transformers/segformer"),
    *(f"zoo/{name}" for name in ("inception_v3", "mobilenet_v2", "bert_base", "two_tower", "unet", "gnmt")),
    *(f"zoo-full/{name}" for name in _FULL),
)
SETS: Mapping[str, Builders] = {
    "usual": MODELS,
    "few": {name: MODELS[name] for name in _WHOLE if name in MODELS},
    # Convolutions are a hundred times slower on the virtual GPU: CNNs are small there, and transformers of
    # the sizes that one meets.
    "gpu": {
        "bert 2x128, 32 tokens": _sized(bert, replace(_BERT, layers=2, width=128, heads=2)),
        "bert 4x256, 32 tokens": _sized(bert, replace(_BERT, layers=4, width=256, heads=4)),
        "bert 12x768, 32 tokens": _sized(bert, _BERT),
        "vit 4x192, 64 pixels": _sized(vit, VitConfig(image=64, patch=16, layers=4, width=192, heads=3)),
        "vit 12x384, 96 pixels": _sized(vit, VitConfig(image=96, patch=16, layers=12, width=384, heads=6)),
        **{name: partial(zoo.build, name) for name in (*_SMALL, "resnet50")},
    },
    "of both sorts": networks.NETWORKS,
    "branching": {name: partial(branching.build, name) for name in branching.NETWORKS},
}
"""Builders by name, by set."""


def chosen(
    kind: str, quick: Sequence[str] | None, parts: Sequence[str], groups: int = 0, group: int = 0
) -> list[str]:
    """Names of a set.

    Args:
        kind: A key of :data:`SETS`; where parts are given, ``few`` means ``usual``.
        quick: Those of a short run; ``None`` = it is none.
        parts: Of names; all that have one of them in theirs, or really all for ``all``.
        groups: Into how many parts they are divided, for a machine that is idle for short times only.
        group: Which of the parts, from 0.
    """
    every = list(SETS["usual" if parts and kind == "few" else kind] if quick is None or parts else quick)
    names = [name for name in every if not parts or "all" in parts or any(part in name for part in parts)]
    return names[group::groups] if groups else names
