"""What the tests of bad input share: calls that are refused, and what they leave."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from command_line import EXTRA_DEVICES, Outcome

DEVICES = ("-d", "XCPU,CPU")
FAST = (*DEVICES, "--mode", "zero-shot")


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in folder.rglob("*") if p.is_file()}


def assert_refused(outcome: Outcome, *words: object) -> None:
    """Exit code 2 and exactly one line, which holds all of ``words``."""
    lines = [line for line in outcome.err.splitlines() if line.startswith("error: ")]
    assert outcome.code == 2, outcome.err
    assert len(lines) == 1, outcome.err
    assert "Traceback" not in outcome.err
    assert outcome.out == ""
    for word in words:
        assert str(word) in lines[0]


def in_child(
    *arguments: object, before: Callable[[], None] | None = None, **variables: str
) -> subprocess.CompletedProcess[str]:
    """The command as the shell runs it."""
    environment = {**os.environ, "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES, **variables}
    command = [sys.executable, "-m", "ov_autoplace", *map(str, arguments)]
    return subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=600, check=False, preexec_fn=before
    )
