"""What the commands show of an answer for many requests: rates, predicted and measured, and the bound."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

from ov_autoplace._base.text import counted, relative_difference
from ov_autoplace.cli.console import print_json, print_sentence, print_table, progress_bar

if TYPE_CHECKING:
    from pathlib import Path

    from ov_autoplace.cli.request import Request
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.placement.decision import RateRow
    from ov_autoplace.placement.placement import Placement

__all__ = ["bench_rate", "print_rates"]


def print_rates(title: str, rows: Sequence[RateRow], bound: float | None) -> None:
    """A table of rates; nothing where there are none."""
    if not rows:
        return
    print_table(
        title,
        (
            "requests a second of",
            ">in flight",
            ">predicted",
            ">measured\nwaiting threads",
            ">measured\nqueue",
            ">?outputs\ndiffer by",
            "~note",
        ),
        [
            (
                f"{row.name} *" if row.is_answer else row.name,
                row.requests,
                _rate(row.predicted),
                _rate(row.synchronous),
                _rate(row.asynchronous),
                relative_difference(row.output_difference) or None,
                row.dropped,
            )
            for row in rows
        ],
    )
    if bound is not None:
        print_sentence(
            f"No mixture of placements is predicted to exceed {counted(round(bound), 'request')} a second."
        )


def bench_rate(
    request: Request,
    machine: Machine,
    placement: Placement,
    seconds: float,
    report: Path | None,
    trace: Path | None,
    as_json: bool,
) -> None:
    """Run the answer against what OpenVINO offers for a rate, in turns and called in both ways.

    Args:
        request: The model.
        machine: Its devices.
        placement: The answer, with a plan for a rate.
        seconds: For all measuring.
        report: The page to write, if any.
        trace: The same of the trace.
        as_json: For programs.
    """
    from ov_autoplace.cli.outputs import save_placement
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.decide.rate_again import run_again
    from ov_autoplace.graph.prepare import prepare
    from ov_autoplace.placement.plan import PoolPlan

    plan = placement.plan
    assert isinstance(plan, PoolPlan)
    decision = decision_of(placement)
    with progress_bar() as progress:
        progress(0, 1, "measure rates")
        prepared = prepare(request.model, machine.options.shapes)
        rows = run_again(machine, prepared, plan, seconds)
    if not as_json:
        title = f"{request.path} on {', '.join(machine.devices)}, run in turns"
        print_rates(title, rows, decision.rate_bound)
        print_sentence(f"AUTOPLACE: {decision.reason}")
    run = replace(placement, decision=replace(decision, rates=rows))
    save_placement(report, trace, request, run, machine.devices, machine.options, as_json)
    if as_json:
        print_json(
            {
                "model": str(request.path),
                "devices": list(machine.devices),
                **decision.to_json(),
                "rows": [asdict(row) for row in rows],
            }
        )


def _rate(value: float | None) -> str | None:
    return None if value is None else f"{value:,.0f}"
