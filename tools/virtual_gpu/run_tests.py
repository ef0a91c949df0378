"""Runs each file of ``tests/gpu`` in a process of its own, on the virtual GPU.

    python tools/virtual_gpu/run_tests.py [FILE ...] [-- PYTEST_ARGUMENT ...]

A process that dies by a signal is repeated once, and the report says so: the OpenCL runtime behind the
virtual GPU does that now and then. Failed tests are never repeated. Reads the file of variables that
``install.py`` wrote. Kernels that one process has built are there for the others and for the next run, in a
folder beside that file.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_LIMIT_SECONDS = 1800
_ASSIGNMENT = re.compile(r"export (\w+)='?([^'\n]*?)'?$", re.MULTILINE)


def main() -> int:
    arguments = sys.argv[1:]
    end = arguments.index("--") if "--" in arguments else len(arguments)
    files, options = [Path(name) for name in arguments[:end]], arguments[end + 1 :]
    files = files or sorted((ROOT / "tests" / "gpu").glob("test_*.py"))
    build = Path(sys.prefix) / "virtual_gpu"
    environment = os.environ | shim_variables(build / "env")
    environment.pop(
        "VIRTUAL_GPU_PACED", None
    )  # tests compare outputs, and those that pace kernels set it themselves
    if "VIRTUAL_GPU_CACHE" not in environment:
        (build / "kernels").mkdir(parents=True, exist_ok=True)
        environment["VIRTUAL_GPU_CACHE"] = str(build / "kernels")
    lines, failed = [], False
    for path in files:
        outcome, passed = run(path, options, environment)
        lines.append(f"{path.name}: {outcome}")
        failed |= not passed
    print("\n".join(["", "== virtual GPU", *lines]))
    return int(failed)


def shim_variables(file: Path) -> dict[str, str]:
    """What ``file`` exports; nothing when the caller has read such a file already."""
    if "VIRTUAL_GPU_DRIVER" in os.environ:
        return {}
    if not file.exists():
        sys.exit(f"{file} is missing; run: {sys.executable} {Path(__file__).with_name('install.py')}")
    inherited = os.environ.get("LD_LIBRARY_PATH", "")
    values = dict(_ASSIGNMENT.findall(file.read_text(encoding="utf-8")))
    return {
        name: value.split("$")[0] + (f":{inherited}" if inherited and "$" in value else "")
        for name, value in values.items()
    }


def run(path: Path, options: list[str], environment: dict[str, str]) -> tuple[str, bool]:
    """Run one file of tests, once more if its process dies by a signal.

    Returns:
        What happened, and whether all is well.
    """
    deaths: list[str] = []
    start = time.monotonic()
    while True:
        command = [sys.executable, "-m", "pytest", "-m", "gpu", str(path), *options]
        done = subprocess.run(command, cwd=ROOT, env=environment, check=False, timeout=_LIMIT_SECONDS)
        if done.returncode >= 0:
            break
        deaths.append(signal.Signals(-done.returncode).name)
        print(f"== {path.name}: died by {deaths[-1]}", flush=True)
        if len(deaths) == 2:
            break
    # 5: every test was deselected, which is what options may ask for.
    passed = done.returncode in (0, 5)
    repeated = f" (died {len(deaths)} x by {', '.join(deaths)})" if deaths else ""
    return f"{'passed' if passed else 'FAILED'} in {time.monotonic() - start:.0f} s{repeated}", passed


if __name__ == "__main__":
    sys.exit(main())
