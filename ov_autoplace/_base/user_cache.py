"""The user's cache folder: what holds for a machine, and not for one model, is kept there."""

from __future__ import annotations

import os
from pathlib import Path

__all__ = ["user_cache_folder"]


def user_cache_folder() -> Path | None:
    """``$XDG_CACHE_HOME/ov-autoplace``, else ``~/.cache/ov-autoplace``; ``None`` where there is no home.

    The folder need not exist. As the XDG base directory specification wants it, a relative
    ``XDG_CACHE_HOME`` is ignored.
    """
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    if not base.is_absolute():
        try:
            base = Path.home() / ".cache"
        except RuntimeError:
            return None
    return base / "ov-autoplace"
