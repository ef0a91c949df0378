"""The tables about a placement, each made once: terminals print them, and pages show them.

A new number is a column here, and is then in both.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ov_autoplace._base.text import bytes_text, counted, milliseconds
from ov_autoplace.explain.explanation import Explanation, GroupCost
from ov_autoplace.explain.op_costs import OpCost
from ov_autoplace.explain.timeline import Cut, LaneUse, Step, Timeline
from ov_autoplace.explain.what_if import WhatIf

__all__ = [
    "Table",
    "changes_table",
    "devices_table",
    "groups_table",
    "ops_table",
    "parts_table",
    "path_table",
    "slower_table",
    "transfers_table",
]

_REASONS = 3  # of a device's idle times
_BESIDE = "+ "  # in front of what runs together with the op above
_STEPS = {
    "subgraph": "at work",
    "transfer": "between them",
    "start": "before the first one",
    "rest": "outside all submodels",
}


@dataclass(frozen=True, slots=True)
class Table:
    """A table for people; a column that is empty in all rows is not shown.

    Attributes:
        title: What it shows.
        columns: Headings, which may have two lines; ``>`` in front of one marks numbers, ``~`` sentences, and
            then ``?`` what may be left out where there is no room.
        rows: Cells; empty where there is nothing to say.
        strong: Numbers of the rows that stand out.
        notes: Sentences below.
    """

    title: str
    columns: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    strong: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()


def devices_table(explanation: Explanation, runs: Mapping[str, Timeline]) -> Table:
    """What each device or lane has to do, and what it waits for.

    Args:
        explanation: The placement.
        runs: One request as it was ``measured`` and as it is ``predicted``, whatever there is of it.
    """
    names = dict.fromkeys(lane.name for run in runs.values() for lane in run.lanes)
    rows = [
        _use(explanation, lane, what)
        for name in names
        for what, run in runs.items()
        for lane in run.lanes
        if lane.name == name
    ]
    columns = (
        explanation.place,
        "run",
        ">?ops",
        f">?{explanation.part}s",
        ">busy ms",
        ">idle ms",
        ">busy %",
        ">?weights and\nresults",
        "~idle times, the longest first",
    )
    return Table(f"{explanation.place.capitalize()}s", columns, rows)


def _use(explanation: Explanation, lane: LaneUse, what: str) -> tuple[str, ...]:
    """The cells of a device or lane in one run."""
    ops, memory = "", ""
    if what == "predicted":
        ops = f"{lane.ops:,}"
        memory = bytes_text(explanation.schedule.memory_bytes[explanation.table.devices.index(lane.name)])
    reasons = list(lane.reasons.items())
    shown = [f"{_ms(seconds)} ms {reason}" for reason, seconds in reasons[:_REASONS]]
    if rest := sum(seconds for _, seconds in reasons[_REASONS:]):
        shown.append(f"{_ms(rest)} ms else")
    return (
        lane.name,
        what,
        ops,
        f"{lane.subgraphs:,}",
        _ms(lane.busy_seconds),
        _ms(lane.idle_seconds),
        f"{100 * lane.share:.1f}",
        memory,
        "; ".join(shown),
    )


def parts_table(explanation: Explanation, timeline: Timeline, most: int) -> Table:
    """The subgraphs, or submodels, that take the most time, as they run; those that decide stand out."""
    names, received = explanation.table.names, dict[int, float]()
    for transfer in timeline.transfers:
        target = transfer.cut.target_subgraph
        received[target] = received.get(target, 0.0) + transfer.cut.seconds
    longest = {stage.subgraph for stage in sorted(timeline.stages, key=lambda s: -s.seconds)[:most]}
    shown = [stage for stage in timeline.stages if stage.subgraph in longest]
    rows = [
        (
            str(stage.subgraph),
            stage.device,
            _ms(stage.start),
            _ms(stage.end),
            _ms(stage.seconds),
            f"{stage.ops:,}",
            _ms(received.get(stage.subgraph)),
            str(stage.after) if stage.after >= 0 else "",
            names[stage.groups[0]],
            names[stage.groups[-1]],
        )
        for stage in shown
    ]
    columns = (
        f">{explanation.part}",
        explanation.place,
        ">start ms",
        ">?end ms",
        ">ms",
        ">?ops",
        ">?transfers\nto it ms",
        ">?after",
        "from",
        "?to",
    )
    strong = tuple(i for i, stage in enumerate(shown) if timeline.has_slack and stage.is_critical)
    title = f"{explanation.part.capitalize()}s in the order in which they run"
    notes = ["Those on the critical path stand out."] if strong else []
    notes += _rest(most, len(timeline.stages), f"{explanation.part}s, the longest")
    return Table(title, columns, rows, strong, tuple(notes))


def path_table(runs: Mapping[str, Timeline], most: int) -> Table:
    """The critical paths, whose parts add up to the latency; nothing where everything is critical."""
    sums, cells = list[str](), dict[str, dict[str, Step]]()
    slack = any(run.has_slack for run in runs.values())
    for what, run in runs.items() if slack else ():
        kinds: dict[str, float] = {}
        for step in run.path:
            kinds[step.kind] = kinds.get(step.kind, 0.0) + step.seconds
            cells.setdefault(_part(step), {})[what] = step
        parts = " + ".join(f"{_ms(seconds)} ms {_STEPS[kind]}" for kind, seconds in kinds.items())
        sums.append(f"{what.capitalize()}: {_ms(run.seconds)} ms = {parts}.")
    longest = sorted(cells, key=lambda part: -max(step.seconds for step in cells[part].values()))[:most]
    paths = _in_order([list(map(_part, run.path)) for run in runs.values()])
    rows = [
        (
            part,
            *(
                _ms(value)
                for what in runs
                for step in [cells[part].get(what)]
                for value in ((step.start, step.seconds) if step is not None else (None, None))
            ),
        )
        for part in paths
        if part in longest
    ]
    heads = (f">{what}\n{how}" for what in runs for how in ("start ms", "ms"))
    rest = _rest(most, len(cells), "parts, the longest")
    return Table("Critical path", ("part", *heads), rows, notes=(*sums, *rest))


def _part(step: Step) -> str:
    return f"submodel {step.text}" if step.kind == "subgraph" else step.text


def _in_order(paths: Iterable[Sequence[str]]) -> list[str]:
    """The parts of the first path, and those of others before the next part that both have, or at the end."""
    found: list[str] = []
    for path in paths:
        waiting: list[str] = []
        for part in path:
            if part in found:
                place = found.index(part)
                found[place:place] = waiting
                waiting = []
            else:
                waiting.append(part)
        found += waiting
    return found


def groups_table(title: str, explanation: Explanation, groups: Sequence[GroupCost]) -> Table:
    """Groups with their cost on each device, and why they are where they are."""
    columns = explanation.columns
    rows = [
        (
            group.name,
            group.op_type,
            f"{group.ops:,}",
            "" if group.subgraph < 0 else str(group.subgraph),
            group.device,
            *(_ms(group.seconds[column]) or "cannot" for column in columns.values()),
            group.reason,
        )
        for group in groups
    ]
    costs = (f">{device} ms" for device in columns)
    heads = ("group", "?type", ">?ops", f">?{explanation.part}", explanation.place, *costs, "~why")
    return Table(title, heads, rows)


def slower_table(explanation: Explanation, most: int) -> Table:
    """The groups that another device would run faster, those that lose the most first."""
    title = "Left on a slower device"
    if len(explanation.columns) == 1:
        return Table(title, (), ())
    found = groups_table(title, explanation, explanation.left_on_slower(most))
    return found if found.rows else Table(title, (), (), notes=("Every group runs on its fastest device.",))


def transfers_table(title: str, cuts: Sequence[Cut], most: int) -> Table:
    """What is transferred, the dearest first."""
    rows = [
        (
            cut.producer,
            f"{cut.source_device} ({cut.source_subgraph})",
            f"{cut.target_device} ({cut.target_subgraph})",
            bytes_text(cut.bytes),
            _ms(cut.seconds),
        )
        for cut in cuts[:most]
    ]
    return Table(
        title, ("made by", "from", "to", ">size", ">ms"), rows, notes=_rest(most, len(cuts), "transfers")
    )


def changes_table(changes: Sequence[WhatIf]) -> Table:
    """Changed costs and their best answers; nothing where only the costs as they are could be asked about."""
    if len(changes) < 2 and not any(change.moved_ops for change in changes):
        changes = ()
    rows = [
        (
            change.change,
            _ms(change.placed_seconds),
            _ms(change.best_seconds),
            f"{100 * change.gain:.1f}",
            change.best,
            change.verdict,
            f"{change.moved_ops:,}" if change.moved_ops else "",
            "yes" if change.proven else "no",
        )
        for change in changes
    ]
    columns = (
        "~if",
        ">predicted\nhere ms",
        ">predicted\nbest ms",
        ">predicted\ngain %",
        "~best placement\nby prediction",
        "~measured",
        ">?ops\nmoved",
        "?optimal for\nthese costs",
    )
    strong = tuple(i for i, change in enumerate(changes) if change.matters)
    return Table("What would change the prediction", columns, rows, strong)


def ops_table(explanation: Explanation, ops: Sequence[OpCost]) -> Table:
    """A row for every op; those that a device runs together stand below each other.

    Args:
        explanation: The placement.
        ops: Of it, see :func:`~ov_autoplace.explain.op_costs.op_costs`.
    """
    columns, groups = explanation.columns, len({op.group for op in ops})
    how = "predicted" if explanation.table.is_estimate else explanation.table.source
    rows = [
        (
            op.name if op.name == op.group else _BESIDE + op.name,
            op.type,
            op.device,
            " " if op.share is None else f"{100 * op.share:.1f} %",
            *(" " if op.seconds is None else _ms(op.seconds[d]) or "cannot" for d in columns.values()),
        )
        for op in ops
    ]
    title = (
        f"{counted(len(ops), 'op')} in {counted(groups, 'group')}, times are {how} "
        f"(an op behind {_BESIDE.strip()} runs together with those above, whose time is that of all)"
    )
    heads = ("op", "?type", explanation.place, ">share", *(f">{device} ms" for device in columns))
    return Table(title, heads, rows)


def _rest(shown: int, count: int, what: str) -> tuple[str, ...]:
    return (f"{shown} of {count:,} {what}.",) if count > shown else ()


def _ms(seconds: float | None) -> str:
    return "" if seconds is None or not np.isfinite(seconds) else milliseconds(seconds)
