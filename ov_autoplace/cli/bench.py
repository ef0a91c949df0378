"""``ov-autoplace bench``: devices alone, a CPU's widths, AUTO, default HETERO and AUTOPLACE, run in turns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import note, print_json, print_sentence, progress_bar, show
from ov_autoplace.cli.outputs import ReportFile, TraceFile, check_outputs, save_answer
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import ProfilingError

if TYPE_CHECKING:
    from ov_autoplace.decide.comparison import Comparison
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.plan.decision import Candidate

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
    from ov_autoplace.decide.comparison import compared_rates, comparison
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.explain.candidates import candidates_table, measured_answer, row_of
    from ov_autoplace.graph.prepare import prepare

    request = open_model(model)
    machine = Machine.of(request.core, devices, options)
    names, options = machine.devices, machine.options
    placement, profiled = request.annotated(names) or request.search(names, options), None
    with progress_bar() as progress:
        if machine.wants_rate:
            progress(0, 1, "measure rates")
            found = compared_rates(machine, prepare(request.model, options.shapes), placement.plan, seconds)
        else:
            with comparison(machine, request.model, placement) as compared:
                found = compared.run(seconds, progress)
                profiled = _profiled(compared) if report or trace else None
    decision, rows = decision_of(placement), [row_of(c, chosen=c is found[-1]) for c in found]
    said = measured_answer(rows)
    if not as_json:
        print_sentence(f"{model} on {', '.join(names)}, run in turns; medians with 95 % intervals")
        show(candidates_table(rows, decision.rate_bound))
        for sentence in filter(None, (_rounds(found), f"AUTOPLACE: {decision.reason}", said)):
            print_sentence(sentence)
    if report or trace:
        save_answer(report, trace, request.explained(placement, names, options, found), as_json, profiled)
    if as_json:
        rows_json = [c.to_json() | {"answer_over": _over(found[-1], c)} for c in found]
        values = {"measured": said, "rows": rows_json}
        print_json({"model": str(model), "devices": list(names), **decision.to_json(), **values})


def _rounds(candidates: Sequence[Candidate]) -> str:
    """How often all of them were run, where latencies were measured."""
    from ov_autoplace.plan.decision import Load

    steady, paused = (max(len(c.on(load)) for c in candidates) for load in (Load.STEADY, Load.PAUSED))
    how = f"{counted(steady, 'round')} back to back, {paused:,} in which all rest 3 ms before each inference"
    return how if steady else ""


def _over(answer: Candidate, other: Candidate) -> dict[str, Any]:
    """The answer's time over another's, paired by round, by load."""
    from ov_autoplace._base.statistics import paired_ratio

    found = {}
    for load in answer.times:
        if len(other.on(load)):
            ratio = paired_ratio(answer.on(load), other.on(load))
            found[load.value] = {"median": ratio.median, "ci95": [ratio.low, ratio.high]}
    return found


def _profiled(compared: Comparison) -> MeasuredRun | None:
    """The placement run once more with profiling on; a device that cannot do that is no reason to fail."""
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.measure.measured_run import measure_run

    scheduled = decision_of(compared.placement).scheduled
    try:
        lanes = scheduled.table.devices if scheduled else ()
        return measure_run(compared.session, compared.plan, lanes)
    except ProfilingError as cause:
        note(f"the measured run is left out: {cause}")
        return None
