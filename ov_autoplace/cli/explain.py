"""``ov-autoplace explain``: which op went where, and why."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, show
from ov_autoplace.cli.outputs import ReportFile, TraceFile, check_outputs, save_answer
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import OptionError

__all__ = ["explain"]


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
    from ov_autoplace.cli.request import open_model
    from ov_autoplace.explain.op_costs import op_costs

    request = open_model(model)
    known = request.given(affinity, devices) if affinity else request.annotated(devices)
    answer = request.explained(known or request.search(devices, options), devices, options)
    explanation = answer.explanation
    if op and not explanation.groups_matching(op):
        raise OptionError(f"--op {op!r} matches no op of {model}; patterns are shell-style, like '*/conv*'")
    rows = op_costs(explanation, request.op_types(constants=op is not None), op or "*")
    if not as_json:
        print_sentence(answer.decision.reason)
        for table in answer.op_tables(rows, op) if op or ops else answer.tables(top):
            show(table)
        for name, value in answer.facts():
            print_sentence(f"{name}: {value}")
    save_answer(report, trace, answer, as_json)
    if as_json:
        print_json(answer.to_json(rows, op, top))
