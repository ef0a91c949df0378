"""The command line: one file per command, ``app`` puts them together.

Imports everything below it, where a command needs it.
"""

from ov_autoplace_command import main

__all__ = ["main"]
