"""What the tests of reports share."""

from __future__ import annotations

from browser import chromium  # here and nowhere else: imported twice, it would be two browsers in one process

__all__ = ["chromium"]
