"""Which placements HETERO cannot run, and why: judged on models, by the simulator, and by HETERO itself."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest

import legality
import transformers_kinds
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.plan.legality import broken_bonds
from ov_autoplace.plan.simulator import simulate
from random_dynamic_models import random_dynamic_model

NETWORKS = ("dpt", "dpt:dynamic", "glpn:dynamic", "swin:int8", "llama:dynamic")


def heads(state: bool = False) -> ov.Model:
    """A Reshape to a pattern of which one element is known, between MatMuls; or a variable in its place."""
    x = ops.parameter([-1, 8], np.float32, name="x")
    first = ops.matmul(x, ops.constant(np.eye(8, dtype=np.float32)), False, False, name="first")
    if state:
        old = ops.read_value(ops.constant(np.zeros((1, 8), np.float32)), "memory")
        old.set_friendly_name("read")
        new = ops.tanh(ops.add(first, old, name="mixed"), name="new")
        sink = ops.assign(ops.reduce_mean(new, np.int64([0]), True, name="mean"), "memory")
        sink.set_friendly_name("write")
        return ov.Model([ops.result(new, name="y")], [sink], [x])
    rows = ops.gather(ops.shape_of(first, name="shape"), np.int64([0]), np.int64(0), name="rows")
    pattern = ops.concat([rows, np.int64([4, 2])], 0, name="pattern")
    split = ops.reshape(first, pattern, False, name="split")
    last = ops.softmax(split, 1, name="last")
    return ov.Model([ops.result(ops.relu(last, name="end"), name="y")], [x])


def spread() -> ov.Model:
    """A row spread over as many others as an input has, to a pattern of which two elements are Constants."""
    x = ops.parameter([-1, 8], np.float32, name="x")
    first = ops.relu(x, name="first")
    rows = ops.gather(ops.shape_of(first, name="shape"), np.int64([0]), np.int64(0), name="rows")
    pattern = ops.concat([rows, np.int64([4]), np.int64([8])], 0, name="pattern")
    row = ops.reduce_mean(first, np.int64([0]), True, name="row")
    last = ops.softmax(ops.broadcast(row, pattern, name="spread"), 1, name="last")
    return ov.Model([ops.result(ops.relu(last, name="end"), name="y")], [x])


def folded_image() -> ov.Model:
    """An image made of patches, its side computed as the root of their number, as vision networks do it."""
    x = ops.parameter([-1, 3, -1, -1], np.float32, name="x")
    weights = ops.constant(np.full((8, 3, 2, 2), 0.1, np.float32))
    patches = ops.convolution(x, weights, [2, 2], [0, 0], [0, 0], [1, 1], name="patches")
    flat = ops.transpose(ops.reshape(patches, np.int64([0, 0, -1]), True), np.int64([0, 2, 1]), name="flat")
    shape = ops.shape_of(flat, name="shape")
    count = ops.convert(ops.gather(shape, np.int64([1]), np.int64(0), name="count"), "f32", name="float")
    side = ops.convert(ops.power(count, np.float32(0.5), name="root"), "i64", name="side")
    batch = ops.gather(shape, np.int64([0]), np.int64(0), name="batch")
    pattern = ops.concat([batch, side, side, np.int64([8])], 0, name="pattern")
    image = ops.reshape(flat, pattern, False, name="image")
    last = ops.softmax(image, 1, name="last")
    return ov.Model([ops.result(ops.relu(last, name="end"), name="y")], [x])


def scaled() -> ov.Model:
    """A size that is known, computed in floats, of a tensor of which another size is not known."""
    x = ops.parameter([-1, 4], np.float32, name="x")
    size = ops.gather(ops.shape_of(x, name="shape"), np.int64(1), np.int64(0), name="size")
    more = ops.multiply(ops.convert(size, "f32", name="float"), np.float32(1.5), name="more")
    count = ops.convert(ops.ceiling(more, name="ceiling"), "i64", name="count")
    ordinal = ops.range(np.int64(0), count, np.int64(1), "i64", name="range")
    index = ops.mod(ordinal, size, name="index")
    return ov.Model([ops.result(ops.gather(x, index, np.int64(1), name="last"), name="y")], [x])


def measured() -> ov.Model:
    """A reshaped tensor that is only measured, by the pattern of another Reshape."""
    x = ops.parameter([-1, 8], np.float32, name="x")
    rows = ops.gather(ops.shape_of(x, name="shape"), np.int64([0]), np.int64(0), name="rows")
    pattern = ops.concat([rows, np.int64([4, 2])], 0, name="pattern")
    only_measured = ops.relu(ops.reshape(x, pattern, False, name="split"), name="unary")
    again = ops.shape_of(only_measured, name="again")
    last = ops.softmax(ops.reshape(x, again, False, name="second"), 1, name="last")
    return ov.Model([ops.result(ops.relu(last, name="end"), name="y")], [x])


def reasons(model: ov.Model, *there: str) -> list[str]:
    """What is wrong when the named ops are on another device than the others."""
    graph = extract(model)
    device = np.array([name in there for name in graph.names], dtype=np.int32)
    return [bond.reason for bond in broken_bonds(graph, device)]


def test_a_pattern_may_be_cut_off_as_long_as_no_shape_crosses_behind_it() -> None:
    assert reasons(heads()) == []
    assert reasons(heads(), "split", "last", "end", "y") == []
    assert reasons(heads(), "last", "end", "y") == []
    (reason, *_) = reasons(heads(), "split")
    for name in ("Concat 'pattern'", "Reshape 'split'", "Softmax 'last'"):
        assert name in reason


def test_a_variable_is_read_and_written_in_one_subgraph() -> None:
    assert reasons(heads(state=True), "x", "first") == []
    (reason,) = reasons(heads(state=True), "write")
    assert "ReadValue 'read'" in reason
    assert "Assign 'write'" in reason
    assert "on different devices" in reason
    assert "in two subgraphs" in reasons(heads(state=True), "new")[0]


def test_a_broadcast_finds_the_constants_of_its_pattern_whatever_else_the_pattern_lacks() -> None:
    assert reasons(spread(), "rows", "last", "end", "y") == []
    (reason, *_) = reasons(spread(), "rows", "pattern", "last", "end", "y")
    for name in ("Concat 'pattern'", "Broadcast 'spread'", "Softmax 'last'"):
        assert name in reason
    # A Reshape does not look.
    assert "Gather 'rows'" in reasons(heads(), "rows", "last", "end", "y")[0]


def test_what_a_size_computed_in_floats_decides_is_never_handed_over() -> None:
    assert reasons(folded_image(), "x", "patches") == []
    assert reasons(scaled(), "index", "last", "y") == []
    (reason,) = reasons(folded_image(), "last", "end", "y")
    for name in ("Power 'root'", "no integer", "Reshape 'image'", "Softmax 'last'"):
        assert name in reason


@pytest.mark.parametrize(
    ("made", "there"),
    [
        (heads, ("split", "last", "end", "y")),
        (heads, ("last", "end", "y")),
        (heads, ("split",)),
        (heads, ("rows", "last", "end", "y")),
        (scaled, ("index", "last", "y")),
        (measured, ("split", "unary")),
        (measured, ("again", "second", "last", "end", "y")),
        (spread, ("last", "end", "y")),
        (spread, ("rows", "last", "end", "y")),
        (spread, ("rows", "pattern", "last", "end", "y")),
    ],
)
def test_hetero_agrees(made: Callable[[], ov.Model], there: tuple[str, ...], unequal_pair: ov.Core) -> None:
    model = made()
    for op in model.get_ops():
        op.get_rt_info()["affinity"] = "XCPU" if op.get_friendly_name() in there else "CPU"
    compiled = unequal_pair.compile_model(model, "HETERO:CPU,XCPU")
    if reasons(made(), *there):
        with pytest.raises(RuntimeError, match="incompatible"):
            compiled.create_infer_request()
    else:
        data = np.ones((3, 4 if made is scaled else 8), np.float32)
        expected = unequal_pair.compile_model(made(), "CPU")([data])[0]
        np.testing.assert_allclose(compiled.create_infer_request().infer([data])[0], expected, rtol=1e-5)


@pytest.mark.seeds(700, 720)
def test_the_simulator_says_infinite_exactly_where_a_bond_breaks(seed: int) -> None:
    made = random_dynamic_model(seed, size=9)
    coarse = coarsen(prepare(made.model, made.shapes).graph, light_ops=False)
    target = load_target("i9-12900k-flex-170")
    table: CostTable = analytic_table(coarse, target, target.device_names[:2])
    random = np.random.default_rng(seed)
    for _ in range(20):
        assignment = random.integers(2, size=len(table)).astype(np.int32)
        broken = broken_bonds(coarse.ops, assignment[coarse.group_of])
        assert np.isinf(simulate(table, assignment).latency_seconds) == bool(broken), f"seed {seed}"


def test_links_survive_the_file(tmp_path) -> None:
    coarse = coarsen(extract(heads(), {"x": [3, 8]}), light_ops=False)
    target = load_target("i9-12900k-flex-170")
    table = analytic_table(coarse, target, target.device_names[:2])
    assert len(table.wiring.links)
    save_table(table, tmp_path / "table.json")
    np.testing.assert_array_equal(load_table(tmp_path / "table.json").wiring.links, table.wiring.links)


def outcomes(model: ov.Model, shapes: dict[str, list[int]], folder, seed: int) -> list:
    """Placements that contradict the simulator, of four in all."""
    path = folder / "model.xml"
    ov.save_model(model, path, compress_to_fp16=False)
    verdicts = legality.check(path, shapes, 4, seed)
    assert len(verdicts) in (1, 4)
    return [verdict for verdict in verdicts if verdict.outcome in legality.FAULTS]


@pytest.mark.parametrize("seed", [7, 103, 5001, 90178, 90224])
def test_hetero_runs_random_models_where_the_simulator_says_so(seed: int, tmp_path) -> None:
    made = random_dynamic_model(seed)
    assert outcomes(made.model, made.shapes, tmp_path, seed) == []


@pytest.mark.torch
@pytest.mark.seeds(NETWORKS, argument="name", cost=30)
def test_hetero_runs_networks_where_the_simulator_says_so(name: str, tmp_path) -> None:
    model = transformers_kinds.build(name)
    assert outcomes(model, transformers_kinds.shapes_of(name), tmp_path, seed=3) == []
