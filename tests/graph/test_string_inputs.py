"""Texts as inputs: profiled, transferred between devices and run like any other tensor."""

from __future__ import annotations

import numpy as np
import openvino as ov
import openvino.opset15 as ops
import pytest

import ov_autoplace
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract

TEXTS = np.array(["a text", "", "länger als der erste"])


def text_model() -> ov.Model:
    """From each text's length in bytes, through two dense layers."""
    text = ops.parameter([-1], ov.Type.string, name="text")
    parts = ops.string_tensor_unpack(text, name="unpacked")
    lengths = ops.subtract(parts.output(1), parts.output(0), name="lengths")
    node = ops.unsqueeze(ops.convert(lengths, "f32", name="real"), np.int64(1), name="column")
    for i, width in enumerate((1, 8)):
        weights = np.random.default_rng(i).standard_normal((width, 8)).astype(np.float32) / 10
        node = ops.tanh(ops.matmul(node, ops.constant(weights), False, False, name=f"dense{i}"))
    return ov.Model([ops.result(node, name="y")], [text])


@pytest.mark.parametrize("mode", ["ZERO_SHOT", "PROFILE"])
def test_a_model_that_reads_texts_is_placed_and_runs(mode: str, unequal_pair: ov.Core) -> None:
    model = text_model()
    placement = ov_autoplace.place(
        model, "XCPU,CPU", mode=mode, core=unequal_pair, shapes={"text": [3]}, solvers=("local",)
    )
    assert set(placement.to_dict()) == {op.get_friendly_name() for op in model.get_ops()}
    if mode == "PROFILE":
        measured = {c.name for c in placement.decision.candidates if c.measured_seconds}
        assert {"XCPU", "CPU"} <= measured
    ov_autoplace.annotate(model, placement)
    answer = unequal_pair.compile_model(model, "HETERO:XCPU,CPU")(TEXTS)[0]
    np.testing.assert_allclose(answer, unequal_pair.compile_model(text_model(), "CPU")(TEXTS)[0], rtol=1e-5)


@pytest.mark.parametrize("there", [("text",), ("text", "unpacked"), ("lengths", "real")])
def test_texts_and_what_is_made_of_them_cross_between_devices(
    there: tuple[str, ...], unequal_pair: ov.Core
) -> None:
    model = text_model()
    coarse = coarsen(extract(model, {"text": [3]}), light_ops=False)
    assert {"text", "unpacked"} <= set(coarse.members[0])
    expected = unequal_pair.compile_model(model, "CPU")(TEXTS)[0]
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    device_of = {name: "XCPU" if name in there else "CPU" for name in names}
    predicted = ov_autoplace.count_subgraphs(model, device_of)
    ov_autoplace.annotate(model, device_of)
    compiled = unequal_pair.compile_model(model, "HETERO:XCPU,CPU")
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") == predicted > 1
    np.testing.assert_allclose(compiled(TEXTS)[0], expected, rtol=1e-5)
