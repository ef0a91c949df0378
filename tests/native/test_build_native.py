"""``ov-autoplace build-native`` with a real compiler."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import openvino as ov


def test_the_library_is_built_from_the_sources_that_are_installed(tmp_path: Path) -> None:
    environment = {**os.environ, "XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-m", "ov_autoplace", "build-native"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)

    (library,) = tmp_path.rglob("*.so")
    assert done.stdout.split() == [str(library)]
    ov.Core().add_extension(str(library))
