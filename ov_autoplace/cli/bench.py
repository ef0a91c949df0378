"""``ov-autoplace bench``: devices alone, a CPU's widths, AUTO, default HETERO and AUTOPLACE, run in turns."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import note, print_json, print_sentence, print_table, progress_bar
from ov_autoplace.cli.outputs import ReportFile, TraceFile, changes_of, check_outputs, save_report, save_trace
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cli.rates import bench_rate
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import ProfilingError

if TYPE_CHECKING:
    from ov_autoplace.devices.widths import Width
    from ov_autoplace.measure.isolation.interface import Executable
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.measure.session import ProfilingSession
    from ov_autoplace.placement.placement import Placement

__all__ = ["bench"]

_MOST_SAMPLES = 1000


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
    """Measure each device alone, a CPU on fewer threads, AUTO, HETERO and AUTOPLACE in one table."""
    check_outputs(report, trace)
    from ov_autoplace.cli.request import assignment_of, decision_of, open_model
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.decide.widths import width_name, widths_for
    from ov_autoplace.devices.names import device_properties, resolve_devices
    from ov_autoplace.measure.room import room_of
    from ov_autoplace.measure.session import ProfilingSession
    from ov_autoplace.placement.fitting import fit

    request = open_model(model)
    names = resolve_devices(request.core, devices)
    placement = request.annotated(names) or request.search(",".join(names), options)
    if placement.rate is not None:
        bench_rate(request, names, placement, options, seconds, as_json)
        return
    properties = device_properties(request.core, names, options.properties)
    fitted = fit(request.model, placement)
    machine = Machine(request.core, names, options)
    widths = {width_name(d, w): (d, w) for d in names for w in widths_for(machine, d, fitted.model)}
    with ProfilingSession(
        core=request.core,
        model=fitted.model,
        devices=names,
        properties=properties,
        shapes=options.shapes,
        seed=options.seed,
        isolation=options.isolation,
        room=room_of(request.core, fitted.model, names, options.shapes, options.memory_limits),
    ) as session:
        rows = _measure(session, names, widths, placement, fitted.device_of, seconds)
        profiled = _profiled(session, fitted.device_of, placement.width) if report or trace else None
    decision = decision_of(placement)
    if as_json:
        print_json({"model": str(model), "devices": list(names), "decision": decision.reason, "rows": rows})
    else:
        print_table(
            f"{model} on {', '.join(names)}, run in turns",
            ("name", ">median ms", ">95 % interval", ">samples", ">predicted ms", ">subgraphs", "note"),
            [_cells(row) for row in rows],
        )
        print_sentence(f"AUTOPLACE: {decision.reason}")
    if report or trace:
        from ov_autoplace.explain.explanation import Explanation

        table = request.cost_table(placement, ",".join(names), options)
        explanation = Explanation(table, assignment_of(placement, table))
        if report:
            from ov_autoplace.report.contents import bench_contents

            changes = changes_of(explanation, options)
            contents = bench_contents(str(model), decision, explanation, changes, rows, profiled)
            save_report(report, contents, as_json)
        save_trace(trace, str(model), explanation, as_json, profiled)


def _profiled(
    session: ProfilingSession, device_of: Mapping[str, str], width: Width | None
) -> MeasuredRun | None:
    """The placement run once more with profiling on; a device that cannot do that is no reason to fail."""
    from ov_autoplace.measure.measured_run import measure_run

    try:
        return measure_run(session, device_of, width)
    except ProfilingError as cause:
        note(f"the measured run is left out: {cause}")
        return None


def _measure(
    session: ProfilingSession,
    devices: Sequence[str],
    widths: Mapping[str, tuple[str, Width]],
    placement: Placement,
    device_of: Mapping[str, str],
    seconds: float,
) -> list[dict[str, Any]]:
    """Rows of the result; a candidate that cannot be compiled has a note and no samples."""
    from ov_autoplace._base.statistics import median_interval
    from ov_autoplace.cli.request import decision_of

    listed = ",".join(devices)
    decision = decision_of(placement)
    predicted = {c.name: c.predicted_seconds for c in decision.candidates}
    predicted["AUTOPLACE"] = predicted.get(decision.chosen, placement.latency_seconds)
    alone = {d: partial(session.compile_device, d) for d in devices}
    narrow = {name: partial(session.compile_width, *of) for name, of in widths.items()}
    virtual = {v: partial(session.compile_device, f"{v}:{listed}") for v in ("AUTO", "HETERO")}
    if placement.width is None:
        answer = partial(session.compile_placement, device_of)
    else:
        answer = partial(session.compile_width, placement.devices[0], placement.width)
    recipes: dict[str, Callable[[], Executable]] = {**alone, **narrow, **virtual, "AUTOPLACE": answer}
    rows: list[dict[str, Any]] = []
    executables: dict[str, Executable] = {}
    with progress_bar() as progress:
        for done, (name, compile_it) in enumerate(recipes.items()):
            progress(done, len(recipes), f"compile {name}")
            row: dict[str, Any] = {"name": name, "median_ms": None, "ci95_ms": None, "samples": 0}
            row |= {"predicted_ms": _to_ms(predicted.get(name)), "subgraphs": None, "note": ""}
            rows.append(row)
            try:
                executables[name] = compile_it()
            except ProfilingError as cause:
                row["note"] = str(cause)
        result = session.race(
            list(executables.values()),
            seconds,
            min_rounds=_MOST_SAMPLES,  # nobody is dropped: the table shows them all
            max_rounds=_MOST_SAMPLES,
            names=list(executables),
            progress=lambda rounds, _, spent: progress(
                int(10 * spent), int(10 * seconds), f"measure, round {rounds}"
            ),
        )
    by_name = {row["name"]: row for row in rows}
    for name, entry in zip(executables, result.entries, strict=True):
        row = by_name[name]
        row["subgraphs"], row["note"] = executables[name].subgraphs, entry.dropped
        if len(entry.samples):
            median, low, high = median_interval(entry.samples)
            row |= {"median_ms": median * 1e3, "ci95_ms": [low * 1e3, high * 1e3]}
            row["samples"] = len(entry.samples)
    return rows


def _cells(row: dict[str, Any]) -> tuple[object, ...]:
    interval = row["ci95_ms"]
    return (
        row["name"],
        _number(row["median_ms"]),
        None if interval is None else f"{interval[0]:.3f} .. {interval[1]:.3f}",
        row["samples"],
        _number(row["predicted_ms"]),
        row["subgraphs"],
        row["note"],
    )


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
