"""Widths of CPUs: what the operating system says of the cores, and what a user's settings leave to choose."""

from __future__ import annotations

import os
from pathlib import Path

import openvino as ov
import pytest
from openvino import properties

from ov_autoplace.devices.widths import Cores, Width, chooses_threads, widths_here, widths_of
from ov_autoplace.errors import DeviceError


def machine(folder: Path, siblings: list[str], **lists: str) -> Path:
    """The root of a file system; ``siblings`` holds the hyper-threads of each processor's core."""
    for number, text in enumerate(siblings):
        topology = folder / f"sys/devices/system/cpu/cpu{number}/topology"
        topology.mkdir(parents=True)
        (topology / "thread_siblings_list").write_text(text + "\n")
    for name, text in lists.items():
        (folder / "sys/devices" / name).mkdir()
        (folder / "sys/devices" / name / "cpus").write_text(text + "\n")
    return folder


def cores(folder: Path, processors: range | set[int], quota: str = "max 100000") -> Cores:
    told = folder / "proc/self"
    told.mkdir(parents=True, exist_ok=True)
    (told / "cgroup").write_text("0::/\n")
    (told / "mountinfo").write_text("30 23 0:26 / /groups rw - cgroup2 cgroup2 rw\n")
    (folder / "groups").mkdir(exist_ok=True)
    (folder / "groups/cpu.max").write_text(quota + "\n")
    return Cores(frozenset(processors), folder)


def texts(found: Cores) -> list[str]:
    return [str(width) for width in found.widths]


def test_widths_are_powers_of_two_below_the_number_of_cores(tmp_path):
    folder = machine(tmp_path, [str(n) for n in range(12)])
    assert texts(cores(folder, range(12))) == ["1", "2", "4", "8"]
    assert texts(cores(folder, range(8))) == ["1", "2", "4"]
    assert texts(cores(folder, range(2))) == ["1"]


def test_a_process_that_may_use_one_core_has_no_width_to_choose(tmp_path):
    folder = machine(tmp_path, ["0-1", "0-1", "2-3", "2-3"])
    assert texts(cores(folder, {2, 3})) == []
    assert texts(cores(folder, {1, 2})) == ["1"]


def test_hyper_threads_of_one_core_count_once(tmp_path):
    folder = machine(tmp_path, ["0,4", "1,5", "2,6", "3,7"] * 2)
    assert cores(folder, range(8)).all == 4
    assert texts(cores(folder, range(8))) == ["1", "2"]


@pytest.mark.parametrize(
    ("quota", "usable", "widths"),
    [
        ("300000 100000", 3, ["1", "2", "3"]),
        ("150000 100000", 1, ["1", "2"]),
        ("250000 100000", 2, ["1", "2", "3"]),
        ("100000 100000", 1, ["1"]),
        ("10000 100000", 1, ["1"]),
        ("800000 100000", 8, ["1", "2", "4"]),
        ("790000 100000", 7, ["1", "2", "4", "7"]),
        ("9900000 100000", 8, ["1", "2", "4"]),
        ("max 100000", 8, ["1", "2", "4"]),
        ("nonsense", 8, ["1", "2", "4"]),
    ],
)
def test_the_time_that_a_container_may_use_is_a_width(tmp_path, quota, usable, widths):
    found = cores(machine(tmp_path, [str(n) for n in range(8)]), range(8), quota)
    assert found.usable == usable
    assert texts(found) == widths


@pytest.mark.alone
@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="there is no other core")
def test_a_mask_that_changes_while_the_process_runs_is_read_when_it_is_needed() -> None:
    before = os.sched_getaffinity(0)
    try:
        for processor in before:
            os.sched_setaffinity(0, {processor})
            assert Cores.of_this_process().processors == {processor}
    finally:
        os.sched_setaffinity(0, before)
    assert Cores.of_this_process().processors == before


def test_cores_need_not_be_the_first_ones(tmp_path: Path) -> None:
    folder = machine(tmp_path, [str(n) for n in range(8)], cpu_core="0-3", cpu_atom="4-7")
    assert cores(folder, {1, 3, 6}).all == 3
    assert dict(cores(folder, {1, 3, 6}).of_kind) == {"P": 2, "E": 1}
    assert texts(cores(folder, {1, 3, 6}, "100000 100000")) == ["1"]


def test_performance_and_efficiency_cores_are_told_apart(tmp_path):
    # Two performance cores of two hyper-threads each and four efficiency cores.
    folder = machine(
        tmp_path, ["0-1", "0-1", "2-3", "2-3", "4", "5", "6", "7"], cpu_core="0-3", cpu_atom="4-7"
    )
    assert texts(cores(folder, range(8))) == ["1", "2", "2P", "2E", "4", "4E"]
    assert dict(cores(folder, range(8)).of_kind) == {"P": 2, "E": 4}
    assert texts(cores(folder, {4, 5, 6, 7})) == ["1", "2"]


def test_without_anything_told_each_processor_is_a_core(tmp_path):
    assert texts(Cores(frozenset(range(4)), tmp_path)) == ["1", "2"]


@pytest.mark.parametrize(
    "width", [Width(1), Width(6), Width(4, "P"), Width(16, "E"), Width(1, in_caller=True)]
)
def test_a_width_survives_its_text(width):
    assert Width.parse(str(width)) == width


@pytest.mark.parametrize("text", ["", "0", "-1", "1.5", "2X", "2+caller", "4P+caller", "9" * 9, "1 "])
def test_what_is_no_width_is_refused(text):
    with pytest.raises(DeviceError, match="is no width; one reads like"):
        Width.parse(text)


@pytest.mark.parametrize(
    ("settings", "chooses"),
    [
        ({}, False),
        ({"INFERENCE_PRECISION_HINT": "f32", "CACHE_DIR": "x"}, False),
        ({"PERFORMANCE_HINT": "LATENCY"}, False),
        ({"PERFORMANCE_HINT": properties.hint.PerformanceMode.LATENCY}, False),
        ({"PERFORMANCE_HINT": properties.hint.PerformanceMode.THROUGHPUT}, True),
        ({"PERFORMANCE_HINT": "CUMULATIVE_THROUGHPUT"}, True),
        ({"INFERENCE_NUM_THREADS": 2}, True),
        ({"NUM_STREAMS": "1"}, True),
        ({"ENABLE_CPU_PINNING": True}, True),
        ({"SCHEDULING_CORE_TYPE": "PCORE_ONLY"}, True),
    ],
)
def test_what_a_user_says_of_threads_is_told(settings, chooses):
    assert chooses_threads(settings) is chooses


def test_openvino_takes_the_properties_of_every_width():
    core = ov.Core()
    model = ov.Model([ov.opset13.relu(x := ov.opset13.parameter([1, 8], float))], [x])
    for width in (Width(1), Width(1, in_caller=True), *widths_here(core, "CPU")):
        compiled = core.compile_model(model, "CPU", width.properties)
        threads = compiled.get_property("INFERENCE_NUM_THREADS")
        # With no streams OpenVINO tells of no threads; the calling thread is the one.
        assert threads == (0 if width.in_caller else width.threads)
        assert compiled.get_property("OPTIMAL_NUMBER_OF_INFER_REQUESTS") == 1


def test_a_profile_tells_widths_by_its_threads():
    assert [width.threads for width in widths_of(16)] == [1, 2, 4, 8]
    assert widths_of(1) == widths_of(0) == ()


def test_models_get_a_hyper_thread_each_of_cores_of_their_own(tmp_path):
    folder = machine(tmp_path, ["0,4", "1,5", "2,6", "3,7"] * 2)
    whole = cores(folder, range(8))
    assert whole.divided([[Width(2)], [Width(1), Width(1)]]) == [(0, 1), (2, 3)]
    assert whole.divided([[Width(2)], [Width(3)]]) == []
    assert cores(folder, {1, 4, 5, 7}).divided([[Width(1)], [Width(2)]]) == [(1,), (4, 7)]


def test_who_needs_cores_of_a_kind_gets_them_before_others(tmp_path):
    folder = machine(tmp_path, ["0-1", "0-1", "2-3", "2-3", "4", "5"], cpu_core="0-3", cpu_atom="4-5")
    whole = cores(folder, range(6))
    assert whole.divided([[Width(2)], [Width(2, "P")]]) == [(4, 5), (0, 2)]
    assert whole.divided([[Width(1)], [Width(1, "E")]]) == [(0,), (4,)]
    assert whole.divided([[Width(1)], [Width(3, "P")]]) == []


def test_a_quota_pays_for_no_more_cores_than_are_divided(tmp_path):
    folder = machine(tmp_path, [str(n) for n in range(4)])
    limited = cores(folder, range(4), "250000 100000")
    assert limited.divided([[Width(1)], [Width(1)]]) == [(0,), (1,)]
    assert limited.divided([[Width(1)], [Width(2)]]) == []
