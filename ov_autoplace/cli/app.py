"""The commands as one program, and the one place where errors become sentences and exit codes."""

from __future__ import annotations

import errno
import logging
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

import typer

from ov_autoplace._version import __version__
from ov_autoplace.cli import (
    annotate,
    application,
    bench,
    benchmark_app,
    cache,
    calibrate,
    collect,
    compare,
    devices,
    explain,
    extension,
    finetune,
    fleet,
    pretrain,
)
from ov_autoplace.cli.console import fail, log_handler, make_writable, print_json, print_sentence
from ov_autoplace.cli.examples import epilog
from ov_autoplace.errors import AutoplaceError

__all__ = ["app", "run"]

_INTERRUPTED = 130

app = typer.Typer(
    name="ov-autoplace",
    help="Decides how OpenVINO models run on a computer, and proves it by measuring that nothing is slower.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # whose tables take ten lines for an option where a terminal has 80 columns
)


def _command(name: str, short_help: str, function: Callable[..., None]) -> None:
    app.command(name, short_help=short_help, epilog=epilog(name))(function)


_command("devices", "What this machine has.", devices.devices)
_command("calibrate", "Measure this machine once: a target profile.", calibrate.calibrate)
_command("collect", "Measure what operations cost here, to learn from.", collect.collect)
_command("cache", "What was measured of transfers here, and is kept.", cache.cache)
_command("annotate", "Decide, and write the model with its placement.", annotate.annotate)
_command("bench", "Run devices, AUTO, HETERO and AUTOPLACE in turns.", bench.bench)
app.add_typer(
    application.application,
    name="application",
    short_help="Several models on one machine.",
    epilog=epilog("application"),
)
_command("explain", "Which op runs where, what it costs, and why.", explain.explain)
_command("compare", "Two --json answers side by side.", compare.compare)
_command("finetune", "Train a network on latencies of your own models.", finetune.finetune)
_command("pretrain", "Train the network of costs.", pretrain.pretrain)
app.add_typer(
    fleet.fleet,
    name="fleet",
    short_help="The same on machines somewhere on the network, by Ray.",
    epilog=epilog("fleet"),
)
_command("extension", "Where the library for other programs is.", extension.extension)
_command("build-native", "Build that library for another OpenVINO.", extension.build)
app.command(
    "benchmark_app",
    short_help="OpenVINO's own, which knows -d AUTOPLACE here.",
    context_settings=benchmark_app.CONTEXT,
    add_help_option=False,
)(benchmark_app.benchmark_app)


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
    make_writable()
    log = logging.getLogger("ov_autoplace")
    handler = log_handler()
    log.addHandler(handler)
    try:
        code = _answered(arguments, log)
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        # Who reads has enough, like `| head -1`; what is left goes nowhere, when Python ends too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    finally:
        log.removeHandler(handler)


def _answered(arguments: list[str], log: logging.Logger) -> int:
    """Run a command; whatever keeps it from ending well is a sentence, and an object for ``--json``."""
    as_json = _asks_for_json(arguments)
    try:
        # Typer's own pages about wrong usage say neither which value was wrong nor anything to a program.
        left_with = app(args=arguments, prog_name="ov-autoplace", standalone_mode=False)
        code = left_with if isinstance(left_with, int) else 0
    except SystemExit as leaving:
        code = leaving.code if isinstance(leaving.code, int) else int(leaving.code is not None)
    except BrokenPipeError:
        raise
    except Exception as error:
        if type(error).__name__ == "NoArgsIsHelpError":
            error.show()  # type: ignore[attr-defined]  # it is the help
            return 2
        failure = _failure_of(error, arguments)
        if failure.exit_code != _INTERRUPTED:
            if log.isEnabledFor(logging.DEBUG):
                traceback.print_exc()
            fail(failure.sentence)
        if as_json:
            print_json({"error": failure.sentence, "kind": failure.kind, "exit_code": failure.exit_code})
        return failure.exit_code
    if as_json and code == _INTERRUPTED:
        print_json({"error": "stopped by Ctrl-C", "kind": "KeyboardInterrupt", "exit_code": code})
    return code


class _Failure(NamedTuple):
    """Why a command did not end well."""

    sentence: str
    kind: str
    exit_code: int


def _failure_of(error: Exception, arguments: Sequence[str]) -> _Failure:
    if _is_interruption(error):
        return _Failure("stopped by Ctrl-C", "KeyboardInterrupt", _INTERRUPTED)
    kind = type(error).__name__
    if isinstance(error, AutoplaceError):
        return _Failure(str(error), kind, error.exit_code)
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        where = f"{error.filename}" if error.filename else "the results"
        return _Failure(f"cannot write {where}: no space is left on the disk", kind, 1)
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        # Wrong usage, in words of typer's, whose base class has moved from one of its releases to the next.
        return _Failure(_usage(error), kind, int(error.exit_code))
    again = " ".join(["ov-autoplace --debug", *arguments])
    return _Failure(f"failed with {kind}: {_first_line(str(error))} (for the traceback: {again})", kind, 1)


def _usage(error: Any) -> str:
    """What is wrong with the command line, and where the right one is shown."""
    said = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    # Of a number that is none, some releases of typer do not say what it was.
    causes: list[dict[str, Any]] = getattr(error.__cause__, "errors", list)()
    given = repr(causes[0].get("input")) if causes else ""
    shown = f"{said}; it is {given}" if given and given not in said else said
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "ov-autoplace"
    return f"{shown[:1].lower()}{shown[1:]} (see {command} --help)"


def _asks_for_json(arguments: Sequence[str]) -> bool:
    """Whether a program reads what is printed; everything behind ``benchmark_app`` is that command's own."""
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    command = next((word for word in own if not word.startswith("-")), "")
    return "--json" in own and command != "benchmark_app"


def _is_interruption(error: BaseException | None) -> bool:
    """Whether Ctrl-C is behind an error: extension modules turn it into errors of their own."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False


def _first_line(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[0] if lines else "no message"
