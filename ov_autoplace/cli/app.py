"""The commands as one program, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import logging
import sys
import traceback
from collections.abc import Sequence
from typing import Annotated

import typer

from ov_autoplace._version import __version__
from ov_autoplace.cli import (
    annotate,
    bench,
    benchmark_app,
    cache,
    calibrate,
    devices,
    explain,
    extension,
    finetune,
    pretrain,
)
from ov_autoplace.cli.console import fail, log_handler, print_sentence
from ov_autoplace.errors import AutoplaceError

__all__ = ["app", "run"]

app = typer.Typer(
    name="ov-autoplace",
    help="Decides which device runs each operation of an OpenVINO model.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("devices")(devices.devices)
app.command("calibrate")(calibrate.calibrate)
app.command("cache")(cache.cache)
app.command("annotate")(annotate.annotate)
app.command("bench")(bench.bench)
app.command("explain")(explain.explain)
app.command("finetune")(finetune.finetune)
app.command("pretrain")(pretrain.pretrain)
app.command("extension")(extension.extension)
app.command("benchmark_app", context_settings=benchmark_app.CONTEXT, add_help_option=False)(
    benchmark_app.benchmark_app
)


def _print_version(wanted: bool) -> None:
    if wanted:
        print_sentence(f"ov-autoplace {__version__}")
        raise typer.Exit


@app.callback()
def _program(
    context: typer.Context,
    debug: Annotated[
        bool, typer.Option("--debug", help="Log what happens, and show the traceback of a failure.")
    ] = False,
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    logging.getLogger("ov_autoplace").setLevel(logging.DEBUG if debug else logging.WARNING)


def run(arguments: Sequence[str] | None = None) -> int:
    """Run the program and return its exit code; see :func:`ov_autoplace.cli.main`."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    log = logging.getLogger("ov_autoplace")
    handler = log_handler()
    log.addHandler(handler)
    try:
        app(args=arguments, prog_name="ov-autoplace")
    except SystemExit as leaving:
        return leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except Exception as error:
        if _is_interruption(error):
            return 130
        if log.isEnabledFor(logging.DEBUG):
            traceback.print_exc()
        if isinstance(error, AutoplaceError):
            fail(str(error))
            return error.exit_code
        again = " ".join(["ov-autoplace --debug", *arguments])
        fail(f"failed with {type(error).__name__}: {_first_line(error)} (for the traceback: {again})")
        return 1
    finally:
        log.removeHandler(handler)
    return 0


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: extension modules turn it into errors of their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _first_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else "no message"
