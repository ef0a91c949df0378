"""Builds C++ programs against the OpenVINO of this environment, with the system's compiler."""

from __future__ import annotations

import subprocess
from pathlib import Path

import cmake
from openvino.utils import get_cmake_path

__all__ = ["build_cpp"]


def build_cpp(source: Path, build: Path) -> None:
    """Configure and build a folder with a ``CMakeLists.txt``; warnings are errors."""
    program = Path(cmake.CMAKE_BIN_DIR) / "cmake"
    configure = [program, "-S", source, "-B", build, "-G", "Unix Makefiles"]
    definitions = [f"-DOpenVINO_DIR={get_cmake_path()}", "-DCMAKE_CXX_FLAGS=-Werror"]
    for command in ([*configure, *definitions], [program, "--build", build]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
