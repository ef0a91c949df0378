"""Subgraph counts, against the real HETERO and against the plain rules in ``reference_hetero``."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest

import reference_hetero as reference
from model_checks import subgraphs_of
from ov_autoplace import _core
from ov_autoplace._base.releases import HeteroRules
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.extract import extract
from ov_autoplace.plan.annotation import set_affinities
from ov_autoplace.plan.fitting import count_subgraphs
from ov_autoplace.plan.partition import count_graph_subgraphs, graph_partition, number_devices
from ov_autoplace.plan.placement import Placement
from places import CPU_PLUGIN
from random_models import random_model

DEVICES = ("CPU", "XCPU")

both_rules = pytest.mark.parametrize("rules", list(HeteroRules), ids=lambda rules: rules.name)


@pytest.fixture(scope="module")
def core() -> ov.Core:
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    for device in DEVICES:
        # Without its snippets, which crash on some tiny graphs (and take most of the compile time).
        core.set_property(device, {"SNIPPETS_MODE": "DISABLE", "INFERENCE_NUM_THREADS": 1})
    return core


def hetero_count(core: ov.Core, model: ov.Model, device_of: dict[str, str]) -> int | None:
    """``None`` where HETERO refuses the placement, as ``predicted_count``."""
    set_affinities(model, device_of)
    try:
        compiled = core.compile_model(model, "HETERO")
    except RuntimeError as cause:
        if "Cannot sort subgraphs" not in str(cause):
            raise
        return None
    return int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"))


def predicted_count(model: ov.Model, device_of: dict[str, str]) -> int | None:
    graph = extract(model)
    count, _ = graph_partition(graph, number_devices(graph.names, device_of))
    if count is None:
        with pytest.raises(PlacementError, match="wait for each other"):
            count_subgraphs(model, device_of)
    else:
        assert count_subgraphs(model, device_of) == count
    return count


def random_placement(random: np.random.Generator, model: ov.Model, style: str) -> dict[str, str]:
    """Devices drawn op by op (``scattered``) or in runs along the order of the ops (``runs``)."""
    change = 0.5 if style == "scattered" else 0.15
    device, device_of = 0, {}
    for op in model.get_ordered_ops():
        device ^= int(random.random() < change)
        device_of[op.get_friendly_name()] = DEVICES[device]
    return device_of


@pytest.mark.seeds(30, cost=10)
def test_count_is_that_of_the_real_hetero(core: ov.Core, seed: int) -> None:
    random = np.random.default_rng(seed)
    model = random_model(seed, size=int(random.integers(4, 26)), shared_constants=seed % 4)
    for style in ("scattered", "runs") * 3:
        device_of = random_placement(random, model, style)
        assert predicted_count(model, device_of) == hetero_count(core, model, device_of), (style, device_of)


# Placements in which subgraphs wait for each other to the end: one release refuses them, another one has a
# last resort, cutting off one node at a time.
@pytest.mark.parametrize("seed", [3, 7, 11])
def test_count_is_that_of_the_real_hetero_where_subgraphs_wait_in_cycles(core: ov.Core, seed: int) -> None:
    random = np.random.default_rng(seed)
    for trial in range(1000):
        if trial % 100 == 0:
            model = random_model(seed + trial, size=25, shared_constants=3)
            graph, names = reference_graph(model), extract(model).names
        device_of = random_placement(random, model, "scattered")
        found = reference.partition(graph, [DEVICES.index(device_of[name]) for name in names])
        if found.isolated > 1 or found.refused:
            break
    else:
        pytest.fail("subgraphs can be sorted in all placements")
    assert predicted_count(model, device_of) == hetero_count(core, model, device_of), device_of


def reference_graph(model: ov.Model) -> reference.Graph:
    graph = extract(model)
    kinds = graph.is_parameter * 1 + graph.is_constant * 2 + graph.is_result * 3
    readers = np.split(graph.tensor_consumers, graph.tensor_offsets[1:-1])
    return reference.Graph.of(kinds.tolist(), graph.tensor_producer.tolist(), [r.tolist() for r in readers])


def core_graph(
    kinds: Sequence[int], producer: Sequence[int], readers: Sequence[Sequence[int]], rules: HeteroRules
) -> _core.PartitionGraph:
    """The arguments of ``reference.Graph.of``, for the core."""
    return _core.PartitionGraph(
        np.array(kinds, np.uint8),
        np.array(producer, np.int32),
        np.cumsum([0, *map(len, readers)]).astype(np.int32),
        np.array(list(itertools.chain(*readers)), np.int32),
        rules.value,
    )


def assert_same(
    graph: reference.Graph, prepared: _core.PartitionGraph, devices: np.ndarray, rules: HeteroRules
) -> None:
    """The core finds the subgraphs of the plain rules, and as many submodels."""
    found = reference.partition(graph, devices.tolist(), reference.RULES[rules])
    count, roots = prepared.partition(devices.astype(np.int32))
    assert roots.tolist() == found.label, (graph, devices.tolist())
    assert count == reference.submodels(graph, found), (graph, devices.tolist())


@pytest.mark.seeds(25)
def test_subgraphs_are_those_of_the_plain_rules(seed: int) -> None:
    random = np.random.default_rng(seed)
    model = random_model(seed, size=int(random.integers(2, 30)), shared_constants=seed % 5, locality=10)
    graph = reference_graph(model)
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    for style in ("scattered", "runs") * 3:
        device_of = random_placement(random, model, style)
        plain = reference.partition(graph, [DEVICES.index(device_of[name]) for name in names])
        found = subgraphs_of(model, device_of)
        assert partition_of(found.values()) == partition_of(plain.label), device_of
        assert predicted_count(model, device_of) == reference.submodels(graph, plain)


def partition_of(labels) -> list[int]:
    labels = list(labels)
    return [labels.index(label) for label in labels]


@both_rules
@pytest.mark.seeds(8)
def test_many_subgraphs_on_one_cycle_do_not_change_the_answer(rules: HeteroRules, seed: int) -> None:
    # Two long chains that cross all the time: far more subgraphs than one word has bits.
    random = np.random.default_rng(seed)
    length = 250
    producer = list(range(2 * length - 2))
    readers = [[t + 2] + ([t + 3] if t % 2 == 0 and t + 3 < 2 * length else []) for t in producer]
    kinds = [reference.GROUP] * (2 * length)
    graph = reference.Graph.of(kinds, producer, readers)
    prepared = core_graph(kinds, producer, readers, rules)
    assert_same(graph, prepared, random.integers(2, size=2 * length), rules)


@both_rules
@pytest.mark.seeds(100)
def test_subgraphs_of_graphs_of_every_structure_are_those_of_the_plain_rules(
    rules: HeteroRules, seed: int
) -> None:
    random = np.random.default_rng(seed)
    for _ in range(6):
        compare_with_plain_rules(random, int(random.integers(2, 28)), rules)


def compare_with_plain_rules(random: np.random.Generator, nodes: int, rules: HeteroRules) -> None:
    """Any kinds of nodes, tensors read twice and by many; devices at random and one stray op."""
    weights = random.dirichlet(np.ones(4))
    kinds = random.choice(
        [reference.OP, reference.PARAMETER, reference.CONSTANT, reference.GROUP], nodes, p=weights
    )
    producer, readers = [], []
    span = int(random.choice([3, 8, nodes]))
    for v in range(nodes - 1):
        for _ in range(int(random.integers(0, 3))):
            consumers = v + 1 + random.integers(min(span, nodes - 1 - v), size=int(random.integers(1, 4)))
            consumers = [int(c) for c in consumers if kinds[c] in (reference.OP, reference.GROUP)]
            if consumers:
                producer.append(v)
                readers.append(sorted(consumers))
    # Ends of the graph become Results at times.
    for v in set(range(nodes)) - set(producer):
        if kinds[v] == reference.OP and random.random() < 0.5:
            kinds[v] = reference.RESULT
    graph = reference.Graph.of(kinds.tolist(), producer, readers)
    prepared = core_graph(kinds.tolist(), producer, readers, rules)
    stray = np.zeros(nodes, np.int32)
    stray[random.integers(nodes)] = 1
    for devices in (stray, random.integers(2, size=nodes), random.integers(3, size=nodes)):
        assert_same(graph, prepared, devices, rules)


def test_one_device_is_one_subgraph_and_constants_alone_make_none() -> None:
    model = random_model(0, size=6, shared_constants=1)
    device_of = {op.get_friendly_name(): "CPU" for op in model.get_ops()}
    assert count_subgraphs(model, device_of) == 1
    moved = device_of | {
        op.get_friendly_name(): "GPU" for op in model.get_ops() if op.get_type_name() == "Constant"
    }
    assert count_subgraphs(model, moved) == 1
    numbers = subgraphs_of(model, moved)
    on = {d: {numbers[name] for name, device in moved.items() if device == d} for d in ("CPU", "GPU")}
    assert len(on["CPU"]) == 1
    assert on["CPU"].isdisjoint(on["GPU"])


def test_results_follow_their_producer() -> None:
    parameter = ops.parameter([1], name="in")
    result = ops.result(ops.relu(parameter, name="relu"), name="out")
    model = ov.Model([result], [parameter])
    assert count_subgraphs(model, {"in": "CPU", "relu": "CPU", "out": "GPU"}) == 1
    assert count_subgraphs(model, {"in": "GPU", "relu": "CPU", "out": "CPU"}) == 2


def test_count_of_an_extracted_graph_is_that_of_its_model() -> None:
    model = random_model(5, size=20)
    graph = extract(model)
    random = np.random.default_rng(5)
    for _ in range(20):
        device = random.integers(3, size=len(graph)).astype(np.int32)
        placement = Placement(("A", "B", "C"), graph.names, device)
        assert count_graph_subgraphs(graph, device) == count_subgraphs(model, placement)


def test_ops_with_the_same_name_are_told_apart() -> None:
    parameter = ops.parameter([1], name="x")
    first = ops.relu(parameter, name="twin")
    second = ops.sigmoid(first, name="twin")
    model = ov.Model([ops.result(second, name="out")], [parameter])
    numbers = subgraphs_of(model, {"x": "A", "twin": "A", "twin_1": "B", "out": "B"})
    assert numbers["x"] == numbers["twin"] != numbers["twin_1"] == numbers["out"]


def test_a_placement_that_does_not_fit_the_model_is_refused() -> None:
    model = random_model(1, size=3)
    device_of = {op.get_friendly_name(): "CPU" for op in model.get_ops()}
    with pytest.raises(PlacementError, match="no op 'stranger'"):
        count_subgraphs(model, device_of | {"stranger": "CPU"})
    del device_of["op1"]
    with pytest.raises(PlacementError, match="the first is 'op1'"):
        count_subgraphs(model, device_of)
    with pytest.raises(PlacementError, match="the graph has"):
        count_graph_subgraphs(extract(model), np.zeros(2, np.int32))


@pytest.mark.parametrize(
    ("kinds", "producer", "offsets", "consumers", "message"),
    [
        ([0, 0], [1], [0, 1], [0], "topological order"),
        ([0, 0], [0], [0, 1], [2], "topological order"),
        ([0, 0], [2], [0, 0], [], "made by node 2"),
        ([0, 0], [0], [0, 2], [1], "tensor_offsets"),
        ([9, 0], [0], [0, 1], [1], "no node kind"),
    ],
)
def test_inconsistent_graphs_are_refused(kinds, producer, offsets, consumers, message: str) -> None:
    arrays = (np.array(values, np.int32) for values in (producer, offsets, consumers))
    with pytest.raises(ValueError, match=message):
        _core.PartitionGraph(np.array(kinds, np.uint8), *arrays, 0)


def family_edges(family: str, size: int, random: np.random.Generator) -> list[tuple[int, int]]:
    """Edges between ops of a graph in which the rules that split feedback need many rounds."""
    if family == "long skips":
        return [(v - 1, v) for v in range(1, size)] + [
            (v, int(random.integers(v + 1, size))) for v in range(0, size - 1, 3)
        ]
    if family == "lanes":
        width = max(2, size // 5)
        crossing = [(int(random.integers(v // width * width)), v) for v in range(width, size, 3)]
        return [(v - width, v) for v in range(width, size)] + crossing
    if family == "ladder":
        return [(v - 2, v) for v in range(2, size)] + [(v - 1, v) for v in range(1, size, 2)]
    return [(int(random.integers(max(0, v - 6), v)), v) for v in range(1, size) for _ in range(2)]


@both_rules
@pytest.mark.parametrize("family", ["long skips", "lanes", "ladder", "window"])
@pytest.mark.seeds(8, cost=4)
def test_subgraphs_of_graphs_with_private_weights_are_those_of_the_plain_rules(
    family: str, rules: HeteroRules, seed: int
) -> None:
    random = np.random.default_rng([seed, len(family)])
    # The large ones need so many rounds that the core stops looking at whole cycles in each.
    small_or_large = (8, 36) if seed < 4 else (200, 320) if family == "long skips" else (60, 120)
    size = int(random.integers(*small_or_large))
    op = random.choice([reference.OP, reference.GROUP])
    readers: list[list[int]] = []
    kinds, producer, place = [reference.PARAMETER], [0], []
    first = [0]
    edges = family_edges(family, size, random)
    fed = {b for _, b in edges}
    weights = []
    for v in range(size):
        if random.random() < 0.4:  # a weight with one reader
            weights.append((len(kinds), v))
            kinds.append(reference.CONSTANT)
        place.append(len(kinds))
        kinds.append(int(op))
        if v not in fed and random.random() < 0.8:
            first.append(v)
    readers.append(sorted({place[v] for v in first}))
    for weight, v in weights:
        producer.append(weight)
        readers.append([place[v]])
    for v in range(size):
        producer.append(place[v])
        readers.append(sorted(place[b] for a, b in edges if a == v))
    graph = reference.Graph.of(kinds, producer, readers)
    prepared = core_graph(kinds, producer, readers, rules)
    for change in (0.5, 0.15, 0.05):
        devices = (np.cumsum(random.random(len(kinds)) < change) % 2).astype(np.int32)
        devices[random.integers(len(kinds), size=2)] ^= 1
        assert_same(graph, prepared, devices, rules)


@both_rules
@pytest.mark.seeds(6)
def test_cycles_that_break_into_single_nodes_are_those_of_the_plain_rules(
    rules: HeteroRules, seed: int
) -> None:
    # The last resort cuts off dozens of nodes, one by one, from few large subgraphs, where there is one.
    random = np.random.default_rng([seed, 77])
    size = int(random.integers(30, 60))
    edges = family_edges("window", size, random)
    readers = [sorted(b for a, b in edges if a == v) for v in range(size)]
    kinds, producer = [reference.GROUP] * size, list(range(size))
    graph = reference.Graph.of(kinds, producer, readers)
    prepared = core_graph(kinds, producer, readers, rules)
    third = np.zeros(size, np.int32)
    third[size // 3 : 2 * size // 3] = 1
    strays = np.zeros(size, np.int32)
    strays[random.integers(size, size=4)] = 1
    for devices in (third, strays, third ^ strays, random.integers(2, size=size)):
        assert_same(graph, prepared, devices, rules)
