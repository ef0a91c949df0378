"""``ov-autoplace benchmark_app``: OpenVINO's own measuring tool, with AUTOPLACE known to it."""

from __future__ import annotations

import typer

__all__ = ["CONTEXT", "benchmark_app"]

# Everything behind the command's name belongs to benchmark_app, its -h too.
CONTEXT = {"allow_extra_args": True, "ignore_unknown_options": True, "help_option_names": []}


def benchmark_app(context: typer.Context) -> None:
    """Run OpenVINO's benchmark_app; all arguments are passed on, -d AUTOPLACE works."""
    from ov_autoplace.plugin.benchmark_app import run

    run(context.args)
