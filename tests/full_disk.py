"""A disk that fills up while a file is written."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["full_disk"]


@contextmanager
def full_disk(free_bytes: int) -> Iterator[None]:
    """A limit on the size of files makes writes of this process fail halfway, as a full disk does."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (free_bytes, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
