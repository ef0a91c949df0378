"""Plugins that crash, hang and run out of memory end the measuring process, and nothing else."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from itertools import count
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import openvino as ov
import pytest

import ov_autoplace
import zoo
from candidates import detail
from command_line import Command, two_layers
from measuring_faults import Compilations, Inject
from ov_autoplace import _core
from ov_autoplace.cost.transfers import TransferFit
from ov_autoplace.errors import OptionError, ProfilingError
from ov_autoplace.measure.crossings import PROBES
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.isolation.process import ProcessEndedError, WorkerProcess
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.measure.profiled import profile
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.findings import Kind

PAIR = ["XCPU", "CPU"]

FAULTS = {
    "SIGSEGV": "died of SIGSEGV",
    "abort": "died of SIGABRT",
    "SIGBUS": "died of SIGBUS",
    "SIGSTOP": "hung",
    "spin": "hung",
    "memory": "was killed by SIGKILL, as the kernel does when memory runs out",
    "SIGKILL": "was killed by SIGKILL, as the kernel does when memory runs out",
    "exit": "left with exit code 3",
}


@pytest.fixture
def model() -> ov.Model:
    return two_layers([1, 3, 16, 16])


def place(model: ov.Model, core: ov.Core, **options: object) -> ov_autoplace.Placement:
    return ov_autoplace.place(model, PAIR, core=core, time_budget_ms=3000, **options)


def test_the_profiler_works_in_another_process_that_ends_with_it(
    unequal_pair: ov.Core, tmp_path: Path, model: ov.Model
) -> None:
    profiler = profiler_for(unequal_pair, PAIR)
    assert isinstance(profiler, IsolatedProfiler)
    executable = profiler.compile(str(save_ir(model, tmp_path)), "XCPU")
    pid = profiler.pid
    libraries = Path(f"/proc/{pid}/maps").read_text()
    assert "libopenvino_intel_cpu_plugin" in libraries
    assert "numpy" not in libraries
    assert os.getsid(pid) != os.getsid(0)
    assert executable.run(3).shape == (3,)
    assert executable.execution_devices == ["XCPU"]
    profiler.close()
    assert not Path(f"/proc/{pid}").exists()
    with pytest.raises(_core.ProfilerError, match="closed"):
        executable.run(1)


def test_both_ways_give_the_same(unequal_pair: ov.Core, tmp_path: Path, model: ov.Model) -> None:
    ir = str(save_ir(model, tmp_path))
    device_of = {op.get_friendly_name(): "CPU" for op in model.get_ops()} | {"image": "XCPU", "first": "XCPU"}
    device_of["weights3"] = "XCPU"
    found = []
    for isolation in (True, False):
        profiler = profiler_for(unequal_pair, PAIR, isolation=isolation)
        counted = profiler.compile(ir, "HETERO:XCPU,CPU", {"PERF_COUNT": "YES"}, device_of)
        counted.run(3)
        # Without the status, as what takes less than a microsecond counts as not run, now and then.
        fields = ("name", "subgraph", "type", "exec_type", "original_names", "consumers", "layout")
        # OpenVINO numbers the ends of submodels as it comes to them.
        nodes = [
            re.sub(r"_\d+", "", repr([getattr(node, field) for field in fields]))
            for node in counted.node_times()
        ]
        found.append((nodes, counted.subgraphs, counted.execution_devices))
        with pytest.raises(ValueError, match="at least one inference"):
            counted.run(1, inferences=0)
        with pytest.raises(_core.ProfilerError, match="FOO"):
            profiler.compile(ir, "FOO")
    assert found[0] == found[1]


def test_isolation_no_measures_in_this_process(
    unequal_pair: ov.Core, model: ov.Model, inject: Inject
) -> None:
    inject("create:*:SIGSEGV")
    compiled = unequal_pair.compile_model(
        model, "AUTOPLACE:XCPU,CPU", {"AUTOPLACE_ISOLATION": "NO", "AUTOPLACE_TIME_BUDGET_MS": 200}
    )
    assert compiled is not None
    with pytest.raises(OptionError, match="AUTOPLACE_ISOLATION is 'perhaps'; it can be YES or NO"):
        place(model, unequal_pair, isolation="perhaps")


def test_a_session_forgets_in_a_new_process_and_works_apart_in_another(
    unequal_pair: ov.Core, model: ov.Model
) -> None:
    """What a process compiled before makes later mixes slower, even when it is gone."""
    with ProfilingSession(unequal_pair, model, PAIR) as session:
        assert isinstance(session.profiler, IsolatedProfiler)
        session.compile_device("CPU")
        first = session.profiler.pid
        session.forget()
        session.compile_device("CPU").run(1)
        second = session.profiler.pid
        assert second != first
        with session.apart() as apart:
            assert apart.compile_device("CPU") is not session.compile_device("CPU")
            assert len(apart.compile_device("CPU").run(2)) == 2
            assert isinstance(apart.profiler, IsolatedProfiler)
            third = apart.profiler.pid
            assert third not in (first, second)
        assert not Path(f"/proc/{third}").exists()
        assert session.profiler.pid == second
        session.compile_device("XCPU").run(1)  # the model's file is still there
    with ProfilingSession(unequal_pair, model, PAIR, isolation=False) as session, session.apart() as apart:
        assert apart.profiler is session.profiler
        assert len(apart.compile_device("CPU").run(2)) == 2


def test_each_probe_of_a_profile_has_a_process_of_its_own(
    unequal_pair: ov.Core, compilations: Compilations
) -> None:
    transfers = TransferFit(tuple(PAIR), np.full((2, 2), 5e-6), np.full((2, 2), 1e-10), np.full(2, 1e-6))
    profile(zoo.build("bert_base"), PAIR, unequal_pair, transfers=transfers)
    of_mixes = [entry["pid"] for entry in compilations() if entry["device"].startswith("HETERO")]
    of_singles = {entry["pid"] for entry in compilations() if not entry["device"].startswith("HETERO")}
    assert len(of_mixes) == len(set(of_mixes)) == PROBES
    assert not of_singles & set(of_mixes)
    assert not any(Path(f"/proc/{pid}").exists() for pid in of_mixes)


@pytest.mark.parametrize(
    ("where", "fault", "did"),
    [
        *(("compile:XCPU*", fault, "compiled") for fault in FAULTS),
        ("compile:XCPU?PERF_COUNT", "SIGSEGV", "compiled"),
        ("run:XCPU*", "SIGSEGV", "ran"),
        ("nodes:XCPU*", "SIGSEGV", "ran"),
    ],
)
def test_a_device_that_breaks_is_left_out_and_named(
    unequal_pair: ov.Core, model: ov.Model, inject: Inject, where: str, fault: str, did: str
) -> None:
    inject(f"{where}:{fault}")
    decision = place(model, unequal_pair).decision
    assert decision is not None
    assert decision.chosen == "CPU"
    assert f"the process that {did} it on XCPU {FAULTS[fault]}" in decision.left_out["XCPU"]
    assert detail(decision, Kind.LEFT_OUT) == decision.left_out["XCPU"]


@pytest.mark.parametrize("fault", ["SIGSEGV", "SIGSTOP", "SIGKILL"])
def test_a_candidate_that_breaks_in_the_race_fails_alone(
    unequal_pair: ov.Core, model: ov.Model, inject: Inject, fault: str
) -> None:
    with ProfilingSession(unequal_pair, model, PAIR) as session:
        inject(f"race:XCPU:{fault}")
        session.profiler.restart()
        executables = [session.compile_device(device) for device in ("CPU", "XCPU", "HETERO:XCPU,CPU")]
        result = session.race(executables, 0.2, names=["CPU", "XCPU", "HETERO"])
        assert [bool(len(entry.samples)) for entry in result.entries] == [True, False, True]
        assert f"failed: the process that ran it on XCPU {FAULTS[fault]}" in result.entries[1].dropped
        assert result.best != 1
        with pytest.raises(ProfilingError, match="no candidate can be run"):
            session.race([executables[1]], 0.2)


def test_whatever_breaks_there_is_an_answer(unequal_pair: ov.Core, model: ov.Model, inject: Inject) -> None:
    inject("run:*:SIGSEGV race:*:SIGSEGV nodes:*:abort")
    placement = place(model, unequal_pair)
    assert placement.decision is not None
    assert set(placement.to_dict().values()) == {placement.decision.chosen}
    assert "SIGSEGV" in placement.decision.reason

    inject("compile:HETERO*:SIGSEGV")
    placement = place(model, unequal_pair)
    assert placement.decision is not None
    assert placement.decision.chosen in PAIR
    assert placement.decision.candidates[0].measured_seconds is not None

    inject("compile:*:abort")
    with pytest.raises(ProfilingError, match="SIGABRT"):
        place(model, unequal_pair)


def test_a_race_that_fails_again_and_again_takes_twice_its_budget_at_most(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    budget, asked = 8.0, []

    class Crashing:
        """A child that dies with each candidate."""

        lock, silence = threading.RLock(), 60.0

        def running(self) -> SimpleNamespace:
            return SimpleNamespace(candidate=-1)

        def is_still(self, _: object) -> bool:
            return True

        def ask(self, process: SimpleNamespace, _: float, **request: object) -> None:
            asked.append(request["budget_seconds"])
            process.candidate = 0
            raise ProcessEndedError("died of SIGSEGV")

    def executable(i: int) -> SimpleNamespace:
        return SimpleNamespace(
            number=i, slowest=0.0, ensure_compiled=lambda: None, blame=lambda did, cause: f"{did}: {cause}"
        )

    clock = count(0.0, 100.0)  # each crash comes late
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    with pytest.raises(_core.ProfilerError, match="SIGSEGV"):
        IsolatedProfiler(Crashing()).race([executable(i) for i in range(6)], budget)
    assert len(asked) == 6
    assert sum(asked) <= 2 * budget
    assert asked[1] == budget / 2
    assert min(asked) > 0


def test_a_pin_to_a_device_that_crashes_is_told_with_the_crash(
    unequal_pair: ov.Core, model: ov.Model, inject: Inject
) -> None:
    inject("compile:XCPU*:SIGSEGV")
    with pytest.raises(ProfilingError, match=r"'first' asks for XCPU.*died of SIGSEGV") as told:
        place(model, unequal_pair, pins={"first": "XCPU"})
    assert told.value.device == "XCPU"
    assert place(model, unequal_pair, pins={"first": "CPU"}).decision.chosen == "CPU"
    both = {"first": "XCPU", "second": "CPU"}
    with pytest.raises(ProfilingError, match="died of SIGSEGV"):
        place(model, unequal_pair, pins=both, properties={"PERFORMANCE_HINT": "THROUGHPUT"})


def test_a_process_that_somebody_else_ends_is_started_anew(unequal_pair: ov.Core, model: ov.Model) -> None:
    with ProfilingSession(unequal_pair, model, PAIR) as session:
        executables = [session.compile_device(device) for device in PAIR]
        pids = set()
        for _ in range(3):
            assert isinstance(session.profiler, IsolatedProfiler)
            pids.add(session.profiler.pid)
            os.kill(session.profiler.pid, signal.SIGKILL)
            assert executables[0].run(2).shape == (2,)
            assert len(session.race(executables, 0.05).entries) == 2
        assert len(pids) == 3


@pytest.mark.parametrize("late", range(4))
def test_the_end_of_a_process_is_met_wherever_it_is_noticed(
    unequal_pair: ov.Core, model: ov.Model, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    """A signal takes its time: the process may count as alive for a while."""
    is_alive = WorkerProcess.is_alive
    glances = 0

    def seems_alive(process: WorkerProcess) -> bool:
        nonlocal glances
        glances -= 1
        return glances >= 0 or is_alive(process)

    with ProfilingSession(unequal_pair, model, PAIR) as session:
        executables = [session.compile_device(device) for device in PAIR]
        assert isinstance(session.profiler, IsolatedProfiler)
        for use in (lambda: executables[0].run(2), lambda: session.race(executables, 0.05)):
            os.kill(session.profiler.pid, signal.SIGKILL)
            glances = late
            with monkeypatch.context() as patch:
                patch.setattr(WorkerProcess, "is_alive", seems_alive)
                use()


def test_an_exception_of_the_caller_leaves_a_profiler_that_works(
    unequal_pair: ov.Core, model: ov.Model
) -> None:
    def interrupt(*state: object) -> None:
        raise KeyboardInterrupt

    with ProfilingSession(unequal_pair, model, PAIR) as session:
        executables = [session.compile_device(device) for device in PAIR]
        with pytest.raises(KeyboardInterrupt):
            session.race(executables, 5.0, max_rounds=10_000, min_rounds=10_000, progress=interrupt)
        assert np.all(executables[0].run(3) > 0)


def test_where_no_process_can_be_started_it_is_said_once_and_done_here(
    unequal_pair: ov.Core, model: ov.Model, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sys, "executable", "/usr/bin/editor")
    for _ in range(2):
        assert isinstance(profiler_for(unequal_pair, ["CPU"]), _core.Profiler)
    assert [r.message for r in caplog.records if "'/usr/bin/editor' is not a Python" in r.message] != []
    assert len([r for r in caplog.records if "measured inside this process" in r.message]) == 1


SESSION = """
import os, sys, threading
sys.path.insert(0, {tests!r})
from command_line import two_layers
from ov_autoplace.measure.session import ProfilingSession
def work():
    global session
    session = ProfilingSession(None, two_layers([1, 3, 16, 16]), ["CPU"])
    session.compile_device("CPU")
    print(session.profiler.pid, flush=True)
thread = threading.Thread(target=work)
thread.start() if {threaded} else work()
thread.join() if {threaded} else None
assert session.compile_device("CPU").run(2).shape == (2,)
print("alive", flush=True)
sys.stdin.readline()
"""


@pytest.mark.parametrize("threaded", [False, True])
def test_the_process_ends_with_its_parent_however_that_ends(threaded: bool) -> None:
    script = SESSION.format(tests=str(Path(__file__).parents[1]), threaded=threaded)
    parent = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    assert parent.stdout.readline() == "alive\n"
    parent.kill()
    parent.wait()
    for _ in range(200):
        if not Path(f"/proc/{child}").exists() or "State:\tZ" in Path(f"/proc/{child}/status").read_text():
            break
        time.sleep(0.05)
    else:
        pytest.fail(f"process {child} outlived its parent")


def test_measuring_writes_nothing_into_the_users_model_cache(
    unequal_pair: ov.Core, model: ov.Model, tmp_path: Path
) -> None:
    folder = tmp_path / "cache"
    folder.mkdir()
    unequal_pair.set_property({"CACHE_DIR": str(folder)})
    cached = {"CACHE_DIR": str(folder), "DEVICE_PROPERTIES": {"XCPU": {"CACHE_DIR": str(folder)}}}
    ov_autoplace.place(model, PAIR, core=unequal_pair, time_budget_ms=300, properties=cached)
    assert list(folder.iterdir()) == []
    compiled = unequal_pair.compile_model(model, "CPU")
    assert compiled is not None
    assert list(folder.iterdir()) != []


def test_the_command_line_takes_the_option(cli: Command, small_ir: Path, inject: Inject) -> None:
    inject("compile:XCPU*:SIGSEGV")
    short = ("--time-budget-ms", 3000, "--json")
    report = cli("annotate", small_ir, *short).json()
    assert "XCPU is left out" in report["decision"]
    assert "SIGSEGV" in report["decision"]
    here = ("--config", '{"AUTOPLACE_ISOLATION": "NO"}', "--time-budget-ms", 300)
    report = cli("annotate", small_ir, *short, *here).json()
    assert "left out" not in report["decision"]
