"""``ov-autoplace explain``: which op went where, and why."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.text import counted, relative_difference
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
from ov_autoplace.cli.ops import CANNOT, print_ops
from ov_autoplace.cli.outputs import ReportFile, TraceFile, changes_of, check_outputs, save_report, save_trace
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cli.rates import print_rates
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.explain.explanation import Explanation, GroupCost
    from ov_autoplace.explain.op_costs import OpCost
    from ov_autoplace.explain.timeline import Cut, Timeline
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
    ops: Annotated[
        bool,
        typer.Option(
            "--ops", help="A row for every op: its device, its cost on each device, its share of the time."
        ),
    ] = False,
    op: Annotated[
        str | None,
        typer.Option(metavar="PATTERN", help="The same for ops of this name pattern, with reasons."),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many groups and cuts to show.")] = 15,
    report: ReportFile = None,
    trace: TraceFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Show which op went where, and why; an annotated model is explained as it is annotated."""
    check_outputs(report, trace, [model])
    from ov_autoplace.cli.request import decision_of, open_model
    from ov_autoplace.explain.op_costs import op_costs

    request = open_model(model)
    known = request.given(affinity, devices) if affinity else request.annotated(devices)
    placement = known or request.search(devices, options)
    explanation = request.explanation(placement, devices, options)
    if op and not explanation.groups_matching(op):
        raise OptionError(f"--op {op!r} matches no op of {model}; patterns are shell-style, like '*/conv*'")
    decision = decision_of(placement)
    # What these ask for is the latency of one request.
    changes = [] if decision.rates else changes_of(explanation, options, decision.candidates)
    timeline = explanation.predicted
    rows = op_costs(explanation, request.op_types(constants=op is not None), op or "*")
    if not as_json:
        print_sentence(decision.reason)
        print_rates("Many requests in flight", decision.rates, decision.rate_bound)
        _print_source(decision)
        if op or ops:
            print_ops(explanation, rows)
        if op:
            _print_matching(explanation, op)
        elif not ops:
            _print(model, explanation, timeline, changes, top)
        _print_total(decision, explanation, timeline, changes)
    if report is not None:
        from ov_autoplace.report.contents import placement_contents

        contents = placement_contents(str(model), decision, explanation, changes, request.model)
        save_report(report, contents, as_json)
    save_trace(trace, str(model), explanation, as_json)
    if as_json:
        print_json(_report(model, decision, explanation, timeline, changes, rows, op, top))


def _report(
    model: Path,
    decision: Decision,
    explanation: Explanation,
    timeline: Timeline,
    changes: list[WhatIf],
    ops: list[OpCost],
    op: str | None,
    top: int,
) -> dict[str, Any]:
    schedule = explanation.schedule
    groups = explanation.groups_matching(op) if op else explanation.heaviest_groups(top)
    placed = stage_rows(timeline)
    return {
        "model": str(model),
        "devices": list(explanation.table.devices),
        **decision.to_json(),
        "also_proposed_by": [
            name for c in decision.candidates if c.name == decision.chosen for name in c.also
        ],
        "cost_source": explanation.table.source,
        "measured_ms": _measured_ms(decision),
        "predicted_ms": schedule.latency_seconds * 1e3,
        "bound_ms": _bound(changes),
        "transfer_ms": schedule.transfer_seconds * 1e3,
        "objective": explanation.objective,
        "lanes": lane_rows(timeline),
        "critical_path": path_rows(timeline),
        "subgraphs": [{**asdict(subgraph), **placed[subgraph.index]} for subgraph in explanation.subgraphs()],
        "groups": [asdict(group) for group in groups],
        "ops": [asdict(row) for row in ops],
        "left_on_slower": [asdict(group) for group in explanation.left_on_slower(top)],
        "cuts": [asdict(cut) for cut in explanation.cuts()[:top]],
        "what_if": [
            {**asdict(change), "matters": change.matters, "verdict": change.verdict} for change in changes
        ],
    }


def _print_source(decision: Decision) -> None:
    from ov_autoplace.cli.request import source_of

    print_sentence(source_of(decision))
    found = decision.output_difference
    if found:
        listed = ", ".join(f"{name} {relative_difference(difference)}" for name, difference in found.items())
        print_sentence(f"outputs differ by: {listed}")


def _print(
    model: Path, explanation: Explanation, timeline: Timeline, changes: list[WhatIf], top: int
) -> None:
    if explanation.place == "lane":
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
        "What would change the prediction",
        (
            "~if",
            ">predicted\nhere ms",
            ">predicted\nbest ms",
            ">predicted\ngain",
            "~best placement\nby prediction",
            "~measured",
            ">?ops\nmoved",
            "?optimal for\nthese costs",
        ),
        [
            (
                change.change,
                milliseconds(change.placed_seconds),
                milliseconds(change.best_seconds),
                f"{100 * change.gain:.1f} %",
                _answer(change),
                change.verdict,
                change.moved_ops or None,
                "yes" if change.proven else "no",
            )
            for change in changes
        ],
    )


def _answer(change: WhatIf) -> str | None:
    """The best placement by prediction, where it is another one."""
    if not change.moved_ops:
        return None
    too_little = not change.matters and not change.is_refuted
    return f"{change.answer} (too little)" if too_little else change.answer


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
        text = (
            f"{stage.subgraph}  {stage.device}  {milliseconds(stage.seconds)} ms  {counted(stage.ops, 'op')}"
        )
        if received:
            text += f"  after {counted(len(received), 'transfer')} of {milliseconds(sum(received))} ms"
        heaviest = sorted(stage.groups, key=lambda g: -own[g])[:_LEAVES]
        leaves = [(f"{milliseconds(float(own[g]))} ms  ", names[g]) for g in heaviest]
        rest = len(stage.groups) - len(leaves)
        branches.append((text, [*leaves, (f"and {counted(rest, 'other group')}", "")] if rest else leaves))
    left_out = len(timeline.stages) - len(branches)
    if left_out:
        branches.append((f"and {counted(left_out, 'shorter subgraph')}", []))
    print_tree(f"Subgraphs of {model} in the order in which they run", branches)


def _print_groups(title: str, explanation: Explanation, groups: list[GroupCost]) -> None:
    columns = explanation.columns
    part, where = ("submodel", "lane") if explanation.place == "lane" else ("subgraph", "device")
    print_table(
        title,
        ("group", "?type", ">?ops", f">?{part}", where, *(f">{d} ms" for d in columns), "~why"),
        [
            (
                group.name,
                group.op_type,
                group.ops,
                None if group.subgraph < 0 else group.subgraph,
                group.device,
                *(milliseconds(group.seconds[device]) or CANNOT for device in columns.values()),
                group.reason,
            )
            for group in groups
        ],
    )


def _print_matching(explanation: Explanation, pattern: str) -> None:
    """Why the groups of the ops that match are where they are."""
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


def _print_total(
    decision: Decision, explanation: Explanation, timeline: Timeline, changes: list[WhatIf]
) -> None:
    schedule = explanation.schedule
    total, crossing = milliseconds(schedule.latency_seconds), milliseconds(schedule.transfer_seconds)
    measured = _measured_ms(decision)
    source = explanation.table.source
    if measured is not None:
        threads = f" on {decision.width.label}" if decision.width else ""
        print_sentence(
            f"measured {milliseconds(measured / 1e3)} ms{threads}, the median of the race that decided"
        )
    where = " on all threads" if decision.width else ""
    if explanation.objective != "overlap":
        print_sentence(f"predicted {total} ms{where}, of which {crossing} ms transfers; costs are {source}")
        return
    idle = milliseconds(sum(lane.idle_seconds for lane in timeline.lanes))
    path = [step for step in timeline.path if step.kind == "subgraph"]
    bound = _bound(changes)
    print_sentence(
        f"predicted {total} ms, decided by {len(path)} of {counted(len(timeline.stages), 'submodel')}; all "
        f"lanes together are idle for {idle} ms, and {crossing} ms of transfers go on beside the work; "
        + ("" if bound is None else f"no schedule is predicted below {milliseconds(bound / 1e3)} ms; ")
        + f"costs are {source}"
    )


def _measured_ms(decision: Decision) -> float | None:
    """What the answer took in the race that decided; ``None`` where it was not run."""
    seconds = next((c.measured_seconds for c in decision.candidates if c.name == decision.chosen), None)
    return None if seconds is None else 1e3 * seconds


def _bound(changes: list[WhatIf]) -> float | None:
    """Milliseconds that no placement is predicted to beat at the costs as they are."""
    seconds = changes[0].bound_seconds if changes else None
    return None if seconds is None else seconds * 1e3
