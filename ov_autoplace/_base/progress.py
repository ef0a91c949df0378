"""How long work tells that it goes on."""

from collections.abc import Callable

__all__ = ["Progress"]

Progress = Callable[[int, int, str], None]
"""Called with (steps done, steps in all, what is being done)."""
