"""Models without annotation that the native library must leave alone: made, compared, timed."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov

import light_onnx
import zoo
from model_checks import inputs_in_range, is_random, outputs_of
from random_dynamic_models import random_dynamic_model
from random_models import random_model

__all__ = ["check_foreign", "foreign_models", "reading_ratio"]


def foreign_models(count: int, seed: int, folder: Path) -> Iterator[tuple[str, Path]]:
    """Files of models without annotation: random graphs, networks of the zoo in many sizes, and ONNX."""
    path = folder / "foreign.xml"
    onnx = [(name, light_onnx.path_of(name)) for name in light_onnx.NAMES]
    random = np.random.default_rng(seed)
    for i in range(count):
        # Every tenth, as long as there are some.
        if i % 10 == 9 and i // 10 < len(onnx):
            yield onnx[i // 10]
            continue
        kind = i % 4
        if kind == 0:
            name, model = "random", random_model(seed + i, size=int(random.integers(3, 200)))
        elif kind == 1:
            name, model = "random dynamic", random_dynamic_model(seed + i).model
        elif kind == 2:
            family = zoo.FAMILIES[int(random.integers(len(zoo.FAMILIES)))]
            name, model = family, zoo.build_scaled(family, int(random.integers(50, 800)), seed + i)
        else:
            name = zoo.NAMES[int(random.integers(len(zoo.NAMES)))]
            model = zoo.build(name, seed=seed + i)
        ov.save_model(model, path, compress_to_fp16=bool(random.integers(2)))
        yield f"{name} {seed + i}", path


def check_foreign(both: tuple[ov.Core, ov.Core], path: Path, seed: int) -> str:
    """What the library changes in a model without annotation; an empty text is right."""
    read = [core.read_model(path) for core in both]
    ops = [[_description(op) for op in model.get_ordered_ops()] for model in read]
    if ops[0] != ops[1]:
        return f"ops differ: {next((a, b) for a, b in zip(*ops, strict=False) if a != b)}"
    try:
        inputs = inputs_in_range(read[0], {}, seed)
        answers = [
            outputs_of(core.compile_model(model, "CPU"), inputs)
            for core, model in zip(both, read, strict=True)
        ]
    except RuntimeError as cause:
        return "" if _fails_alone(both[0], path, seed) else f"fails with it: {cause}"
    if any(a.tobytes() != b.tobytes() for a, b in zip(*answers, strict=True)):
        return "" if is_random(both[0], read[0], inputs) else "outputs differ"
    return ""


def _fails_alone(core: ov.Core, path: Path, seed: int) -> bool:
    try:
        model = core.read_model(path)
        outputs_of(core.compile_model(model, "CPU"), inputs_in_range(model, {}, seed))
    except RuntimeError:
        return True
    return False


def _description(op: ov.Node) -> tuple[Any, ...]:
    name = op.get_friendly_name()
    return (
        op.get_type_name(),
        op.get_type_info().version_id,
        # Ops without a name are numbered by the process.
        re.sub(r"_\d+$", "", name) if name == op.get_name() else name,
        type(op).__name__,
        str(op.get_attributes()),
        sorted(op.get_rt_info()),
        [
            (str(o.get_partial_shape()), str(o.get_element_type()), sorted(o.get_names()))
            for o in op.outputs()
        ],
    )


def reading_ratio(both: tuple[ov.Core, ov.Core], path: Path, rounds: int = 30) -> float:
    """Median of the time to read with the library over that without, read in turns."""
    seconds: list[list[float]] = [[], []]
    for i in range(2 * rounds):
        # Either goes first equally often.
        which = (i + i // 2) % 2
        start = time.perf_counter()
        both[which].read_model(path)
        seconds[which].append(time.perf_counter() - start)
    return float(np.median(seconds[1]) / np.median(seconds[0]))
