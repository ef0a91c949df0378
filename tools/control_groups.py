"""Control groups with a quota of processor time, where the system lets this user make them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_PERIOD_SECONDS = 0.1
_EMPTYING_SECONDS = 5.0  # until processes that have ended have left their group


class NoGroupError(Exception):
    """The system lets nobody here make a control group; says why."""


@dataclass(frozen=True)
class ControlGroup:
    """A group, by its folder.

    Attributes:
        folder: In the file system of control groups.
        is_v2: Of which version it is.
    """

    folder: Path
    is_v2: bool

    def limit(self, cores: float | None, period_seconds: float = _PERIOD_SECONDS) -> None:
        """Give everything in the group so many seconds of processor time per second; ``None`` = all."""
        period = round(1e6 * period_seconds)
        if self.is_v2:
            quota = "max" if cores is None else round(cores * period)
            (self.folder / "cpu.max").write_text(f"{quota} {period}")
            return
        (self.folder / "cpu.cfs_quota_us").write_text("-1")
        (self.folder / "cpu.cfs_period_us").write_text(str(period))
        if cores is not None:
            (self.folder / "cpu.cfs_quota_us").write_text(str(round(cores * period)))

    def enter(self) -> None:
        """Move this process into the group, and all that it starts from now on."""
        (self.folder / "cgroup.procs").write_text("0")


@contextmanager
def control_group(name: str, within: ControlGroup | None = None) -> Iterator[ControlGroup]:
    """Make a group without a quota, and remove it in the end.

    Args:
        name: Of its folder.
        within: Another one; the topmost one that can be seen here when ``None``.

    Raises:
        NoGroupError: It cannot be made.
    """
    try:
        group = _made(name, within or _topmost())
    except OSError as cause:
        raise NoGroupError(f"no control group can be made here: {cause}") from cause
    try:
        yield group
    finally:
        _removed(group.folder)


def _made(name: str, within: ControlGroup) -> ControlGroup:
    if within.is_v2:
        (within.folder / "cgroup.subtree_control").write_text("+cpu")
    folder = within.folder / name
    folder.mkdir()
    return ControlGroup(folder, within.is_v2)


def _topmost() -> ControlGroup:
    """Version 1 where processor time is a controller of it."""
    mounts = [line.split() for line in Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    for _, point, kind, options, *_ in mounts:
        if kind == "cgroup" and "cpu" in options.split(","):
            return ControlGroup(Path(point), is_v2=False)
    for _, point, kind, *_ in mounts:
        if kind == "cgroup2":
            return ControlGroup(Path(point), is_v2=True)
    raise NoGroupError("no control group can be made here: none are mounted")


def _removed(folder: Path) -> None:
    end = time.monotonic() + _EMPTYING_SECONDS
    while True:
        try:
            folder.rmdir()
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
        else:
            return
