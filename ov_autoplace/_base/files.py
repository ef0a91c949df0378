"""Reading and writing files so that nothing is half-written and every failure is one sentence.

Whatever is made on the way lies in a folder of its own, which its process holds locked (``flock``). The
system drops the lock when the process ends, however it ends, so the next process that makes such a folder in
the same place can tell what a kill left there from what somebody is still using, and removes it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import shutil
import tempfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ov_autoplace.errors import OutputError

__all__ = [
    "make_folder",
    "os_reason",
    "possible",
    "read_arrays",
    "staged_folder",
    "temporary_folder",
    "write_atomically",
    "write_text_atomically",
]

# RuntimeError is a flag of the archive that says it is encrypted, or compressed as zipfile does not know.
_DAMAGED_ARCHIVE = (
    *(EOFError, KeyError, ValueError, TypeError, RuntimeError, MemoryError),
    *(zipfile.BadZipFile, zlib.error),
)
_PREFIX, _SUFFIX = "ov-autoplace-", ".temporary"
_OWN_NAME = re.compile(rf"\.?{_PREFIX}\w+{re.escape(_SUFFIX)}")


def read_arrays(path: str | Path) -> dict[str, NDArray[Any]]:
    """The arrays of an ``.npz`` file by name; pickled objects are refused.

    Raises:
        ValueError: It cannot be read, or is no such file; the text says in a few words why.
    """
    try:
        stored = np.load(possible(path), allow_pickle=False)
        if isinstance(stored, np.ndarray):
            raise ValueError("a single array")
        with stored:
            return dict(stored)
    except OSError as cause:
        raise ValueError(os_reason(cause)) from cause
    except _DAMAGED_ARCHIVE as cause:  # their texts quote the damaged bytes
        raise ValueError("it is damaged, or no archive of arrays") from cause


def write_text_atomically(path: str | Path, text: str) -> None:
    """:func:`write_atomically` of a text in UTF-8."""
    write_atomically(path, text.encode())


def write_atomically(path: str | Path, content: bytes) -> None:
    """Write ``content`` beside ``path``, then rename, so that a reader never sees half a file.

    Raises:
        OutputError: The folder is missing, read-only or full.
    """
    path = Path(path)
    with staged_folder(path.parent) as stage:
        staged = stage / path.name
        try:
            possible(path)
            with staged.open("wb") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
            staged.replace(path)
        except OSError as cause:
            raise OutputError(f"cannot write {path}: {os_reason(cause)}") from cause


@contextmanager
def staged_folder(folder: str | Path) -> Iterator[Path]:
    """A temporary folder inside ``folder``; files are made there and renamed into place.

    Raises:
        OutputError: ``folder`` does not exist or cannot be written.
    """
    try:
        with _locked_folder(possible(folder), "." + _PREFIX) as stage:
            yield stage
    except OSError as cause:
        raise OutputError(f"cannot write to {folder}: {os_reason(cause)}") from cause


@contextmanager
def temporary_folder() -> Iterator[Path]:
    """A folder among the system's temporary files (``TMPDIR``), for what only other libraries read.

    Raises:
        OutputError: It cannot be made.
    """
    parent = Path(tempfile.gettempdir())
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(_locked_folder(parent, _PREFIX))
        except OSError as cause:
            raise OutputError(
                f"cannot write to {parent}: {os_reason(cause)}; set TMPDIR to another"
            ) from cause
        yield folder


@contextmanager
def _locked_folder(parent: Path, prefix: str) -> Iterator[Path]:
    """A new folder that is removed at the end, and that nobody else takes for a left one meanwhile."""
    _sweep(parent, prefix)
    while True:
        with tempfile.TemporaryDirectory(
            prefix=prefix, suffix=_SUFFIX, dir=parent, ignore_cleanup_errors=True
        ) as name:
            lock = _lock(Path(name), wait=True)
            if lock is None:
                continue  # swept in the moment before it was locked
            try:
                yield Path(name)
            finally:
                os.close(lock)
            return


def _sweep(parent: Path, prefix: str) -> None:
    """Remove the folders of processes of this user that have ended without removing them."""
    with suppress(OSError):
        for entry in list(os.scandir(parent)):
            if not entry.name.startswith(prefix) or not _OWN_NAME.fullmatch(entry.name):
                continue
            if entry.stat(follow_symlinks=False).st_uid != os.geteuid():
                continue
            lock = _lock(Path(entry.path), wait=False)
            if lock is not None:
                shutil.rmtree(entry.path, ignore_errors=True)
                os.close(lock)


def _lock(folder: Path, wait: bool) -> int | None:
    """A descriptor that holds the lock of a folder; ``None`` = somebody has it, or the folder is gone.

    Where a file system knows no locks of folders, an owner goes on without one, and nobody sweeps.
    """
    descriptor = None
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        fcntl.flock(descriptor, fcntl.LOCK_EX | (0 if wait else fcntl.LOCK_NB))
    except OSError as cause:
        if wait and descriptor is not None:
            return descriptor
        if wait and not isinstance(cause, FileNotFoundError):
            raise
        if descriptor is not None:
            os.close(descriptor)
        return None
    with suppress(OSError):
        if os.path.samestat(os.fstat(descriptor), os.stat(folder, follow_symlinks=False)):
            return descriptor
    os.close(descriptor)  # it was removed while this waited for the lock
    return None


def make_folder(folder: Path) -> None:
    """Make a folder and its parents where they are missing.

    Raises:
        OutputError: It cannot be made.
    """
    try:
        possible(folder).mkdir(parents=True, exist_ok=True)
    except OSError as cause:
        raise OutputError(f"cannot make the folder {folder}: {os_reason(cause)}") from cause


def possible(path: str | Path) -> Path:
    """A path that a file can have; Python raises ``ValueError`` where it meets another, which nobody expects.

    Raises:
        OSError: No file can have this name.
    """
    try:
        if b"\0" not in os.fsencode(path):
            return Path(path)
    except UnicodeEncodeError:
        pass
    raise OSError(errno.EINVAL, "no file or folder can have this name")


def os_reason(cause: OSError) -> str:
    """What went wrong, as the end of a sentence."""
    return (cause.strerror or str(cause)).lower()
