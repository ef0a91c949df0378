"""Profiled cost tables: their columns add up to what was measured."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import openvino as ov
import pytest
from compiled_nodes import Node
from openvino import opset13 as opset

import zoo
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.devices.names import device_properties
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.attribution import Attribution
from ov_autoplace.measure.counting import Column, count_devices
from ov_autoplace.measure.feasibility import Feasibility
from ov_autoplace.measure.profiled import _dispatched, calibrated, profile, profile_session
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.timing import mood_of
from ov_autoplace.plan.simulator import simulate

PAIR = ("XCPU", "CPU")


# Made up, so that no test waits for a measurement of it.
TRANSFERS = TransferFit(PAIR, np.full((2, 2), 5e-6), np.full((2, 2), 1e-10), np.array([1e-6, 2e-6]))


def test_dispatch_is_what_the_counted_inferences_took_longer_than_their_nodes() -> None:
    """The machine is half as fast when the model is timed again: every node is, and dispatch as well."""
    nodes, dispatch, launch, slower = np.array([100e-6, 2e-6, 1e-6]), 3e-6, 10e-6, 1.8
    attribution = Attribution(nodes, np.ones(3, np.int32), (), 0.0)
    column = Column(attribution, launch + float((nodes + dispatch).sum()))
    alone = launch + slower * float((nodes + dispatch).sum())
    np.testing.assert_allclose(calibrated(column, alone, launch), slower * (nodes + dispatch))
    # Counting that is slower than running leaves no room for a dispatch.
    crowded = Column(attribution, 50e-6)
    np.testing.assert_allclose(calibrated(crowded, launch + 206e-6, launch), 2 * nodes)
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


@pytest.mark.parametrize("name", ["inception_v3", "decoder", "control_flow"])
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
    data = opset.parameter([128, 64], np.float32, name="data")
    node = data
    for i, width in enumerate((64, 2048, 64)):
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
    room = Feasibility(PAIR, graph, supported, np.full(2, np.inf))
    properties = device_properties(unequal_pair, PAIR)
    with ProfilingSession(unequal_pair, model, PAIR, properties, feasibility=room) as session:
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


@pytest.mark.alone
def test_nodes_that_other_work_disturbed_are_counted_again(unequal_pair, caplog) -> None:
    quiet, times = shares(unequal_pair, [1.0])
    assert times == 2  # once on each device
    answer, times = shares(unequal_pair, [1.0, 10.0, 1.0])
    assert times == 3
    assert answer == pytest.approx(quiet)
    assert not caplog.records


@pytest.mark.alone
def test_where_the_machine_stays_busy_the_least_disturbed_count_is_taken_with_a_warning(
    unequal_pair, caplog
) -> None:
    answer, times = shares(unequal_pair, [1.0, 10.0, 3.0, 5.0])
    assert times == 4
    assert answer == pytest.approx(shares(unequal_pair, [1.0, 3.0])[0])
    assert "other work disturbed the profile on CPU" in caplog.text


def test_inferences_that_a_quota_stops_are_no_disturbance(unequal_pair, caplog, monkeypatch) -> None:
    monkeypatch.setattr(Cores, "quota", Quota(1.5, 0.1))
    with Busy([1.0, 10.0], unequal_pair, zoo.build("mobilenet_v2"), PAIR) as session:
        assert not count_devices(session).was_disturbed
        assert session.compiled == 2  # once on each device
    assert not caplog.records


def test_an_op_whose_times_differ_by_more_than_a_share_of_a_transfer_is_a_group_of_its_own(
    unequal_pair,
) -> None:
    """Element-wise ops follow a neighbour only where that can cost little."""
    data = opset.parameter([1, 16, 64, 64], np.float32, name="data")
    value = data
    for i in range(3):
        value = opset.cum_sum(opset.sin(value, name=f"sin{i}"), np.int64(2), name=f"cumsum{i}")
    model = ov.Model([opset.result(value, name="out")], [data], "chain")

    def groups(latency: float) -> int:
        fit = replace(TRANSFERS, latency=np.full((2, 2), latency))
        return len(profile(model, PAIR, unequal_pair, transfers=fit))

    assert groups(1e-7) > 1
    assert groups(10.0) == 1
