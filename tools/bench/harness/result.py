"""The one type that every section of the suite hands over, and its way into JSON and back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from typing import Any, Literal

import numpy as np

from ov_autoplace._base.statistics import Interval, median_interval

Kind = Literal["exact", "decided", "growth", "measured"]

FLOORS: dict[str, float] = {"exact": 0.002, "decided": 0.02, "growth": 0.8, "measured": 0.03}
"""How much a ratio of a kind may grow before the gate looks at intervals at all: in shares of itself, but for
``growth``, where it is added.

``exact`` depends on the code and the seed alone; ``decided`` on decisions, too, which another processor may
round otherwise; ``growth`` is an exponent of processor time, which other work on the machine shifted from 0.2
to 1: what becomes quadratic is found, not less; ``measured`` is a ratio of times."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as it is printed. Cells become text.

    Attributes:
        title: Above it.
        columns: Their headings.
        rows: A cell for each column.
        note: A sentence below it.
        published: Whether it stands on the page of results; tables of every detail are printed alone.
    """

    title: str
    columns: tuple[str, ...]
    rows: Iterable[Sequence[object]]
    note: str = ""
    published: bool = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "columns", tuple(self.columns))
        object.__setattr__(self, "rows", tuple(tuple(map(str, row)) for row in self.rows))


@dataclass(frozen=True, slots=True)
class Ratio:
    """A number that means the same on every machine; lower is better.

    Attributes:
        name: The same in every run, by which the gate finds it.
        value: The ratio.
        low, high: 95 % interval; equal to ``value`` for what does not vary from run to run.
        samples: Paired runs, or problems.
        kind: What it may depend on, see :data:`FLOORS`.
    """

    name: str
    value: float
    low: float
    high: float
    samples: int
    kind: Kind


@dataclass(frozen=True, slots=True)
class Claim:
    """What the documents say: a number, of which less is better, is at most ``limit``.

    Attributes:
        what: The number, in words.
        limit: What is claimed.
        reached: What was measured.
    """

    what: str
    limit: float
    reached: float

    @property
    def holds(self) -> bool:
        """Whether the measurement bears it out."""
        return self.reached <= self.limit


@dataclass(frozen=True, slots=True)
class Point:
    """One network in the picture: seconds with OpenVINO's default, and ours over them."""

    what: str
    seconds: float
    ratio: float


@dataclass(frozen=True, slots=True)
class Case:
    """One model or problem where ours lost or won: ``ratio`` is our time over the rival's."""

    what: str
    rival: str
    ratio: float
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """One section of the suite.

    Attributes:
        title: As a heading.
        tables: Medians, intervals and numbers of samples.
        ratios: For the regression gate.
        cases: Where ours lost or won.
        remarks: Sentences, such as what could not be run and why.
        data: Everything measured, for the file of samples only.
        claims: What the documents say, beside what was measured.
        points: Networks for the picture.
        command: What a reader types to repeat it; the suite fills it in.
    """

    title: str
    tables: tuple[Table, ...] = ()
    ratios: tuple[Ratio, ...] = ()
    cases: tuple[Case, ...] = ()
    remarks: tuple[str, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    claims: tuple[Claim, ...] = ()
    points: tuple[Point, ...] = ()
    command: str = ""

    @property
    def losing(self) -> tuple[Case, ...]:
        """Cases where the rival was as fast or faster, the largest difference first."""
        return tuple(sorted((c for c in self.cases if c.ratio >= 1), key=lambda case: -case.ratio))

    @property
    def winning(self) -> tuple[Case, ...]:
        """Cases where ours was faster, the largest difference first."""
        return tuple(sorted((c for c in self.cases if c.ratio < 1), key=lambda case: case.ratio))

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        kept = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "cases"}
        lists = ("tables", "ratios", "losing", "winning", "claims", "points")
        return kept | {name: [asdict(item) for item in getattr(self, name)] for name in lists}

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Result:
        """The opposite of :meth:`to_dict`, whether or not JSON made lists of tuples."""
        return cls(
            title=fields["title"],
            tables=tuple(Table(**table) for table in fields["tables"]),
            ratios=tuple(Ratio(**ratio) for ratio in fields["ratios"]),
            cases=tuple(Case(**case) for case in (*fields["losing"], *fields["winning"])),
            remarks=tuple(fields["remarks"]),
            data=fields.get("data", {}),
            claims=tuple(Claim(**claim) for claim in fields["claims"]),
            points=tuple(Point(**point) for point in fields["points"]),
            command=fields["command"],
        )


def exact_ratio(name: str, value: float, samples: int, kind: Kind = "exact") -> Ratio:
    """A ratio that a second run repeats."""
    return Ratio(name, value, value, value, samples, kind)


def measured_ratio(name: str, interval: Interval, samples: int) -> Ratio:
    """A ratio of times that were taken in turns."""
    return Ratio(name, interval.median, interval.low, interval.high, samples, "measured")


def geometric_mean(values: Sequence[float] | np.ndarray) -> float:
    """Of ratios or rates, all above 0."""
    return float(np.exp(np.mean(np.log(values))))


def milliseconds(samples: Sequence[float] | np.ndarray) -> str:
    """Median and 95 % interval of seconds, as a cell."""
    median, low, high = (1e3 * value for value in median_interval(np.asarray(samples)))
    digits = 4 if median < 0.1 else 3 if median < 10 else 2 if median < 100 else 1
    return f"{median:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def interval_cell(ratio: Interval, digits: int = 3) -> str:
    """A ratio with its interval, as a cell."""
    return f"{ratio.median:.{digits}f} [{ratio.low:.{digits}f}, {ratio.high:.{digits}f}]"


def percent(share: float) -> str:
    """A share (0.01 is one percent) as a cell, with no more digits than mean something."""
    return f"{100 * share:.2f}" if abs(share) < 10 else f"{100 * share:.0f}"
