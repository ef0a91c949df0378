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
)
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.explanation import Explanation, GroupCost
    from ov_autoplace.placement.decision import Decision

__all__ = ["explain"]


def explain(
    model: arguments.Model,
    devices: arguments.Devices = None,
    mode: arguments.Mode = None,
    target: arguments.Target = None,
    time_budget_ms: arguments.TimeBudget = None,
    pin: arguments.Pin = None,
    memory_limit: arguments.MemoryLimit = None,
    shape: arguments.Shape = None,
    policy: arguments.Policy = None,
    seed: arguments.Seed = None,
    config: arguments.Config = None,
    affinity: Annotated[
        Path | None, typer.Option(help="Explain this affinity file instead of searching.")
    ] = None,
    op: Annotated[
        str | None, typer.Option(metavar="PATTERN", help="Explain the ops of this name pattern.")
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="How many groups and cuts to show.")] = 15,
    as_json: arguments.Json = False,
) -> None:
    """Show which op went where, and why; an annotated model is explained as it is annotated."""
    options = arguments.placer_arguments(
        mode=mode,
        target=target,
        time_budget_ms=time_budget_ms,
        pin=pin,
        memory_limit=memory_limit,
        shape=shape,
        policy=policy,
        seed=seed,
        config=config,
    )
    from ov_autoplace.cli.request import assignment_of, decision_of, open_model
    from ov_autoplace.explanation import Explanation

    request = open_model(model)
    known = request.given(affinity, devices) if affinity else request.annotated(devices)
    placement = known or request.search(devices, options)
    table = request.cost_table(placement, devices, options)
    explanation = Explanation(table, assignment_of(placement, table))
    groups = explanation.groups_matching(op) if op else explanation.heaviest_groups(top)
    if op and not groups:
        raise OptionError(f"--op {op!r} matches no op of {model}; patterns are shell-style, like '*/conv*'")
    decision = decision_of(placement)
    if as_json:
        print_json(_report(model, decision, explanation, groups, top))
    else:
        _print(model, decision, explanation, groups, top)


def _report(
    model: Path, decision: Decision, explanation: Explanation, groups: list[GroupCost], top: int
) -> dict[str, Any]:
    schedule = explanation.schedule
    return {
        "model": str(model),
        "devices": list(explanation.table.devices),
        "decision": decision.reason,
        "chosen": decision.chosen,
        "also_proposed_by": [
            name for c in decision.candidates if c.name == decision.chosen for name in c.also
        ],
        "cost_source": explanation.table.source,
        "predicted_ms": schedule.latency_seconds * 1e3,
        "transfer_ms": schedule.transfer_seconds * 1e3,
        "subgraphs": [asdict(subgraph) for subgraph in explanation.subgraphs()],
        "groups": [asdict(group) for group in groups],
        "cuts": [asdict(cut) for cut in explanation.cuts()[:top]],
    }


def _print(
    model: Path, decision: Decision, explanation: Explanation, groups: list[GroupCost], top: int
) -> None:
    from ov_autoplace.cli.request import source_of

    table, schedule, cuts = explanation.table, explanation.schedule, explanation.cuts()
    print_sentence(decision.reason)
    print_sentence(source_of(decision))
    print_table(
        f"Subgraphs of {model}",
        (">subgraph", "device", ">ops", ">ms", "from", "to"),
        [
            (s.index, s.device, s.ops, milliseconds(s.seconds), s.first, s.last)
            for s in explanation.subgraphs()
        ],
    )
    print_table(
        "Groups of ops",
        ("group", "type", ">ops", ">subgraph", "device", *(f">{d} ms" for d in table.devices), "why"),
        [
            (g.name, g.op_type, g.ops, g.subgraph, g.device, *map(milliseconds, g.seconds.values()), g.reason)
            for g in groups
        ],
    )
    if cuts:
        print_table(
            f"Hand-overs, {min(top, len(cuts))} of {len(cuts)}",
            ("made by", "from", "to", ">size", ">ms"),
            [
                (
                    cut.producer,
                    f"{cut.source_device} ({cut.source_subgraph})",
                    f"{cut.target_device} ({cut.target_subgraph})",
                    bytes_text(cut.bytes),
                    milliseconds(cut.seconds),
                )
                for cut in cuts[:top]
            ],
        )
    total, crossing = milliseconds(schedule.latency_seconds), milliseconds(schedule.transfer_seconds)
    print_sentence(f"predicted {total} ms, of which {crossing} ms hand-overs; costs are {table.source}")
