"""The models of the benchmarks: the zoo, and networks that nobody here wrote."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec

import openvino as ov
from common import ROOT  # noqa: F401  # importing it makes tools/ importable

import light_onnx
import transformers_models
import zoo

__all__ = ["MODELS", "chosen_models"]

FULL = ("inception_v3", "resnet50", "bert_base")


def _all_models() -> dict[str, Callable[[], ov.Model]]:
    models = {f"light/{name}": partial(light_onnx.build, name) for name in light_onnx.NAMES}
    if find_spec("torch") and find_spec("transformers"):
        models |= {
            f"transformers/{name}": partial(transformers_models.build, name)
            for name in transformers_models.NAMES
        }
    models |= {f"zoo/{name}": partial(zoo.build, name) for name in zoo.NAMES}
    return models | {f"zoo-full/{name}": partial(zoo.build, name, "full") for name in FULL}


MODELS = _all_models()
"""Builder by name; those from transformers are missing where torch or transformers is not installed."""


def chosen_models(patterns: Sequence[str]) -> Iterator[tuple[str, ov.Model]]:
    """Name and model of everything that contains one of ``patterns``; all of them for no pattern."""
    for name, build in MODELS.items():
        if not patterns or any(pattern in name for pattern in patterns):
            yield name, build()
