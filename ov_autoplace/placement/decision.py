"""How a placement was chosen: every candidate, what was predicted, what was measured, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Width
from ov_autoplace.placement.findings import Explained, Finding
from ov_autoplace.placement.plan import Plan

if TYPE_CHECKING:
    from ov_autoplace.cost.table import CostTable

__all__ = ["Candidate", "Decision", "Load", "RateRow", "Scheduled"]

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
            solver's name, ``policy`` for the policy's greedy answer, or ``policy sample 3``.
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
        """Seconds of one inference at a time by what counted last: periods of a quota, else back to back."""
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
    def promised_seconds(self) -> float:
        """Simulated latency, ``inf`` when it is not known."""
        return float("inf") if self.predicted_seconds is None else self.predicted_seconds

    @property
    def is_single(self) -> bool:
        """Whether one device runs all of it."""
        return len(self.plan.devices) == 1

    @property
    def parts(self) -> tuple[str, ...]:
        """Names of its compiled models that are not alike."""
        distinct = dict.fromkeys(self.plan.models)
        return (self.name, *(f"{self.name} (model {i})" for i in range(2, len(distinct) + 1)))

    @property
    def has_failed(self) -> bool:
        """Whether it left its latest race for another reason than being slower."""
        return bool(self.dropped) and (not self.times or self.dropped.startswith("failed"))


@dataclass(frozen=True)
class RateRow:
    """One way to run many requests, in requests per second.

    Attributes:
        name: What it is.
        requests: How many were in flight.
        predicted: By the cost table; ``None`` where there is none for it.
        synchronous: Measured with a thread per request that calls ``infer()``; ``None`` when it was not run.
        asynchronous: Measured with one thread that starts whichever request is idle.
        dropped: Why it was not run to the end, or an empty string.
        is_answer: Whether the answer is this.
        output_difference: See :class:`Candidate`.
    """

    name: str
    requests: int
    predicted: float | None
    synchronous: float | None
    asynchronous: float | None
    dropped: str = ""
    is_answer: bool = False
    output_difference: float | None = None

    @classmethod
    def of(cls, candidate: Candidate, *, is_answer: bool = False) -> RateRow:
        """What is known of a candidate for many requests."""
        waiting, queued = candidate.median(Load.WAITING), candidate.median(Load.QUEUED)
        return cls(
            candidate.name,
            candidate.plan.requests,
            None if candidate.predicted_seconds is None else 1 / candidate.predicted_seconds,
            1 / waiting if np.isfinite(waiting) else None,
            1 / queued if np.isfinite(queued) else None,
            candidate.dropped,
            is_answer,
            candidate.output_difference,
        )


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
        rate_bound: Requests per second that no mixture of placements exceeds, by the cost table.
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
        """What every command prints of it with ``--json``: kind and numbers, and the sentence for people.

        Times are in milliseconds, by candidate. Where a rate was asked for, there are ``rates`` and
        ``rate_bound_per_second``, too.
        """
        single = [c for c in self.candidates if not c.plan.serves_many]
        predicted = {c.name: c.predicted_seconds for c in single if c.predicted_seconds is not None}
        measured = {c.name: c.measured_seconds for c in single if c.measured_seconds is not None}
        rates = {"rates": [asdict(row) for row in self.rates], "rate_bound_per_second": self.rate_bound}
        quota = None
        if self.quota is not None:
            tails = {c.name: c.tail_seconds * 1e3 for c in self.candidates if c.tail_seconds is not None}
            quota = {
                "cores": self.quota.cores,
                "period_ms": self.quota.period_seconds * 1e3,
                "p99_ms": tails,
            }
        return {
            "chosen": self.chosen,
            "reason": self.kind.value,
            "decision": self.reason,
            "findings": [finding.to_json() for finding in self.findings],
            "mode": self.mode,
            "width": None if self.width is None else str(self.width),
            "lanes": self.winner.plan.lane_count or None,
            "predicted_ms": {name: seconds * 1e3 for name, seconds in predicted.items()},
            "measured_ms": {name: seconds * 1e3 for name, seconds in measured.items()},
            "also_proposed_by": {c.name: list(c.also) for c in self.candidates if c.also},
            "output_difference": self.output_difference,
            "disturbed": self.disturbed,
            "quota": quota,
            **(rates if self.rates else {}),
        }

    @property
    def winner(self) -> Candidate:
        """The candidate that was taken."""
        return self.candidate(self.chosen)

    @property
    def rates(self) -> tuple[RateRow, ...]:
        """All ways to run many requests that were considered, where that was asked for."""
        many = (c for c in self.candidates if c.plan.serves_many)
        return tuple(RateRow.of(c, is_answer=c.name == self.chosen) for c in many)

    @property
    def width(self) -> Width | None:
        """On how many threads of its one device the answer runs; ``None`` = as OpenVINO does by itself."""
        return self.winner.plan.width

    @property
    def threads(self) -> str:
        """On how many threads the answer runs, in words; empty where that is up to OpenVINO."""
        return "" if self.width is None else self.width.label

    @property
    def scheduled(self) -> Scheduled | None:
        """What the prediction of an answer on lanes rests on; ``None`` for any other one."""
        return self.winner.scheduled

    @property
    def output_difference(self) -> dict[str, float]:
        """How far the outputs of those that were compared are from the right ones, by name."""
        return {c.name: c.output_difference for c in self.candidates if c.output_difference is not None}

    def candidate(self, name: str) -> Candidate:
        """The candidate of that name.

        Raises:
            KeyError: There is none.
        """
        return next(c for c in self.candidates if c.name == name)
