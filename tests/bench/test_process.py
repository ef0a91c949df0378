"""Pieces of the suite in processes of their own."""

from __future__ import annotations

import json
import os
import signal
import time

from harness import process
from harness.process import CACHE_VARIABLE, Failure, Pieces, in_child, seconds_since_start


def test_a_piece_gives_what_its_function_gives():
    assert in_child(json.loads, {"s": "[1, 2]"}) == [1, 2]


def test_an_error_is_recorded_with_its_text():
    outcome = in_child(json.loads, {"s": "oops"})
    assert isinstance(outcome, Failure)
    assert "JSONDecodeError" in outcome.reason


def test_a_crash_is_tried_once_more_and_recorded(capfd):
    outcome = in_child(os.abort, {})
    assert outcome == Failure("died by SIGABRT")
    assert "attempt 2 died by SIGABRT" in capfd.readouterr().err


def test_a_piece_that_hangs_is_ended():
    assert in_child(signal.pause, {}, timeout=1.0) == Failure("took longer than 1 s")


def test_variables_reach_the_process():
    assert in_child(os.getenv, {"key": "OV_AUTOPLACE_TEST"}, {"OV_AUTOPLACE_TEST": "seen"}) == "seen"


def test_a_finished_piece_is_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    first = in_child(time.time, {})
    assert in_child(time.time, {}) == first
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failed_piece_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    in_child(json.loads, {"s": "oops"})
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_kept(monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    calls = []
    monkeypatch.setattr(process, "_call", lambda *_: (calls.append(1), False))
    in_child(time.time, {})
    in_child(time.time, {})
    assert len(calls) == 2


def test_arguments_may_be_larger_than_a_command_line():
    long = "x" * 1_000_000
    assert in_child(json.loads, {"s": json.dumps(long)}) == long


def test_the_age_of_a_process_counts_the_start_of_python():
    assert in_child(seconds_since_start, {}) > 0.05


class Calls:
    """Gives the limits that pieces were called with."""

    def __init__(self) -> None:
        self.limits: list[float | None] = []

    def __call__(self, function, arguments, timeout):
        self.limits.append(timeout)
        return Failure("crashed") if arguments.get("fails") else "done"


def test_a_piece_has_its_own_limit_while_enough_time_is_left():
    calls = Calls()
    assert Pieces(60.0, 1e6, calls)("a", time.time) == "done"
    assert Pieces(call=calls)("a", time.time) == "done"
    assert calls.limits == [60.0, None]


def test_a_piece_gets_what_is_left_where_that_is_less():
    calls = Calls()
    assert Pieces(1e9, 1e6, calls)("a", time.time) == "done"
    assert calls.limits[0] <= 1e6


def test_nothing_is_started_after_the_end_and_what_fails_is_a_remark():
    calls = Calls()
    pieces = Pieces(60.0, -1.0, calls)
    assert pieces("late", time.time) is None
    assert calls.limits == []
    assert "late: not measured: no time was left for it" in pieces.remarks[0]
    pieces = Pieces(call=calls)
    assert pieces("first", time.time, fails=True) is None
    assert pieces("second", time.time) == "done"
    assert pieces.remarks == ["first: not measured: crashed"]
