"""The C++ profiler: what it compiles and runs is what OpenVINO compiles and runs."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as opset

from full_disk import full_disk
from ov_autoplace import _core
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import OutputError, ProfilingError
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.plan import SplitPlan, WholePlan

pytestmark = pytest.mark.alone

PAIR = ("XCPU", "CPU")
DTYPES = [
    "boolean", "f64", "f32", "f16", "bf16", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64",
    "u4", "i4", "f8e4m3", "f8e5m2",
]  # fmt: skip


@pytest.fixture
def profiler(unequal_pair: ov.Core) -> _core.Profiler:
    return profiler_for(unequal_pair, PAIR, device_properties(unequal_pair, PAIR))


def relu_chain(length: int = 4, dtype: type = np.float32) -> ov.Model:
    data = node = opset.parameter([2, 16], dtype, name="data")
    for i in range(length):
        weights = opset.constant(np.eye(16, dtype=dtype), name=f"weights{i}")
        node = opset.relu(opset.matmul(node, weights, False, False, name=f"matmul{i}"), name=f"relu{i}")
    return ov.Model([opset.result(node, name="out")], [data], "chain")


def split_at(model: ov.Model, block: int) -> dict[str, str]:
    """Blocks before ``block`` on XCPU and the others on CPU."""
    device_of = {}
    for op in model.get_ops():
        name = op.get_friendly_name()
        number = int(name[-1]) if name[-1].isdigit() else (9 if name == "out" else 0)
        device_of[name] = "XCPU" if number < block else "CPU"
    return device_of


def test_runs_give_one_positive_time_each(profiler: _core.Profiler, tmp_path: Path) -> None:
    executable = profiler.compile(str(save_ir(relu_chain(), tmp_path)), "CPU")
    for asynchronous in (False, True):
        seconds = executable.run(7, warmup=2, asynchronous=asynchronous)
        assert seconds.dtype == np.float64
        assert seconds.shape == (7,)
        assert np.all(seconds > 0)
    assert executable.run(0).shape == (0,)
    assert executable.subgraphs == 1
    assert executable.execution_devices == ["CPU"]
    assert executable.compile_seconds > 0


def test_a_sample_of_many_inferences_is_their_mean(profiler: _core.Profiler, tmp_path: Path) -> None:
    executable = profiler.compile(str(save_ir(relu_chain(), tmp_path)), "CPU")
    start = time.perf_counter()
    seconds = executable.run(2, warmup=0, inferences=50)
    elapsed = time.perf_counter() - start
    assert seconds.shape == (2,)
    assert 50 * seconds.sum() <= elapsed  # means, not sums
    assert np.all(seconds > 0)
    with pytest.raises(ValueError, match="at least one inference"):
        executable.run(1, inferences=0)


def test_affinities_reach_hetero(profiler: _core.Profiler, tmp_path: Path) -> None:
    model = relu_chain()
    path = str(save_ir(model, tmp_path))
    executable = profiler.compile(path, "HETERO:XCPU,CPU", {"PERF_COUNT": "YES"}, split_at(model, 2))
    assert executable.subgraphs == 2
    assert sorted(executable.execution_devices) == ["CPU", "XCPU"]
    executable.run(3)
    listed = {name: node.subgraph for node in executable.node_times() for name in node.original_names}
    assert {listed[f"relu{i}"] for i in (0, 1)} == {0}
    assert {listed[f"relu{i}"] for i in (2, 3)} == {1}


def test_an_op_without_affinity_is_named(profiler: _core.Profiler, tmp_path: Path) -> None:
    model = relu_chain()
    device_of = split_at(model, 2)
    del device_of["relu3"]
    with pytest.raises(_core.ProfilerError, match=r"'relu3' \(Relu\) has no affinity"):
        profiler.compile(str(save_ir(model, tmp_path)), "HETERO", affinities=device_of)


def test_node_times_lie_within_the_latency_and_name_the_ops(profiler: _core.Profiler, tmp_path: Path) -> None:
    data = opset.parameter([64, 256], np.float32, name="data")
    node = data
    for i in range(8):
        weights = np.random.default_rng(i).standard_normal((256, 256), dtype=np.float32)
        node = opset.matmul(node, opset.constant(weights), False, False, name=f"matmul{i}")
    model = ov.Model([opset.result(node, name="out")], [data], "matmuls")
    path = str(save_ir(model, tmp_path))
    executable = profiler.compile(path, "XCPU", {"PERF_COUNT": "YES"})
    runs = executable.run(50, warmup=0)
    nodes = executable.node_times()
    assert 0 < sum(node.seconds for node in nodes) <= runs.mean()
    run = {name for node in nodes if node.status == "EXECUTED" for name in node.original_names}
    assert {f"matmul{i}" for i in range(8)} <= run
    assert next(n for n in nodes if "matmul3" in n.original_names).consumers
    uncounted = profiler.compile(path, "XCPU")
    uncounted.run(5)
    assert all(node.seconds == 0 for node in uncounted.node_times())


@pytest.mark.parametrize("dtype", DTYPES)
def test_inputs_of_every_element_type_are_filled(
    profiler: _core.Profiler, tmp_path: Path, dtype: str
) -> None:
    data = opset.parameter([8, 8], getattr(ov.Type, dtype), name="data")
    model = ov.Model([opset.result(opset.convert(data, "f32"), name="out")], [data], "convert")
    executable = profiler.compile(str(save_ir(model, tmp_path)), "CPU", input_high={"data": 200})
    assert executable.run(1, warmup=0).shape == (1,)


def test_integer_inputs_stay_inside_the_table_that_they_index(
    profiler: _core.Profiler, tmp_path: Path
) -> None:
    """OpenVINO 2026.4 checks Gather's indices: an index outside of the table raises."""
    ids = opset.parameter([1, 64], np.int64, name="ids")
    table = opset.constant(np.ones((7, 4), np.float32))
    gathered = opset.gather(table, ids, np.int64(0), name="gather")
    model = ov.Model([opset.result(gathered, name="out")], [ids], "embedding")
    path = str(save_ir(model, tmp_path))
    for seed in range(5):
        assert len(profiler.compile(path, "CPU", input_high={"ids": 7}, seed=seed).run(1)) == 1
    with pytest.raises(_core.ProfilerError, match="'ids' has the upper bound 0"):
        profiler.compile(path, "CPU", input_high={"ids": 0})


def test_state_is_reset_so_that_every_run_does_the_same_work(
    profiler: _core.Profiler, tmp_path: Path
) -> None:
    """A cache that grows by one row each inference would fail the fixed-shape Reshape at the second run."""
    data = opset.parameter([1, 4], np.float32, name="data")
    start = opset.constant(np.zeros((1, 4), np.float32), name="start")
    variable = ov.op.util.VariableInfo()
    variable.data_shape, variable.data_type, variable.variable_id = ov.PartialShape([-1, 4]), ov.Type.f32, "v"
    variable = ov.op.util.Variable(variable)
    past = opset.read_value(start, variable, name="past")
    grown = opset.concat([past, data], 0, name="grown")
    fixed = opset.reshape(grown, np.array([8], np.int64), False, name="fixed")
    assign = opset.assign(grown, variable, name="assign")
    model = ov.Model([opset.result(fixed, name="out")], [assign], [data], "cache")
    assert len(profiler.compile(str(save_ir(model, tmp_path)), "CPU").run(4)) == 4


def test_what_cannot_be_timed_is_refused_in_words(profiler: _core.Profiler, tmp_path: Path) -> None:
    data = opset.parameter([-1, 4], np.float32, name="data")
    model = ov.Model([opset.result(opset.relu(data))], [data], "dynamic")
    path = str(save_ir(model, tmp_path))
    with pytest.raises(_core.ProfilerError, match=r"input 'data' has the dynamic shape \[\?,4\]"):
        profiler.compile(path, "CPU")
    with pytest.raises(_core.ProfilerError, match="FOO"):
        profiler.compile(path, "FOO")
    with pytest.raises(_core.ProfilerError, match="missing"):
        profiler.compile(str(tmp_path / "missing.xml"), "CPU")


def test_threads_set_on_a_device_are_in_force_inside_hetero(profiler: _core.Profiler, tmp_path: Path) -> None:
    """One thread keeps one core busy: XCPU does all the work, so processor time is about wall-clock time."""
    data = opset.parameter([512, 512], np.float32, name="data")
    node = data
    for i in range(4):
        weights = np.random.default_rng(i).standard_normal((512, 512), dtype=np.float32)
        node = opset.matmul(node, opset.constant(weights), False, False)
    tail = opset.relu(opset.reduce_max(node, np.array([0, 1]), name="reduced"), name="tail")
    out = opset.result(tail, name="out")
    model = ov.Model([out], [data], "matmuls")
    path = str(save_ir(model, tmp_path))
    device_of = {op.get_friendly_name(): "XCPU" for op in model.get_ops()} | {"tail": "CPU", "out": "CPU"}
    executable = profiler.compile(path, "HETERO:XCPU,CPU", affinities=device_of)
    assert executable.subgraphs == 2
    before = os.times()
    seconds = executable.run(60).sum()
    after = os.times()
    used = (after.user - before.user) + (after.system - before.system)
    # HETERO's shared executor would run the products on every core. A busy machine only lowers the ratio.
    assert used / seconds < 1.5


_RUNS_FOR_LONG = """
import signal, sys, threading
import openvino as ov
from ov_autoplace.measure.isolation.interface import profiler_for

# A shell starts what runs in the background with SIGINT ignored, and Python leaves that as it is.
signal.signal(signal.SIGINT, signal.default_int_handler)
executable = profiler_for(ov.Core(), ["CPU"], {"CPU": {}}).compile(sys.argv[1], "CPU")
threading.Timer(0.2, signal.raise_signal, [signal.SIGINT]).start()
try:
    executable.run(50_000_000)
except KeyboardInterrupt:
    print("interrupted")
"""


def test_ctrl_c_interrupts_a_long_run(tmp_path: Path) -> None:
    """In a process of its own: where plugins have run, a process may not survive a signal."""
    command = [sys.executable, "-c", _RUNS_FOR_LONG, str(save_ir(relu_chain(), tmp_path))]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.stdout == "interrupted\n", done.stderr


def test_a_race_of_executables_keeps_the_samples_of_all(profiler: _core.Profiler, tmp_path: Path) -> None:
    short = profiler.compile(str(save_ir(relu_chain(1), tmp_path)), "CPU")
    (tmp_path / "long").mkdir()
    long = profiler.compile(str(save_ir(relu_chain(200), tmp_path / "long")), "CPU")
    seen: list[tuple[int, int, float]] = []
    result = profiler.race([long, short], 20.0, max_rounds=500, progress=lambda *state: seen.append(state))
    assert result.best == 1
    assert result.entries[0].dropped.startswith("slower than candidate 1")
    assert len(result.entries[1].samples) == result.rounds >= 5
    assert all(running in (1, 2) and seconds > 0 for _, running, seconds in seen)


def test_sessions_give_plain_devices_and_placements(unequal_pair: ov.Core) -> None:
    model = relu_chain()
    properties = device_properties(unequal_pair, PAIR)
    with ProfilingSession(unequal_pair, model, PAIR, properties) as session:
        alone = session.compile_device("CPU")
        assert session.compile_device("CPU") is alone
        assert session.compile_whole(WholePlan("CPU")) is alone
        plan = SplitPlan.of(split_at(model, 2))
        mixed = session.compile_split(plan)
        assert session.predicted_submodels(plan) == mixed.subgraphs == 2
        assert len(session.race([alone, mixed], 0.05).entries) == 2
        with pytest.raises(ProfilingError, match="has no affinity"):
            session.compile_split(SplitPlan.of({"relu0": "CPU", "relu1": "XCPU"}))


def test_sessions_leave_the_model_and_the_folder_as_they_were(
    unequal_pair: ov.Core, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    data = opset.parameter([-1, 4], np.float32, name="data")
    model = ov.Model([opset.result(opset.relu(data), name="out")], [data], "dynamic")
    with ProfilingSession(unequal_pair, model, ["CPU"], shapes={"data": [3, 4]}) as session:
        assert list(tmp_path.iterdir())
        assert session.compile_device("CPU").subgraphs == 1
    assert list(tmp_path.iterdir()) == []
    assert model.input(0).get_partial_shape() == ov.PartialShape([-1, 4])


def test_a_folder_that_cannot_be_written_is_one_sentence(
    unequal_pair: ov.Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/proc/nowhere")
    with pytest.raises(OutputError, match="cannot write to /proc/nowhere"):
        ProfilingSession(unequal_pair, relu_chain(), ["CPU"])


def test_a_full_disk_is_one_sentence(tmp_path: Path) -> None:
    with full_disk(1024), pytest.raises(OutputError, match=f"cannot write the model to {tmp_path}: .*TMPDIR"):
        save_ir(relu_chain(), tmp_path)
