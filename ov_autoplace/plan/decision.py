"""How a placement was chosen: every candidate, what was predicted, what was measured, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.statistics import CONVINCING_ROUNDS, median_interval
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Width
from ov_autoplace.plan.findings import Explained, Finding
from ov_autoplace.plan.plan import Plan

if TYPE_CHECKING:
    from ov_autoplace.cost.table import CostTable

__all__ = ["Candidate", "Decision", "Load", "Scheduled"]

_NOTHING = np.empty(0)


class Load(Enum):
    """How a program calls a model, which decides what an inference or a request takes."""

    STEADY = "steady"
    """One inference after another."""
    PAUSED = "paused"
    """One inference at a time, each after an idle gap."""
    SUSTAINED = "sustained"
    """One inference after another over whole periods of a quota of processor time."""
    WAITING = "waiting"
    """Requests in flight, each with a thread that waits in ``infer()``."""
    QUEUED = "queued"
    """Requests in flight that one thread starts, whichever is idle, as ``AsyncInferQueue`` does."""
    APPLICATION = "application"
    """All models of an application at once, with the requests that it says."""


@dataclass(frozen=True, eq=False)
class Scheduled:
    """What the prediction of lanes and devices that work at once rests on.

    Attributes:
        table: Costs of G groups on the lanes, which are finer than those of other candidates.
        assignment: Lane of each group, ``int32[G]``.
    """

    table: CostTable = field(repr=False)
    assignment: IntArray = field(repr=False)


@dataclass(eq=False)
class Candidate:
    """One plan that is considered; it fills up on its way from the proposal to the race.

    Attributes:
        name: A device's name for a single device, also with a width (``CPU (1 thread)``), ``HETERO``, the
            solver's name.
        plan: How the model is to be run.
        predicted_seconds: Simulated latency, or seconds per request of a plan for many; ``None`` when no cost
            table was made.
        subgraphs: Number of subgraphs of HETERO.
        times: Measured seconds per inference or request by load, ``float64[n]``; ``SUSTAINED`` has means over
            turns of whole periods. Only loads under which it was run.
        dropped: Why it left the race, or an empty string.
        also: Names of the other sources that proposed the same placement.
        assignment: Device of each group of the cost table, ``int32[G]``; empty without a table.
        lower_bound_seconds: Proven bound below the latency of all placements, when its source proved one.
        scheduled: What its prediction rests on where its lanes work at once. ``assignment`` then has the
            device that runs most of each group, and ``subgraphs`` counts submodels.
        tail_seconds: Where it was raced under a quota, the 99th percentile of its latencies.
        output_difference: How far what it computes is from what the first device computes, or from the right
            outputs where that device is wrong: see :mod:`ov_autoplace.measure.outputs`. ``None`` where it was
            not compared.
        is_wrong: That is more than precision explains, so it is not taken.
        cores: How many cores of a CPU it kept busy, where that was measured.
        memory_bytes: By how much it made the process grow in which it was compiled and run once, without
            code; ``None`` where nobody looked.
    """

    name: str
    plan: Plan
    predicted_seconds: float | None = None
    subgraphs: int = 1
    times: dict[Load, FloatArray] = field(default_factory=dict)
    dropped: str = ""
    also: tuple[str, ...] = ()
    assignment: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32), repr=False)
    lower_bound_seconds: float | None = None
    scheduled: Scheduled | None = None
    tail_seconds: float | None = None
    output_difference: float | None = None
    is_wrong: bool = False
    cores: float | None = None
    memory_bytes: int | None = None

    def on(self, load: Load) -> FloatArray:
        """What was measured under a load, empty when it was not run so."""
        return self.times.get(load, _NOTHING)

    def remember(self, load: Load, samples: FloatArray) -> None:
        """Replace what was measured under a load; no samples mean that it was not run so."""
        self.times.pop(load, None)
        if len(samples):
            self.times[load] = samples

    def median(self, load: Load) -> float:
        """The median under a load, ``inf`` when it was not run so."""
        samples = self.on(load)
        return float(np.median(samples)) if len(samples) else float("inf")

    @property
    def samples(self) -> FloatArray:
        """What counted last of one inference at a time, in seconds, ``float64[n]``; periods under a quota."""
        return self.times.get(Load.SUSTAINED, self.on(Load.STEADY))

    @property
    def measured_seconds(self) -> float | None:
        """Median of the samples."""
        return float(np.median(self.samples)) if len(self.samples) else None

    @property
    def seconds(self) -> float:
        """Median of the samples, ``inf`` when there are none."""
        measured = self.measured_seconds
        return float("inf") if measured is None else measured

    @property
    def expected_seconds(self) -> float:
        """Simulated latency, ``inf`` when it is not known."""
        return float("inf") if self.predicted_seconds is None else self.predicted_seconds

    @property
    def is_single(self) -> bool:
        """Whether one device runs all of it."""
        return len(self.plan.devices) == 1

    def to_json(self) -> dict[str, Any]:
        """What every command prints of it with ``--json``: times in milliseconds, per request of many.

        ``measured`` has a median with its 95 % interval, where there are samples enough for one, by load.
        """
        measured = {}
        for load, samples in self.times.items():
            median, low, high = (1e3 * seconds for seconds in median_interval(samples))
            interval = [low, high] if len(samples) >= CONVINCING_ROUNDS else None
            measured[load.value] = {"median_ms": median, "ci95_ms": interval, "samples": len(samples)}
        return {
            "name": self.name,
            "requests": self.plan.requests,
            "predicted_ms": None if self.predicted_seconds is None else 1e3 * self.predicted_seconds,
            "measured": measured,
            "p99_ms": None if self.tail_seconds is None else 1e3 * self.tail_seconds,
            "subgraphs": self.subgraphs,
            "output_difference": self.output_difference,
            "also_proposed_by": list(self.also),
            "note": self.dropped,
        }

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of its compiled models that are not alike."""
        distinct = dict.fromkeys(self.plan.models)
        return (self.name, *(f"{self.name} (model {i})" for i in range(2, len(distinct) + 1)))


@dataclass(frozen=True, eq=False)
class Decision(Explained):
    """The answer of :func:`ov_autoplace.place`.

    Attributes:
        chosen: Name of the candidate that was taken.
        findings: What was found; the first one says why ``chosen`` was taken.
        mode: ``ZERO_SHOT``, ``PROFILE`` or ``TUNE``.
        candidates: All candidates, in the order in which they were considered.
        seconds: Wall-clock time of each phase by name.
        table: The cost table that the predictions rest on, or ``None`` when none was made.
        left_out: Why a device took no part, by device.
        disturbed: Other work kept the devices busy while they were measured, so the answer may be wrong.
        rate_bound: Requests per second that no mixture of placements exceeds, by the cost table; of several
            models, what ``application/bounds.py`` says.
        quota: Of processor time, under which it was made.
    """

    chosen: str
    findings: tuple[Finding, ...]
    mode: str
    candidates: tuple[Candidate, ...]
    seconds: dict[str, float]
    table: CostTable | None = field(default=None, repr=False)
    left_out: Mapping[str, str] = field(default_factory=dict)
    disturbed: bool = False
    rate_bound: float | None = None
    quota: Quota | None = None

    def __str__(self) -> str:
        return self.reason

    def to_json(self) -> dict[str, Any]:
        """What every command prints of it with ``--json``: kind and numbers, and the sentence for people."""
        quota = None
        if self.quota is not None:
            quota = {"cores": self.quota.cores, "period_ms": self.quota.period_seconds * 1e3}
        return {
            "chosen": self.chosen,
            "reason": self.kind.value,
            "decision": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "mode": self.mode,
            "width": str(self.width) if self.threads else None,
            "lanes": self.winner.plan.lane_count or None,
            "candidates": [candidate.to_json() for candidate in self.candidates],
            "disturbed": self.disturbed,
            "quota": quota,
            "rate_bound_per_second": self.rate_bound,
        }

    @property
    def winner(self) -> Candidate:
        """The candidate that was taken."""
        return self.candidate(self.chosen)

    @property
    def width(self) -> Width | None:
        """On how many threads of its one device the answer runs; ``None`` = as OpenVINO does by itself."""
        return self.winner.plan.width

    @property
    def threads(self) -> str:
        """On how many threads the answer runs, in words; empty where that is up to OpenVINO."""
        return self.winner.plan.threads

    @property
    def scheduled(self) -> Scheduled | None:
        """What the prediction of an answer on lanes rests on; ``None`` for any other one."""
        return self.winner.scheduled

    def candidate(self, name: str) -> Candidate:
        """The candidate of that name.

        Raises:
            KeyError: There is none.
        """
        return next(c for c in self.candidates if c.name == name)
