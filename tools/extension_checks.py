"""Checks of the native library on many models: annotated ones are followed, all others are left alone.

Mixes: placements of groups of ops, annotated, saved, and read by a program's own Core that has loaded the
library. Plain HETERO then makes as many submodels as our rules count and answers as one device does: after
reading, after a reshape, after a PrePostProcessor. Foreign: models without annotation are the same op by op
and output by output, bit for bit.
"""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino.preprocess import PrePostProcessor

import light_onnx
import zoo
from model_checks import (
    DEVICES,
    TOLERANCE,
    equal_devices,
    group_placements,
    inputs_in_range,
    is_random,
    last_line,
    outputs_of,
    relative_error,
)
from ov_autoplace import annotate, count_subgraphs, extension_path
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.plan.annotation import annotated_placement
from random_dynamic_models import random_dynamic_model
from random_models import random_model

OUTCOMES = (
    "as intended", "refused", "not run by the CPU", "random by itself", "other count", "wrong", "fails",
)  # fmt: skip
"""What :func:`check_mix` answers; the last three are faults."""

_HETERO = "HETERO:" + ",".join(DEVICES)


def cores() -> tuple[ov.Core, ov.Core]:
    """Two equal programs, of which the second has loaded the library."""
    both = (equal_devices(), equal_devices())
    both[1].add_extension(extension_path())
    return both


Shapes = dict[str, list[int]]
"""Of inputs, by friendly name."""


def check_mix(
    both: tuple[ov.Core, ov.Core], model: ov.Model, shapes: Shapes, number: int, seed: int, folder: Path
) -> Counter[str]:
    """One placement of a model, read and compiled through the library in three ways.

    Args:
        both: See :func:`cores`.
        model: The model; a clone is annotated.
        shapes: Of its dynamic inputs.
        number: Which placement of the seed's series.
        seed: Of placements and input data.
        folder: For the annotated model.

    Returns:
        How often which of :data:`OUTCOMES`; with what went wrong behind a colon.
    """
    model = formed(model, NAMED)
    groups = coarsen(extract(model, shapes)).group_of
    device = next(itertools.islice(group_placements(int(groups.max()) + 1, seed), number, None))[groups]
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    device_of = {name: DEVICES[d] for name, d in zip(names, device.tolist(), strict=True)}
    annotated = model.clone()
    try:
        annotate(annotated, device_of)
        placement = annotated_placement(annotated)
        before = count_subgraphs(annotated, placement)
    except PlacementError:
        return Counter({"refused": 1})
    path = folder / "model.xml"
    ov.save_model(annotated, path, compress_to_fp16=False)
    changes = (_nothing, _reshaped, _processed)
    return Counter(_outcome(both, path, shapes, change, before, seed) for change in changes)


def _outcome(
    both: tuple[ov.Core, ov.Core],
    path: Path,
    shapes: Shapes,
    change: Callable[[ov.Model, Shapes], ov.Model],
    before: int,
    seed: int,
) -> str:
    """What becomes of an annotated model that is read, changed and compiled; ``before`` are its submodels."""
    plain, extended = both
    try:
        reference = change(plain.read_model(path), shapes)
        inputs = inputs_in_range(reference, shapes, seed)
        expected = outputs_of(plain.compile_model(reference, "CPU"), inputs)
    except RuntimeError as cause:
        return f"not run by the CPU: {change.__name__}: {last_line(cause)}"
    marked = plain.read_model(path)
    placement = annotated_placement(change(marked, shapes))
    try:
        # Added ops can change the order in which HETERO cuts cycles.
        counts = {before, count_subgraphs(marked, placement)}
    except PlacementError:
        return "refused"
    try:
        compiled = extended.compile_model(change(extended.read_model(path), shapes), _HETERO)
        both_outputs = (outputs_of(compiled, inputs), expected)
    except RuntimeError as cause:
        return f"fails: {change.__name__}: {last_line(cause)}"
    error = relative_error(*([np.nan_to_num(x.astype(np.float64)) for x in y] for y in both_outputs))
    submodels = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
    if error > TOLERANCE:
        is_own = is_random(plain, reference, inputs)
        return "random by itself" if is_own else f"wrong: {change.__name__}: error {error:.1e}"
    if submodels not in counts:
        return f"other count: {change.__name__}: {submodels} submodels, intended {counts}"
    return "as intended"


def check_runnable_mix(
    both: tuple[ov.Core, ov.Core], model: ov.Model, seed: int, folder: Path
) -> Counter[str]:
    """:func:`check_mix` of the first placement of a series that HETERO can run in all three ways."""
    for number in range(12):
        outcomes = check_mix(both, model, {}, number, seed, folder)
        if not outcomes["refused"]:
            break
    return outcomes


def _nothing(model: ov.Model, shapes: Shapes) -> ov.Model:
    return model


def _reshaped(model: ov.Model, shapes: Shapes) -> ov.Model:
    """With twice the batch, where the model can; else to what it has, which validates it again."""
    wanted = {}
    for port in model.inputs:
        shape = port.get_partial_shape()
        if shape.rank.is_static and len(shape) > 1 and shape[0].is_static:
            shape[0] = 2 * shape[0].get_length()
        wanted[port] = shape
    before = {port: port.get_partial_shape() for port in model.inputs}
    try:
        model.reshape(wanted)
    except RuntimeError:
        model.reshape(before)
    return model


def _processed(model: ov.Model, shapes: Shapes) -> ov.Model:
    """With other types at inputs and outputs, and a scale."""
    processor = PrePostProcessor(model)
    for i, port in enumerate(model.inputs):
        if port.element_type == ov.Type.f32:
            processor.input(i).tensor().set_element_type(ov.Type.f16)
            processor.input(i).preprocess().convert_element_type(ov.Type.f32).scale(2.0)
        elif port.element_type == ov.Type.i64:
            processor.input(i).tensor().set_element_type(ov.Type.i32)
    for i, port in enumerate(model.outputs):
        if port.element_type == ov.Type.f32:
            processor.output(i).tensor().set_element_type(ov.Type.f64)
    return processor.build()


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
