"""Runs a command with a kill, or a full disk, at a chosen write, and tells what it left."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Literal

from command_line import EXTRA_DEVICES

__all__ = ["EVERYTHING", "Faults", "Left", "compile_library", "moments"]

EVERYTHING = bool(os.environ.get("AUTOPLACE_ALL_FAULTS"))
"""Whether every write is struck at, as `make faults` asks, and not only a few."""

Kind = Literal["c", "k", "f"]
"""Count only, kill, or fill the disk."""


@dataclass(frozen=True)
class Left:
    """How a command ended.

    Attributes:
        status: Exit code, or minus a signal.
        changes: To files, those that a fault prevented included.
        output: All that it printed.
    """

    status: int
    changes: int
    output: str


def compile_library(folder: Path) -> Path | None:
    """The library that is preloaded; ``None`` where there is no C compiler."""
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    library = folder / "write_faults.so"
    source = Path(__file__).with_name("write_faults.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source, "-ldl"], check=True)
    return library


class Faults:
    """A server of scenarios in which writes fail.

    Args:
        library: From :func:`compile_library`.
        folder: Where everything happens; faults strike below ``folder/root`` alone.
    """

    def __init__(self, library: Path, folder: Path) -> None:
        self.root, self.given = folder / "root", folder / "given"
        environment = {
            **os.environ,
            "LD_PRELOAD": str(library),
            "FAULT_ROOT": str(self.root),
            "TMPDIR": str(self.root / "tmp"),
            "HOME": str(self.root / "home"),
            "MPLCONFIGDIR": str(folder / "matplotlib"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES,
        }
        server = Path(__file__).with_name("fault_server.py")
        self.empty()
        self._process = subprocess.Popen(
            [sys.executable, server, self.given, self.root, folder / "output.txt"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def __enter__(self) -> Faults:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def empty(self) -> None:
        """Begin with nothing."""
        shutil.rmtree(self.root, ignore_errors=True)
        for folder in ("tmp", "home"):
            (self.root / folder).mkdir(parents=True)

    def run(self, scenario: str, kind: Kind = "c", at: int = 0) -> Left:
        """Run a scenario on what is there."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"scenario": scenario, "kind": kind, "at": at}) + "\n")
        self._process.stdin.flush()
        return Left(**json.loads(self._process.stdout.readline()))

    def leftovers(self) -> list[Path]:
        """Whatever is meant to be gone when a command has ended."""
        return sorted(path for path in self.root.rglob("*ov-autoplace-*"))


def moments(changes: int, most: int) -> Iterator[int]:
    """Numbers of changes to strike at: all of them when that was asked for, else so many, spread evenly.

    The last ones, where files take their places, are always among them.
    """
    if EVERYTHING or changes <= most:
        yield from range(1, changes + 1)
        return
    last = min(most // 2, changes)
    spread = {1 + round(i * (changes - last - 1) / max(most - last - 1, 1)) for i in range(most - last)}
    yield from sorted(spread | set(range(changes - last + 1, changes + 1)))
