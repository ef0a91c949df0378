"""``ov-autoplace explain``: which op went where, and why."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import (
    bytes_text,
    milliseconds,
    print_json,
    print_sentence,
    print_table,
    print_tree,
)
from ov_autoplace.cli.lanes import lane_rows, path_rows, print_lanes, print_submodels, stage_rows
from ov_autoplace.cli.outputs import ReportFile, TraceFile, changes_of, check_outputs, save_report, save_trace
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cli.rates import print_rates, rates_json
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.explain.explanation import Cut, Explanation, GroupCost
    from ov_autoplace.explain.timeline import Timeline
    from ov_autoplace.explain.what_if import WhatIf
    from ov_autoplace.placement.decision import Decision

__all__ = ["explain"]

_LEAVES = 3  # groups shown below a subgraph


@with_placer_options()
def explain(
    model: arguments.Model,
    *,
    devices: arguments.Devices = None,
    options: PlacerOptions,
    affinity: Annotated[
        Path | None, typer.Option(help="Explain this affinity file instead of searching.")
    ] = None,
    op: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Explain the ops of this name pattern.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many groups and cuts to show.")] = 15,
    report: ReportFile = None,
    trace: TraceFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Show which op went where, and why; an annotated model is explained as it is annotated."""
    check_outputs(report, trace)
    from ov_autoplace.cli.request import decision_of, open_model
    from ov_autoplace.explain.predicted import timeline_of

    request = open_model(model)
    known = request.given(affinity, devices) if affinity else request.annotated(devices)
    placement = known or request.search(devices, options)
    explanation = request.explanation(placement, devices, options)
    if op and not explanation.groups_matching(op):
        raise OptionError(f"--op {op!r} matches no op of {model}; patterns are shell-style, like '*/conv*'")
    changes = changes_of(explanation, options)
    decision = decision_of(placement)
    timeline = timeline_of(explanation)
    if as_json:
        print_json(_report(model, decision, explanation, timeline, changes, op, top))
    else:
        print_sentence(decision.reason)
        print_rates("Many requests in flight", decision.rates, decision.rate_bound)
        _print_source(decision)
        if op:
            _print_ops(explanation, op)
        else:
            _print(model, explanation, timeline, changes, top)
        _print_total(explanation, timeline, changes)
    if report is not None:
        from ov_autoplace.report.contents import placement_contents

        save_report(report, placement_contents(str(model), decision, explanation, changes), as_json)
    save_trace(trace, str(model), explanation, as_json)


def _report(
    model: Path,
    decision: Decision,
    explanation: Explanation,
    timeline: Timeline,
    changes: list[WhatIf],
    op: str | None,
    top: int,
) -> dict[str, Any]:
    schedule = explanation.schedule
    groups = explanation.groups_matching(op) if op else explanation.heaviest_groups(top)
    placed = stage_rows(timeline)
    return {
        "model": str(model),
        "devices": list(explanation.table.devices),
        "decision": decision.reason,
        "chosen": decision.chosen,
        "width": None if decision.width is None else str(decision.width),
        "also_proposed_by": [
            name for c in decision.candidates if c.name == decision.chosen for name in c.also
        ],
        **rates_json(decision),
        "cost_source": explanation.table.source,
        "predicted_ms": schedule.latency_seconds * 1e3,
        "bound_ms": _bound(changes),
        "transfer_ms": schedule.transfer_seconds * 1e3,
        "objective": explanation.objective,
        "lanes": lane_rows(timeline),
        "critical_path": path_rows(timeline),
        "subgraphs": [{**asdict(subgraph), **placed[subgraph.index]} for subgraph in explanation.subgraphs()],
        "groups": [asdict(group) for group in groups],
        "ops": dict(explanation.ops_matching(op)) if op else {},
        "left_on_slower": [asdict(group) for group in explanation.left_on_slower(top)],
        "cuts": [asdict(cut) for cut in explanation.cuts()[:top]],
        "what_if": [{**asdict(change), "matters": change.matters} for change in changes],
    }


def _print_source(decision: Decision) -> None:
    from ov_autoplace.cli.request import source_of

    print_sentence(source_of(decision))


def _print(
    model: Path, explanation: Explanation, timeline: Timeline, changes: list[WhatIf], top: int
) -> None:
    if explanation.objective == "overlap":
        print_lanes(model, timeline)
        print_submodels(explanation, timeline, top)
    else:
        _print_subgraphs(model, explanation, timeline, top)
    _print_groups("Heaviest groups of ops", explanation, explanation.heaviest_groups(top))
    slower = explanation.left_on_slower(top)
    if slower:
        _print_groups("On a slower device, those that lose the most first", explanation, slower)
    _print_cuts(explanation, top)
    print_table(
        "What would change the answer",
        ("if", ">this placement ms", ">best placement ms", ">gain", "best placement", ">ops moved", "proven"),
        [
            (
                change.change,
                milliseconds(change.placed_seconds),
                milliseconds(change.best_seconds),
                f"{100 * change.gain:.1f} %",
                change.answer if change.matters or not change.moved_ops else f"{change.answer} (too little)",
                change.moved_ops or None,
                "yes" if change.proven else "no",
            )
            for change in changes
        ],
    )


def _print_subgraphs(model: Path, explanation: Explanation, timeline: Timeline, top: int) -> None:
    """A tree in the order in which subgraphs run; of very many, those that take the most time."""
    names, own = explanation.table.names, timeline.group_seconds
    arriving: dict[int, list[float]] = {}
    for transfer in timeline.transfers:
        arriving.setdefault(transfer.cut.target_subgraph, []).append(transfer.cut.seconds)
    longest = sorted(timeline.stages, key=lambda stage: -stage.seconds)[:top]
    kept = {stage.subgraph for stage in longest}
    branches = []
    for stage in timeline.stages:
        if stage.subgraph not in kept:
            continue
        received = arriving.get(stage.subgraph, [])
        text = f"{stage.subgraph}  {stage.device}  {milliseconds(stage.seconds)} ms  {stage.ops} ops"
        if received:
            text += f"  after {len(received)} transfers of {milliseconds(sum(received))} ms"
        heaviest = sorted(stage.groups, key=lambda g: -own[g])[:_LEAVES]
        leaves = [f"{milliseconds(float(own[g]))} ms  {names[g]}" for g in heaviest]
        rest = len(stage.groups) - len(leaves)
        branches.append((text, [*leaves, f"and {rest} groups more"] if rest else leaves))
    left_out = len(timeline.stages) - len(branches)
    if left_out:
        branches.append((f"and {left_out} shorter subgraphs", []))
    print_tree(f"Subgraphs of {model} in the order in which they run", branches)


def _print_groups(title: str, explanation: Explanation, groups: list[GroupCost]) -> None:
    columns = explanation.columns
    print_table(
        title,
        ("group", "type", ">ops", ">subgraph", "device", *(f">{d} ms" for d in columns), "why"),
        [
            (
                group.name,
                group.op_type,
                group.ops,
                None if group.subgraph < 0 else group.subgraph,
                group.device,
                *(milliseconds(group.seconds[device]) for device in columns.values()),
                group.reason,
            )
            for group in groups
        ],
    )


def _print_ops(explanation: Explanation, pattern: str) -> None:
    """The ops that match, then the groups that they belong to: a group has one cost and one device."""
    print_table(
        f"Ops that match {pattern}",
        ("op", "belongs to"),
        [(name, group if group != name else None) for name, group in explanation.ops_matching(pattern)],
    )
    groups = explanation.groups_matching(pattern)
    _print_groups("Their groups", explanation, groups)
    names = {group.name for group in groups}
    cuts = [cut for cut in explanation.cuts() if cut.producer in names]
    if cuts:
        _print_cut_rows("Transfers of their results", cuts)


def _print_cuts(explanation: Explanation, top: int) -> None:
    cuts = explanation.cuts()
    if cuts:
        _print_cut_rows(f"Transfers, the dearest {min(top, len(cuts))} of {len(cuts)}", cuts[:top])


def _print_cut_rows(title: str, cuts: list[Cut]) -> None:
    print_table(
        title,
        ("made by", "from", "to", ">size", ">ms"),
        [
            (
                cut.producer,
                f"{cut.source_device} ({cut.source_subgraph})",
                f"{cut.target_device} ({cut.target_subgraph})",
                bytes_text(cut.bytes),
                milliseconds(cut.seconds),
            )
            for cut in cuts
        ],
    )


def _print_total(explanation: Explanation, timeline: Timeline, changes: list[WhatIf]) -> None:
    schedule = explanation.schedule
    total, crossing = milliseconds(schedule.latency_seconds), milliseconds(schedule.transfer_seconds)
    source = explanation.table.source
    if explanation.objective != "overlap":
        print_sentence(f"predicted {total} ms, of which {crossing} ms transfers; costs are {source}")
        return
    idle = milliseconds(sum(lane.idle_seconds for lane in timeline.lanes))
    path = [step for step in timeline.path if step.kind == "subgraph"]
    bound = _bound(changes)
    print_sentence(
        f"predicted {total} ms, decided by {len(path)} of {len(timeline.stages)} submodels; all lanes "
        f"together are idle for {idle} ms, and {crossing} ms of transfers go on beside the work; "
        + ("" if bound is None else f"no schedule takes less than {bound:.3f} ms; ")
        + f"costs are {source}"
    )


def _bound(changes: list[WhatIf]) -> float | None:
    """Milliseconds that no placement beats at the costs as they are."""
    seconds = changes[0].bound_seconds if changes else None
    return None if seconds is None else seconds * 1e3
