"""Reading and writing files so that nothing is half-written and every failure is one sentence."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ov_autoplace.errors import AutoplaceError, OutputError
from ov_autoplace.text import parse_json

__all__ = ["read_json", "staged_folder", "write_text_atomically"]


def read_json(path: str | Path, error: type[AutoplaceError], what: str) -> Any:
    """Parse a JSON file.

    Args:
        path: The file.
        error: Class of the error to raise.
        what: What the file should be, for the error's sentence (``"a target profile"``).

    Raises:
        AutoplaceError: Of class ``error``: the file is missing, unreadable, or is not JSON.
    """
    try:
        return parse_json(Path(path).read_text(encoding="utf-8"))
    except OSError as cause:
        raise error(f"cannot read {what} from {path}: {_reason(cause)}") from cause
    except (ValueError, RecursionError) as cause:
        raise error(f"{path} is not {what}: it does not parse as JSON ({cause})") from cause


def write_text_atomically(path: str | Path, text: str) -> None:
    """Write ``text`` beside ``path``, then rename, so that a reader never sees half a file.

    Raises:
        OutputError: The folder is missing, read-only or full.
    """
    path = Path(path)
    with staged_folder(path.parent) as stage:
        staged = stage / path.name
        try:
            with staged.open("w", encoding="utf-8") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            staged.replace(path)
        except OSError as cause:
            raise OutputError(f"cannot write {path}: {_reason(cause)}") from cause


@contextmanager
def staged_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder inside ``folder``; files are made there and renamed into place.

    Raises:
        OutputError: ``folder`` does not exist or cannot be written.
    """
    try:
        with tempfile.TemporaryDirectory(prefix=".ov-autoplace-", dir=folder) as stage:
            yield Path(stage)
    except OSError as cause:
        raise OutputError(f"cannot write to {folder}: {_reason(cause)}") from cause


def _reason(cause: OSError) -> str:
    return (cause.strerror or str(cause)).lower()
