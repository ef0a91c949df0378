"""Units of work on a cluster whose nodes die, hang, join, or are somebody else's at the moment."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ov_autoplace.fleet.host_lock import boot_id, host_lock
from ov_autoplace.fleet.kept import KeptAnswers
from ov_autoplace.fleet.members import Fleet
from ov_autoplace.fleet.units import Place, Unit
from ov_autoplace.fleet.workers import Workers

pytestmark = pytest.mark.fleet


def units(function: str, *requests: Any, **fields: Any) -> list[Unit]:
    return [
        Unit(f"{i}", f"unit_functions:{function}", request, **fields) for i, request in enumerate(requests)
    ]


def apart(machines: Fleet) -> list[Place]:
    """Its machines as if each was a computer of its own."""
    return [replace(place, host=place.machine) for place in machines.places()]


def kind_named(machine: str, machines: Fleet) -> str:
    """The kind of a machine that has just joined."""
    while True:
        found = [m.kind.name for m in machines.members() if m.machine == machine and m.kind is not None]
        if found:
            return found[0]
        time.sleep(0.2)


@pytest.mark.smoke
def test_answers_come_in_the_order_of_the_units(machines: Fleet) -> None:
    workers = Workers(lambda: apart(machines), limit_seconds=60)
    outcomes = workers.run(units("answer", "b", "a", "d", "c", "e"))

    assert [outcome.answer for outcome in outcomes.values()] == ["b", "a", "d", "c", "e"]
    assert {outcome.machine for outcome in outcomes.values()} <= {"alpha", "beta", "gamma"}


def test_no_two_measure_at_once_on_one_computer(machines: Fleet) -> None:
    workers = Workers(machines.places, limit_seconds=60)
    outcomes = workers.run(units("interval", 0.4, 0.4, 0.4, 0.4))

    spans = sorted(outcome.answer for outcome in outcomes.values())
    assert all(end <= begin for (_, end), (begin, _) in pairwise(spans))


def test_who_measures_outside_the_cluster_is_waited_for(machines: Fleet) -> None:
    until: list[float] = []

    def let_go(lock: ExitStack) -> None:
        until.append(time.monotonic())
        lock.close()

    workers = Workers(machines.places, limit_seconds=60)
    with ExitStack() as lock:
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
    workers = Workers(machines.places, limit_seconds=4)
    outcome = workers.run(units("once_only", request))["0"]

    assert outcome.answer == "second"
    assert outcome.tries == 2
    assert len(outcome.faults) == 1
    expected = {"die": "process ended", "fail": "the device does not answer", "hang": "took longer than 4 s"}
    assert expected[fault] in outcome.faults[0]


@pytest.mark.smoke
def test_what_the_caller_has_to_mend_is_not_tried_elsewhere(machines: Fleet, tmp_path: Path) -> None:
    request = {"mark": str(tmp_path / "mark"), "fault": "refuse"}
    workers = Workers(machines.places, limit_seconds=30)
    outcome = workers.run(units("once_only", request))["0"]

    assert outcome.failure == "no such thing"
    assert outcome.user_error
    assert outcome.tries == 1


def test_a_unit_of_a_kind_that_nobody_is_of_is_named(machines: Fleet) -> None:
    workers = Workers(machines.places, limit_seconds=30, patience_seconds=1)
    outcome = workers.run(units("answer", 1, kind="cray-1"))["0"]

    assert "no other machine" in outcome.failure


def test_a_series_runs_on_as_many_machines(machines: Fleet) -> None:
    workers = Workers(machines.places, limit_seconds=30)
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
    workers = Workers(machines.places, limit_seconds=60, patience_seconds=60)
    outcome = workers.run(units("once_only", request, kind=kind), progress=kill_it)["0"]

    assert outcome.answer == "second"
    assert outcome.machine == "heir"
    assert "ended" in outcome.faults[0]


def test_a_slow_machine_is_overtaken(machines: Fleet, tmp_path: Path) -> None:
    quick = units("answer", 1, 2, 3)
    slow = Unit("slow", "unit_functions:once_only", {"mark": str(tmp_path / "mark"), "fault": "hang"})
    workers = Workers(lambda: apart(machines), limit_seconds=120)
    outcome = workers.run([slow, *quick])["slow"]

    assert outcome.answer == "second"
    assert not outcome.faults


def test_answers_that_were_kept_are_not_asked_for_again(machines: Fleet, tmp_path: Path) -> None:
    request = {"mark": str(tmp_path / "mark"), "fault": "fail"}
    workers = Workers(machines.places, limit_seconds=30)
    first = workers.run(units("once_only", request), KeptAnswers(tmp_path / "kept", {"a": 1}, resume=False))
    again = workers.run(
        [Unit("0", "unit_functions:none", None)], KeptAnswers(tmp_path / "kept", {"a": 1}, resume=True)
    )

    assert first["0"].answer == again["0"].answer == "second"
    assert again["0"].machine == first["0"].machine
