"""How commands that fail leave: objects for programs, sentences for people, nothing where nobody reads."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from refusals import DEVICES, FAST

from command_line import EXTRA_DEVICES, Command
from ov_autoplace.errors import ModelError, ProfilingError

COMMANDS = (
    "devices",
    "calibrate",
    "cache",
    "annotate",
    "bench",
    "explain",
    "finetune",
    "pretrain",
    "extension",
)


@pytest.mark.parametrize("command", COMMANDS)
def test_wrong_usage_of_any_command_is_an_object_for_programs(cli: Command, command: str) -> None:
    outcome = cli(command, "--no-such-option", "--json")

    report = json.loads(outcome.out)
    assert outcome.code == report["exit_code"] == 2
    assert set(report) == {"error", "kind", "exit_code"}
    assert report["error"] in outcome.err
    assert report["error"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("annotate",), "MODEL"),
        (("annotate", "missing.xml"), "missing.xml"),
        (("annotate", "missing.xml", "--mode", "psychic"), "psychic"),
        (("explain", "missing.xml", "--top", "many"), "--top"),
        (("bench", "missing.xml", "--seconds", "-1"), "--seconds"),
        (("devices", "--target", "abacus"), "abacus"),
        (("cache", "burn"), "burn"),
        (("cache", "rm", "nobody"), "nobody"),
        (("calibrate", "-o", "/proc/target.json"), "/proc"),
        (("no-such-command",), "no-such-command"),
    ],
)
def test_a_failure_is_an_object_for_programs(cli: Command, arguments: tuple[str, ...], word: str) -> None:
    plain, outcome = cli(*arguments), cli(*arguments, "--json")

    report = json.loads(outcome.out)
    assert word in report["error"]
    assert plain.out == ""
    assert plain.code == outcome.code == report["exit_code"] == 2


@pytest.mark.parametrize(
    ("error", "kind", "code"),
    [
        (ModelError("no model"), "ModelError", 2),
        (ProfilingError("the device failed"), "ProfilingError", 1),
        (KeyError("unforeseen"), "KeyError", 1),
        (KeyboardInterrupt(), "KeyboardInterrupt", 130),
    ],
)
def test_every_kind_of_error_keeps_its_exit_code(
    cli: Command, fail_with: Callable[..., None], error: BaseException, kind: str, code: int
) -> None:
    fail_with(error)
    outcome = cli("fail", "--json")

    report = json.loads(outcome.out)
    assert (outcome.code, report["exit_code"], report["kind"]) == (code, code, kind)


def test_a_report_that_cannot_be_written_leaves_one_object(
    cli: Command, small_ir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ov_autoplace.cli import annotate
    from ov_autoplace.errors import OutputError

    def fail(*_: object) -> None:
        raise OutputError("the disk is full")

    monkeypatch.setattr(annotate, "save_answer", fail)
    outcome = cli("annotate", small_ir, *FAST, "--trace", tmp_path / "run.json", "--json")

    assert json.loads(outcome.out) == {"error": "the disk is full", "kind": "OutputError", "exit_code": 2}


def shell(script: str, *arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    """A command line in a shell, where ``$RUN`` is the program."""
    environment = {**os.environ, "AUTOPLACE_EXTRA_DEVICES": EXTRA_DEVICES, **variables}
    environment["RUN"] = f"{sys.executable} -m ov_autoplace"
    return subprocess.run(
        ["bash", "-c", script, "bash", *map(str, arguments)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.parametrize("as_json", ["", "--json"])
def test_who_reads_the_first_line_only_is_left_in_peace(small_ir: Path, as_json: str) -> None:
    done = shell(
        f'$RUN explain "$1" -d XCPU,CPU --mode zero-shot {as_json} | head -1; exit ${{PIPESTATUS[0]}}',
        small_ir,
    )

    assert done.stdout.count("\n") == 1
    assert done.stderr == ""
    assert done.returncode in (0, 1)  # whether the pipe is closed before all is written is up to the system


def test_closed_streams_are_no_reason_to_fail(small_ir: Path) -> None:
    for closed in (">&-", ">&- 2>&- <&-"):
        done = shell(f'$RUN annotate "$1" -d XCPU,CPU --mode zero-shot {closed}', small_ir)
        assert done.returncode == 0, done.stderr
        assert "Traceback" not in done.stderr


def test_a_locale_without_unicode_gets_what_it_can_show(small_ir: Path) -> None:
    done = shell(
        '$RUN explain "$1" -d XCPU,CPU --mode zero-shot', small_ir, PYTHONUTF8="0", PYTHONIOENCODING="ascii"
    )

    assert done.returncode == 0, done.stderr
    assert "first" in done.stdout
    done.stdout.encode("ascii")


def test_json_of_a_locale_without_unicode_is_the_same_object(cli: Command, small_ir: Path) -> None:
    command = '$RUN explain "$1" -d XCPU,CPU --mode zero-shot --json'
    narrow = shell(command, small_ir, PYTHONIOENCODING="ascii")

    assert json.loads(narrow.stdout) == cli("explain", small_ir, *FAST, "--json").json()


def test_nothing_is_coloured_where_nobody_wants_it(cli: Command, small_ir: Path) -> None:
    assert "\x1b" not in cli("explain", small_ir, *DEVICES, "--mode", "zero-shot").out


def test_a_full_disk_that_results_are_printed_to_is_told() -> None:
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "ov_autoplace", "devices"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            timeout=120,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "error: cannot write the results: no space is left on the disk\n"
