"""Checks of the native library on many models: annotated ones are followed, all others are left alone.

``python tools/extension_checks.py --mixes zoo,transformers,kinds,random --placements 2 --seed 7``
``python tools/extension_checks.py --foreign 500 --seed 7``

Mixes: placements of groups of ops, annotated, saved, and read by a program's own Core that has loaded the
library. Plain HETERO then makes as many submodels as our rules count and answers as one device does: after
reading, after a reshape, after a PrePostProcessor. Foreign: models without annotation are the same op by op
and output by output, bit for bit, and take as long to read.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import openvino as ov
from openvino.preprocess import PrePostProcessor

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parent.parent / "tests")]

import zoo  # noqa: E402
from foreign_checks import check_foreign, foreign_models, reading_ratio  # noqa: E402
from legality_worker import DEVICES, equal_devices, group_placements, last_line  # noqa: E402
from model_checks import TOLERANCE, inputs_in_range, is_random, outputs_of, relative_error  # noqa: E402
from ov_autoplace import annotate, count_subgraphs, extension_path  # noqa: E402
from ov_autoplace.errors import PlacementError  # noqa: E402
from ov_autoplace.graph import coarsen, extract  # noqa: E402
from ov_autoplace.graph.passes import NAMED, formed  # noqa: E402
from ov_autoplace.placement.annotation import annotated_placement  # noqa: E402
from random_dynamic_models import random_dynamic_model  # noqa: E402

__all__ = [
    "OUTCOMES",
    "check_mix",
    "check_runnable_mix",
    "cores",
    "mixed_models",
]

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


def mixed_models(
    kinds: list[str], seed: int, random_models: int = 30
) -> Iterator[tuple[str, ov.Model, Shapes]]:
    """Models to place, with shapes of their dynamic inputs."""
    if "zoo" in kinds:
        for name in zoo.NAMES:
            yield name, zoo.build(name, seed=seed), {}
    if "transformers" in kinds:
        import transformers_models

        for name in transformers_models.NAMES:
            yield name, transformers_models.build(name, seed=seed), {}
    if "kinds" in kinds:
        import transformers_kinds

        for name in transformers_kinds.NAMES:
            yield name, transformers_kinds.build(name), {}
    if "held-out" in kinds:
        import transformers_kinds

        for name in transformers_kinds.HELD_OUT:
            yield name, transformers_kinds.build(name), {}
    if "random" in kinds:
        for i in range(random_models):
            model, shapes = random_dynamic_model(seed + i)
            yield f"random dynamic {seed + i}", model, shapes


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
    plain, extended = both
    model = formed(model, NAMED)
    groups = coarsen(extract(model, shapes)).group_of
    device = next(itertools.islice(group_placements(int(groups.max()) + 1, seed), number, None))[groups]
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    device_of = {name: DEVICES[d] for name, d in zip(names, device.tolist(), strict=True)}
    annotated = model.clone()
    try:
        annotate(annotated, device_of)
        placement = annotated_placement(annotated)
        assert placement is not None
        before = count_subgraphs(annotated, placement)
    except PlacementError:
        return Counter({"refused": 1})
    path = folder / "model.xml"
    ov.save_model(annotated, path, compress_to_fp16=False)
    outcomes: Counter[str] = Counter()
    for change in (_nothing, _reshaped, _processed):
        reference, placed = plain.read_model(path), extended.read_model(path)
        try:
            reference = change(reference, shapes)
            inputs = inputs_in_range(reference, shapes, seed)
            expected = outputs_of(plain.compile_model(reference, "CPU"), inputs)
        except RuntimeError as cause:
            outcomes[f"not run by the CPU: {change.__name__}: {last_line(cause)}"] += 1
            continue
        marked = plain.read_model(path)
        placement = annotated_placement(change(marked, shapes))
        assert placement is not None
        try:
            # Added ops can change the order in which HETERO cuts cycles.
            counts = {before, count_subgraphs(marked, placement)}
        except PlacementError:
            outcomes["refused"] += 1
            continue
        try:
            compiled = extended.compile_model(change(placed, shapes), _HETERO)
            error = relative_error(
                *(
                    [np.nan_to_num(x.astype(np.float64)) for x in y]
                    for y in (outputs_of(compiled, inputs), expected)
                )
            )
        except RuntimeError as cause:
            outcomes[f"fails: {change.__name__}: {last_line(cause)}"] += 1
            continue
        submodels = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
        if error > TOLERANCE and is_random(plain, reference, inputs):
            outcomes["random by itself"] += 1
        elif error > TOLERANCE:
            outcomes[f"wrong: {change.__name__}: error {error:.1e}"] += 1
        elif submodels not in counts:
            outcomes[f"other count: {change.__name__}: {submodels} submodels, intended {counts}"] += 1
        else:
            outcomes["as intended"] += 1
    return outcomes


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


def _mixes(kinds: list[str], placements: int, seed: int, say: Callable[[str], None]) -> Counter[str]:
    both = cores()
    total: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for name, model, shapes in mixed_models(kinds, seed):
            found: Counter[str] = Counter()
            for number in range(placements):
                found += check_mix(both, model, shapes, number, seed, Path(folder))
            say(f"{name}: {', '.join(f'{n} {what}' for what, n in found.items())}")
            for what, times in found.items():
                total[what.split(":")[0]] += times
    return total


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--mixes", default="", help="of zoo, transformers, kinds, held-out, random")
    parser.add_argument("--placements", type=int, default=2, help="of each model")
    parser.add_argument("--foreign", type=int, default=0, help="how many models without annotation")
    parser.add_argument("--reading", type=int, default=0, help="rounds of timed reading per foreign model")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    faults = 0
    if options.mixes:
        total = _mixes(
            options.mixes.split(","), options.placements, options.seed, lambda line: print(line, flush=True)
        )
        print(f"in all: {dict(total)}")
        faults += sum(total[what] for what in OUTCOMES[-3:])
    if options.foreign:
        both = cores()
        ratios = []
        with tempfile.TemporaryDirectory() as folder:
            for name, path in foreign_models(options.foreign, options.seed, Path(folder)):
                fault = check_foreign(both, path, options.seed)
                faults += bool(fault)
                if fault:
                    print(f"{name}: {fault}", flush=True)
                if options.reading:
                    ratios.append(reading_ratio(both, path, options.reading))
        print(f"{options.foreign} foreign models, {faults} faults")
        if ratios:
            low, median, high = np.percentile(ratios, (5, 50, 95))
            print(f"reading time with over without: {median:.3f} (5 to 95 %: {low:.3f} to {high:.3f})")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
