"""How much processor time the control groups of this process allow it, on Linux.

A container that was given one and a half processors still sees all of the machine's: the kernel lets its
threads run until the time of a period, usually 100 ms, is used up, and then stops them all until the next one
begins. OpenVINO does not ask for that. What is read here is described in the kernel's
Documentation/admin-guide/cgroup-v2.rst and Documentation/scheduler/sched-bwc.rst, and in proc(5) and
cgroup_namespaces(7).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

__all__ = ["Quota", "quota_of_this_process"]

_ESCAPED = re.compile(r"\\([0-7]{3})")
_MICROSECONDS = 1e6
_RARE = 0.01  # a 99th percentile does not see what happens to fewer


@dataclass(frozen=True)
class Quota:
    """Processor time that a process may use.

    Attributes:
        cores: Seconds of it per second, which need not be whole.
        period_seconds: How often as much of it becomes available.
    """

    cores: float
    period_seconds: float

    @property
    def label(self) -> str:
        """For sentences, like ``a quota of 1.5 cores``."""
        return f"a quota of {self.cores:.3g} core{'' if self.cores == 1 else 's'}"

    def whole_periods(self, seconds: float) -> float:
        """The shortest time of whole periods that is at least so long."""
        return self.period_seconds * math.ceil(seconds / self.period_seconds)

    def stretched(self, seconds: float, threads: int) -> tuple[float, float]:
        """Mean and 99th percentile of what inferences take that follow each other without a gap.

        Args:
            seconds: What one takes that is not stopped.
            threads: How many are busy meanwhile.
        """
        if threads <= self.cores or not math.isfinite(seconds):
            return seconds, seconds
        periods = seconds * threads / (self.cores * self.period_seconds)  # that pay for one inference
        stop = self.period_seconds * (1 - self.cores / threads)
        stops = 0 if periods < _RARE else math.ceil(periods)
        return periods * self.period_seconds, seconds + stops * stop


@dataclass(frozen=True)
class _Mount:
    """A hierarchy of groups in the file system: the group at its top, and where that is."""

    top: PurePosixPath
    folder: Path


def quota_of_this_process(root: Path = Path("/")) -> Quota | None:
    """The tightest quota of the group that this process is in and of all groups above it.

    Version 1 and 2 of control groups may be mounted at once; both count. What cannot be read or understood is
    taken for no quota.

    Args:
        root: Of the file system.
    """
    quotas = [*_quotas(root, is_v2=False), *_quotas(root, is_v2=True)]
    return min(quotas, key=lambda quota: quota.cores, default=None)


def _quotas(root: Path, *, is_v2: bool) -> Iterator[Quota]:
    """Quotas of the group and of those above it, as far as they are mounted here."""
    group, mounts = _group(root, is_v2=is_v2), _mounts(root, is_v2=is_v2)
    if group is None or not mounts:
        return
    top, folder = _located(group, mounts)
    while True:
        quota = _quota_v2(folder) if is_v2 else _quota_v1(folder)
        if quota is not None:
            yield quota
        if folder == top:
            return
        folder = folder.parent


def _group(root: Path, *, is_v2: bool) -> PurePosixPath | None:
    """The group that this process is in, as its control group namespace names it."""
    for line in _lines(root / "proc/self/cgroup"):
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if (number == "0" and not controllers) if is_v2 else "cpu" in controllers.split(","):
            return PurePosixPath(path)
    return None


def _mounts(root: Path, *, is_v2: bool) -> list[_Mount]:
    """Where the hierarchy with processor time is mounted; parts of it may be in several places."""
    found = []
    for line in _lines(root / "proc/self/mountinfo"):
        # number parent device top point options [tag ...] - type source options
        head, _, tail = (part.split(" ") for part in line.partition(" - "))
        if len(head) < 6 or len(tail) < 3:
            continue
        if tail[0] == "cgroup2" if is_v2 else tail[0] == "cgroup" and "cpu" in tail[2].split(","):
            top, point = (_ESCAPED.sub(lambda code: chr(int(code[1], 8)), text) for text in head[3:5])
            found.append(_Mount(PurePosixPath(top), root / point.lstrip("/")))
    return found


def _located(group: PurePosixPath, mounts: list[_Mount]) -> tuple[Path, Path]:
    """The folders of the topmost group that is mounted here, and of the one that the process is in.

    In a container the group may be the top of what is mounted, under whatever name, or be named by a path
    that leads nowhere here: then the top is all that there is to see.
    """
    for mount in mounts:
        below = group.parts[len(mount.top.parts) :]
        is_below = group.parts[: len(mount.top.parts)] == mount.top.parts
        if is_below and ".." not in below and _is_folder(folder := mount.folder.joinpath(*below)):
            return mount.folder, folder
    return mounts[0].folder, mounts[0].folder


def _quota_v1(folder: Path) -> Quota | None:
    return _quota(_text(folder / "cpu.cfs_quota_us"), _text(folder / "cpu.cfs_period_us"))


def _quota_v2(folder: Path) -> Quota | None:
    allowed, _, period = _text(folder / "cpu.max").partition(" ")
    return _quota(allowed, period)


def _quota(allowed: str, period: str) -> Quota | None:
    """From microseconds; ``max`` and ``-1`` are no quota."""
    try:
        quota = Quota(int(allowed) / int(period), int(period) / _MICROSECONDS)
    except (ValueError, ArithmeticError):
        return None
    return quota if quota.cores > 0 and quota.period_seconds > 0 else None


def _is_folder(path: Path) -> bool:
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _lines(path: Path) -> list[str]:
    return _text(path).split("\n")


def _text(path: Path) -> str:
    """What a file says; nothing where it cannot be read."""
    try:
        return os.fsdecode(path.read_bytes()).strip()
    except (OSError, ValueError):
        return ""
