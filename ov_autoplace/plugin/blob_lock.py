"""One process at a time compiles with a ``CACHE_DIR``."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._base.locks import locked
from ov_autoplace.plugin.decision_cache import cache_folder

__all__ = ["cache_lock", "writing_blobs"]

_log = logging.getLogger("ov_autoplace")

# In ``CACHE_DIR``: the lock of whoever compiles there, and how long to wait for it and for a decision.
_BLOB_LOCK, _PATIENCE = "autoplace.lock", 300.0


@contextmanager
def writing_blobs(core: ov.Core, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Lets one process at a time compile with a ``CACHE_DIR``; yields the configuration to compile with.

    Processes of OpenVINO 2026.4.1 that write and read the same blob at once can die of it.
    """
    folder = cache_folder(core, config)
    if not folder:
        yield config
        return
    with cache_lock(Path(folder) / _BLOB_LOCK) as is_locked:
        if not is_locked:
            _log.debug("compiled without the cache in %s, because other processes are using it", folder)
        yield config if is_locked else {**config, "CACHE_DIR": ""}


@contextmanager
def cache_lock(path: Path) -> Iterator[bool]:
    """A lock in ``CACHE_DIR``, which is made where it is missing; yields whether it was got in time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, _PATIENCE) as is_locked:
        yield is_locked
