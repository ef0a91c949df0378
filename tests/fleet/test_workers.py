"""Units of work on a cluster whose nodes die, hang, join, or are somebody else's at the moment."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ov_autoplace.fleet.host_lock import boot_id, host_lock
from ov_autoplace.fleet.kept import KeptAnswers
from ov_autoplace.fleet.members import Fleet
from ov_autoplace.fleet.units import Unit
from ov_autoplace.fleet.workers import Workers

pytestmark = pytest.mark.fleet


def units(function: str, *requests: Any, **fields: Any) -> list[Unit]:
    return [
        Unit(f"{i}", f"unit_functions:{function}", request, **fields) for i, request in enumerate(requests)
    ]


def kind_named(machine: str, machines: Fleet) -> str:
    """The kind of a machine that has just joined."""
    while True:
        found = [m.kind.name for m in machines.members() if m.machine == machine and m.kind is not None]
        if found:
            return found[0]
        time.sleep(0.2)


@pytest.mark.smoke
def test_answers_come_in_the_order_of_the_units(machines: Fleet) -> None:
    with Workers(machines.processor_places, limit_seconds=60) as workers:
        outcomes = workers.run(units("answer", "b", "a", "d", "c", "e"))

    assert [outcome.answer for outcome in outcomes.values()] == ["b", "a", "d", "c", "e"]
    assert {outcome.machine for outcome in outcomes.values()} <= {"alpha", "beta", "gamma"}


def test_processes_that_measure_nothing_stay_for_the_next_call(machines: Fleet) -> None:
    with Workers(lambda: machines.processor_places(most=1), limit_seconds=60) as workers:
        first = workers.run(units("where", 0))["0"].answer
        second = workers.run(units("where", 0))["0"].answer

    assert first == second


def test_no_two_measure_at_once_on_one_computer(machines: Fleet) -> None:
    with Workers(machines.places, limit_seconds=60) as workers:
        outcomes = workers.run(units("interval", 0.4, 0.4, 0.4, 0.4))

    spans = sorted(outcome.answer for outcome in outcomes.values())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_who_measures_outside_the_cluster_is_waited_for(machines: Fleet) -> None:
    until: list[float] = []

    def let_go(lock: ExitStack) -> None:
        until.append(time.monotonic())
        lock.close()

    with Workers(machines.places, limit_seconds=60) as workers, ExitStack() as lock:
        while not lock.enter_context(host_lock(boot_id())):
            time.sleep(0.1)  # the process of the test before has not ended yet
        threading.Timer(4, let_go, [lock]).start()
        outcome = workers.run(units("interval", 0.1))["0"]

    assert outcome.answer[0] >= until[0]
    assert not outcome.faults


@pytest.mark.parametrize("fault", ["die", "fail", "hang"])
def test_what_goes_wrong_on_one_machine_is_done_on_another(
    machines: Fleet, tmp_path: Path, fault: str
) -> None:
    request = {"mark": str(tmp_path / "mark"), "fault": fault}
    with Workers(machines.places, limit_seconds=4) as workers:
        outcome = workers.run(units("once_only", request))["0"]

    assert outcome.answer == "second"
    assert outcome.tries == 2
    assert len(outcome.faults) == 1
    expected = {"die": "process ended", "fail": "the device does not answer", "hang": "took longer than 4 s"}
    assert expected[fault] in outcome.faults[0]


@pytest.mark.smoke
def test_what_the_caller_has_to_mend_is_not_tried_elsewhere(machines: Fleet, tmp_path: Path) -> None:
    request = {"mark": str(tmp_path / "mark"), "fault": "refuse"}
    with Workers(machines.places, limit_seconds=30) as workers:
        outcome = workers.run(units("once_only", request))["0"]

    assert outcome.failure == "no such thing"
    assert outcome.user_error
    assert outcome.tries == 1


def test_a_unit_of_a_kind_that_nobody_is_of_is_named(machines: Fleet) -> None:
    with Workers(machines.places, limit_seconds=30, patience_seconds=1) as workers:
        outcome = workers.run(units("answer", 1, kind="cray-1"))["0"]

    assert "no other machine" in outcome.failure


def test_a_series_runs_on_as_many_machines(machines: Fleet) -> None:
    with Workers(machines.places, limit_seconds=30) as workers:
        outcomes = workers.run(units("answer", 1, 2, 3, series="s"))

    assert sorted(outcome.machine for outcome in outcomes.values()) == ["alpha", "beta", "gamma"]


def test_a_node_that_dies_with_its_unit_is_made_up_for_by_one_that_joins(
    machines: Fleet, joined: Any, extra_node: Any, tmp_path: Path
) -> None:
    node = extra_node("mortal", "WCPU=CPU")
    kind = kind_named("mortal", machines)
    mark = tmp_path / "mark"
    replaced = []

    def kill_it(done: int, total: int, text: str) -> None:
        if mark.exists() and not replaced:
            replaced.append(extra_node("heir", "WCPU=CPU"))
            joined.remove(node, allow_graceful=False)

    request = {"mark": str(mark), "fault": "hang"}
    with Workers(machines.places, limit_seconds=60, patience_seconds=60) as workers:
        outcome = workers.run(units("once_only", request, kind=kind), progress=kill_it)["0"]

    assert outcome.answer == "second"
    assert outcome.machine == "heir"
    assert "ended" in outcome.faults[0]


def test_a_slow_machine_is_overtaken(machines: Fleet, tmp_path: Path) -> None:
    quick = units("answer", 1, 2, 3)
    slow = Unit("slow", "unit_functions:once_only", {"mark": str(tmp_path / "mark"), "fault": "hang"})
    with Workers(machines.processor_places, limit_seconds=120) as workers:
        begin = time.monotonic()
        outcome = workers.run([slow, *quick])["slow"]

    assert outcome.answer == "second"
    assert not outcome.faults
    assert time.monotonic() - begin < 60


def test_a_process_that_was_overtaken_is_of_use_again_when_it_is_done(
    machines: Fleet, tmp_path: Path
) -> None:
    """Else a process that takes long because it is new would be ended each time."""
    mark = tmp_path / "mark"
    slow = Unit("slow", "unit_functions:slow_once", str(mark))
    with Workers(lambda: machines.processor_places(most=2), limit_seconds=120) as workers:
        workers.run(units("where", 0.5, 0.5))  # both have started
        overtaker = workers.run([slow, *units("where", 0.1, 0.1)])["slow"].answer
        assert overtaker != int(mark.read_text())
        seen, end = set(), time.monotonic() + 60
        while len(seen) < 2 and time.monotonic() < end:
            seen |= {outcome.answer for outcome in workers.run(units("where", 0.5, 0.5)).values()}

    assert seen == {overtaker, int(mark.read_text())}


def test_answers_that_were_kept_are_not_asked_for_again(machines: Fleet, tmp_path: Path) -> None:
    request = {"mark": str(tmp_path / "mark"), "fault": "fail"}
    with Workers(machines.places, limit_seconds=30) as workers:
        first = workers.run(
            units("once_only", request), KeptAnswers(tmp_path / "kept", {"a": 1}, resume=False)
        )
        again = workers.run(
            [Unit("0", "unit_functions:none", None)], KeptAnswers(tmp_path / "kept", {"a": 1}, resume=True)
        )

    assert first["0"].answer == again["0"].answer == "second"
    assert again["0"].machine == first["0"].machine
