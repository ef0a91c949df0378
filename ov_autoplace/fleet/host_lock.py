"""One measurement at a time on a computer, whatever programs, drivers, clusters and users measure there.

Ray's resources keep apart what one node runs. Two nodes of one computer, or two clusters, know nothing of
each other, so whoever measures also holds a name in the kernel: an abstract Unix socket with the boot id in
its name. It belongs to no user and no folder, and is free the moment its process ends, however it ends.
Containers have such names of their own where they have networks of their own; nodes of one cluster that share
a computer so are kept apart by the name of their actor instead (``fleet/workers.py``).
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["boot_id", "host_lock"]

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


def boot_id() -> str:
    """What tells this computer, since it was started, from all others; containers on it see the same."""
    try:
        return _BOOT_ID.read_text(encoding="ascii").strip()
    except OSError:
        return socket.gethostname()


@contextmanager
def host_lock(host: str) -> Iterator[bool]:
    """Hold the lock of a computer; yields ``False`` where another process holds it.

    Args:
        host: Its boot id.
    """
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as lock:  # not inherited by child processes
        try:
            lock.bind(f"\0ov-autoplace measures on {host}")
        except OSError as cause:
            if cause.errno != errno.EADDRINUSE:
                raise
            yield False
        else:
            yield True
