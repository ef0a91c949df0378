"""Profiled cost tables: whose time is whose, and that the columns add up to what was measured."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

import zoo
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.names import device_properties
from ov_autoplace.graph.computation_graph import ComputationGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.attribution import Attribution, attribute
from ov_autoplace.measure.counting import Column
from ov_autoplace.measure.crossings import probe_assignments, with_crossing_costs
from ov_autoplace.measure.profiled import _calibrated, _dispatched, profile, profile_session
from ov_autoplace.measure.room import Room
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.timing import mood_of
from ov_autoplace.placement.simulator import simulate, wiring_of_groups

PAIR = ("XCPU", "CPU")
# Made up, so that no test waits for a measurement of it.
TRANSFERS = TransferFit(PAIR, np.full((2, 2), 5e-6), np.full((2, 2), 1e-10), np.array([1e-6, 2e-6]))


@dataclass
class Node:
    """A node of a compiled model, as much of it as the attribution reads."""

    name: str
    original_names: list[str] = field(default_factory=list)
    consumers: list[str] = field(default_factory=list)
    type: str = "Some"
    layout: str = "abcd"
    status: str = "EXECUTED"


def conv_relu_softmax() -> ComputationGraph:
    data = opset.parameter([1, 4, 8, 8], np.float32, name="data")
    kernel = opset.constant(np.ones((4, 4, 3, 3), np.float32), name="kernel")
    conv = opset.convolution(data, kernel, [1, 1], [1, 1], [1, 1], [1, 1], name="conv")
    half = opset.constant(np.array(0.5, np.float32), name="half")
    scaled = opset.multiply(conv, half, name="scale")
    relu = opset.relu(scaled, name="relu")
    out = opset.result(opset.softmax(relu, 1, name="softmax"), name="out")
    return extract(ov.Model([out], [data], "small"))


def test_times_go_to_the_heaviest_op_of_a_fused_node_and_reorders_to_the_node_that_they_feed() -> None:
    graph = conv_relu_softmax()
    nodes = [
        Node("data", ["data"], ["in_reorder"], type="Parameter"),
        Node("in_reorder", [], ["conv"], type="Reorder"),
        Node("conv", ["conv", "relu"], ["mid_reorder"]),
        Node("mid_reorder", [], ["softmax"], type="Reorder"),
        Node("softmax", ["softmax"], ["out_reorder"]),
        Node("out_reorder", [], ["out"], type="Reorder"),
        Node("out", ["out"], [], type="Result"),
        Node("relu", [], [], layout="", status="NOT_RUN"),  # what is left of a node that was fused away
    ]
    seconds = np.array([0.0, 1.0, 10.0, 2.0, 20.0, 4.0, 0.0, 0.0])
    answer = attribute(graph, nodes, seconds)
    found = {graph.names[i]: answer.op_seconds[i] for i in np.flatnonzero(answer.op_seconds)}
    assert found == {"conv": 11.0, "softmax": 26.0}
    assert {graph.names[i]: answer.nodes_run[i] for i in np.flatnonzero(answer.nodes_run)} == {
        "conv": 2,
        "softmax": 3,
    }
    assert answer.unassigned_seconds == 0


def test_copies_at_the_ends_go_to_their_neighbours_and_optimised_out_nodes_were_not_run() -> None:
    """As the GPU plugin reports them: inputs and outputs take time, and what is fused away has a layout."""
    graph = conv_relu_softmax()
    nodes = [
        Node("data", ["data"], ["conv"], type="Parameter"),
        Node("conv", ["conv", "relu"], ["softmax"]),
        Node("softmax", ["softmax"], ["view"]),
        Node("view", [], ["out"], type="Reshape", status="OPTIMIZED_OUT"),
        Node("out", ["out"], [], type="Result"),
    ]
    answer = attribute(graph, nodes, np.array([3.0, 10.0, 20.0, 0.0, 5.0]))
    found = {graph.names[i]: answer.op_seconds[i] for i in np.flatnonzero(answer.op_seconds)}
    assert found == {"conv": 13.0, "softmax": 25.0}
    assert answer.nodes_run.sum() == 4


def test_an_op_that_the_runtime_model_shows_as_an_output_keeps_its_time() -> None:
    """As the GPU plugin reports the last op where it writes straight into the output."""
    graph = conv_relu_softmax()
    nodes = [
        Node("conv", ["conv", "relu"], ["out"]),
        Node("softmax", [], [], layout=""),
        Node("out", ["softmax"], ["out_result"], type="Result", status="OPTIMIZED_OUT"),
    ]
    answer = attribute(graph, nodes, np.array([10.0, 7.0, 0.0]))
    assert answer.op_seconds[graph.index["softmax"]] == 7.0
    assert answer.nodes_run[graph.index["softmax"]] == 1


def test_an_op_that_no_node_lists_joins_the_group_of_its_readers() -> None:
    """The Multiply is folded into the weights: nobody lists it, and relu, its only reader, is conv's."""
    graph = conv_relu_softmax()
    nodes = [Node("conv", ["conv", "relu"], ["softmax"]), Node("softmax", ["softmax"])]
    (group,) = attribute(graph, nodes, np.zeros(2)).fused
    assert set(group) == {"conv", "scale", "relu"}


def test_time_that_belongs_to_no_op_is_reported() -> None:
    graph = conv_relu_softmax()
    answer = attribute(graph, [Node("mystery", ["no such op"])], np.array([3.0]))
    assert answer.unassigned_seconds == 3.0
    assert answer.op_seconds.sum() == 0


def chain_table(groups: int = 12) -> CostTable:
    """A chain of groups; 1 ms each on the first device and 0.5 ms on the second."""
    tensors = groups - 1
    return CostTable(
        devices=PAIR,
        names=tuple(f"g{i}" for i in range(groups)),
        op_seconds=np.tile([1e-3, 0.5e-3], (groups, 1)),
        tensor_producer=np.arange(tensors, dtype=np.int32),
        tensor_bytes=np.random.default_rng(0).integers(1, 1000, tensors) * 1024.0,
        tensor_offsets=np.arange(tensors + 1, dtype=np.int32),
        tensor_consumers=np.arange(1, groups, dtype=np.int32),
        tensor_is_constant=np.zeros(tensors, bool),
        tensor_uncuttable=np.zeros(tensors, bool),
        transfer_latency=np.full((2, 2), 5e-6),
        transfer_seconds_per_byte=np.full((2, 2), 1e-10),
        launch_seconds=np.array([1e-6, 2e-6]),
        memory_bytes=np.zeros(groups),
        memory_capacity=np.full(2, np.inf),
    )


def test_crossing_costs_are_found_from_placements_that_pay_them() -> None:
    table = chain_table()
    truth = replace(
        table,
        transfer_latency=np.full((2, 2), 25e-6),
        transfer_seconds_per_byte=np.full((2, 2), 4e-10),
        mix_seconds=90e-6,
    )
    probes = probe_assignments(table)
    seconds = [simulate(truth, probe).latency_seconds for probe in probes]
    fitted = with_crossing_costs(table, probes, seconds)
    np.testing.assert_allclose(fitted.transfer_latency, truth.transfer_latency, rtol=1e-6)
    np.testing.assert_allclose(fitted.transfer_seconds_per_byte, truth.transfer_seconds_per_byte, rtol=1e-6)
    assert fitted.mix_seconds == pytest.approx(truth.mix_seconds, rel=1e-6)
    np.testing.assert_array_equal(fitted.op_seconds, table.op_seconds)


def test_a_probe_that_the_table_calls_impossible_teaches_nothing() -> None:
    """The simulator may be wrong about it, but an infinite prediction has no error to learn from."""
    table = chain_table()
    wiring = wiring_of_groups(table)
    bonded = replace(table, wiring=replace(wiring, bonds=np.array([[0, 11]], np.int32)))
    probes = probe_assignments(table)
    assert not any(np.isfinite(simulate(bonded, probe).latency_seconds) for probe in probes)
    assert with_crossing_costs(bonded, probes, [1e-2] * len(probes)) is bonded
    runs = np.zeros(12, np.int32)
    runs[4:8] = 1
    loose = replace(table, wiring=replace(wiring, bonds=np.array([[0, 3]], np.int32)))
    cut = np.r_[0, np.ones(11)].astype(np.int32)
    seconds = simulate(replace(table, mix_seconds=50e-6), runs).latency_seconds
    alone = with_crossing_costs(loose, [runs], [seconds])
    both = with_crossing_costs(loose, [cut, runs], [1.0, seconds])
    assert simulate(both, runs).latency_seconds == pytest.approx(simulate(alone, runs).latency_seconds)


def test_dispatch_is_what_the_counted_inferences_took_longer_than_their_nodes() -> None:
    """The machine is half as fast when the model is timed again: every node is, and dispatch as well."""
    nodes, dispatch, launch, slower = np.array([100e-6, 2e-6, 1e-6]), 3e-6, 10e-6, 1.8
    attribution = Attribution(nodes, np.ones(3, np.int32), (), 0.0)
    column = Column(attribution, launch + float((nodes + dispatch).sum()))
    alone = launch + slower * float((nodes + dispatch).sum())
    np.testing.assert_allclose(_calibrated(column, alone, launch), slower * (nodes + dispatch))
    # Counting that is slower than running leaves no room for a dispatch.
    crowded = Column(attribution, 50e-6)
    np.testing.assert_allclose(_calibrated(crowded, launch + 206e-6, launch), 2 * nodes)
    # A device that does not run the whole model is not timed, and has the dispatch of what it ran.
    other, crossing = 500e-6, 7e-6
    seconds = float((nodes + dispatch).sum()) + other + 4 * dispatch + 3 * crossing
    mixed = Column(attribution, seconds, subgraphs=3, other_seconds=other, other_nodes=4)
    np.testing.assert_allclose(_dispatched(mixed, crossing), nodes + dispatch)


def test_a_slow_spell_of_the_machine_is_not_taken_for_the_cost_of_a_device_or_a_probe() -> None:
    """One thread is slowed down more than two, so no factor leads from a slow round to a fast one."""
    slow = np.array([True, False, True, True, True, False, True])
    turns = {
        name: [np.full(4, seconds * (factor if spell else 1.0)) for spell in slow]
        for name, seconds, factor in (("one thread", 1e-3, 1.8), ("two", 2e-3, 1.25), ("probe", 3e-3, 1.4))
    }
    mood = mood_of([turns["one thread"], turns["two"]])
    np.testing.assert_array_equal(mood.counts, ~slow)
    assert mood.seconds(turns["probe"]) == pytest.approx(3e-3)
    np.testing.assert_allclose(mood.samples(turns["one thread"]), np.full(8, 1e-3))


def test_a_probe_is_relative_to_the_single_devices_of_its_round() -> None:
    """Within the undisturbed rounds the clock still drifts by a few percent."""
    drift = np.linspace(1, 1.08, 9)
    alone = [[np.full(4, seconds * slowness) for slowness in drift] for seconds in (1e-3, 2e-3)]
    mood = mood_of(alone)
    assert mood.counts.all()
    usual = float(np.median(mood.samples(alone[0]))) / 1e-3
    # Whenever the probe's own runs were disturbed, the median of the rounds is what counts.
    probe = [np.full(4, 3e-3 * slowness * (2 if i < 4 else 1)) for i, slowness in enumerate(drift)]
    assert mood.seconds(probe) == pytest.approx(3e-3 * usual)


def test_noise_alone_drops_few_rounds_and_favours_nobody() -> None:
    random = np.random.default_rng(0)
    parts = [[seconds * random.lognormal(0, 0.03, 4) for _ in range(60)] for seconds in (1e-3, 2e-3, 5e-3)]
    mood = mood_of(parts[:2])
    assert mood.counts.mean() > 0.9
    ratio = mood.seconds(parts[2]) / float(np.median(mood.samples(parts[0])))
    assert ratio == pytest.approx(5, rel=0.02)


def test_crossing_costs_are_never_lowered() -> None:
    table = chain_table()
    probes = probe_assignments(table)
    seconds = [0.9 * simulate(table, probe).latency_seconds for probe in probes]
    fitted = with_crossing_costs(table, probes, seconds)
    np.testing.assert_allclose(fitted.transfer_latency, table.transfer_latency)
    assert with_crossing_costs(table, [], []) is table


def test_probes_cross_devices_and_respect_what_a_device_supports() -> None:
    op_seconds = np.ones((30, 3))
    op_seconds[10:15, 1] = np.inf
    table = on_devices(chain_table(30), op_seconds)
    probes = probe_assignments(table, seed=3)
    assert len(probes) >= 2
    for probe in probes:
        assert len(set(probe.tolist())) >= 2
        assert np.all(np.isfinite(op_seconds[np.arange(30), probe]))
    assert [p.tolist() for p in probes] == [p.tolist() for p in probe_assignments(table, seed=3)]
    assert probe_assignments(on_devices(chain_table(30), np.ones((30, 1)))) == ()
    assert probe_assignments(on_devices(chain_table(1), np.ones((1, 2)))) == ()


def limited(table: CostTable, first_device_holds: float) -> CostTable:
    """The table with one byte per group, and so many on the first of its devices."""
    memory = np.full(table.num_devices, np.inf)
    memory[0] = first_device_holds
    return replace(table, memory_bytes=np.ones(len(table)), result_bytes=None, memory_capacity=memory)


def test_probes_fill_a_limited_device_without_overfilling_it() -> None:
    table = limited(chain_table(40), 6)
    held = [[np.count_nonzero(p == 0) for p in probe_assignments(table, seed=seed)] for seed in range(10)]
    assert all(0 < count <= 6 for counts in held for count in counts)
    # The first probe has one run on the device; where that begins short, there is nothing to fill it with.
    assert np.median([counts[0] for counts in held]) >= 4


def test_a_device_that_can_hold_no_group_takes_part_in_no_probe() -> None:
    assert probe_assignments(limited(chain_table(40), 0.5)) == ()


def test_two_groups_are_enough_for_a_probe() -> None:
    probes = probe_assignments(chain_table(2))
    assert probes
    assert all(sorted(probe.tolist()) == [0, 1] for probe in probes)


def on_devices(table: CostTable, op_seconds: np.ndarray) -> CostTable:
    """The table with other times, and as many devices as these have columns."""
    D = op_seconds.shape[1]
    return replace(
        table,
        devices=tuple(f"D{d}" for d in range(D)),
        op_seconds=op_seconds,
        transfer_latency=np.zeros((D, D)),
        transfer_seconds_per_byte=np.zeros((D, D)),
        launch_seconds=np.zeros(D),
        memory_capacity=np.full(D, np.inf),
    )


def with_a_bond(table: CostTable, first: int, second: int) -> CostTable:
    """The table of a chain in which two groups must share a subgraph."""
    wiring = replace(wiring_of_groups(table), bonds=np.array([[first, second]], np.int32))
    return replace(table, wiring=wiring)


def test_a_placement_that_cannot_run_is_no_probe() -> None:
    # Few of the cuts leave both ends of a bond over half the chain in one subgraph.
    table = with_a_bond(chain_table(40), 10, 26)
    for seed in range(20):
        probes = probe_assignments(table, seed=seed)
        assert all(np.isfinite(simulate(table, probe).latency_seconds) for probe in probes)
    assert probe_assignments(with_a_bond(chain_table(40), 0, 39)) == ()


def test_a_probe_that_ran_against_the_prediction_tells_nothing_of_crossings() -> None:
    table = with_a_bond(chain_table(), 3, 4)
    truth = replace(table, transfer_latency=np.full((2, 2), 25e-6))
    probes = [*probe_assignments(table), (np.arange(12) < 4).astype(np.int32)]
    assert np.isinf(simulate(table, probes[-1]).latency_seconds)
    seconds = [simulate(truth, probe).latency_seconds for probe in probes[:-1]]
    fitted = with_crossing_costs(table, probes, [*seconds, 0.007])
    np.testing.assert_allclose(fitted.transfer_latency, truth.transfer_latency, rtol=1e-6)
    assert with_crossing_costs(table, probes[-1:], [0.007]) is table


@pytest.mark.parametrize("name", ["inception_v3", "bert_base", "decoder", "control_flow"])
def test_columns_add_up_to_the_latency_of_each_device(unequal_pair: ov.Core, name: str) -> None:
    model = zoo.build(name)
    before = [op.get_friendly_name() for op in model.get_ordered_ops()]
    with ProfilingSession(unequal_pair, model, PAIR, device_properties(unequal_pair, PAIR)) as session:
        answer = profile_session(session, transfers=TRANSFERS)
    table = answer.table
    assert table.source == "profiled"
    assert set(answer.samples) == set(PAIR)
    for d, device in enumerate(PAIR):
        alone = simulate(table, np.full(len(table), d, np.int32))
        assert alone.latency_seconds == pytest.approx(float(np.median(answer.samples[device])), rel=1e-6)
        assert np.all(table.op_seconds[:, d] >= 0)
    # Every op of the model is in exactly one group.
    members = [op for group in table.members or () for op in group]
    assert sorted(members) == sorted(before)
    assert [op.get_friendly_name() for op in model.get_ordered_ops()] == before


def test_the_heavy_matmul_is_the_heavy_group(unequal_pair: ov.Core) -> None:
    data = opset.parameter([512, 64], np.float32, name="data")
    node = data
    for i, width in enumerate((64, 4096, 64)):
        rows = node.get_output_shape(0)[1]
        weights = np.random.default_rng(i).standard_normal((rows, width), dtype=np.float32)
        node = opset.matmul(node, opset.constant(weights), False, False, name=f"matmul{i}")
    for i in range(4):
        weights = np.random.default_rng(i).standard_normal((64, 64), dtype=np.float32)
        node = opset.relu(opset.matmul(node, opset.constant(weights), False, False, name=f"light{i}"))
    model = ov.Model([opset.result(node, name="out")], [data], "uneven")
    table = profile(model, PAIR, unequal_pair, transfers=TRANSFERS)
    group_of = {op: g for g, ops in enumerate(table.members or ()) for op in ops}
    for d in range(2):
        heavy = table.op_seconds[group_of["matmul1"], d] + table.op_seconds[group_of["matmul2"], d]
        light = max(table.op_seconds[group_of[f"light{i}"], d] for i in range(4))
        assert heavy > 2 * light


def test_ops_that_a_device_does_not_support_are_infinite_there(unequal_pair: ov.Core) -> None:
    model = zoo.build("mobilenet_v2")
    graph = extract(model)
    supported = np.ones((len(graph), 2), bool)
    supported[:, 0] = [op_type != "GroupConvolution" for op_type in graph.op_types]
    room = Room(PAIR, graph, supported, np.full(2, np.inf))
    properties = device_properties(unequal_pair, PAIR)
    with ProfilingSession(unequal_pair, model, PAIR, properties, room=room) as session:
        answer = profile_session(session, transfers=TRANSFERS)
    table = answer.table
    assert set(answer.samples) == {"CPU"}
    refused = {
        g for g, op in zip(answer.coarse.group_of, graph.op_types, strict=True) if op == "GroupConvolution"
    }
    assert refused
    assert set(np.flatnonzero(np.isinf(table.op_seconds[:, 0]))) == refused
    assert np.isfinite(table.op_seconds[:, 1]).all()
    rest = [g for g in range(len(table)) if g not in refused]
    assert table.op_seconds[rest, 0].sum() > 0


@dataclass
class Disturbed:
    """A compiled model of which other work interrupts one inference, while its first node runs."""

    executable: object
    factor: float
    subgraphs: int = 1

    def run(self, samples: int, warmup: int = 0, asynchronous: bool = False) -> np.ndarray:
        latencies = np.full(samples, 1e-3)
        self.executable.run(samples, warmup=warmup, asynchronous=asynchronous)
        if samples > 2:  # not the warm-up
            latencies[0] *= 1 + (self.factor - 1) * samples
        return latencies

    def node_times(self) -> list[Node]:
        nodes = self.executable.node_times()
        plain = ("name", "original_names", "consumers", "type", "layout", "status")
        found = []
        for node in nodes:
            counted = Node(**{key: getattr(node, key) for key in plain})
            counted.subgraph, counted.seconds = node.subgraph, 1e-3 * len(node.name)
            found.append(counted)
        next(node for node in found if node.status == "EXECUTED").seconds *= self.factor
        return found


class Busy(ProfilingSession):
    """Each compilation that counts nodes is disturbed by the next factor of ``factors``, then by the last."""

    def __init__(self, factors: list[float], *arguments: object) -> None:
        super().__init__(*arguments)
        self.factors, self.compiled = factors, 0

    def compile_device(self, device: str, *, count_nodes: bool = False):
        executable = super().compile_device(device, count_nodes=count_nodes)
        if not count_nodes:
            return executable
        self.compiled += 1
        return Disturbed(executable, self.factors[min(self.compiled, len(self.factors)) - 1])


def shares(core: ov.Core, factors: list[float]) -> tuple[np.ndarray, int]:
    """The groups' shares of the time on the second device, and how often nodes were counted."""
    with Busy(factors, core, zoo.build("mobilenet_v2"), PAIR, device_properties(core, PAIR)) as session:
        table = profile_session(session, transfers=TRANSFERS).table
        return table.op_seconds[:, 1] / table.op_seconds[:, 1].sum(), session.compiled


def test_nodes_that_other_work_disturbed_are_counted_again(unequal_pair, caplog) -> None:
    quiet, times = shares(unequal_pair, [1.0])
    assert times == 2  # once on each device
    answer, times = shares(unequal_pair, [1.0, 10.0, 1.0])
    assert times == 3
    assert answer == pytest.approx(quiet)
    assert not caplog.records


def test_where_the_machine_stays_busy_the_least_disturbed_count_is_taken_with_a_warning(
    unequal_pair, caplog
) -> None:
    answer, times = shares(unequal_pair, [1.0, 10.0, 3.0, 5.0])
    assert times == 4
    assert answer == pytest.approx(shares(unequal_pair, [1.0, 3.0])[0])
    assert "other work disturbed the profile on CPU" in caplog.text


def test_an_op_whose_times_differ_by_more_than_a_share_of_a_transfer_is_a_group_of_its_own(
    unequal_pair,
) -> None:
    """Element-wise ops follow a neighbour only where that can cost little."""
    data = opset.parameter([1, 64, 64, 64], np.float32, name="data")
    value = data
    for i in range(3):
        value = opset.cum_sum(opset.sin(value, name=f"sin{i}"), np.int64(2), name=f"cumsum{i}")
    model = ov.Model([opset.result(value, name="out")], [data], "chain")

    def groups(latency: float) -> int:
        fit = replace(TRANSFERS, latency=np.full((2, 2), latency))
        return len(profile(model, PAIR, unequal_pair, transfers=fit))

    assert groups(1e-7) > 1
    assert groups(10.0) == 1
