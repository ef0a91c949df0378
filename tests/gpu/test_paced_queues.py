"""Queues of the virtual GPU whose kernels take a given time: times, order, data, and the processor."""

from __future__ import annotations

from pathlib import Path

import paced_queues
import pytest
from paced_programs import SHIM, in_process
from paced_queues import COUNT, OTHER

pytestmark = SHIM


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("paced") / "kernels.txt"
    path.write_text(f"# of tests\ncou?t {COUNT / 1000}\n\n* {OTHER / 1000}  # all others\n", encoding="utf-8")
    return f"table:{path}"


def test_kernels_take_their_time_one_after_the_other_and_hardly_any_of_the_processor(table: str) -> None:
    found = in_process(paced_queues.kernels_and_processor, table)
    expected = [COUNT if i % 2 else OTHER for i in range(100)]
    assert [end - start for start, end in found["times"]] == expected
    for (_, end), (start, _) in zip(found["times"][:-1], found["times"][1:], strict=True):
        assert start == end
    assert found["times"][0][0] >= found["start"]
    assert found["end"] >= found["times"][-1][1]
    assert found["wall"] >= sum(expected)
    assert (found["status before"], found["status after"]) == (2, 0)
    assert found["enqueuing"] < 0.5 * found["wall"]
    assert found["processor"] < 0.2 * found["wall"]


def test_what_waits_returns_when_the_work_has_ended_and_not_before(table: str) -> None:
    late = in_process(paced_queues.blocking_calls, table)
    assert set(late) == {"read", "wait", "finish"}
    assert min(late.values()) >= 0


@pytest.mark.smoke
def test_copies_move_data_and_memory_starts_as_zeros(table: str) -> None:
    assert in_process(paced_queues.copies, table) == {
        "new": "00" * 16,
        "copied": "0123456789abcdef",
        "filled": "wxyz" * 4,
        "new unified": "00" * 16,
        "status": 0,
        "unified": "unified memory!!",
        "unknown": True,  # what would pass by the paced queues is not there
    }


def test_commands_behind_a_user_event_wait_for_it_in_all_queues(table: str) -> None:
    found = in_process(paced_queues.user_events, table)
    assert found["waiting"] == [2, 2, 2, 2]
    assert found["data"] == "late"
    write, kernel, elsewhere = found["times"]
    assert write[0] >= found["before"]
    assert kernel[0] >= write[1]
    assert elsewhere[0] >= kernel[1]
    assert elsewhere[1] - elsewhere[0] == OTHER
    assert found["heard"] == [0]


def test_a_failed_event_ends_what_names_it_and_nothing_else(table: str) -> None:
    found = in_process(paced_queues.failing_events, table)
    assert found["raised"] == "clWaitForEvents -> -14"
    assert found["statuses"] == [-5, -14, -14, 0]
    assert found["end"][1] - found["end"][0] == COUNT


@pytest.mark.smoke
def test_wrong_handles_are_refused(table: str) -> None:
    assert in_process(paced_queues.wrong_handles, table) == [
        "clWaitForEvents -> -58",
        "clGetEventInfo -> -58",
        "clEnqueueNDRangeKernel -> -57",
        "clSetUserEventStatus -> -58",
        "clFinish -> -36",
    ]


def test_a_barrier_orders_what_an_out_of_order_queue_does_not(table: str) -> None:
    found = in_process(paced_queues.out_of_order, table)
    assert (found["before"], found["held back"]) == (2, 2)
    held, barrier, after = found["times"]
    assert barrier[1] >= held[1]
    assert after[0] >= barrier[1]


def test_kernels_of_several_queues_and_threads_take_turns_on_the_device(table: str) -> None:
    found = in_process(paced_queues.many_threads, table)
    assert found["faults"] == []
    assert found["complete"]
    assert len(found["kernels"]) == 400
    for (_, end), (start, _) in zip(found["kernels"][:-1], found["kernels"][1:], strict=True):
        assert start >= end
    assert found["wall"] >= 400 * (COUNT + OTHER)


def test_after_its_first_runs_a_kernel_takes_a_multiple_of_the_shortest() -> None:
    lengths = [end - start for start, end in in_process(paced_queues.first_runs, "factor:2.5")]
    assert min(lengths) > 0
    expected = int(2.5 * min(lengths[:3]))
    assert lengths[3:] == [expected] * 3


def test_recorded_times_are_a_table_that_paces_kernels(tmp_path: Path) -> None:
    path = tmp_path / "recorded.txt"
    real = in_process(paced_queues.first_runs, f"record:{path}")
    lines = [line.split() for line in path.read_text(encoding="utf-8").splitlines() if line[0] != "#"]
    assert [name for name, _ in lines] == ["count"]
    recorded = round(1000 * float(lines[0][1]))
    # What the host saw is longer than what the runtime says the kernel took.
    assert recorded >= min(end - start for start, end in real)
    paced = [end - start for start, end in in_process(paced_queues.first_runs, f"table:{path}")]
    assert paced == [pytest.approx(recorded, abs=1)] * 6
