"""Packages that only some installations have."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from ov_autoplace.errors import AutoplaceError, OptionError

__all__ = ["extra_needed"]


@contextmanager
def extra_needed(extra: str, purpose: str, error: type[AutoplaceError] = OptionError) -> Iterator[None]:
    """Imports that fail within say which extra of this package has what is missing.

    Args:
        extra: Its name.
        purpose: What needs it, the beginning of the sentence.
        error: Class of the error to raise.

    Raises:
        AutoplaceError: Of class ``error``: a package is missing.
    """
    try:
        yield
    except ImportError as cause:
        package = (cause.name or str(cause)).partition(".")[0]
        raise error(
            f"{purpose} needs the package {package!r}; install it with: pip install 'ov-autoplace[{extra}]'"
        ) from cause
