"""The server of injected faults itself."""

from __future__ import annotations

import signal
import subprocess

import pytest

from faults import fault_server


@pytest.mark.parametrize(
    ("command", "longest", "status"), [("exit 3", 60.0, 3), ("exec sleep 60", 0.1, -signal.SIGABRT)]
)
def test_a_command_that_hangs_is_ended_by_a_signal_that_is_no_injected_kill(command, longest, status):
    process = subprocess.Popen(["sh", "-c", command])
    process.returncode = fault_server._wait(process.pid, longest)
    assert process.returncode == status
