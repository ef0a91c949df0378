"""The command line: one file per command, ``app`` puts them together."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        arguments: Without the program's name; ``sys.argv`` when ``None``.

    Returns:
        The exit code: 0, 2 when the request was wrong, 1 when something failed.
    """
    from ov_autoplace.cli.app import run

    return run(arguments)
