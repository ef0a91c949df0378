"""A model that no named device compiles gets one sentence with the op, whatever way it was asked for."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.graph.refusal import refused_op


def branches_of_different_ranks() -> ov.Model:
    """The CPU does not claim to support it."""

    def body(reduce: bool) -> ov.Model:
        x = ops.parameter([2, 3], np.float32)
        out = ops.reduce_sum(x, ops.constant([0]), False) if reduce else ops.relu(x)
        return ov.Model([ops.result(out)], [x], "branch")

    condition, x = ops.parameter([], bool, name="condition"), ops.parameter([2, 3], np.float32, name="x")
    choice, bodies = ops.if_op(condition), [body(False), body(True)]
    choice.set_then_body(bodies[0])
    choice.set_else_body(bodies[1])
    choice.set_input(x.output(0), *(b.get_parameters()[0] for b in bodies))
    out = choice.set_output(*(b.results[0] for b in bodies))
    choice.set_friendly_name("odd")
    return ov.Model([ops.result(ops.relu(out))], [condition, x], "branches")


def state_that_starts_from_an_input() -> ov.Model:
    """The CPU claims to support each op, and names none when it refuses."""
    x = ops.parameter([1, 4], np.int64, name="x")
    scaled = ops.multiply(x, ops.constant(np.int64(2)), name="scaled")
    old = ops.read_value(scaled, "memory", np.int64, [1, 4], name="odd")
    new = ops.add(old, x, name="new")
    return ov.Model([ops.result(ops.abs(new))], [ops.assign(new, "memory")], [x], "state")


MODELS = {"If": branches_of_different_ranks, "ReadValue": state_that_starts_from_an_input}
RATE = {"PERFORMANCE_HINT": "THROUGHPUT"}
ESTIMATED = {"AUTOPLACE_MODE": "ZERO_SHOT"}


@pytest.mark.parametrize("kind", MODELS)
@pytest.mark.parametrize(
    ("device", "config"),
    [
        ("AUTOPLACE:CPU", {}),
        ("AUTOPLACE:CPU", ESTIMATED),
        ("AUTOPLACE:CPU", {"INFERENCE_NUM_THREADS": 1}),
        ("AUTOPLACE:CPU", RATE),
        ("AUTOPLACE:CPU", RATE | ESTIMATED),
        ("AUTOPLACE:XCPU,CPU", {}),
        ("AUTOPLACE:XCPU,CPU", ESTIMATED),
    ],
)
def test_what_is_refused_names_the_op(
    unequal_pair: ov.Core, kind: str, device: str, config: dict[str, object]
) -> None:
    check(kind, lambda: unequal_pair.compile_model(MODELS[kind](), device, config))


@pytest.mark.parametrize("kind", MODELS)
def test_so_does_what_is_placed_and_not_compiled(unequal_pair: ov.Core, kind: str) -> None:
    check(kind, lambda: ov_autoplace.place(MODELS[kind](), "XCPU,CPU", core=unequal_pair))


def check(kind: str, ask: Callable[[], object]) -> None:
    with pytest.raises(AutoplaceError) as told:
        ask()
    sentence = str(told.value)
    assert f"'odd' of type {kind}" in sentence
    assert "\n" not in sentence
    assert "Exception from" not in sentence


def test_no_op_is_blamed_where_everything_is_refused() -> None:
    def broken(_: ov.Model) -> None:
        raise RuntimeError("the driver is not installed.")

    model = state_that_starts_from_an_input()
    assert refused_op(model, "the driver is not installed", broken) == ""
    assert refused_op(model, "another reason", broken) == ""
