"""The coarse graph: acyclic, complete, with the costs and tensors of its ops."""

from __future__ import annotations

import numpy as np
import openvino as ov
import pytest
from graph_models import STRUCTURES, decompression, dense, named, shared_constant, state, tied_decompression
from openvino import opset13 as ops

import zoo
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.rules import GraphView


def chain(length: int = 4) -> ov.Model:
    x = ops.parameter([4, 8], np.float32, name="x")
    y: ov.Node = x
    for i in range(length):
        y = named(ops.relu(dense(y, f"heavy{i}")), f"light{i}")
    return ov.Model([ops.result(y)], [x])


def group_of(coarse: CoarseGraph, name: str) -> int:
    return int(coarse.group_of[coarse.ops.index[name]])


@pytest.fixture(params=[*STRUCTURES, *zoo.NAMES])
def coarse(request: pytest.FixtureRequest) -> CoarseGraph:
    name = request.param
    model = STRUCTURES[name]() if name in STRUCTURES else zoo.build(name)
    shapes = {"x": [3, 5, 8]} if name == "shared_dynamic_shape" else None
    return coarsen(extract(model, shapes))


def test_groups_stand_in_topological_order(coarse: CoarseGraph) -> None:
    graph = coarse.graph
    sources = np.repeat(graph.tensor_producer, np.diff(graph.tensor_offsets))
    waits = ~np.repeat(coarse.tensor_is_constant, np.diff(graph.tensor_offsets))
    assert (sources[waits] < graph.tensor_consumers[waits]).all()


def test_every_group_is_convex(coarse: CoarseGraph) -> None:
    """No path leaves a group and comes back: along every path the numbers of groups ascend."""
    sources, targets = coarse.group_of[GraphView(coarse.ops).dependencies].T
    assert (sources <= targets).all()


def test_costs_are_the_sums_of_the_members(coarse: CoarseGraph) -> None:
    assert coarse.graph.flops.sum() == pytest.approx(coarse.ops.flops.sum())
    assert coarse.graph.weight_bytes.sum() == pytest.approx(coarse.ops.weight_bytes.sum())
    assert sorted(name for members in coarse.members for name in members) == sorted(coarse.ops.names)


def test_tensors_are_those_that_leave_a_group(coarse: CoarseGraph) -> None:
    ops_graph, group = coarse.ops, coarse.group_of
    expected = []
    for t, producer in enumerate(ops_graph.tensor_producer):
        readers = ops_graph.tensor_consumers[ops_graph.tensor_offsets[t] : ops_graph.tensor_offsets[t + 1]]
        others = sorted({int(group[reader]) for reader in readers} - {int(group[producer])})
        if others:
            constant = ops_graph.op_types[producer] == "Constant"
            expected.append((int(group[producer]), float(ops_graph.tensor_bytes[t]), constant, others))
    graph = coarse.graph
    found = [
        (
            int(graph.tensor_producer[t]),
            float(graph.tensor_bytes[t]),
            bool(coarse.tensor_is_constant[t]),
            graph.tensor_consumers[graph.tensor_offsets[t] : graph.tensor_offsets[t + 1]].tolist(),
        )
        for t in range(len(graph.tensor_producer))
    ]
    assert sorted(found) == sorted(expected)


def test_inputs_mirror_the_tensors(coarse: CoarseGraph) -> None:
    graph = coarse.graph
    sources = np.repeat(graph.tensor_producer, np.diff(graph.tensor_offsets))
    forward = sorted(zip(sources.tolist(), graph.tensor_consumers.tolist(), strict=True))
    targets = np.repeat(np.arange(len(graph)), np.diff(graph.input_offsets))
    assert sorted(zip(graph.input_sources.tolist(), targets.tolist(), strict=True)) == forward


def test_no_uncuttable_tensor_is_left_between_groups(coarse: CoarseGraph) -> None:
    assert not coarse.graph.tensor_uncuttable.any()


def test_a_group_carries_the_name_of_its_heaviest_op() -> None:
    assert coarsen(extract(chain())).graph.names == ("heavy0", "heavy1", "heavy2", "heavy3")


def test_known_networks_coarsen_to_the_sizes_that_placers_expect() -> None:
    bert = coarsen(extract(zoo.build("bert_base", size="full", weights="untouched")))
    assert 90 <= len(bert) <= 200
    resnet = coarsen(extract(zoo.build("resnet50", size="full", weights="untouched")))
    assert 50 <= len(resnet) <= 70


def test_a_variable_takes_everything_between_its_accesses() -> None:
    coarse = coarsen(extract(state()), light_ops=False)
    assert {group_of(coarse, name) for name in ("read", "mixed", "inside", "new", "write")} == {
        group_of(coarse, "read")
    }
    assert len({group_of(coarse, name) for name in ("before", "read", "after", "last")}) == 4


def test_a_shared_constant_is_a_constant_tensor_and_makes_no_dependency() -> None:
    coarse = coarsen(extract(shared_constant()))
    weight = int(np.flatnonzero(coarse.tensor_is_constant)[0])
    graph = coarse.graph
    assert coarse.tensor_is_constant.sum() == 1
    assert graph.tensor_consumers[
        graph.tensor_offsets[weight] : graph.tensor_offsets[weight + 1]
    ].tolist() == [1, 2]
    assert graph.tensor_bytes[weight] == 8 * 8 * 4


def test_a_shared_decompression_chain_is_an_ordinary_tensor_of_full_size() -> None:
    coarse = coarsen(extract(tied_decompression()))
    graph = coarse.graph
    between = [
        t
        for t in np.flatnonzero(graph.tensor_producer == group_of(coarse, "half"))
        if graph.tensor_bytes[t] == 8 * 8 * 4
    ]
    assert len(between) == 1
    assert not coarse.tensor_is_constant[between[0]]


def test_ops_that_a_device_fused_share_a_group_and_so_does_what_lies_between() -> None:
    coarse = coarsen(extract(chain()), fused=[["heavy0", "heavy2"]])
    assert coarse.graph.names == ("heavy0", "heavy3")
    assert group_of(coarse, "heavy1") == group_of(coarse, "heavy0")


def test_an_op_that_is_heavy_whatever_its_type_follows_no_neighbour() -> None:
    graph = extract(chain())
    assert "heavy1" in coarsen(graph).members[group_of(coarsen(graph), "light1")]
    heavy = np.array([name == "light1" for name in graph.names])
    coarse = coarsen(graph, heavy=heavy)
    assert coarse.members[group_of(coarse, "light1")] == ("light1",)
    assert len(coarse) == len(coarsen(graph)) + 1


def test_a_pin_does_not_spread_to_ops_that_it_does_not_name() -> None:
    coarse = coarsen(extract(chain()), pins={"light1": "CPU"})
    assert coarse.members[group_of(coarse, "light1")] == ("light1",)


def test_ops_pinned_to_one_device_may_still_join() -> None:
    pins = {"heavy1": "CPU", "light1": "CPU"}
    coarse = coarsen(extract(chain()), pins=pins)
    assert coarse.graph.names == ("heavy0", "heavy1", "heavy2", "heavy3")


def test_fusion_gives_way_to_a_pin_between_the_fused_ops() -> None:
    fused = [["heavy0", "heavy2"], ["heavy2", "heavy3"]]
    coarse = coarsen(extract(chain()), fused=fused, pins={"heavy1": "XCPU"})
    assert len({group_of(coarse, f"heavy{i}") for i in range(3)}) == 3


def test_pinning_apart_what_cannot_be_separated_names_both_ops() -> None:
    with pytest.raises(PlacementError, match=r"'half' is pinned to XCPU and 'use_half' to CPU"):
        coarsen(extract(decompression()), pins={"half": "XCPU", "use_half": "CPU"})


def test_an_exception_from_a_pin_takes_along_what_cannot_be_separated_from_it() -> None:
    coarse = coarsen(extract(decompression()), pins={"*half": "XCPU", "use_half": "CPU"})
    assert group_of(coarse, "half") == group_of(coarse, "use_half")


def test_an_op_takes_the_last_pin_that_matches_it() -> None:
    coarse = coarsen(extract(decompression()), pins={"use_*": "XCPU", "half": "CPU", "*half": "CPU"})
    assert group_of(coarse, "half") == group_of(coarse, "use_half")
