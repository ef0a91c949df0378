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
from ov_autoplace.errors import PlacementError, ProfilingError

if TYPE_CHECKING:
    from pathlib import Path

    from ov_autoplace._base.arrays import FloatArray
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.devices.widths import Width
    from ov_autoplace.measure.isolation.interface import Executable
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.measure.session import ProfilingSession
    from ov_autoplace.placement.placement import Placement

__all__ = ["bench"]

_MOST_SAMPLES = 1000
_PAUSED_SHARE = 0.5  # of the time to measure


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
    check_outputs(report, trace)
    from ov_autoplace.cli.request import decision_of, open_model
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
        recipes = _recipes(session, names, widths, placement, fitted.device_of)
        rows = _measure(session, recipes, placement, seconds)
        _mark_emulated(rows, machine, widths, placement)
        profiled = _profiled(session, placement, fitted.device_of) if report or trace else None
    decision = decision_of(placement)
    if as_json:
        print_json({"model": str(model), "devices": list(names), "decision": decision.reason, "rows": rows})
    else:
        _print(model, names, rows)
        print_sentence(f"AUTOPLACE: {decision.reason}")
    if report or trace:
        explanation = request.explanation(placement, ",".join(names), options)
        if report:
            from ov_autoplace.report.contents import bench_contents

            changes = changes_of(explanation, options)
            contents = bench_contents(str(model), decision, explanation, changes, rows, profiled)
            save_report(report, contents, as_json)
        save_trace(trace, str(model), explanation, as_json, profiled)


def _profiled(
    session: ProfilingSession, placement: Placement, device_of: Mapping[str, str]
) -> MeasuredRun | None:
    """The placement run once more with profiling on; a device that cannot do that is no reason to fail."""
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.measure.measured_run import measure_run, measure_schedule

    scheduled = decision_of(placement).scheduled
    try:
        if scheduled is not None:
            return measure_schedule(session, scheduled.plan, scheduled.table.devices)
        return measure_run(session, device_of, placement.width)
    except ProfilingError as cause:
        note(f"the measured run is left out: {cause}")
        return None


def _recipes(
    session: ProfilingSession,
    devices: Sequence[str],
    widths: Mapping[str, tuple[str, Width]],
    placement: Placement,
    device_of: Mapping[str, str],
) -> dict[str, Callable[[], Executable]]:
    """What is compared, and how it is compiled: among the losers, the best schedule that was not taken."""
    from ov_autoplace.cli.request import decision_of

    decision = decision_of(placement)
    listed = ",".join(devices)
    alone = {d: partial(session.compile_device, d) for d in devices}
    narrow = {name: partial(session.compile_width, *of) for name, of in widths.items()}
    virtual = {v: partial(session.compile_device, f"{v}:{listed}") for v in ("AUTO", "HETERO")}
    answer: Callable[[], Executable]
    lanes: dict[str, Callable[[], Executable]] = {}
    if decision.scheduled is not None:
        answer = partial(session.compile_schedule, decision.scheduled.plan)
    elif placement.width is not None:
        answer = partial(session.compile_width, placement.devices[0], placement.width)
    else:
        answer = partial(session.compile_placement, device_of)
    if decision.scheduled is None:
        schedules = [c for c in decision.candidates if c.scheduled is not None]
        best = min(schedules, key=lambda c: (c.seconds, c.promised_seconds), default=None)
        if best is not None and best.scheduled is not None:
            lanes[best.name] = partial(session.compile_schedule, best.scheduled.plan)
    return {**alone, **narrow, **virtual, **lanes, "AUTOPLACE": answer}


def _predicted(placement: Placement) -> dict[str, float | None]:
    """Simulated latencies by row."""
    from ov_autoplace.cli.request import decision_of

    decision = decision_of(placement)
    predicted = {c.name: c.predicted_seconds for c in decision.candidates}
    predicted["AUTOPLACE"] = predicted.get(decision.chosen, placement.latency_seconds)
    return predicted


def _measure(
    session: ProfilingSession,
    recipes: Mapping[str, Callable[[], Executable]],
    placement: Placement,
    seconds: float,
) -> list[dict[str, Any]]:
    """Rows of the result; a candidate that cannot be compiled has a note and no samples."""
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.decide.race import PAUSE_SECONDS, STEADY

    decision = decision_of(placement)
    predicted = _predicted(placement)
    submodels = {c.name: c.subgraphs for c in decision.candidates if c.scheduled is not None}
    has_lanes = bool(submodels)
    if decision.scheduled is not None:
        submodels["AUTOPLACE"] = submodels[decision.chosen]
    rows: list[dict[str, Any]] = []
    executables: dict[str, Executable] = {}
    with progress_bar() as progress:
        for done, (name, compile_it) in enumerate(recipes.items()):
            progress(done, len(recipes), f"compile {name}")
            row: dict[str, Any] = {"name": name, "median_ms": None, "ci95_ms": None, "samples": 0}
            row |= {"paused_median_ms": None, "paused_ci95_ms": None, "paused_samples": 0}
            row |= {"predicted_ms": _to_ms(predicted.get(name)), "subgraphs": None, "note": ""}
            rows.append(row)
            try:
                executables[name] = compile_it()
            except (PlacementError, ProfilingError) as cause:
                row["note"] = str(cause)
        by_name = {row["name"]: row for row in rows}
        parts = (("", 0.0, 1 - _PAUSED_SHARE), ("paused_", PAUSE_SECONDS, _PAUSED_SHARE))
        for prefix, pause_seconds, share in parts:
            running = {name: e for name, e in executables.items() if not by_name[name]["note"]}
            what = "measure after pauses" if pause_seconds else "measure"
            part = seconds * share

            def show(rounds: int, _: int, spent: float, what: str = what, part: float = part) -> None:
                progress(int(10 * spent), int(10 * part), f"{what}, round {rounds}")

            result = session.race(
                list(running.values()),
                part,
                min_rounds=_MOST_SAMPLES,  # nobody is dropped: the table shows them all
                max_rounds=_MOST_SAMPLES,
                names=list(running),
                pause_seconds=pause_seconds,
                **(STEADY if has_lanes else {}),
                progress=show,
            )
            for name, entry in zip(running, result.entries, strict=True):
                by_name[name]["subgraphs"] = submodels.get(name, running[name].subgraphs)
                by_name[name]["note"] = entry.dropped
                by_name[name] |= _latency(entry.samples, prefix)
    return rows


def _mark_emulated(
    rows: list[dict[str, Any]],
    machine: Machine,
    widths: Mapping[str, tuple[str, Width]],
    placement: Placement,
) -> None:
    """Say of rows that may run on a device whose times are made up that they are emulated."""
    from ov_autoplace.devices.names import is_emulated

    emulated = {device for device in machine.devices if is_emulated(machine.core, device)}
    for row in rows:
        device, _ = widths.get(row["name"], (row["name"], None))
        here = {device} if device in machine.devices else set(machine.devices)
        here = set(placement.to_dict().values()) if device == "AUTOPLACE" else here
        if here & emulated:
            row["note"] = "; ".join(filter(None, (row["note"], "emulated")))


def _latency(samples: FloatArray, prefix: str) -> dict[str, Any]:
    """Fields of a row; none without samples."""
    from ov_autoplace._base.statistics import median_interval

    if not len(samples):
        return {}
    median, low, high = median_interval(samples)
    return {
        f"{prefix}median_ms": median * 1e3,
        f"{prefix}ci95_ms": [low * 1e3, high * 1e3],
        f"{prefix}samples": len(samples),
    }


def _print(model: Path, devices: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> None:
    """The table, which fits 80 columns, and below it what has no room there."""
    rounds = [max(row[f"{prefix}samples"] for row in rows) for prefix in ("", "paused_")]
    print_table(
        f"{model} on {', '.join(devices)}, run in turns: medians in ms with 95 % intervals",
        ("name", ">back to back", ">after 3 ms idle", ">predicted"),
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
    print_sentence(f"{rounds[0]} rounds back to back, {rounds[1]} in which all rest before each inference")
    cut = [f"{row['name']} {row['subgraphs']}" for row in rows if (row["subgraphs"] or 1) > 1]
    if cut:
        print_sentence(f"subgraphs: {', '.join(cut)}")
    for row in rows:
        if row["note"]:
            print_sentence(f"{row['name']}: {row['note']}")


def _interval(median: float | None, interval: Sequence[float] | None) -> str | None:
    """A median with the wider half of its interval."""
    if median is None or interval is None:
        return None
    low, high = interval
    return f"{median:.3f} ± {max(median - low, high - median):.3f}"


def _number(value: float | None) -> str | None:
    return None if value is None else f"{value:.3f}"


def _to_ms(seconds: float | None) -> float | None:
    return None if seconds is None else seconds * 1e3
