"""Tensors with bounded dimensions cross between devices in the model that is compiled."""

from __future__ import annotations

from collections import Counter

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest

from model_checks import group_placements
from ov_autoplace._base import releases
from ov_autoplace.decide.machine import Machine
from ov_autoplace.errors import ModelError, PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.passes import FOLDED, formed, run_passes
from ov_autoplace.plan.annotation import annotate, annotated_placement
from ov_autoplace.plan.bounded import opened_crossings
from ov_autoplace.plan.fitting import count_subgraphs
from ov_autoplace.plan.legality import broken_bonds
from ov_autoplace.plan.partition import completed, count_graph_subgraphs
from ov_autoplace.plan.plan import SplitPlan
from ov_autoplace.plugin.compilation import _Compiler
from random_dynamic_models import random_dynamic_model


def dense_chain() -> ov.Model:
    """A batch of 1 to 4 through three MatMuls."""
    x = ops.parameter(ov.PartialShape([ov.Dimension(1, 4), 8]), np.float32, name="x")
    node = x
    for i in range(3):
        weights = np.random.default_rng(i).standard_normal((8, 8)).astype(np.float32)
        node = ops.matmul(node, ops.constant(weights, name=f"weights{i}"), False, False, name=f"dense{i}")
    return ov.Model([ops.result(node, name="y")], [x])


def convolutions() -> ov.Model:
    """Convolutions over a signal of any length; each makes a dimension of at least 1 out of it."""
    x = ops.parameter([1, 2, -1], np.float32, name="x")
    node = x
    for i in range(3):
        weights = np.random.default_rng(i).standard_normal((2, 2, 3)).astype(np.float32)
        kernel = ops.constant(weights, name=f"kernel{i}")
        node = ops.convolution(node, kernel, [1], [1], [1], [1], name=f"convolution{i}")
    return ov.Model([ops.result(node, name="y")], [x])


CASES = {dense_chain: [(1, 8), (4, 8), (2, 8)], convolutions: [(1, 2, 5), (1, 2, 9)]}


def alternating(model: ov.Model) -> dict[str, str]:
    """The groups by turns on two devices."""
    coarse = coarsen(extract(model))
    return {
        op: ("XCPU", "CPU")[g % 2] for g, ops_of_group in enumerate(coarse.members) for op in ops_of_group
    }


@pytest.mark.parametrize("build", CASES)
def test_bounded_tensors_cross_and_no_output_changes(build, unequal_pair):
    model = build()
    device_of = alternating(model)
    assert set(device_of.values()) == {"XCPU", "CPU"}
    expected = unequal_pair.compile_model(model, "CPU").create_infer_request()
    declared = [port.get_partial_shape() for port in model.inputs]
    annotate(model, device_of)
    assert [port.get_partial_shape() for port in model.inputs] == declared
    compiled = unequal_pair.compile_model(model, "HETERO:XCPU,CPU")
    assert compiled.get_property("HETERO_NUMBER_OF_SUBMODELS") >= 3
    request = compiled.create_infer_request()
    for shape in CASES[build]:
        data = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.testing.assert_allclose(
            request.infer([data])[0], expected.infer([data])[0], rtol=1e-4, atol=1e-5, err_msg=str(shape)
        )


def test_only_crossings_get_new_ops():
    model = dense_chain()
    before = len(model.get_ops())
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    assert not run_passes(model, (opened_crossings(dict.fromkeys(names, "CPU")),))
    assert len(model.get_ops()) == before
    one_cut = {name: "XCPU" if name in ("x", "weights0", "dense0") else "CPU" for name in names}
    assert list(run_passes(model, (opened_crossings(one_cut),)).values()) == [1]
    placed = completed(model, one_cut)
    assert len(placed) > before
    assert {placed[name] for name in set(placed) - set(names)} == {"XCPU"}


@pytest.mark.parametrize("seed", [1, 10, 33, 110])
def test_hetero_cuts_where_it_was_predicted_to(seed):
    model = formed(random_dynamic_model(seed).model, FOLDED)
    graph = extract(model)
    coarse = coarsen(graph, light_ops=False)
    opened = 0
    for _, groups in zip(range(6), group_placements(len(coarse), seed), strict=False):
        on = groups[coarse.group_of]
        if len(set(on.tolist())) < 2 or broken_bonds(graph, on):
            continue
        device_of = {name: ("XCPU", "CPU")[d] for name, d in zip(graph.names, on.tolist(), strict=True)}
        predicted = count_graph_subgraphs(graph, on)
        assert count_subgraphs(model, device_of) == predicted
        annotated = model.clone()
        annotate(annotated, device_of)
        assert count_subgraphs(annotated, annotated_placement(annotated)) == predicted
        opened += len(annotated.get_ops()) > len(model.get_ops())
    assert opened


def test_what_must_stay_together_once_bounds_are_opened_is_refused_before_anything_is_written(monkeypatch):
    """HETERO's last resort against cycles, cutting off one op after another, meets the inserted ones too."""
    monkeypatch.setattr(releases, "installed", lambda: "2026.3.0")  # earlier ones have none
    model, device_of = moved_cut()
    graph = extract(model)
    before = [op.get_friendly_name() for op in model.get_ops()]
    assert broken_bonds(graph, np.array([device_of[name] == "CPU" for name in graph.names], np.int32)) == []
    for ask in (annotate, count_subgraphs):
        with pytest.raises(PlacementError, match="one subgraph"):
            ask(model, device_of)
    assert [op.get_friendly_name() for op in model.get_ops()] == before


def moved_cut() -> tuple[ov.Model, dict[str, str]]:
    """A placement of groups whose variable is parted once bounded dimensions are opened."""
    seed = 152
    model = formed(random_dynamic_model(seed).model, FOLDED)
    coarse = coarsen(extract(model), light_ops=False)
    *_, groups = (g for _, g in zip(range(6), group_placements(len(coarse), seed), strict=False))
    names = coarse.ops.names
    devices = groups[coarse.group_of].tolist()
    return model, {name: ("XCPU", "CPU")[d] for name, d in zip(names, devices, strict=True)}


def test_the_users_own_file_cannot_have_such_a_crossing():
    graph = extract(dense_chain())
    device = np.array([name in ("x", "weights0", "dense0") for name in graph.names]).astype(np.int32)
    assert broken_bonds(graph, device) == []
    (bond,) = broken_bonds(graph, device, as_it_is=True)
    assert "'dense0'" in bond.reason
    assert "'dense1'" in bond.reason
    assert "lower bound" in bond.reason


class OnlySome:
    """A Core of which some devices do not support what is asked about."""

    def __init__(self, unable: set[str], core: ov.Core) -> None:
        self.unable = unable
        self.get_versions, self.get_property = core.get_versions, core.get_property

    def query_model(self, model: ov.Model, device: str, _: dict) -> dict[str, str]:
        able = () if device in self.unable else (op.get_friendly_name() for op in model.get_ops())
        return dict.fromkeys(able, device)


def compiled_for(core: OnlySome) -> str:
    """The device that a decision from elsewhere, which HETERO cannot run, is compiled for instead."""
    model, device_of = moved_cut()
    assert Counter(device_of.values()).most_common(1)[0][0] == "XCPU"
    before = [op.get_friendly_name() for op in model.get_ops()]
    asked = []
    machine = Machine(core, ("XCPU", "CPU"))
    compiler = _Compiler(machine, model, lambda m, device, _: asked.append(device))
    compiler.compile_split(SplitPlan.of(device_of))
    assert [op.get_friendly_name() for op in model.get_ops()] == before
    (device,) = asked
    return device


def test_what_cannot_be_opened_is_compiled_for_a_device_that_supports_all_of_it(unequal_pair):
    assert compiled_for(OnlySome(set(), unequal_pair)) == "XCPU"
    assert compiled_for(OnlySome({"XCPU"}, unequal_pair)) == "CPU"
    with pytest.raises(ModelError, match="run on none of"):
        compiled_for(OnlySome({"CPU", "XCPU"}, unequal_pair))
