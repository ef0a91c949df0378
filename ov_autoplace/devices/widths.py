"""Widths: on how many of a CPU's threads a model runs, and the settings that make OpenVINO do that.

OpenVINO runs a model on all cores unless it is told otherwise. Each further thread has to be woken and waited
for at every node, so a model of some tens of microseconds is faster on one of them.

OpenVINO's settings do three things that surprise, in all releases that are known; see docs/width.md:

* On one thread of one stream, a synchronous inference loses every exception. Where ops can fail, the model
  runs in the calling thread instead (``NUM_STREAMS`` 0), which keeps them, and in which ``start_async`` does
  the work before it returns.
* There, the compiler also merges chains of MatMuls into one kernel, and it crashes on rare graphs as it does
  so. In the calling thread it compiles a model as it does for all threads.
* Threads are pinned to cores by number, the same ones in every process, so that narrow models of several
  processes would share one core. Narrow models are not pinned.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path

import openvino as ov

from ov_autoplace.devices.quota import Quota, quota_of_this_process
from ov_autoplace.errors import DeviceError

__all__ = [
    "Cores",
    "Lanes",
    "Width",
    "chooses_threads",
    "confining_width",
    "is_cpu",
    "powers_below",
    "widths_here",
    "widths_of",
]

# What a user sets of these decides how many threads there are, or rests on it.
_CHOOSES_THREADS = frozenset(
    {
        "AFFINITY",
        "ENABLE_CPU_PINNING",
        "ENABLE_CPU_RESERVATION",
        "ENABLE_HYPER_THREADING",
        "ENABLE_TENSOR_PARALLEL",
        "EXCLUSIVE_ASYNC_REQUESTS",
        "INFERENCE_NUM_THREADS",
        "MODEL_DISTRIBUTION_POLICY",
        "NUM_STREAMS",
        "PERFORMANCE_HINT_NUM_REQUESTS",
        "SCHEDULING_CORE_TYPE",
    }
)
_HINT, _LATENCY = "PERFORMANCE_HINT", ("LATENCY", "", "UNDEFINED")
_KINDS = {"": "", "P": "P-core ", "E": "E-core "}
_CORE_TYPE = {"P": "PCORE_ONLY", "E": "ECORE_ONLY"}
_LIST_OF_KIND = {"P": "cpu_core/cpus", "E": "cpu_atom/cpus"}
# The networks that people use have few branches that are as long as each other.
_MOST_LANES = 8
_TEXT = re.compile(r"([1-9]\d{0,5})([PE]?)(\+caller)?")


@dataclass(frozen=True)
class Width:
    """A part of a CPU's threads that a model runs on.

    Attributes:
        threads: How many.
        cores: ``"P"`` or ``"E"`` for performance or efficiency cores alone, where a CPU has both.
        in_caller: The one thread is the calling one. Exceptions are kept and nothing is compiled otherwise
            than for all threads, but ``start_async`` returns when the work is done.
    """

    threads: int
    cores: str = ""
    in_caller: bool = False

    @property
    def label(self) -> str:
        """For tables and sentences, like ``1 thread`` and ``4 P-core threads``."""
        count = f"{self.threads} {_KINDS[self.cores]}thread{'s' if self.threads > 1 else ''}"
        return f"{count}, the caller's" if self.in_caller else count

    def __str__(self) -> str:
        """For files, like ``1``, ``4P`` and ``1+caller``."""
        return f"{self.threads}{self.cores}{'+caller' if self.in_caller else ''}"

    @classmethod
    def parse(cls, text: str) -> Width:
        """Read what ``str`` wrote.

        Raises:
            DeviceError: It is nothing of the kind.
        """
        found = _TEXT.fullmatch(text)
        if found is None or (found[3] and found[1] != "1"):
            raise DeviceError(f"{text!r} is no width; one reads like 1, 4, 4P or 1+caller")
        return cls(int(found[1]), found[2], bool(found[3]))

    @property
    def properties(self) -> dict[str, str]:
        """OpenVINO properties that make a CPU run a model so."""
        properties = {"INFERENCE_NUM_THREADS": str(self.threads)}
        if self.cores:
            properties["SCHEDULING_CORE_TYPE"] = _CORE_TYPE[self.cores]
        if self.in_caller:
            return {**properties, "NUM_STREAMS": "0"}
        return {**properties, "NUM_STREAMS": "1", "ENABLE_CPU_PINNING": "NO"}


def _processors() -> frozenset[int]:
    """Those that the current thread may run on."""
    if hasattr(os, "sched_getaffinity"):
        return frozenset(os.sched_getaffinity(0))
    return frozenset(range(os.cpu_count() or 1))


# When the package was imported: `plugin/device.py` imports this module for it.
_AT_IMPORT = _processors()


@dataclass(frozen=True)
class Cores:
    """The physical cores that this process may use, by what the operating system says.

    Attributes:
        processors: Numbers of the logical processors that the process may run on.
        root: Of the file system, in which the system tells of itself.
    """

    processors: frozenset[int]
    root: Path = Path("/")

    @classmethod
    def of_this_process(cls) -> Cores:
        """Those of the machine that this process runs on, by its affinity mask now."""
        return cls(_processors())

    @cached_property
    def all(self) -> int:
        """How many, 1 or more; hyper-threads of one core count once."""
        return self._count(self.processors)

    @cached_property
    def quota(self) -> Quota | None:
        """The processor time that the process's control groups allow it, where it is less than all cores'."""
        quota = quota_of_this_process(self.root)
        return quota if quota is not None and quota.cores < self.all else None

    @property
    def usable(self) -> int:
        """How many can be busy all the time, which a quota has to pay for in full, and always one."""
        return self.all if self.quota is None else max(1, int(self.quota.cores))

    def share(self, parts: int) -> int:
        """How many each of several equal parts has, 1 or more."""
        return max(1, self.usable // parts)

    @cached_property
    def of_kind(self) -> Mapping[str, int]:
        """Performance (``"P"``) and efficiency (``"E"``) cores, where there are both; else empty."""
        kinds = {kind: self._listed(name) for kind, name in _LIST_OF_KIND.items()}
        counts = {kind: self._count(found & self.processors) for kind, found in kinds.items() if found}
        return counts if len(counts) == 2 and all(counts.values()) else {}

    def _count(self, processors: frozenset[int]) -> int:
        """Distinct cores behind logical processors."""
        return len({self._siblings(n) for n in processors})

    def divided(self, parts: Sequence[Sequence[Width]]) -> list[tuple[int, ...]]:
        """Logical processors for several models, each of a core of its own; empty where there are too few.

        Args:
            parts: The widths of the copies of each model.
        """
        if sum(width.threads for widths in parts for width in widths) > self.usable:
            return []
        free = self._one_of_each_core()
        found: dict[int, tuple[int, ...]] = {}
        # Whoever needs cores of a kind chooses before those that run on any.
        for i in sorted(range(len(parts)), key=lambda i: not parts[i][0].cores):
            fitting = self._of_kind(parts[i][0].cores, free)
            count = sum(width.threads for width in parts[i])
            if len(fitting) < count:
                return []
            found[i] = tuple(fitting[:count])
            free = [n for n in free if n not in found[i]]
        return [found[i] for i in range(len(parts))]

    def _one_of_each_core(self) -> list[int]:
        """The first processor of each core, by number."""
        first: dict[frozenset[int], int] = {}
        for n in sorted(self.processors):
            first.setdefault(self._siblings(n), n)
        return list(first.values())

    def _of_kind(self, kind: str, processors: Sequence[int]) -> list[int]:
        """Those of performance (``"P"``) or efficiency (``"E"``) cores; all of them for ``""``."""
        known = self._listed(_LIST_OF_KIND[kind]) if kind else self.processors
        return [n for n in processors if n in known]

    def _siblings(self, processor: int) -> frozenset[int]:
        """The hyper-threads of a processor's core, itself among them."""
        told = self._listed(f"system/cpu/cpu{processor}/topology/thread_siblings_list")
        return told or frozenset({processor})

    def _listed(self, name: str) -> frozenset[int]:
        """A list of processors such as ``0-3,8``; empty where there is none."""
        found: set[int] = set()
        try:
            for part in (self.root / "sys/devices" / name).read_text(encoding="ascii").strip().split(","):
                first, _, last = part.partition("-")
                found.update(range(int(first), int(last or first) + 1))
        except (OSError, ValueError):
            return frozenset()
        return frozenset(found)

    @property
    def widths(self) -> tuple[Width, ...]:
        """What a model can run on but all cores, the narrowest first; empty on a single core.

        Under a quota these are at most as many threads as it pays for, in part for the last of them.
        """
        if self.all == 1:
            return ()
        # Beyond what a quota pays for, all threads are stopped together in each period; one may be worth it.
        most = self.all if self.quota is None else math.ceil(self.quota.cores)
        counts = {*powers_below(self.all), self.usable, most} - {self.all}
        found = [Width(n) for n in sorted(counts)]
        for kind, count in self.of_kind.items():
            # One thread of any kind is one thread: the system puts it where it is fast.
            found += [Width(n, kind) for n in (*powers_below(count), count) if n > 1]
        return tuple(sorted((w for w in found if w.threads <= most), key=lambda width: width.threads))

    @property
    def lanes(self) -> tuple[Lanes, ...]:
        """How the cores can be divided into lanes of equal width, at most eight; empty on a single core."""
        found = ((self.usable // width.threads, width) for width in self.widths if not width.cores)
        return tuple(Lanes(min(count, _MOST_LANES), width) for count, width in found if count > 1)


@dataclass(frozen=True)
class Lanes:
    """A CPU in several lanes, each of which runs its own part of a model.

    Attributes:
        count: How many, 2 or more.
        width: Of each.
    """

    count: int
    width: Width

    @property
    def label(self) -> str:
        """For tables and sentences, like ``2 lanes of 1 thread``."""
        return f"{self.count} lanes of {self.width.label}"


def powers_below(count: int) -> list[int]:
    """1, 2, 4, ... below ``count``."""
    return [1 << k for k in range((count - 1).bit_length())] if count > 1 else []


def is_cpu(core: ov.Core, device: str) -> bool:
    """Whether OpenVINO's CPU plugin is behind a device name."""
    try:
        versions = core.get_versions(device.split(".")[0])
    except RuntimeError:
        return False
    return any("cpu_plugin" in version.description for version in versions.values())


def chooses_threads(settings: Mapping[str, object]) -> bool:
    """Whether properties that a user gave a device say on how many threads it shall run.

    Args:
        settings: All of them, those set on the Core included.
    """
    hint = settings.get(_HINT, "LATENCY")
    text = str(getattr(hint, "name", hint)).upper()
    return bool(_CHOOSES_THREADS & set(settings)) or text not in _LATENCY


def confining_width() -> Width | None:
    """All cores of the process's affinity mask, where OpenVINO would take more; ``None`` where it does not.

    OpenVINO reads the mask when its CPU plugin is loaded, and later binds threads to the cores of that time.
    """
    cores = Cores.of_this_process()
    if cores.processors >= _AT_IMPORT or cores.all >= _threads_of_openvino():
        return None
    return Width(cores.all, in_caller=cores.all == 1)


@cache
def _threads_of_openvino() -> int:
    """Threads of a model on a CPU of which nothing is said; the same for as long as a process lives."""
    from openvino import opset13 as ops

    value = ops.parameter([1], ov.Type.f32)
    compiled = ov.Core().compile_model(ov.Model([ops.relu(value)], [value]), "CPU")
    return int(compiled.get_property("INFERENCE_NUM_THREADS"))


def widths_of(threads: int) -> tuple[Width, ...]:
    """1, 2, 4, ... of so many threads, without all of them."""
    return tuple(Width(n) for n in powers_below(threads))


def widths_here(core: ov.Core, device: str) -> tuple[Width, ...]:
    """The widths of a device of this machine; none on a single core, and for what is no CPU."""
    return Cores.of_this_process().widths if is_cpu(core, device) else ()
