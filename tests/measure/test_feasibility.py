"""Models that are larger than a device: whatever it is asked to compile, it can hold."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

import ov_autoplace
from measuring_faults import Compilations, Inject
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.liveness import held_bytes
from ov_autoplace.cost.target_json import save_target
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.decide import confirmation
from ov_autoplace.decide.comparison import Comparison, comparison
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import PlacementError, ProfilingError
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.counting import CountedDevices, count_devices
from ov_autoplace.measure.feasibility import Feasibility
from ov_autoplace.measure.profiled import counted_profile, profile
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.plan import SplitPlan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.plugin import compilation

PAIR = ("XCPU", "CPU")
LAYERS, WIDTH = 8, 160
LAYER = WIDTH * WIDTH * 4  # bytes of one layer's weights
TRANSFERS = TransferFit(PAIR, np.full((2, 2), 5e-6), np.full((2, 2), 1e-10), np.array([1e-6, 2e-6]))


def layers() -> ov.Model:
    """Matrices one after the other, each with a ReLU; the results are small beside the weights."""
    x = opset.parameter([2, WIDTH], np.float32, name="x")
    node = x
    for i in range(LAYERS):
        weights = np.random.default_rng(i).normal(size=(WIDTH, WIDTH)).astype(np.float32) / WIDTH
        constant = opset.constant(weights, name=f"weights{i}")
        node = opset.relu(opset.matmul(node, constant, False, False, name=f"matmul{i}"), name=f"relu{i}")
    return ov.Model([opset.result(node, name="y")], [x], "layers")


def bytes_on(entry: Mapping[str, Any]) -> dict[str, int]:
    """Bytes of constants that a compilation put on each device."""
    base, _, listed = entry["device"].partition(":")
    targets = listed.split(",") if listed else [base]
    found = dict.fromkeys(targets, 0)
    for name, size in entry["constants"].items():
        for target in [entry["affinities"][name]] if entry["affinities"] else targets:
            found[target] += size
    return found


def most_on(device: str, compilations: Compilations) -> int:
    """The most bytes of constants that any compilation for measuring put on a device."""
    return max((bytes_on(entry).get(device, 0) for entry in compilations()), default=0)


@pytest.fixture
def steady(inject: Inject) -> None:
    """A machine without disturbances: what is done again on a busy one is tested with the profile."""
    inject("run:*:steady")


def feasible(memory: tuple[float, float], supported: np.ndarray | None = None) -> Feasibility:
    graph = extract(layers())
    everything = np.ones((len(graph), 2), bool)
    return Feasibility(PAIR, graph, everything if supported is None else supported, np.array(memory))


def weights_on(feasibility: Feasibility, assignment: np.ndarray, d: int) -> float:
    graph = feasibility.graph
    return sum(
        float(np.prod(graph.output_shapes[i])) * 4
        for i in np.flatnonzero(assignment == d)
        if graph.is_constant[i]
    )


@pytest.mark.parametrize("layers_held", [1.5, 2.5, 7.5])
def test_pieces_cover_the_model_and_fit(layers_held: float) -> None:
    limited = feasible((layers_held * LAYER, np.inf))
    assert (limited.holds_all("XCPU"), limited.holds_all("CPU")) == (False, True)
    pieces = limited.covering(0)
    assert len(pieces) == -(-LAYERS // int(layers_held))
    assert np.logical_or.reduce([piece == 0 for piece in pieces]).all()
    for piece in pieces:
        assert 0 < weights_on(limited, piece, 0) <= layers_held * LAYER
    (whole,) = limited.covering(1)
    assert (whole == 1).all()


def test_two_devices_that_are_both_too_small_share_every_placement() -> None:
    limits = (5.5 * LAYER, 4.5 * LAYER)
    limited = feasible(limits)
    for d in range(2):
        pieces = limited.covering(d)
        assert np.logical_or.reduce([piece == d for piece in pieces]).all()
        for piece in pieces:
            for e in range(2):
                assert weights_on(limited, piece, e) <= limits[e]


def test_results_that_a_device_cannot_hold_are_never_on_it() -> None:
    """A wide result, then narrow ones: only these fit, whatever the rest of the model holds elsewhere."""
    width = 65536
    x = opset.parameter([1, width], np.float32, name="x")
    node = opset.relu(x, name="relu")
    for i, shape in enumerate([(width, 1), (1, 8), (8, 8)]):
        weights = opset.constant(np.ones(shape, np.float32), name=f"weights{i}")
        node = opset.matmul(node, weights, False, False, name=f"matmul{i}")
    graph = extract(ov.Model([opset.result(node, name="y")], [x], "narrowing"))
    limited = Feasibility(PAIR, graph, np.ones((len(graph), 2), bool), np.array([width * 4 / 2, np.inf]))
    pieces = limited.covering(0)
    here = {graph.names[i] for piece in pieces for i in np.flatnonzero(piece == 0)}
    assert {"matmul1", "matmul2"} <= here
    assert not {"relu", "matmul0"} & here


def test_what_no_piece_can_hold_is_in_none() -> None:
    assert feasible((0.5 * LAYER, np.inf)).covering(0) == []
    assert feasible((3.5 * LAYER, 3.5 * LAYER)).covering(0) == [], "the rest fits nowhere"


def test_a_device_with_room_for_everything_gets_what_it_supports_at_once() -> None:
    graph = extract(layers())
    supported = np.ones((len(graph), 2), bool)
    supported[graph.index["matmul3"], 0] = False
    unlimited = feasible((np.inf, np.inf), supported)
    (piece,) = unlimited.covering(0)
    assert (piece == 0).sum() == len(graph) - 1
    assert piece[graph.index["matmul3"]] == 1
    assert unlimited.refusal("HETERO:XCPU,CPU") == ""


def counted(core: ov.Core, memory: tuple[float, float]) -> tuple[Feasibility, CountedDevices]:
    model = layers()
    limited = feasible(memory)
    with ProfilingSession(core, model, PAIR, device_properties(core, PAIR), feasibility=limited) as session:
        found = count_devices(session)
    assert found is not None
    return limited, found


@pytest.mark.usefixtures("steady")
def test_a_limited_device_is_counted_in_pieces_and_its_table_is_full(
    unequal_pair: ov.Core, compilations: Compilations
) -> None:
    limit = 2.5 * LAYER
    limited, found = counted(unequal_pair, (limit, np.inf))
    assert set(found.samples) == {"CPU"}
    assert 0 < most_on("XCPU", compilations) <= limit
    assert [entry["device"] for entry in compilations()] == ["HETERO:XCPU,CPU"] * 4 + ["CPU"]
    table = counted_profile(limited, found, None, TRANSFERS).table
    assert np.isfinite(table.op_seconds).all()
    matmuls = [next(g for g, ops in enumerate(table.members) if f"matmul{i}" in ops) for i in range(LAYERS)]
    assert (table.op_seconds[matmuls] > 0).all()
    everywhere = np.zeros(len(table), np.int32)
    assert held_bytes(table, everywhere)[0] > table.memory_capacity[0]
    assert np.isinf(table.memory_capacity[1])


def test_times_from_pieces_are_those_of_the_whole(unequal_pair: ov.Core) -> None:
    """Each op's node is counted once, in whichever piece: as many as when the model is compiled whole."""
    _, whole = counted(unequal_pair, (np.inf, np.inf))
    _, pieces = counted(unequal_pair, (2.5 * LAYER, np.inf))
    for one, other in zip(whole.columns, pieces.columns, strict=True):
        np.testing.assert_array_equal(one.attribution.nodes_run > 0, other.attribution.nodes_run > 0)
        assert {frozenset(g) for g in one.attribution.fused} == {
            frozenset(g) for g in other.attribution.fused
        }


@pytest.mark.alone
def test_what_no_piece_measured_is_as_much_slower_as_the_rest(
    unequal_pair: ov.Core, inject: Inject, compilations: Compilations
) -> None:
    """Half of the pieces fail; a full table comes of the other half."""
    inject("run:*:steady compile:HETERO*:error@1,3")
    limited, found = counted(unequal_pair, (2.5 * LAYER, np.inf))
    pieces = [entry["affinities"] for entry in compilations() if entry["affinities"]]
    assert len(pieces) == 2
    graph = limited.graph
    ops = [graph.index[f"matmul{i}"] for i in range(LAYERS)]
    here, there = (column.attribution.op_seconds[ops] for column in found.columns)
    missing = [i for i in range(LAYERS) if all(piece[f"matmul{i}"] == "CPU" for piece in pieces)]
    assert missing
    ratio = here[missing] / there[missing]
    assert ratio == pytest.approx(ratio[0])
    table = counted_profile(limited, found, None, TRANSFERS).table
    assert (table.op_seconds[:, 0] > 0).sum() >= LAYERS


@pytest.mark.parametrize("mode", ["PROFILE", "TUNE"])
@pytest.mark.parametrize("held", [(5.5, 5.5), (2.5, 100.0)])
def test_nothing_that_is_compiled_for_a_placement_exceeds_a_limit(
    unequal_pair: ov.Core, compilations: Compilations, mode: str, held: tuple[float, float]
) -> None:
    limits = {device: share * LAYER for device, share in zip(PAIR, held, strict=True)}
    placement = ov_autoplace.place(
        layers(), PAIR, mode, core=unequal_pair, memory_limits=limits, time_budget_ms=3000
    )
    assert len(compilations()) >= 2  # the pieces; what is raced besides depends on the time that is left
    table = placement.decision.table
    assert table.source == "profiled"
    assert np.isfinite(table.op_seconds).all()
    used = {op: device for op, device in placement.to_dict().items() if op.startswith("weights")}
    for device, limit in limits.items():
        assert most_on(device, compilations) <= limit
        assert LAYER * list(used.values()).count(device) <= limit
    if held[1] < LAYERS:
        assert set(used.values()) == set(PAIR)
        assert np.isfinite(simulate(table, placement).latency_seconds)


def test_a_table_of_a_limited_device_is_profiled_in_pieces_too(
    unequal_pair: ov.Core, compilations: Compilations
) -> None:
    limit = 3.5 * LAYER
    table = profile(layers(), PAIR, unequal_pair, transfers=TRANSFERS, memory_limits={"XCPU": limit})
    assert np.isfinite(table.op_seconds).all()
    assert 0 < most_on("XCPU", compilations) <= limit


def test_the_memory_that_a_target_tells_of_holds_like_a_limit(
    unequal_pair: ov.Core, compilations: Compilations, tmp_path: Path
) -> None:
    """An accelerator says how much it has: nobody has to give a limit."""
    memory = {"XCPU": 3.5 * LAYER, "CPU": np.inf}
    target = generic_target(unequal_pair, PAIR)
    devices = tuple(replace(device, memory_bytes=memory[device.name]) for device in target.devices)
    path = tmp_path / "target.json"
    save_target(replace(target, devices=devices), path)
    placement = ov_autoplace.place(layers(), PAIR, core=unequal_pair, target=path, time_budget_ms=4000)
    assert 0 < most_on("XCPU", compilations) <= memory["XCPU"]
    assert placement.devices in (("CPU",), PAIR)
    machine = Machine(unequal_pair, PAIR, PlacerOptions(target=path))
    with comparison(machine, layers(), placement) as compared:
        found = {c.name: c for c in compared.run(0.1, lambda *_: None)}
    assert "XCPU may hold" in found["XCPU"].dropped
    assert most_on("XCPU", compilations) <= memory["XCPU"]


def test_the_last_compilation_does_not_fall_back_to_a_device_that_is_too_small(
    unequal_pair: ov.Core, caplog: pytest.LogCaptureFixture
) -> None:
    names = [op.get_friendly_name() for op in layers().get_ops()]
    device_of = {name: "CPU" if name in {"y", "relu7"} else "XCPU" for name in names}
    del device_of["y"]  # so that it cannot be annotated
    core, asked = unequal_pair, []

    def compile_native(model: ov.Model, device: str, config: Mapping[str, Any]) -> ov.CompiledModel:
        asked.append(device)
        return core.compile_model(model, device, config)

    def compiled(limits: Mapping[str, float]) -> ov.CompiledModel:
        options = PlacerOptions(memory_limits=limits)
        compiler = compilation._Compiler(Machine(core, PAIR, options), layers(), compile_native)
        return compiler.compile_split(SplitPlan.of(device_of))

    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        assert compiled({"XCPU": 2.5 * LAYER}).get_property("EXECUTION_DEVICES") == ["CPU"]
    assert asked == ["CPU"]
    with pytest.raises(PlacementError, match=r"'y'.*; no device of it can run and hold the whole"):
        compiled(dict.fromkeys(PAIR, 5.5 * LAYER))
    with pytest.raises(PlacementError, match=r"does not fit into the 1000 bytes that CPU may hold; raise"):
        core.compile_model(layers(), "AUTOPLACE:CPU", {"AUTOPLACE_MEMORY_LIMITS": '{"CPU": 1000}'})


def test_where_everything_fails_no_device_is_taken_that_is_too_small(
    unequal_pair: ov.Core, compilations: Compilations, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        raise ProfilingError("nothing can be counted")

    monkeypatch.setattr("ov_autoplace.decide.stages.singles.count_devices", fail)
    limits = {"XCPU": 2.5 * LAYER}
    placement = ov_autoplace.place(layers(), PAIR, core=unequal_pair, memory_limits=limits)
    assert placement.devices == ("CPU",)
    assert most_on("XCPU", compilations) == 0


def test_neither_a_check_of_a_stored_answer_nor_bench_compiles_the_whole_there(
    unequal_pair: ov.Core, compilations: Compilations
) -> None:
    limits = {"XCPU": 5.5 * LAYER, "CPU": 100.0 * LAYER}
    options = PlacerOptions(memory_limits=limits)
    names = [op.get_friendly_name() for op in layers().get_ordered_ops()]
    # The constants of the last layers come with them.
    late = {f"{kind}{i}" for kind in ("weights", "matmul", "relu") for i in range(5, LAYERS)} | {"y"}
    plan = SplitPlan.of({name: "CPU" if name in late else "XCPU" for name in names})
    machine = Machine(unequal_pair, PAIR, options)
    assert confirmation.confirm(machine, layers(), plan).holds in (True, False, None)
    assert {entry["device"] for entry in compilations()} == {"HETERO:XCPU,CPU", "CPU"}
    limited = feasible((5.5 * LAYER, np.inf))
    with ProfilingSession(unequal_pair, layers(), PAIR, feasibility=limited) as session:
        placement = ov_autoplace.place(layers(), PAIR, "ZERO_SHOT", core=unequal_pair)
        compared = Comparison(Machine(unequal_pair, PAIR), placement, session, plan)
        found = {c.name: c for c in compared.run(0.1, lambda *_: None)}
    assert "XCPU may hold" in found["XCPU"].dropped
    assert "XCPU may hold" in found["HETERO"].dropped
    assert len(found["AUTOPLACE"].samples) > 0
    assert 0 < most_on("XCPU", compilations) <= limits["XCPU"]
