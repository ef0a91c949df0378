"""Builds the native part for each release of OpenVINO that the package is for.

    python tools/wheels/releases.py build/releases [RELEASE ...]

Each release's wheel is downloaded once and unpacked into `FOLDER/openvino/RELEASE`; nothing is installed.
What is built is `FOLDER/native/RELEASE/*.so`: with that in the package, it runs with any of them by

    PYTHONPATH=FOLDER/openvino/RELEASE
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from openvino_requirement import releases

SOURCE = Path(__file__).resolve().parents[2] / "csrc" / "native"


def unpacked(release: str, folder: Path) -> Path:
    """The folder with a release's Python package, for the interpreter that runs this."""
    target = folder / "openvino" / release
    if not target.is_dir():
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent) as scratch:
            wanted = ["--no-deps", "--only-binary", ":all:", "--dest", scratch, f"openvino=={release}"]
            subprocess.run([sys.executable, "-m", "pip", "download", "--quiet", *wanted], check=True)
            (wheel,) = Path(scratch).glob("*.whl")
            with zipfile.ZipFile(wheel) as archive:
                archive.extractall(Path(scratch) / "unpacked")
            (Path(scratch) / "unpacked").rename(target)
    return target


def build(release: str, folder: Path) -> Path:
    """The library for a release."""
    openvino = unpacked(release, folder)
    output = folder / "native" / release
    with tempfile.TemporaryDirectory() as scratch:
        options = [f"-DOpenVINO_DIR={openvino / 'openvino' / 'cmake'}", "-DOV_AUTOPLACE_WERROR=ON"]
        run("cmake", "-S", SOURCE, "-B", scratch, *options)
        run("cmake", "--build", scratch, "--parallel", len(os.sched_getaffinity(0)))
        run("cmake", "--install", scratch, "--strip", "--prefix", Path(scratch) / "installed")
        (library,) = Path(scratch).glob("installed/**/*.so")
        output.mkdir(parents=True, exist_ok=True)
        return Path(shutil.copy2(library, output))


def run(*command: object) -> None:
    """Run a program that has to succeed; it is heard where it does not."""
    done = subprocess.run([str(part) for part in command], check=False, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command[0]} failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("releases", nargs="*", default=releases(), metavar="RELEASE")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    for release in arguments.releases:
        library = build(release, folder)
        print(f"{library.stat().st_size / 2**10:6.0f} KiB  {library}", flush=True)


if __name__ == "__main__":
    main()
