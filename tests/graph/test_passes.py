"""Every pass keeps its word, on models with all that passes change: they say what they did, and no output."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from numpy.typing import NDArray
from openvino import opset13 as ops

import zoo
from model_checks import inputs_in_range, relative_error
from ov_autoplace.errors import ModelError, PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.passes import (
    FOLD,
    FOLDED,
    MEND,
    NAMED,
    NAMES,
    Pass,
    formed,
    run_passes,
    static_shapes,
)
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.plan.bounded import opened_crossings
from random_dynamic_models import random_dynamic_model

SIZE = 16
WEIGHT = np.random.default_rng(0).integers(-127, 127, (SIZE, SIZE)).astype(np.float32) / 64
F32 = {"INFERENCE_PRECISION_HINT": "f32"}


def tied() -> ov.Model:
    """``relu(x W) W'``, of which OpenVINO's CPU computes the second product wrongly."""
    x = ops.parameter([4, SIZE], np.float32, name="x")
    weight = ops.constant(WEIGHT, name="W")
    hidden = ops.relu(ops.matmul(x, weight, False, False))
    return ov.Model([ops.result(ops.matmul(hidden, weight, False, True, name="last"))], [x])


def untied(inputs: list[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    return [np.maximum(inputs[0] @ WEIGHT, 0) @ WEIGHT.T] * 2


def twins() -> ov.Model:
    """Ops of one name, of which one reshapes to what it computes from a shape that may not be known."""
    x = ops.parameter([-1, 3, 8], np.float32, name="x")
    sizes = ops.gather(ops.shape_of(x), np.array([0]), np.int64(0))
    value = ops.reshape(ops.relu(x), ops.concat([sizes, np.array([2, 12])], 0), False)
    for op in (sizes, value):
        op.set_friendly_name("twin")
    return ov.Model([ops.result(value)], [x])


def bounded() -> ov.Model:
    """A batch of 1 to 4, which no tensor between subgraphs may have."""
    x = ops.parameter(ov.PartialShape([ov.Dimension(1, 4), 8]), np.float32, name="x")
    return ov.Model([ops.result(ops.softmax(ops.relu(ops.matmul(x, WEIGHT[:8], False, False)), 1))], [x])


BUILDERS: dict[str, Callable[[], ov.Model]] = {
    "tied": tied,
    "twins": twins,
    "bounded": bounded,
    **{name: lambda name=name: zoo.build(name, "small") for name in ("decoder", "lstm_lm", "bert_base")},
    **{f"random {seed}": lambda seed=seed: random_dynamic_model(seed).model for seed in (3, 8, 10, 33)},
}
RIGHT = {"tied": untied}


def stored(model: ov.Model, folder: Path) -> tuple[bytes, bytes]:
    ov.serialize(model, folder / "model.xml")
    return (folder / "model.xml").read_bytes(), (folder / "model.bin").read_bytes()


def halves(model: ov.Model) -> dict[str, str]:
    """The first groups on one device, and the others on another."""
    coarse = coarsen(extract(model), light_ops=False)
    on = coarse.group_of >= len(coarse) // 2
    return {name: "XCPU" if second else "CPU" for name, second in zip(coarse.ops.names, on, strict=True)}


def outputs_of_two_runs(model: ov.Model, inputs: list[NDArray]) -> list[NDArray]:
    request = ov.Core().compile_model(model, "CPU", F32).create_infer_request()
    return [request.infer(inputs)[port].copy() for _ in range(2) for port in range(len(model.outputs))]


@pytest.mark.parametrize("is_static", [True, False])
@pytest.mark.parametrize("name", BUILDERS)
def test_a_pass_that_says_unchanged_left_every_byte_and_all_leave_the_outputs(
    name: str, is_static: bool, tmp_path: Path
) -> None:
    given = BUILDERS[name]()
    before = stored(given, tmp_path)
    inputs = list(inputs_in_range(given, {}, seed=0).values())
    expected = RIGHT[name](inputs) if name in RIGHT else outputs_of_two_runs(given, inputs)
    shapes = {
        p.get_friendly_name(): data.shape for p, data in zip(given.get_parameters(), inputs, strict=True)
    }
    model = given.clone()
    for step in (*([static_shapes(shapes)] if is_static else ()), *FOLDED, opened_crossings, MEND):
        step = step if isinstance(step, Pass) else step(halves(model))
        untouched = stored(model, tmp_path)
        changed = run_passes(model, (step,))
        assert bool(changed) == (stored(model, tmp_path) != untouched), step.name
        again = stored(model, tmp_path)
        assert not run_passes(model, (step,)), step.name
        assert stored(model, tmp_path) == again, step.name
    assert relative_error(outputs_of_two_runs(model, inputs), expected) < 1e-4
    assert stored(given, tmp_path) == before


def test_each_pass_changes_what_it_is_for() -> None:
    assert NAMES.name in run_passes(twins(), NAMED)
    assert list(run_passes(formed(twins(), (static_shapes(), NAMES)), FOLDED)) == [FOLD.name]
    assert list(run_passes(tied(), (*FOLDED, MEND))) == [MEND.name]
    model = bounded()
    assert run_passes(model, (opened_crossings(halves(model)),))
    assert run_passes(model, (static_shapes(),))


def test_a_pass_that_fails_is_named_with_those_before_and_the_given_model_stays() -> None:
    def failing(_: object) -> int:
        raise RuntimeError("Check 'false' failed")

    given = twins()
    names = [op.get_friendly_name() for op in given.get_ordered_ops()]
    with pytest.raises(ModelError, match=f"^breaking failed after {NAMES.name}: Check 'false' failed"):
        PreparedModel.of(given).then((NAMES, Pass("breaking", failing)))
    assert [op.get_friendly_name() for op in given.get_ordered_ops()] == names

    def refusing(_: object) -> int:
        raise PlacementError("a sentence of its own")

    with pytest.raises(PlacementError, match=r"^a sentence of its own$"):
        run_passes(given, (Pass("refusing", refusing),))


def test_a_prepared_model_knows_its_form_and_what_it_was() -> None:
    given = twins()
    prepared = PreparedModel.of(given).then((static_shapes(), NAMES)).then((FOLD, MEND))
    assert prepared.given is given
    assert list(prepared.changed) == [static_shapes().name, NAMES.name, FOLD.name]
    assert set(prepared.structure.names) < set(prepared.given_structure.names)
    named = PreparedModel.of(given).then(NAMED)
    assert named.given_structure is named.structure
