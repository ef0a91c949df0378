"""Applications that are decided and run: which networks, how requests come to them, and what follows what."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ov_autoplace.application.workload import Application
from problems.models import MODELS


def closed(name: str) -> Application:
    """One of :data:`CLOSED` or :data:`HELD_OUT`."""
    models = {**CLOSED, **HELD_OUT}[name]
    return Application({f"{i}: {model}": MODELS[model]() for i, model in enumerate(models)})


def of_rates(name: str) -> Application:
    """One of :data:`OPEN`."""
    models, load, chains = OPEN[name]
    built = {letter: MODELS[model]() for letter, model in zip("abcdefgh", models, strict=False)}
    return Application(built, load, chains)


CLOSED: Mapping[str, tuple[str, ...]] = {
    "two of 0.1 ms": ("tiny/anomaly_detection", "zoo/lstm_lm"),
    "two classifiers": ("zoo/mobilenet_v2", "zoo/inception_v3"),
    "detector and classifier": ("light/squeezenet", "zoo/mobilenet_v2"),
    "encoder and decoder": ("zoo/bert_base", "zoo/gnmt"),
    "segmenter and language model": ("zoo/unet", "zoo/lstm_lm"),
    "squeezenet and bert": ("light/squeezenet", "zoo/bert_base"),
    "full resnet and small": ("zoo-full/resnet50", "zoo/mobilenet_v2"),
    "full inception and resnet": ("zoo-full/inception_v3", "zoo-full/resnet50"),
    "full bert and small": ("zoo-full/bert_base", "zoo/two_tower"),
    "three small": ("zoo/mobilenet_v2", "zoo/unet", "zoo/bert_base"),
    "three, one full": ("zoo-full/resnet50", "light/squeezenet", "zoo/lstm_lm"),
    "three of a server": ("zoo/two_tower", "zoo/bert_base", "zoo/gnmt"),
    "four small": ("zoo/mobilenet_v2", "zoo/inception_v3", "zoo/unet", "zoo/lstm_lm"),
    "four customers": ("light/squeezenet", "zoo/two_tower", "zoo/bert_base", "tiny/anomaly_detection"),
    "the same twice": ("zoo/mobilenet_v2", "zoo/mobilenet_v2"),
    "four, one full": ("zoo-full/inception_v3", "zoo/mobilenet_v2", "zoo/bert_base", "zoo/unet"),
}
"""Networks with one request of each in flight."""
HELD_OUT: Mapping[str, tuple[str, ...]] = {
    "held out: ghostnet-like pair": ("light/shufflenet", "light/bvlc_alexnet"),
    "held out: densenet and small": ("light/densenet121", "tiny/keyword_spotting"),
    "held out: transformers": ("transformers/bert", "transformers/vit"),
    "held out: three": ("transformers/segformer", "tiny/resnet8", "zoo/wavenet"),
}
"""The same, of networks that nothing was tuned to."""
OPEN: Mapping[str, tuple[tuple[str, ...], list[dict[str, Any]], list[dict[str, Any]]]] = {
    "camera": (
        ("light/squeezenet", "zoo/mobilenet_v2"),
        [{"start": "a", "rate": 20, "deadline_ms": 50}],
        [{"from": "a", "to": "b", "times": 2.5}],
    ),
    "two cameras": (
        ("zoo/ssdlite", "zoo/mobilenet_v2", "zoo/ssdlite"),
        [{"start": "a", "rate": 30, "deadline_ms": 33}, {"start": "c", "rate": 15, "deadline_ms": 66}],
        [{"from": "a", "to": "b", "times": 3}],
    ),
    "camera and background": (
        ("light/squeezenet", "zoo/bert_base"),
        [{"start": "a", "rate": 20, "deadline_ms": 50}, {"start": "b", "in_flight": 1}],
        [],
    ),
    "server of two": (
        ("zoo/bert_base", "zoo/two_tower"),
        [
            {"start": "a", "rate": 200, "arrivals": "poisson", "deadline_ms": 10},
            {"start": "b", "rate": 400, "arrivals": "poisson", "deadline_ms": 10},
        ],
        [],
    ),
    "speech": (
        ("tiny/keyword_spotting", "zoo/gnmt"),
        [{"start": "a", "rate": 50, "deadline_ms": 20}],
        [{"from": "a", "to": "b", "times": 0.2}],
    ),
    "search": (
        ("zoo/two_tower", "zoo/bert_base", "tiny/wide_and_deep"),
        [{"start": "a", "rate": 100, "arrivals": "poisson", "deadline_ms": 20}],
        [{"from": "a", "to": "b", "times": 1}, {"from": "b", "to": "c", "times": 10}],
    ),
    "inspection": (
        ("zoo-full/resnet50", "zoo/unet"),
        [{"start": "a", "rate": 10, "deadline_ms": 100}, {"start": "b", "rate": 50, "deadline_ms": 40}],
        [],
    ),
    "four streams": (
        ("zoo/mobilenet_v2", "zoo/inception_v3", "zoo/unet", "zoo/lstm_lm"),
        [{"start": start, "rate": 100, "deadline_ms": 10} for start in "abcd"],
        [],
    ),
}
"""Networks, called a, b, c ..., with their load and chains."""
