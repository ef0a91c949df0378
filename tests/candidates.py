"""Candidates whose groups are on given devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.race import Race
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.plan.decision import Candidate, Decision, Load
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.plan import plan_of_groups

if TYPE_CHECKING:
    from ov_autoplace.measure.session import ProfilingSession

__all__ = ["FOUND", "detail", "kinds", "numbers", "on_groups", "race_of", "result_of"]

_Candidate = TypeVar("_Candidate", bound=Candidate)


FOUND = (Finding.of(Kind.GIVEN, "somebody", detail="a test"),)
"""What was found before."""


def on_groups(
    name: str,
    assignment: Sequence[int],
    seconds: float | None = None,
    samples: Sequence[float] = (),
    devices: tuple[str, ...] = ("D0", "D1"),
    kind: type[_Candidate] = Candidate,
    **known: Any,
) -> _Candidate:
    """A candidate that puts each of some groups on one device.

    Args:
        name: Who proposed it.
        assignment: Index into ``devices`` of each group.
        seconds: What is predicted.
        samples: What was measured, in seconds.
        devices: Names of the devices.
        kind: Its class.
        **known: Further fields.
    """
    chosen = np.asarray(assignment, dtype=np.int32)
    plan = plan_of_groups(devices, tuple(f"group{g}" for g in range(len(chosen))), chosen)
    times = {Load.STEADY: np.asarray(samples)} if len(samples) else {}
    return kind(name, plan, seconds, times=times, assignment=chosen, **known)


def race_of(
    session: object, table: CostTable, options: PlacerOptions | None = None, seconds: float = 1e6
) -> Race:
    """Races in a session that only plays one."""
    bench = Workbench(cast("ProfilingSession", session), table, Budget(seconds))
    return Race(bench, options or PlacerOptions())


def result_of(samples: Sequence[FloatArray], dropped: Sequence[str] = ()) -> SimpleNamespace:
    """What a race returns that measured this."""
    why = [*dropped, *[""] * (len(samples) - len(dropped))]
    medians = [np.median(own) if len(own) else np.inf for own in samples]
    return SimpleNamespace(
        entries=[SimpleNamespace(samples=own, dropped=d) for own, d in zip(samples, why, strict=True)],
        best=int(np.argmin(medians)),
        rounds=max(map(len, samples)),
        seconds=1.0,
    )


def kinds(decided: Verdict | Decision) -> list[Kind]:
    """What the findings say, in their order."""
    return [finding.kind for finding in decided.findings]


def numbers(decided: Verdict | Decision, kind: Kind) -> Mapping[str, float]:
    """The numbers of the one finding of a kind."""
    (finding,) = (finding for finding in decided.findings if finding.kind is kind)
    return finding.numbers


def detail(decided: Verdict | Decision, kind: Kind) -> str:
    """What the one finding of a kind quotes."""
    (finding,) = (finding for finding in decided.findings if finding.kind is kind)
    return finding.detail
