"""Collects what the ops of many networks cost on this machine, to train the network of costs on.

Training networks are random blocks and families of the zoo, or of the transformers library, at random sizes.
Other families of both are held out: a network of costs is judged by them.
``ONEDNN_MAX_CPU_ISA`` caps the instructions of a CPU; name it by ``--label``, and one machine is several
kinds of device.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import openvino as ov
from rich.logging import RichHandler

import transformers_kinds
import zoo
from networks.random_blocks import random_blocks
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.collect import NamedModel, collect
from transformers_kinds import drawn

if TYPE_CHECKING:
    from ov_autoplace.graph.computation_graph import ComputationGraph

_log = logging.getLogger("ov_autoplace")

HELD_OUT = "held out"
"""Begins the family of a network that nothing is trained on."""

_MOST_FLOPS, _MOST_WEIGHT_BYTES = 4e9, 400e6
_ZOO_EVERY = 4  # one network of the zoo for so many
_FEW_TOKENS_EVERY = 3  # likewise of those of the transformers library


def training_networks(count: int, seed: int) -> Iterator[NamedModel]:
    """Random blocks, and families of the zoo in turns; what takes long to measure is left out."""
    made = 0
    families = zoo.TRAINING_FAMILIES
    while made < count:
        number = seed + made
        made += 1
        if made % _ZOO_EVERY:
            weight_type = np.float16 if number % 3 == 0 else np.float32
            yield NamedModel(f"random-{number}", "random", random_blocks(number, weight_type))
            continue
        family = families[made // _ZOO_EVERY % len(families)]
        size = int(np.exp(np.random.default_rng((number, 5)).uniform(np.log(60), np.log(900))))
        untouched = zoo.build_scaled(family, size, number)
        if _is_quick(extract(untouched)):
            yield NamedModel(f"{family}-{number}", family, zoo.build_scaled(family, size, number, "random"))


def transformers_networks(count: int, seed: int) -> Iterator[NamedModel]:
    """Families of the transformers library in turns; what takes long to measure is left out."""
    for number in range(seed, seed + count):
        family = drawn.FAMILIES[number % len(drawn.FAMILIES)]
        yield from _drawn(family, number, "transformers", number % _FEW_TOKENS_EVERY == 0)


def _drawn(family: str, number: int, kind: str, few_tokens: bool = False) -> Iterator[NamedModel]:
    """A network of the transformers library, if it can be made and does not take long to measure."""
    model = _made(family, partial(drawn.drawn, family, number, few_tokens))
    if model is not None and _is_quick(extract(model)):
        yield NamedModel(f"{family}-{number}", f"{kind}: {family}", model)


def _is_quick(graph: ComputationGraph) -> bool:
    return bool(graph.flops.sum() < _MOST_FLOPS and graph.weight_bytes.sum() < _MOST_WEIGHT_BYTES)


def _made(name: str, make: Callable[[], ov.Model]) -> ov.Model | None:
    try:
        return make()
    except Exception as cause:  # whatever the installed release of transformers cannot convert
        _log.warning("%s is left out: %s", name, str(cause).splitlines()[0])
        return None


def held_out_networks() -> Iterator[NamedModel]:
    """Families of the transformers library that training does not see, and the zoo's."""
    for name in (*transformers_kinds.NAMES, *transformers_kinds.HELD_OUT):
        if name in drawn.FAMILIES:
            continue
        model = _made(name, partial(transformers_kinds.build, name))
        if model is None:
            continue
        yield NamedModel(f"transformers-{name}", f"{HELD_OUT}: transformers", model)
    for family, number in product(drawn.HELD_OUT, range(900, 903)):
        yield from _drawn(family, number, HELD_OUT)
    for family in zoo.HELD_OUT_FAMILIES:
        for seed in range(3):
            model = zoo.build_scaled(family, 150 * (seed + 1), 900 + seed)
            if extract(model).flops.sum() < _MOST_FLOPS:
                model = zoo.build_scaled(family, 150 * (seed + 1), 900 + seed, "random")
                yield NamedModel(f"{family}-{900 + seed}", f"{HELD_OUT}: {family}", model)


def main(arguments: list[str]) -> None:
    """Collect into one file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("output", type=Path)
    parser.add_argument("--networks", type=int, default=600, help="training networks to have")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", action="append", help="CPU, if none is named")
    told = "of what the environment changes of the devices; of the hour, behind a semicolon"
    parser.add_argument("--label", default="", help=told)
    parser.add_argument("--seconds", type=float, default=float("inf"))
    parser.add_argument("--transformers", action="store_true", help="networks of that library instead")
    parser.add_argument("--held-out", action="store_true", help="the held-out networks instead")
    given = parser.parse_args(arguments)
    logging.basicConfig(level=logging.INFO, format="%(message)s", handlers=[RichHandler(show_path=False)])
    logging.getLogger("nncf").setLevel(logging.ERROR)
    make = transformers_networks if given.transformers else training_networks
    networks = held_out_networks() if given.held_out else make(given.networks, given.seed)
    samples = collect(
        networks,
        given.output,
        ov.Core(),
        given.device or ["CPU"],
        label=given.label,
        seconds=given.seconds,
        progress=lambda done, total, name: print(f"{done}: {name}", flush=True),
    )
    print(f"{given.output}: {len(samples.networks)} networks, {len(samples.measurements)} measurements")


if __name__ == "__main__":
    main(sys.argv[1:])
