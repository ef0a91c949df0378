"""``ov-autoplace bench``: devices alone, a CPU's widths, AUTO, default HETERO and AUTOPLACE, run in turns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from ov_autoplace._base.text import counted, milliseconds, relative_difference
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import note, print_json, print_sentence, print_table, progress_bar
from ov_autoplace.cli.outputs import ReportFile, TraceFile, changes_of, check_outputs, save_report, save_trace
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cli.rates import bench_rate
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import ProfilingError

if TYPE_CHECKING:
    from pathlib import Path

    from ov_autoplace.decide.comparison import Comparison
    from ov_autoplace.explain.explanation import Explanation
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.placement.decision import Candidate

__all__ = ["bench"]


@with_placer_options()
def bench(
    model: arguments.Model,
    *,
    devices: arguments.Devices = None,
    options: PlacerOptions,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="How long to measure, all candidates together.")
    ] = 10.0,
    report: ReportFile = None,
    trace: TraceFile = None,
    as_json: arguments.Json = False,
) -> None:
    """Measure devices, fewer threads, AUTO, HETERO and AUTOPLACE in one table, with and without pauses."""
    check_outputs(report, trace, [model])
    from ov_autoplace.cli.request import decision_of, open_model
    from ov_autoplace.decide.comparison import comparison
    from ov_autoplace.decide.machine import Machine

    request = open_model(model)
    machine = Machine.of(request.core, devices, options)
    names, options = machine.devices, machine.options
    placement = request.annotated(names) or request.search(names, options)
    if machine.wants_rate:
        bench_rate(request, machine, placement, seconds, report, trace, as_json)
        return
    with comparison(machine, request.model, placement) as compared:
        with progress_bar() as progress:
            rows = compared.rows(seconds, progress)
        wanted = report or trace
        profiled = _profiled(compared) if wanted else None
    decision = decision_of(placement)
    if not as_json:
        _print(model, names, rows)
        print_sentence(f"AUTOPLACE: {decision.reason}")
        print_sentence(_measured_here(rows))
    if report or trace:
        explanation = request.explanation(placement, ",".join(names), options)
        if report:
            from ov_autoplace.report.contents import bench_contents

            changes = changes_of(explanation, options, _tried(rows, compared, explanation))
            contents = bench_contents(
                str(model), decision, explanation, changes, rows, profiled, request.model
            )
            save_report(report, contents, as_json)
        save_trace(trace, str(model), explanation, as_json, profiled)
    if as_json:
        print_json(
            {
                "model": str(model),
                "devices": list(names),
                **decision.to_json(),
                "measured": _measured_here(rows),
                "rows": rows,
            }
        )


def _measured_here(rows: Sequence[Mapping[str, Any]]) -> str:
    """What this benchmark says of the answer, which is another race than the one that decided."""
    from ov_autoplace.report.latency import Latency, measured_answer

    latencies = []
    for row in rows:
        low, high = row["ci95_ms"] or (None, None)
        median, low, high = (None if ms is None else ms / 1e3 for ms in (row["median_ms"], low, high))
        latencies.append(Latency(row["name"], None, median, low, high, chosen=row["name"] == "AUTOPLACE"))
    return measured_answer(latencies)


def _tried(
    rows: Sequence[Mapping[str, Any]], compared: Comparison, explanation: Explanation
) -> list[Candidate]:
    """What these rows say of the placements that a cost table can name: devices alone, and the answer."""
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.placement.decision import Candidate

    tried = []
    for row in rows:
        if row["median_ms"] is None:
            continue
        samples = np.array([row["median_ms"] / 1e3])
        candidate = Candidate(row["name"], compared.plans[row["name"]], samples=samples)
        if row["name"] == "AUTOPLACE":
            candidate.assignment = explanation.assignment
            candidate.scheduled = decision_of(compared.placement).scheduled
        tried.append(candidate)
    return tried


def _profiled(compared: Comparison) -> MeasuredRun | None:
    """The placement run once more with profiling on; a device that cannot do that is no reason to fail."""
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.measure.measured_run import measure_run

    scheduled = decision_of(compared.placement).scheduled
    try:
        lanes = () if scheduled is None else scheduled.table.devices
        return measure_run(compared.session, compared.plan, lanes)
    except ProfilingError as cause:
        note(f"the measured run is left out: {cause}")
        return None


def _print(model: Path, devices: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """The table, which fits 80 columns, and below it what has no room there."""
    rounds = [max(row[f"{prefix}samples"] for row in rows) for prefix in ("", "paused_")]
    print_table(
        f"{model} on {', '.join(devices)}, measured in turns: medians in ms with 95 % intervals",
        ("name", ">measured\nback to back", ">measured\nafter 3 ms idle", ">predicted"),
        [
            (
                row["name"],
                _interval(row["median_ms"], row["ci95_ms"]),
                _interval(row["paused_median_ms"], row["paused_ci95_ms"]),
                _number(row["predicted_ms"]),
            )
            for row in rows
        ],
    )
    print_sentence(
        f"{counted(rounds[0], 'round')} back to back, {rounds[1]:,} in which all rest 3 ms before each "
        "inference"
    )
    cut = [f"{row['name']} {row['subgraphs']}" for row in rows if (row["subgraphs"] or 1) > 1]
    if cut:
        print_sentence(f"subgraphs: {', '.join(cut)}")
    differ = [
        f"{row['name']} {relative_difference(row['output_difference'])}"
        for row in rows
        if row["output_difference"]
    ]
    if differ:
        print_sentence(f"outputs differ by: {', '.join(differ)}")
    for row in rows:
        if row["note"]:
            print_sentence(f"{row['name']}: {row['note']}")


def _interval(median: float | None, interval: Sequence[float] | None) -> str | None:
    """A median with the wider half of its interval, where there are enough samples for one."""
    if median is None or interval is None:
        return _number(median)
    low, high = interval
    half = max(median - low, high - median)
    return f"{milliseconds(median / 1e3)} ± {milliseconds(half / 1e3, like=median / 1e3)}"


def _number(value: float | None) -> str | None:
    return None if value is None else milliseconds(value / 1e3)
