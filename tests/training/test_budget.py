"""Wall-clock budgets and Ctrl-C, on a clock of the test's own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from ov_autoplace._base.budget import Budget
from ov_autoplace.errors import OptionError
from ov_autoplace.training.finetuning.budget import TuningBudget, parse_seconds
from training.scripted_devices import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("120s", 120),
        ("5m", 300),
        ("1.5 h", 5400),
        ("800ms", 0.8),
        ("2 min", 120),
        (7, 7),
        ("1e2", 100),
    ],
)
def test_budgets_are_read_as_they_are_written(text, seconds):
    assert parse_seconds(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "0", "-5", "5 days", "inf", "nan", "1:30", "five"])
def test_what_is_no_time_is_refused_with_examples(text):
    with pytest.raises(OptionError, match=r"write a time above 0 like 90, 120s"):
        parse_seconds(text)


def test_what_would_not_end_in_time_is_not_allowed(clock):
    budget = Budget(10, clock=clock.perf_counter)
    assert budget.allows(7)
    clock.now += 5
    assert (budget.spent, budget.left) == (5, 5)
    assert budget.allows(3)
    assert not budget.allows(4)  # with the safety of 30 % it would end after 5.2 seconds
    clock.now += 100
    assert budget.left == 0
    assert not budget.allows(0.001)


def test_a_budget_counts_from_when_it_is_told_to(clock):
    assert Budget(10, clock.now - 4, clock.perf_counter).left == 6


def test_what_is_reserved_is_not_free_until_it_is_released(clock):
    budget = Budget(10, clock=clock.perf_counter)
    budget.reserve("end", 2)
    budget.reserve("end", 5)  # replaces
    assert budget.free == pytest.approx(10 - 1.3 * 5)
    assert not budget.allows(4)
    budget.release("end")
    assert budget.free == 10


def test_durations_are_the_longest_of_the_last_three(clock):
    budget = Budget(1000, clock=clock.perf_counter)
    assert budget.duration("save", unknown=7) == 7
    for seconds in (9, 1, 3, 2):
        budget.timed("save", lambda s=seconds: setattr(clock, "now", clock.now + s))
    assert budget.duration("save") == 3


_INTERRUPTED = """
import signal
from ov_autoplace.training.finetuning.budget import TuningBudget

def raises(action):
    try:
        action()
    except KeyboardInterrupt:
        return True
    return False

before = signal.getsignal(signal.SIGINT)
with TuningBudget(60) as budget:
    budget.check()
    signal.raise_signal(signal.SIGINT)
    assert budget.stop_requested
    assert raises(budget.check)
    assert raises(lambda: signal.raise_signal(signal.SIGINT))
assert signal.getsignal(signal.SIGINT) is before
print("as it should be")
"""


def test_the_first_ctrl_c_is_a_request_and_the_second_an_interrupt():
    """In a process of its own: where transformers has run models, raising SIGINT was seen to crash."""
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=60)
    assert done.stdout == "as it should be\n", done.stderr


def test_in_another_thread_nothing_is_changed():
    before = signal.getsignal(signal.SIGINT)
    seen = []

    def work() -> None:
        with TuningBudget(60):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [before]
