"""Gives the Python environment that runs it a virtual GPU.

Installs Intel's OpenCL runtime for CPUs with pip, builds the shim with CMake, and writes a file of
variables: after ``. FILE``, ``openvino.Core().available_devices`` names ``GPU`` beside ``CPU``. Needs a C++17
compiler and make; neither OpenCL headers nor an OpenCL loader has to be on the machine.
"""

from __future__ import annotations

import argparse
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    default = Path(sys.prefix) / "virtual_gpu"
    parser.add_argument("--build", type=Path, default=default, help="build folder (default: %(default)s)")
    parser.add_argument("--no-install", action="store_true", help="the runtime is installed already")
    parser.add_argument("--werror", action="store_true", help="treat compiler warnings as errors")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    if not arguments.no_install:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "-r", str(HERE / "requirements.txt")]
        subprocess.run(pip, check=True)
    build_shim(build, arguments.werror)
    variables = build / "env"
    variables.write_text(environment_script(build), encoding="utf-8")
    print(f"now run: . {variables}")


def build_shim(build: Path, warnings_are_errors: bool) -> None:
    """Configure and build into ``build``, which then holds ``libOpenCL.so.1``."""
    cmake = shutil.which("cmake", path=str(Path(sys.executable).parent)) or shutil.which("cmake")
    if cmake is None:
        sys.exit("there is no cmake; run: pip install cmake")
    definitions = [f"-DOV_AUTOPLACE_WERROR={'ON' if warnings_are_errors else 'OFF'}"]
    configure = [cmake, "-S", str(HERE), "-B", str(build), "-G", "Unix Makefiles", *definitions]
    for command in (configure, [cmake, "--build", str(build)]):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{shlex.join(command)} failed:\n{done.stdout}{done.stderr}")


def environment_script(build: Path) -> str:
    """What a shell has to read before it starts a program that shall see the GPU."""
    libraries = Path(sys.prefix) / "lib"
    for name in ("libintelocl.so", "libtbb.so.12"):
        if not (libraries / name).exists():
            sys.exit(f"{libraries / name} is missing; run this script without --no-install")
    variables = {
        # Where the GPU plugin finds its libOpenCL.so.1, before a loader that the system may have.
        "LD_LIBRARY_PATH": shlex.quote(str(build)) + "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}",
        # OpenVINO's own TBB is older than the runtime needs; the newer one serves both.
        "LD_PRELOAD": shlex.quote(str(libraries / "libtbb.so.12")),
        "VIRTUAL_GPU_DRIVER": shlex.quote(str(libraries / "libintelocl.so")),
    }
    return "".join(f"export {name}={value}\n" for name, value in variables.items())


if __name__ == "__main__":
    main()
