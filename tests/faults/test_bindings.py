"""Nothing that Python can call in the C++ core ends the process: every binding, called in a child process."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from ov_autoplace import _core
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.simulator import simulate
from reference_hetero import random_table

CALLS = Path(__file__).with_name("binding_calls.py")


def survives(*arguments: str) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "faulthandler", *arguments], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, (done.returncode, done.stderr[-4000:])
    assert done.stdout.endswith("survived\n")


@pytest.mark.seeds(1, 5, cost=30)
def test_no_argument_ends_the_process(seed: int) -> None:
    survives(str(CALLS), str(seed))


def test_every_binding_is_called() -> None:
    calls = CALLS.read_text(encoding="utf-8")
    called = set(re.findall(r"\.(\w+)", calls))
    functions = {name for name in dir(_core) if not name.startswith("_") and callable(getattr(_core, name))}
    made_by_others = {"Breakdown", "Executable", "NodeTime", "ProfilerError", "RaceEntry", "WorkloadOutcome"}
    # What ends a measuring process with its parent is tried in test_isolation.py.
    assert functions - made_by_others - {"die_with_parent"} <= called
    for kind in (
        _core.Simulator,
        _core.OverlapSimulator,
        _core.PartitionGraph,
        _core.Profiler,
        _core.Executable,
    ):
        methods = {n for n in dir(kind) if not n.startswith("_") and callable(getattr(kind, n))}
        assert methods <= called, kind


NO_THREADS = """
import resource
import numpy as np
from ov_autoplace.plan.simulator import simulator_of
from reference_hetero import random_table
table = random_table(np.random.default_rng(0), 30, 2)
simulator = simulator_of(table)
rows = np.random.default_rng(1).integers(2, size=(500, 30)).astype(np.int32)
expected = simulator.simulate_batch(rows, 1)
pages = int(open("/proc/self/statm").read().split()[0])
resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (64 << 20),) * 2)
assert (simulator.simulate_batch(rows, 8) == expected).all()
print("survived")
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits memory as Linux does")
def test_a_batch_goes_on_where_no_thread_can_be_started() -> None:
    # Threads get stacks of a gigabyte, for which there is no memory left.
    code = f"import sys; sys.path.insert(0, {str(CALLS.parents[1])!r})\n{NO_THREADS}"
    script = 'ulimit -Ss 1048576 && exec "$0" "$@"'
    done = subprocess.run(
        ["bash", "-c", script, sys.executable, "-c", code], capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, done.stderr[-4000:]
    assert done.stdout == "survived\n"


def test_none_is_no_candidate() -> None:
    with pytest.raises(ValueError, match="candidate 0 of the race is None"):
        _core.Profiler.race([None], 0.0)
    with pytest.raises(ValueError, match="candidate 1 of the race is None"):
        _core.race_samplers([lambda: 1.0, None], 0.0)


def test_a_candidate_whose_samples_are_no_times_leaves_the_race() -> None:
    result = _core.race_samplers([lambda: float("nan"), lambda: 1.0, lambda: -1.0], 0.0)
    assert result.best == 1
    assert [bool(entry.dropped) for entry in result.entries] == [True, False, True]


def test_evidence_of_many_rounds_is_found_at_once() -> None:
    rounds = [(10**9, 10**9), (10**12, 0), (0, 10**12)]
    calls = "\n".join(f"_core.log_evidence_slower({losses}, {wins})" for losses, wins in rounds)
    survives("-c", f"from ov_autoplace import _core\n{calls}\nprint('survived')")
    with pytest.raises(ValueError, match="at most 1000000000000"):
        _core.log_evidence_slower(10**12 + 1, 0)


def test_a_number_of_nodes_that_no_machine_holds_is_refused() -> None:
    none = np.zeros((0, 2), np.int32)
    with pytest.raises(ValueError, match="too large"):
        _core.connected_labels(2**31 - 1, none)


@pytest.mark.parametrize("index", [2**32, -(2**32), 2**63, 2**64 - 1])
def test_a_device_index_beyond_32_bits_is_no_other_device(index: int) -> None:
    table = random_table(np.random.default_rng(0), 1, 2)
    with pytest.raises(PlacementError, match=str(index)):
        simulate(table, np.array([index]))
