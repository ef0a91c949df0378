"""How a placement was chosen: every candidate, what was predicted, what was measured, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Width
from ov_autoplace.placement.findings import Explained, Finding
from ov_autoplace.placement.plan import Plan

if TYPE_CHECKING:
    from ov_autoplace.cost.table import CostTable

__all__ = ["Candidate", "Decision", "RateRow", "Scheduled"]


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
        predicted_seconds: Simulated latency; ``None`` when no cost table was made.
        subgraphs: Number of subgraphs of HETERO.
        samples: Measured latencies in seconds, ``float64[n]``, empty when it was not run.
        dropped: Why it left the race, or an empty string.
        also: Names of the other sources that proposed the same placement.
        assignment: Device of each group of the cost table, ``int32[G]``; empty without a table.
        lower_bound_seconds: Proven bound below the latency of all placements, when its source proved one.
        scheduled: What its prediction rests on where its lanes work at once. ``assignment`` then has the
            device that runs most of each group, and ``subgraphs`` counts submodels.
        paused_samples: Measured like ``samples``, each after an idle gap; empty where only that was not run.
        tail_seconds: Where it was raced under a quota, the 99th percentile of its latencies; ``samples`` are
            then their means over whole periods of the quota.
        output_difference: How far what it computes is from what the first device computes, or from the right
            outputs where that device is wrong: see :mod:`ov_autoplace.measure.outputs`. ``None`` where it was
            not compared.
        is_wrong: That is more than precision explains, so it is not taken.
    """

    name: str
    plan: Plan
    predicted_seconds: float | None = None
    subgraphs: int = 1
    samples: FloatArray = field(default_factory=lambda: np.empty(0))
    dropped: str = ""
    also: tuple[str, ...] = ()
    assignment: IntArray = field(default_factory=lambda: np.empty(0, dtype=np.int32), repr=False)
    lower_bound_seconds: float | None = None
    scheduled: Scheduled | None = None
    paused_samples: FloatArray = field(default_factory=lambda: np.empty(0))
    tail_seconds: float | None = None
    output_difference: float | None = None
    is_wrong: bool = False

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
        is_answer: Whether the answer is this, or this for one of the two ways of calling it.
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
        rates: Where a rate was asked for: all ways to run many requests that were considered.
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
    rates: tuple[RateRow, ...] = ()
    rate_bound: float | None = None
    quota: Quota | None = None

    def __str__(self) -> str:
        return self.reason

    def to_json(self) -> dict[str, Any]:
        """What every command prints of it with ``--json``: kind and numbers, and the sentence for people.

        Times are in milliseconds, by candidate. Where a rate was asked for, there are ``rates`` and
        ``rate_bound_per_second``, too.
        """
        predicted = {c.name: c.predicted_seconds for c in self.candidates if c.predicted_seconds is not None}
        measured = {c.name: c.measured_seconds for c in self.candidates if c.measured_seconds is not None}
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
        compared: list[Candidate | RateRow] = [*self.candidates, *self.rates]
        return {c.name: c.output_difference for c in compared if c.output_difference is not None}

    def candidate(self, name: str) -> Candidate:
        """The candidate of that name.

        Raises:
            KeyError: There is none.
        """
        return next(c for c in self.candidates if c.name == name)
