"""The command line: one file per command, ``app`` puts them together."""

from ov_autoplace_command import main

__all__ = ["main"]
