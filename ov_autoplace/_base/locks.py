"""Locks between processes: files that the system unlocks when their process ends, however it ends."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["locked", "remove_unless_locked"]

_STEP = 0.02  # seconds between two tries


@contextmanager
def locked(path: Path, patience: float) -> Iterator[bool]:
    """Hold the lock of a file; yields ``False`` if others kept it longer than that.

    Where there can be no lock, because the folder cannot be written or its file system has none, nobody is
    kept waiting.

    Args:
        path: The file, made where it is missing; its folder must exist.
        patience: Seconds to wait at most.
    """
    end = time.monotonic() + patience
    descriptor = _try_lock(path)
    while descriptor is None and time.monotonic() < end:
        time.sleep(_STEP)
        descriptor = _try_lock(path)
    try:
        yield descriptor is not None
    finally:
        if descriptor is not None and descriptor >= 0:
            os.close(descriptor)  # which unlocks


def remove_unless_locked(path: Path) -> None:
    """Remove a lock's file that nobody holds."""
    descriptor = _try_lock(path) if path.exists() else None
    if descriptor is not None and descriptor >= 0:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock, ``None`` while another one does, -1 where there can be no lock."""
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
    except OSError:
        return -1
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # Whoever removed the file meanwhile left a lock that no other process will see.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
    except BlockingIOError:
        pass
    except FileNotFoundError:
        pass  # removed between the two
    except OSError:
        os.close(descriptor)
        return -1  # a file system without locks
    os.close(descriptor)
    return None
