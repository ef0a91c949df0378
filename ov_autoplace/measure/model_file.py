"""The file through which a model gets into the process that measures it, and what is said when that fails."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import openvino as ov

from ov_autoplace import _core
from ov_autoplace._base import releases
from ov_autoplace.devices.models import make_readable, openvino_reason
from ov_autoplace.devices.names import bare_core
from ov_autoplace.errors import OutputError, ProfilingError

__all__ = [
    "UnreadableModelError",
    "cannot_save",
    "check_readable",
    "failing_on",
    "is_whole",
    "reported_failure",
    "save_ir",
]


_BLOCK_BYTES = 1 << 22
_STORED_BYTES = re.compile(rb' shape="[^"]*" offset="(\d+)" size="(\d+)"')


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
        make_readable(path)
    except (RuntimeError, OSError) as cause:
        raise cannot_save(folder, openvino_reason(cause)) from cause
    if not releases.facts().reports_full_disks and not is_whole(path, path.with_suffix(".bin")):
        raise cannot_save(folder, "what was stored does not read back")
    return path


def is_whole(xml: Path, weights: Path) -> bool:
    """Whether nothing of an IR was cut off, as by a full disk, which OpenVINO does not always report.

    It writes both files from front to back. The text is whole when it ends with its root element (an
    attribute's ``<`` and ``"`` are escaped, so nothing else looks like these), the weights when they hold the
    bytes of every Constant that the text speaks of.
    """
    needed, rest = 0, b""
    try:
        stored = weights.stat().st_size
        # In blocks: the text of a model of a million ops has half a gigabyte.
        with xml.open("rb") as file:
            while block := file.read(_BLOCK_BYTES):
                text = rest + block
                end = max(text.rfind(b"<"), 0)
                ends = [int(m[1]) + int(m[2]) for m in _STORED_BYTES.finditer(text, 0, end)]
                needed, rest = max([needed, *ends]), text[end:]
    except OSError:
        return False
    return rest.rstrip().endswith(b"</net>") and stored >= needed


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
