"""What the benchmarks share: the machine in one line, tables, the two unequal devices."""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Iterable, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import openvino as ov
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tools") not in sys.path:
    sys.path.insert(0, str(ROOT / "tools"))

CPU_PLUGIN = Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"
UNEQUAL_PAIR = {
    "XCPU": {
        "INFERENCE_NUM_THREADS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "EXCLUSIVE_ASYNC_REQUESTS": False,
        # On one thread, OpenVINO 2026.4.1 crashes while it tokenises some small graphs.
        "SNIPPETS_MODE": "DISABLE",
    },
    "CPU": {
        "INFERENCE_NUM_THREADS": 2,
        "INFERENCE_PRECISION_HINT": "f32",
        "EXCLUSIVE_ASYNC_REQUESTS": False,
    },
}


def unequal_pair() -> ov.Core:
    """A Core on which XCPU is the CPU plugin once more, on one thread, beside CPU on two."""
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    for device, properties in UNEQUAL_PAIR.items():
        core.set_property(device, properties)
    return core


def machine_line() -> str:
    """Date, processor, core count, Python and OpenVINO versions."""
    model = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        model = next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        pass  # not Linux on x86: the platform's own word has to do
    cores = len(os.sched_getaffinity(0))
    python = platform.python_version()
    return f"{date.today()} | {model}, {cores} cores | Python {python} | OpenVINO {ov.__version__}"


def print_table(title: str, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """Print rows as a table, the first column to the left and the others to the right."""
    table = Table(title=title, title_justify="left")
    for i, column in enumerate(columns):
        table.add_column(column, justify="left" if i == 0 else "right")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    # A fixed width, so that a redirected table is not squeezed to 80 columns.
    Console(width=max(110, 18 * len(columns))).print(table)
