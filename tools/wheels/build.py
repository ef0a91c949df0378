"""Builds the wheels of the package, and tries each with every Python that it is for.

    python tools/wheels/build.py python3.10 python3.11 python3.12 python3.13

A source distribution is made first and everything is built from that, but for the native parts of
OpenVINO's releases before the newest, the same in every wheel (`releases.py`). A Python that an earlier
one's wheel is for gets no other: from 3.12 on, they are of the stable ABI. auditwheel says for which
systems a wheel is: those with at least the glibc and libstdc++ of the one it is built on (PyPA's images
`manylinux_*` have old ones). OpenVINO's own libraries are left out, as OpenVINO's wheel brings them.

A trial has an environment of its own with nothing in ``PATH`` but that environment, so no compiler, and runs
`try_wheel.py` in an empty folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from openvino_requirement import releases
from releases import build as build_native

ROOT = Path(__file__).resolve().parents[2]
TRIAL = Path(__file__).with_name("try_wheel.py")
_NAME = "ov-autoplace"


def run(*command: object, path: Path | None = None, folder: Path = ROOT) -> None:
    """Run a program that has to succeed, where ``path`` is all that it finds others in."""
    environment = {**os.environ, "PATH": str(path or os.environ["PATH"])}
    subprocess.run([str(part) for part in command], check=True, env=environment, cwd=folder)


def environment(python: str, folder: Path) -> Path:
    """The interpreter of a new environment of ``python``."""
    run(python, "-m", "venv", folder)
    own = folder / "bin" / "python"
    run(own, "-m", "pip", "install", "--quiet", "--upgrade", "pip")
    return own


def source_distribution(output: Path) -> Path:
    """Make it, and return its file."""
    run(sys.executable, "-m", "build", "--sdist", "--outdir", output, ROOT)
    (file,) = output.glob("*.tar.gz")
    return file


def wheel_for(own: Path, output: Path) -> Path | None:
    """Of the wheels in ``output``, the one that pip takes for an environment, if any."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = ["--no-deps", "--no-index", "--only-binary", ":all:", "--find-links", output, _NAME]
        command = [own, "-m", "pip", "download", "--quiet", "--dest", folder, *wanted]
        subprocess.run([str(part) for part in command], check=False, capture_output=True)
        return next((output / file.name for file in Path(folder).iterdir()), None)


def build(own: Path, source: Path, natives: Path, output: Path) -> None:
    """Build the wheel for an environment's Python, and put it into ``output`` with its tag."""
    more = f"--config-settings=cmake.define.OV_AUTOPLACE_MORE_RELEASES={natives}"
    with tempfile.TemporaryDirectory() as folder:
        run(own, "-m", "pip", "wheel", "--quiet", "--no-deps", more, "--wheel-dir", folder, source)
        (wheel,) = Path(folder).glob("*.whl")
        repair = [sys.executable, "-m", "auditwheel", "repair", "--exclude", "libopenvino.so.*"]
        run(*repair, "--wheel-dir", output, wheel, path=Path(sys.executable).parent)


def try_it(own: Path, wheel: Path, folder: Path) -> None:
    """Install from wheels alone, without a compiler, and run the trial outside of the source tree."""
    run(own, "-m", "pip", "install", "--quiet", "--only-binary", ":all:", wheel, path=own.parent)
    run(own, "-I", shutil.copy(TRIAL, folder), path=own.parent, folder=folder)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("pythons", nargs="+", metavar="PYTHON", help="an interpreter")
    parser.add_argument("--output", type=Path, default=ROOT / "dist")
    parser.add_argument("--releases", type=Path, default=ROOT / "build" / "releases", help="see releases.py")
    arguments = parser.parse_args()
    missing = [python for python in arguments.pythons if shutil.which(python) is None]
    if missing:
        parser.error(f"there is no {', '.join(missing)}; name others: make wheels PYTHONS='python3 ...'")
    output = arguments.output.resolve()
    shutil.rmtree(output, ignore_errors=True)
    source = source_distribution(output)
    for release in releases()[:-1]:
        build_native(release, arguments.releases)
    for python in arguments.pythons:
        with tempfile.TemporaryDirectory() as scratch:
            own = environment(python, Path(scratch) / "environment")
            if wheel_for(own, output) is None:
                build(own, source, arguments.releases.resolve() / "native", output)
            wheel = wheel_for(own, output)
            assert wheel is not None, f"auditwheel made a wheel that {python} does not take"
            folder = Path(scratch) / "empty"
            folder.mkdir()
            try_it(own, wheel, folder)
        print(f"{python}: {wheel.name} is built and tried", flush=True)
    for file in sorted(output.iterdir()):
        print(f"{file.stat().st_size / 2**20:6.2f} MiB  {file}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
