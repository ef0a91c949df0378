"""Pieces of the suite in processes of their own."""

from __future__ import annotations

import suite_process
from suite_process import CACHE_VARIABLE, Failure, in_child


def test_a_piece_gives_what_its_function_gives():
    assert in_child("json:loads", {"s": "[1, 2]"}) == [1, 2]


def test_an_error_is_recorded_with_its_text():
    outcome = in_child("json:loads", {"s": "oops"})
    assert isinstance(outcome, Failure)
    assert "JSONDecodeError" in outcome.reason


def test_a_crash_is_tried_once_more_and_recorded(capfd):
    outcome = in_child("os:abort", {})
    assert outcome == Failure("died by SIGABRT")
    assert "attempt 2 died by SIGABRT" in capfd.readouterr().err


def test_a_piece_that_hangs_is_ended():
    assert in_child("signal:pause", {}, timeout=1.0) == Failure("took longer than 1 s")


def test_variables_reach_the_process():
    assert in_child("os:getenv", {"key": "OV_AUTOPLACE_TEST"}, {"OV_AUTOPLACE_TEST": "seen"}) == "seen"


def test_a_finished_piece_is_not_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    first = in_child("time:time", {})
    assert in_child("time:time", {}) == first
    assert len(list(tmp_path.iterdir())) == 1


def test_a_failed_piece_is_done_again(tmp_path, monkeypatch):
    monkeypatch.setenv(CACHE_VARIABLE, str(tmp_path))
    in_child("json:loads", {"s": "oops"})
    assert list(tmp_path.iterdir()) == []


def test_without_a_folder_nothing_is_kept(monkeypatch):
    monkeypatch.delenv(CACHE_VARIABLE, raising=False)
    calls = []
    monkeypatch.setattr(suite_process, "_call", lambda *_: (calls.append(1), False))
    in_child("time:time", {})
    in_child("time:time", {})
    assert len(calls) == 2
