"""The file through which a model gets into the process that measures it, and what is said when that fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import openvino as ov

from ov_autoplace import _core
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.devices.names import bare_core
from ov_autoplace.errors import OutputError, ProfilingError

__all__ = [
    "UnreadableModelError",
    "cannot_save",
    "check_readable",
    "failing_on",
    "reported_failure",
    "save_ir",
]


class UnreadableModelError(ProfilingError):
    """A model that no process but this one can read, so that none can measure it."""


@contextmanager
def reported_failure(what: str, device: str | None = None) -> Iterator[None]:
    """Turn what a device throws while it compiles or runs into one sentence.

    Args:
        what: What failed, the sentence's beginning.
        device: Whose failure it is.

    Raises:
        ProfilingError: Instead of the profiler's own error.
    """
    try:
        yield
    except _core.ProfilerError as cause:
        raise ProfilingError(f"{what}: {openvino_reason(cause)}", device) from cause


def save_ir(model: ov.Model, folder: Path, name: str = "model.xml") -> Path:
    """Write ``model`` into ``folder`` with its weights as they are, for a Core of another library to read.

    Raises:
        OutputError: The folder cannot be written or is full.
    """
    path = folder / name
    try:
        ov.save_model(model, path, compress_to_fp16=False)
    except (RuntimeError, OSError) as cause:
        raise cannot_save(folder, openvino_reason(cause)) from cause
    return path


def cannot_save(folder: Path, reason: str) -> OutputError:
    """What is raised where a model cannot be written; the folder is what can be mended."""
    return OutputError(
        f"cannot write the model to {folder}: {reason}; make room there or set TMPDIR to another folder"
    )


def check_readable(path: Path, extensions: Sequence[str]) -> None:
    """Read what :func:`save_ir` wrote as another process would.

    Args:
        path: The file.
        extensions: Libraries of ops that are not OpenVINO's own.

    Raises:
        UnreadableModelError: It holds an op that is in none of them.
    """
    reader = bare_core()
    try:
        for extension in extensions:
            reader.add_extension(extension)
        reader.read_model(path)
    except RuntimeError as cause:
        raise UnreadableModelError(
            f"the model holds ops of a library that nothing but this Core knows ({openvino_reason(cause)}); "
            "import ov_autoplace before core.add_extension is called, and give it the path of the library"
        ) from cause


def failing_on(device: str) -> AbstractContextManager[None]:
    """:func:`reported_failure` for a model that is compiled or run on one device or on HETERO."""
    return reported_failure(f"the model cannot be timed on {device}", None if ":" in device else device)
