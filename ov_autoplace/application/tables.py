"""What is shown of an application's decision: each plan with each of its loads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ov_autoplace._base.text import milliseconds
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.candidates import Joint, label_of
from ov_autoplace.application.race import Result
from ov_autoplace.application.workload import Demand
from ov_autoplace.errors import PlacementError
from ov_autoplace.explain.summary import Fact
from ov_autoplace.explain.tables import Table
from ov_autoplace.plan.decision import Candidate, Load

__all__ = ["answer_json", "facts", "parts_table", "plans_table"]

_OURS = 2  # of our plans that were not taken, the best


def plans_table(answer: ApplicationPlan) -> Table:
    """What every plan did that was run: a row for each load, and what counts in its first one."""
    decision, application = answer.decision, answer.application
    assert decision is not None
    assert application is not None
    default = decision.candidates[0]
    rows: list[tuple[str, ...]] = []
    strong: list[int] = []
    for joint in _shown(answer):
        result = answer.results[joint.name]
        is_chosen = joint is decision.winner
        for number, demand in enumerate(application.load if result.outcomes else ()):
            first = number == 0
            if is_chosen:
                strong.append(len(rows))
            rows.append(
                (
                    joint.name if first else "",
                    _gain(joint, default) if first else "",
                    f"{result.headroom:.2f}" if first and result.headroom else "",
                    demand.start,
                    _rate(result.rate(number)),
                    _expected(joint, demand) if not demand.is_open else "",
                    milliseconds(result.percentile(number, 50)),
                    milliseconds(result.percentile(number)),
                    _late(result, number, demand),
                    f"{result.cores:.2f}" if first else "",
                    _mebibytes(joint.memory_bytes) if first else "",
                )
            )
        if not result.outcomes:
            rows.append((joint.name, "", f"{result.headroom:.2f}", *[""] * 7, _mebibytes(joint.memory_bytes)))
    columns = (
        "~plan",
        ">over the\ndefault",
        ">headroom",
        "requests\nbegin at",
        ">a second",
        ">?predicted",
        ">p50 ms",
        ">p99 ms",
        ">late %",
        ">?cores\nbusy",
        ">?memory\nMiB",
    )
    failed = [joint for joint in decision.candidates if joint.dropped.startswith(("failed", "cannot"))]
    notes = tuple(f"{joint.name} {joint.dropped}." for joint in failed)
    return Table("All models at once", columns, rows, tuple(strong), notes)


def parts_table(answer: ApplicationPlan) -> Table:
    """How each model runs in the answer, and the properties that make any program run it so."""
    rows, memory = [], _memory(answer)
    for part in answer.plan.parts:
        runs = label_of(part.plan, with_device=True)
        size = _mebibytes(memory.get(part.name))
        rows.append((part.name, runs, str(part.callers), size, _properties(answer, part.name)))
    columns = ("model", "runs on", ">?callers", ">?memory\nMiB", "~properties")
    notes = ("All requests run in one thread, one after the other.",) if answer.plan.in_turn else ()
    return Table("The plan, in the order in which to compile", columns, rows, notes=notes)


def facts(answer: ApplicationPlan) -> Iterator[Fact]:
    """What is known of an answer in a few lines."""
    decision, application = answer.decision, answer.application
    assert decision is not None
    assert application is not None
    yield "chosen", decision.chosen
    yield "models", ", ".join(application.members)
    yield "devices", ", ".join(answer.plan.devices)
    result = answer.results[decision.chosen]
    if decision.rate_bound is not None:
        own = decision.winner.median(Load.APPLICATION)
        reached = result.headroom if application.is_open else 1 / own
        what = "headroom" if application.is_open else "rate, mean over the loads"
        yield what, _rate(reached)
        yield "no plan above", f"{_rate(decision.rate_bound)}, by what the models take alone"
    if decision.quota is not None:
        yield "quota", decision.quota.label
    if decision.disturbed:
        yield "other work", "disturbed the measurements"


def answer_json(answer: ApplicationPlan) -> dict[str, Any]:
    """What ``ov-autoplace application --json`` prints."""
    decision, application = answer.decision, answer.application
    assert decision is not None
    assert application is not None
    found = decision.to_json()
    for candidate, entry in zip(decision.candidates, found["candidates"], strict=True):
        result = answer.results.get(candidate.name)
        entry["rival"] = isinstance(candidate, Joint) and candidate.is_rival
        entry["loads"] = [] if result is None else _loads(result, application.load)
        entry["headroom"] = result.headroom or None if result is not None else None
        entry["cores"] = result.cores if result is not None and result.outcomes else None
        entry["memory_bytes"] = candidate.memory_bytes
    return {**found, "memory_bytes": _memory(answer), "plan": answer.plan.to_json()}


def _loads(result: Result, load: tuple[Demand, ...]) -> list[dict[str, Any]]:
    if not result.outcomes:
        return []
    return [
        {
            "start": demand.start,
            "rate_per_second": result.rate(number),
            "p50_ms": 1e3 * result.percentile(number, 50),
            "p99_ms": 1e3 * result.percentile(number),
            "late": None if demand.deadline_seconds is None else result.late(number, demand.deadline_seconds),
        }
        for number, demand in enumerate(load)
    ]


def _shown(answer: ApplicationPlan) -> list[Candidate]:
    """The answer, everything that people set by hand, and the best of ours, each that was run."""
    assert answer.decision is not None
    winner = answer.decision.winner
    known = answer.results
    ran = [c for c in answer.decision.candidates if c.name in known and known[c.name].is_known]
    others = [c for c in ran if isinstance(c, Joint) and not c.is_rival and c is not winner]
    others.sort(key=lambda c: c.median(Load.APPLICATION))
    rivals = [c for c in ran if isinstance(c, Joint) and c.is_rival and c is not winner]
    return [winner, *rivals, *others[:_OURS]]


def _gain(joint: Candidate, default: Candidate) -> str:
    """Its rates over those of OpenVINO's default, as the mean over the loads."""
    own, other = joint.median(Load.APPLICATION), default.median(Load.APPLICATION)
    known = len(joint.on(Load.APPLICATION)) and len(default.on(Load.APPLICATION))
    return f"{other / own:.2f}" if known else ""


def _expected(joint: Candidate, demand: Demand) -> str:
    """Predicted requests a second of a closed loop."""
    return _rate(joint.rates[demand.start]) if isinstance(joint, Joint) and joint.rates else ""


def _rate(rate: float) -> str:
    return f"{rate:,.0f}" if rate >= 100 else f"{rate:.3g}"


def _memory(answer: ApplicationPlan) -> dict[str, int | None]:
    """Bytes of each model as it runs in the answer."""
    winner = None if answer.decision is None else answer.decision.winner
    if not isinstance(winner, Joint) or answer.application is None:
        return {}
    sizes = [setting.memory_bytes for setting in winner.settings]
    return dict(zip(answer.application.members, sizes, strict=False))


def _mebibytes(size: int | None) -> str:
    return "" if size is None else f"{size / 2**20:.1f}"


def _late(result: Result, number: int, demand: Demand) -> str:
    deadline = demand.deadline_seconds
    return "" if deadline is None else f"{100 * result.late(number, deadline):.1f}"


def _properties(answer: ApplicationPlan, name: str) -> str:
    """What other programs have to set for a model."""
    try:
        _, properties = answer.properties(name)
    except PlacementError:
        return "none say it: compile it with this plan"
    return " ".join(f"{key}={value}" for key, value in properties.items()) or "none: OpenVINO's own"
