"""Runs programs that know nothing of ov_autoplace."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["Program", "run", "run_python"]

Program = Callable[..., dict[str, Any]]
"""Runs a program with arguments and properties, and returns what it reports."""

PROGRAMS = Path(__file__).resolve().parent / "programs"


def run(*command: object, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program with further environment variables; it has to succeed."""
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
        env=os.environ | settings,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


def run_python(program: str, *arguments: object, **settings: str) -> Any:
    """Run a file of ``programs/`` in a fresh interpreter, and return the JSON of its last line."""
    done = run(sys.executable, PROGRAMS / program, *arguments, **settings)
    return json.loads(done.stdout.splitlines()[-1])
