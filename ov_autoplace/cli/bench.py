"""``ov-autoplace bench``: devices alone, a CPU's widths, AUTO, default HETERO and AUTOPLACE, run in turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from ov_autoplace._base.text import counted
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import note, print_json, print_sentence, progress_bar, show
from ov_autoplace.cli.outputs import ReportFile, TraceFile, check_outputs, save_answer
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.errors import ProfilingError

if TYPE_CHECKING:
    from ov_autoplace.cli.request import Request
    from ov_autoplace.decide.comparison import Comparison
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.measure.measured_run import MeasuredRun
    from ov_autoplace.placement.decision import Candidate
    from ov_autoplace.placement.placement import Placement

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
    from ov_autoplace.decide.machine import Machine
    from ov_autoplace.explain.answer import Answer
    from ov_autoplace.explain.candidates import candidates_table, measured_answer, row_of

    request = open_model(model)
    machine = Machine.of(request.core, devices, options)
    names, options = machine.devices, machine.options
    placement = request.annotated(names) or request.search(names, options)
    run = _rates if machine.wants_rate else _latencies
    found, profiled = run(request, machine, placement, seconds, bool(report or trace))
    rows = [row_of(candidate, chosen=candidate is found[-1]) for candidate in found]
    decision, said = decision_of(placement), measured_answer(rows)
    if not as_json:
        print_sentence(f"{model} on {', '.join(names)}, run in turns; medians with 95 % intervals")
        show(candidates_table(rows, decision.rate_bound))
        for sentence in (*_rounds(found), f"AUTOPLACE: {decision.reason}", said):
            print_sentence(sentence)
    if report or trace:
        explanation = request.explanation(placement, names, options)
        if not machine.wants_rate:
            found[-1].assignment, found[-1].scheduled = explanation.assignment, decision.scheduled
        tried = () if machine.wants_rate else [candidate for candidate in found if candidate.times]
        answer = Answer.of(str(model), decision, explanation, options, request.model, rows, tried)
        save_answer(report, trace, answer, as_json, profiled)
    if as_json:
        values = {"measured": said, "rows": [candidate.to_json() for candidate in found]}
        print_json({"model": str(model), "devices": list(names), **decision.to_json(), **values})


def _rates(
    request: Request, machine: Machine, placement: Placement, seconds: float, _: bool
) -> tuple[tuple[Candidate, ...], MeasuredRun | None]:
    """The answer and what OpenVINO offers for many requests, called in both ways; the answer comes last."""
    from ov_autoplace.decide.comparison import compared_rates
    from ov_autoplace.graph.prepare import prepare
    from ov_autoplace.placement.plan import PoolPlan

    plan = placement.plan
    assert isinstance(plan, PoolPlan)
    with progress_bar() as progress:
        progress(0, 1, "measure rates")
        prepared = prepare(request.model, machine.options.shapes)
        return compared_rates(machine, prepared, plan, seconds), None


def _latencies(
    request: Request, machine: Machine, placement: Placement, seconds: float, profile: bool
) -> tuple[tuple[Candidate, ...], MeasuredRun | None]:
    """The answer and its rivals, one request at a time; the answer comes last, with its run in detail."""
    from ov_autoplace.decide.comparison import comparison

    with comparison(machine, request.model, placement) as compared:
        with progress_bar() as progress:
            found = compared.run(seconds, progress)
        return found, _profiled(compared) if profile else None


def _rounds(candidates: Sequence[Candidate]) -> Iterator[str]:
    """How often all of them were run."""
    from ov_autoplace.placement.decision import Load

    steady, paused = (max(len(c.on(load)) for c in candidates) for load in (Load.STEADY, Load.PAUSED))
    if steady:
        how = f"{counted(steady, 'round')} back to back, {paused:,} in which all rest 3 ms before each"
        yield f"{how} inference"


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
