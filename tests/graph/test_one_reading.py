"""A model's ops are read once: what was read serves every question as a new reading would."""

from __future__ import annotations

import gc
import json
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from command_line import Command
from ov_autoplace.graph import prepare as preparing
from ov_autoplace.graph import support
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.graph.records import ModelReader
from ov_autoplace.graph.support import supported_ops
from ov_autoplace.plan.fitting import count_subgraphs, fit, fit_prepared
from ov_autoplace.plan.placement import Placement
from random_models import random_model

ZERO_SHOT = ("--mode", "zero-shot", "--json")
# What the names of the ops of a block begin with.
BLOCK = ("shape", "size", "weights", "product", "pattern", "heads", "softmax", "whole", "joined", "sum")


def reshaping(batch: int, blocks: int = 4) -> ov.Model:
    """Blocks that compute the shapes of their heads; with a batch, all of that can be folded."""
    x = ops.parameter([batch, 3, 8], np.float32, name="x")
    value: ov.Node = x
    for i in range(blocks):
        sizes = ops.gather(ops.shape_of(value, name=f"shape{i}"), np.array([0]), np.int64(0), name=f"size{i}")
        weights = ops.constant(np.full((8, 8), 0.1 * i, np.float32), name=f"weights{i}")
        product = ops.matmul(value, weights, False, False, name=f"product{i}")
        heads = ops.concat([sizes, np.array([3, 2, 4])], 0, name=f"pattern{i}")
        soft = ops.softmax(ops.reshape(product, heads, False, name=f"heads{i}"), 3, name=f"softmax{i}")
        whole = ops.concat([sizes, np.array([3, 8])], 0, name=f"whole{i}")
        value = ops.add(value, ops.reshape(soft, whole, False, name=f"joined{i}"), name=f"sum{i}")
    return ov.Model([ops.result(value, name="y")], [x], "reshaping")


def fields_of(graph: ComputationGraph) -> dict[str, object]:
    values = {field.name: getattr(graph, field.name) for field in fields(graph)}
    return {name: v.tolist() if isinstance(v, np.ndarray) else v for name, v in values.items()}


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many ops were read, one entry for each pass over a model."""
    found: list[int] = []
    original = ModelReader.read

    def counted(self: ModelReader, ops: list[ov.Node]) -> list:
        found.append(len(ops))
        return original(self, ops)

    monkeypatch.setattr(ModelReader, "read", counted)
    return found


@pytest.mark.parametrize(("batch", "passes"), [(-1, 1), (2, 3)])
def test_annotate_reads_a_model_once_and_a_folded_one_also_after_and_as_it_was_given(
    batch: int, passes: int, cli: Command, tmp_path: Path, readings: list[int]
) -> None:
    ov.serialize(reshaping(batch), tmp_path / "net.xml")
    report = cli("annotate", tmp_path / "net.xml", "-d", "XCPU,CPU", *ZERO_SHOT).json()
    assert len(readings) == passes
    affinities = json.loads(Path(report["affinity_file"]).read_text())
    model = ov.Core().read_model(tmp_path / "net.xml")
    assert report["affinity_subgraphs"] == count_subgraphs(model, affinities)


@pytest.mark.parametrize("batch", [-1, 2])
def test_a_prepared_model_has_the_graph_of_a_model_that_is_read_anew(batch: int) -> None:
    prepared = prepare(reshaping(batch))
    assert prepared.is_folded == (batch > 0)
    assert fields_of(prepared.graph) == fields_of(extract(prepared.model))


@pytest.mark.parametrize("batch", [-1, 2])
@pytest.mark.parametrize("first_on_cpu", [2, 4])
def test_a_placement_fits_a_prepared_model_as_it_fits_the_model(batch: int, first_on_cpu: int) -> None:
    prepared = prepare(reshaping(batch))
    known = {name: int(name[-1]) >= first_on_cpu for name in prepared.graph.names if name[:-1] in BLOCK}
    device_of = {name: "CPU" if known.get(name) else "XCPU" for name in prepared.graph.names}
    placement = Placement.from_dict(device_of)
    expected = fit(prepared.given, replace(placement, given={} if prepared.is_folded else None))
    found = fit_prepared(prepared, placement)
    assert found.device_of == expected.device_of
    assert found.prepared.is_folded == expected.prepared.is_folded
    assert found.submodels == expected.submodels == (2 if first_on_cpu == 2 else 1)
    assert found.prepared.given_structure.names == expected.prepared.given_structure.names


@pytest.mark.parametrize("seed", [5, 17, 90])
def test_devices_are_asked_about_the_same_ops_of_a_prepared_model(
    seed: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    whole = prepare(random_model(seed, size=60))
    assert whole.kinds is None
    monkeypatch.setattr(preparing, "LARGEST_WHOLE", 1)
    prepared = prepare(random_model(seed, size=60))
    assert prepared.kinds is not None
    core = ov.Core()
    np.testing.assert_array_equal(prepared.supported(core, ("CPU",)), whole.supported(core, ("CPU",)))
    (said,) = caplog.messages
    caplog.clear()
    monkeypatch.setattr(support, "LARGEST_WHOLE", 1)
    names = prepared.graph.names[::-1]  # in any order
    supported_ops(core, prepared.model, names, ("CPU",))
    assert caplog.messages == [said]


def test_reading_a_clone_again_finds_its_shapes_and_keeps_the_rest() -> None:
    model = reshaping(-1)
    records = ModelReader().read(model.get_ordered_ops())
    clone = model.clone()
    clone.reshape([2, 3, 8])
    again, anew = (
        ModelReader().read_again(clone.get_ordered_ops(), records),
        ModelReader().read(clone.get_ordered_ops()),
    )
    assert [(r.name, r.op_type, r.shapes, r.types, r.bytes, r.sources) for r in again] == [
        (r.name, r.op_type, r.shapes, r.types, r.bytes, r.sources) for r in anew
    ]
    assert any(old.shapes != new.shapes for old, new in zip(records, again, strict=True))


def test_no_cycles_are_looked_for_while_a_graph_is_made() -> None:
    model = random_model(1, size=1500)
    looked_for: list[str] = []

    def note(phase: str, _: dict[str, int]) -> None:
        looked_for.append(phase)

    gc.callbacks.append(note)
    try:
        coarsen(extract(model))
        while_made = list(looked_for)
        kept = [[] for _ in range(10_000)]
    finally:
        gc.callbacks.remove(note)
    # What has waited is looked through once after each of the two; else it were dozens of times.
    assert while_made.count("start") <= 2
    assert looked_for, "and afterwards they are again"
    assert len(kept) == 10_000
