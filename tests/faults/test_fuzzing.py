"""The fuzzing tools themselves: what they try is decided by the seed, what they found adds up."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from fuzz import run
from fuzz.counts import Outcome, add_up
from fuzz.mutation import mutate

IMPATIENT = {"start_seconds": 0.05, "seconds_per_input": 0.05, "poll_seconds": 0.01}


def test_a_changed_input_depends_on_nothing_that_was_tried_before() -> None:
    data = json.dumps({"x": [1, "CPU"], "kernel": {"": []}}).encode()
    first = [mutate(data, 4096, seed) for seed in range(300)]
    for seed in range(300, 2000):
        mutate(data, 4096, seed)
    assert [mutate(data, 4096, seed) for seed in range(300)] == first


def _outcome(reader: str, inputs: int, *faults: str) -> Outcome:
    return Outcome(reader, inputs, inputs - 3, 2, 1, 0.5, 7, faults)


def test_counts_of_runs_add_up_reader_by_reader(tmp_path: Path) -> None:
    table = tmp_path / "counts.json"
    add_up(table, 5, [_outcome("shapes", 10)])
    add_up(table, 5, [_outcome("budget", 20)])
    found = add_up(table, 6, [_outcome("shapes", 100)])
    assert {outcome.reader: outcome.inputs for outcome in found} == {"shapes": 110, "budget": 20}
    written = json.loads(table.read_text())
    assert (written["inputs"], written["faults"], written["seeds"]) == (130, 0, [5, 6])
    shapes = next(row for row in written["readers"] if row["reader"] == "shapes")
    assert (shapes["accepted"], shapes["refused"], shapes["skipped"]) == (104, 4, 2)


def test_a_fault_counts_until_its_file_is_gone(tmp_path: Path) -> None:
    table, file = tmp_path / "counts.json", tmp_path / "crash-1"
    file.write_bytes(b"{")
    add_up(table, 1, [_outcome("shapes", 10, str(file))])
    add_up(table, 2, [_outcome("shapes", 10)])
    assert json.loads(table.read_text())["faults"] == 1
    file.unlink()
    add_up(table, 3, [_outcome("shapes", 10)])
    assert json.loads(table.read_text())["faults"] == 0


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    """A process that lasts for longer than a reader may take."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"]) as process:
        yield process
        process.kill()


def test_a_worker_that_reads_nothing_for_long_is_killed(sleeper: subprocess.Popen[bytes]) -> None:
    assert run._wait(sleeper, lambda: 0, **IMPATIENT) == -9


def test_a_worker_that_goes_on_reading_may_take_as_long_as_it_wants(sleeper: subprocess.Popen[bytes]) -> None:
    inputs = count()
    assert run._wait(sleeper, lambda: next(inputs), **IMPATIENT) == 0
