"""A run ends when its time does."""

from __future__ import annotations

import time

import bounded_process
from bounded_process import child_until
from suite_process import Failure


def limits_of(monkeypatch, left, timeout):
    """The timeout that the child was given, and the outcome."""
    given = []

    def in_child(function, arguments, timeout):
        given.append(timeout)
        return "done"

    monkeypatch.setattr(bounded_process, "in_child", in_child)
    return given, child_until(time.perf_counter() + left, timeout, "module:function", {})


def test_a_piece_has_its_own_limit_while_enough_time_is_left(monkeypatch):
    assert limits_of(monkeypatch, left=1e6, timeout=60.0) == ([60.0], "done")


def test_a_piece_gets_what_is_left_where_that_is_less(monkeypatch):
    (given,), outcome = limits_of(monkeypatch, left=1e6, timeout=1e9)
    assert given <= 1e6
    assert outcome == "done"


def test_nothing_is_started_after_the_end(monkeypatch):
    given, outcome = limits_of(monkeypatch, left=-1.0, timeout=60.0)
    assert given == []
    assert isinstance(outcome, Failure)
