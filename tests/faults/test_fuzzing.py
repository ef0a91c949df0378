"""The fuzzing tools themselves: what they try is decided by the seed, and what hangs is killed."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from itertools import count

import pytest

from fuzz import run
from fuzz.mutation import mutate

IMPATIENT = {"start_seconds": 0.05, "seconds_per_input": 0.05, "poll_seconds": 0.01}


def test_a_changed_input_depends_on_nothing_that_was_tried_before() -> None:
    data = json.dumps({"x": [1, "CPU"], "kernel": {"": []}}).encode()
    first = [mutate(data, 4096, seed) for seed in range(300)]
    for seed in range(300, 2000):
        mutate(data, 4096, seed)
    assert [mutate(data, 4096, seed) for seed in range(300)] == first


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
