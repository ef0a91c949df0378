"""Quotas of processor time: control groups built as folders, and real ones where they can be made."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from control_groups import NoGroupError, control_group
from ov_autoplace.devices.quota import Quota, quota_of_this_process

# As /proc/self/mountinfo shows them on current systems: version 2 alone, version 1 with the controller by
# itself or together with another one, and version 2 beside it without any controller.
V2 = "30 23 0:26 {top} {point} rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate"
V1 = "33 31 0:30 {top} {point} rw,relatime - cgroup cgroup rw,{controllers}"
OTHERS = """22 1 8:1 / / rw shared:1 - ext4 /dev/root rw
34 31 0:31 / /sys/fs/cgroup/cpuset rw - cgroup c rw,cpuset"""


def world(root: Path, groups: str, mounts: str, files: Mapping[str, str]) -> Path:
    """The root of a file system with the files that tell a process of its groups."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(groups + "\n")
    (root / "proc/self/mountinfo").write_text(f"{OTHERS}\n{mounts}\n")
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text + "\n")
    return root


def v1(folder: str, quota: object, period: int = 100000) -> dict[str, str]:
    return {f"{folder}/cpu.cfs_quota_us": str(quota), f"{folder}/cpu.cfs_period_us": str(period)}


UNIFIED = V2.format(top="/", point="/sys/fs/cgroup")
CPU = V1.format(top="/", point="/sys/fs/cgroup/cpu", controllers="cpu")
JOINT = V1.format(top="/", point="/sys/fs/cgroup/cpu,cpuacct", controllers="cpu,cpuacct")
HYBRID = V2.format(top="/", point="/sys/fs/cgroup/unified")
SYS = "sys/fs/cgroup"

WORLDS = {
    "v2": ("0::/a", UNIFIED, {f"{SYS}/a/cpu.max": "60000 100000"}, Quota(0.6, 0.1)),
    "v2, another period": ("0::/a", UNIFIED, {f"{SYS}/a/cpu.max": "30000 20000"}, Quota(1.5, 0.02)),
    "v2, none": ("0::/a", UNIFIED, {f"{SYS}/a/cpu.max": "max 100000"}, None),
    "v2, nested, its own": (
        "0::/a/b",
        UNIFIED,
        {f"{SYS}/a/cpu.max": "200000 100000", f"{SYS}/a/b/cpu.max": "150000 100000"},
        Quota(1.5, 0.1),
    ),
    "v2, of a parent whose period is another": (
        "0::/a/b/c",
        UNIFIED,
        {
            f"{SYS}/a/cpu.max": "50000 50000",
            f"{SYS}/a/b/cpu.max": "max 100000",
            f"{SYS}/a/b/c/cpu.max": "150000 100000",
        },
        Quota(1.0, 0.05),
    ),
    "v2, of another group": (
        "0::/a",
        UNIFIED,
        {f"{SYS}/a/cpu.max": "max 100000", f"{SYS}/b/cpu.max": "10000 100000"},
        None,
    ),
    "v1": ("3:cpu:/a\n2:cpuset:/x", CPU, v1(f"{SYS}/cpu/a", 60000), Quota(0.6, 0.1)),
    "v1, none": ("3:cpu:/a", CPU, v1(f"{SYS}/cpu/a", -1), None),
    "v1, with another controller": (
        "4:cpu,cpuacct:/a/b",
        JOINT,
        {**v1(f"{SYS}/cpu,cpuacct/a/b", -1), **v1(f"{SYS}/cpu,cpuacct/a", 120000)},
        Quota(1.2, 0.1),
    ),
    "v1, where other controllers have cpu in their names": (
        "5:cpuset:/x\n4:cpuacct:/x\n3:cpu:/a",
        CPU,
        {**v1(f"{SYS}/cpu/a", 60000), **v1(f"{SYS}/cpu/x", 10000)},
        Quota(0.6, 0.1),
    ),
    "both, by v1": ("3:cpu:/a\n0::/a", f"{HYBRID}\n{CPU}", v1(f"{SYS}/cpu/a", 60000), Quota(0.6, 0.1)),
    "both, the tighter one": (
        "3:cpu:/a\n0::/b",
        f"{HYBRID}\n{CPU}",
        {**v1(f"{SYS}/cpu/a", 60000), f"{SYS}/unified/b/cpu.max": "50000 100000"},
        Quota(0.5, 0.1),
    ),
    "container with a namespace": ("0::/", UNIFIED, {f"{SYS}/cpu.max": "60000 100000"}, Quota(0.6, 0.1)),
    "container without one, v1": (
        "3:cpu:/docker/7f",
        V1.format(top="/docker/7f", point="/sys/fs/cgroup/cpu", controllers="cpu"),
        v1(f"{SYS}/cpu", 60000),
        Quota(0.6, 0.1),
    ),
    "group within a container without a namespace": (
        "3:cpu:/docker/7f/inner",
        V1.format(top="/docker/7f", point="/sys/fs/cgroup/cpu", controllers="cpu"),
        {**v1(f"{SYS}/cpu", 60000), **v1(f"{SYS}/cpu/inner", 30000)},
        Quota(0.3, 0.1),
    ),
    "group that is not seen below the mount": (
        "0::/kubepods/pod1",
        UNIFIED,
        {f"{SYS}/cpu.max": "60000 100000"},
        Quota(0.6, 0.1),
    ),
    "mount that begins above the namespace": (
        "0::/",
        V2.format(top="/../..", point="/sys/fs/cgroup"),
        {f"{SYS}/cpu.max": "60000 100000"},
        Quota(0.6, 0.1),
    ),
    "group outside of the namespace": (
        "0::/../other",
        UNIFIED,
        {f"{SYS}/cpu.max": "60000 100000", "sys/fs/other/cpu.max": "10000 100000"},
        Quota(0.6, 0.1),
    ),
    "name that begins like the mount's": (
        "0::/ab",
        f"{V2.format(top='/a', point='/mnt')}\n{UNIFIED}",
        {"mnt/b/cpu.max": "10000 100000", "mnt/cpu.max": "20000 100000", f"{SYS}/ab/cpu.max": "60000 100000"},
        Quota(0.6, 0.1),
    ),
    "mount point with a space": (
        "0::/a:b",
        V2.format(top="/", point=r"/my\040groups"),
        {"my groups/a:b/cpu.max": "60000 100000"},
        Quota(0.6, 0.1),
    ),
    "nothing mounted": ("0::/a\n3:cpu:/a", "", {}, None),
    "nothing told": ("", "", {}, None),
}


@pytest.mark.parametrize("name", WORLDS)
def test_the_tightest_quota_of_the_group_and_those_above_it_is_found(tmp_path: Path, name: str) -> None:
    groups, mounts, files, expected = WORLDS[name]
    found = quota_of_this_process(world(tmp_path, groups, mounts, files))
    assert (found is None) == (expected is None)
    if found is not None and expected is not None:
        assert found.cores == pytest.approx(expected.cores)
        assert found.period_seconds == pytest.approx(expected.period_seconds)


@pytest.mark.parametrize(
    "text",
    [
        *("", "nonsense", "60000", "60000 0", "0 100000", "-1 100000", "60000 -5", "max max", "1e5 100000"),
        *("9" * 400 + " 1", "1 " + "9" * 400, "9" * 5000 + " 1", "60000 100000 7", "60000 \x00"),
    ],
)
def test_what_is_no_quota_is_taken_for_none(tmp_path: Path, text: str) -> None:
    assert quota_of_this_process(world(tmp_path, "0::/", UNIFIED, {f"{SYS}/cpu.max": text})) is None


def test_what_cannot_be_read_is_taken_for_no_quota(tmp_path: Path) -> None:
    assert quota_of_this_process(tmp_path / "nothing") is None
    root = world(tmp_path, "0::/a\nx\n3:cpu", f"{UNIFIED}\n- -\n{CPU}\n33 31 - cgroup", {})
    (root / SYS / "a/cpu.max").mkdir(parents=True)  # a folder in the place of the file
    (root / SYS / "cpu.max").write_bytes(b"\xff\xfe 100000")
    assert quota_of_this_process(root) is None
    (root / "proc/self/cgroup").write_bytes(b"0::/\xff\x00/a\n")
    assert quota_of_this_process(root) is None


TELL = """
import sys
from pathlib import Path
from ov_autoplace.devices.quota import quota_of_this_process
(Path(sys.argv[1]) / "cgroup.procs").write_text("0")
found = quota_of_this_process()
print(found and (round(found.cores, 6), found.period_seconds))
"""


def test_real_groups_are_read() -> None:
    """A group with a quota, a group within it that has none, and one that has a tighter one."""

    def told(folder: Path) -> str:
        process = [sys.executable, "-c", TELL, str(folder)]
        return subprocess.run(process, capture_output=True, text=True, check=True, timeout=60).stdout.strip()

    try:
        name = f"ov-autoplace-test-{os.getpid()}"
        with control_group(name) as outer, control_group("inner", outer) as inner:
            outer.limit(0.6)
            assert told(outer.folder) == told(inner.folder) == "(0.6, 0.1)"
            inner.limit(0.5, period_seconds=0.05)
            assert told(inner.folder) == "(0.5, 0.05)"
    except NoGroupError as cause:
        pytest.skip(str(cause))


@pytest.mark.parametrize(
    ("period", "seconds", "expected"),
    [(0.1, 0.015, 0.1), (0.1, 0.2, 0.2), (0.1, 0.21, 0.3), (0.03, 0.2, 0.21), (1.0, 0.2, 1.0)],
)
def test_times_are_rounded_up_to_whole_periods(period: float, seconds: float, expected: float) -> None:
    assert Quota(1.5, period).whole_periods(seconds) == pytest.approx(expected)
