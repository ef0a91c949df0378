"""What is compiled: the core, for any OpenVINO, and for each release of it a library that runs models.

The library is that for other programs too (docs/native.md). A wheel has one for each release that was known
when it was made; for another one, ``ov-autoplace build-native`` builds it from the sources in the wheel.
"""

from __future__ import annotations

import importlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import openvino as ov

from ov_autoplace._base import releases
from ov_autoplace._base.user_cache import user_cache_folder
from ov_autoplace._version import __version__
from ov_autoplace.errors import OutputError, VersionMismatchError

__all__ = ["NATIVE_NAME", "build_native", "load_core", "native_libraries", "native_library"]

NATIVE_NAME = "libov_autoplace_extension.so"


def load_core() -> ModuleType:
    """The module ``ov_autoplace._core``.

    Raises:
        VersionMismatchError: It was never built.
    """
    try:
        return importlib.import_module("ov_autoplace._core")
    except ModuleNotFoundError as cause:
        raise VersionMismatchError(
            "the C++ core of ov-autoplace is not built; run `pip install .` in the source folder "
            "and start Python from another folder"
        ) from cause


def native_library() -> str:
    """Absolute path of the library for the release of OpenVINO that is installed.

    Raises:
        VersionMismatchError: There is none, because the release is too old, or newer than the package.
    """
    release = releases.installed()
    if releases.is_too_old():
        raise VersionMismatchError(
            f"ov-autoplace runs with OpenVINO {releases.FLOOR} and later, and {release} is installed; "
            "run `pip install --upgrade openvino`"
        )
    for folder in _folders(release):
        if (folder / NATIVE_NAME).is_file():
            return str(folder / NATIVE_NAME)
    raise VersionMismatchError(
        f"ov-autoplace {__version__} has no native part for OpenVINO {release}, which is installed; "
        f"run `ov-autoplace build-native`, or `pip install openvino=={releases.KNOWN[-1]}`"
    )


def native_libraries() -> list[str]:
    """What a process loads to run models: OpenVINO's library, then ours, so that ours finds the former.

    Raises:
        VersionMismatchError: See :func:`native_library`.
    """
    return [str(_openvino_library()), native_library()]


def build_native() -> Path:
    """Build the library for the release that is installed into the user's cache folder, and return its path.

    Raises:
        VersionMismatchError: It cannot be built.
        OutputError: There is no folder for it.
    """
    if releases.is_too_old():
        native_library()  # says so
    if shutil.which("cmake") is None:
        raise VersionMismatchError("CMake is not in PATH, which builds it; run `pip install cmake`")
    release = releases.installed()
    folder = _built_folder(release)
    if folder is None:
        raise OutputError("there is no home folder to build into; set XDG_CACHE_HOME to a folder")
    with tempfile.TemporaryDirectory() as scratch:
        _cmake("-S", _beside_core() / "source", "-B", scratch, f"-DOpenVINO_DIR={ov.utils.get_cmake_path()}")
        _cmake("--build", scratch, "--parallel", str(os.cpu_count() or 1))
        try:
            folder.mkdir(parents=True, exist_ok=True)
            # In one step: a process that looks for it meanwhile finds none or the whole.
            unfinished = folder / f"{NATIVE_NAME}.{os.getpid()}"
            shutil.copy2(Path(scratch) / NATIVE_NAME, unfinished)
            unfinished.replace(folder / NATIVE_NAME)
        except OSError as cause:
            raise OutputError(f"the library cannot be written to {folder}: {cause.strerror}") from cause
    return folder / NATIVE_NAME


def _cmake(*arguments: object) -> None:
    command = ["cmake", *map(str, arguments)]
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode:
        said = [line for line in done.stdout.splitlines() if "rror" in line] or done.stdout.splitlines()
        reason = said[0].strip() if said else f"CMake left with {done.returncode}"
        raise VersionMismatchError(
            f"the native part for OpenVINO {releases.installed()} cannot be built: {reason}"
        )


def _folders(release: str) -> Iterator[Path]:
    yield _beside_core() / release
    if (built := _built_folder(release)) is not None:
        yield built


def _beside_core() -> Path:
    # Beside the core, which an editable installation keeps apart from the sources.
    return Path(str(load_core().__file__)).parent / "native"


def _built_folder(release: str) -> Path | None:
    folder = user_cache_folder()
    return None if folder is None else folder / "native" / __version__ / release


def _openvino_library() -> Path:
    libraries = sorted((Path(str(ov.__file__)).parent / "libs").glob("libopenvino.so*"))
    if not libraries:
        raise VersionMismatchError(
            f"the library of OpenVINO is not beside its package {ov.__file__}; install OpenVINO with pip"
        )
    return libraries[0]
