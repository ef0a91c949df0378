"""``ov-autoplace bench``: devices alone, a CPU's widths, AUTO, default HETERO and AUTOPLACE, run in turns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
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
    from ov_autoplace.explain.candidates import CandidateRow
    from ov_autoplace.explain.explanation import Explanation
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
    from ov_autoplace.explain.candidates import candidates_table, measured_answer

    request = open_model(model)
    machine = Machine.of(request.core, devices, options)
    names, options = machine.devices, machine.options
    placement = request.annotated(names) or request.search(names, options)
    run = _rates if machine.wants_rate else _latencies
    found = run(request, machine, placement, seconds, bool(report or trace))
    decision, said = decision_of(placement), measured_answer(found.rows)
    if not as_json:
        print_sentence(f"{model} on {', '.join(names)}, run in turns; medians with 95 % intervals")
        show(candidates_table(found.rows, decision.rate_bound))
        for sentence in (*found.notes, f"AUTOPLACE: {decision.reason}", said):
            print_sentence(sentence)
    if report or trace:
        explanation = request.explanation(placement, names, options)
        beside = found.rows, found.tried(explanation)
        answer = Answer.of(str(model), decision, explanation, options, request.model, *beside)
        save_answer(report, trace, answer, as_json, found.profiled)
    if as_json:
        values = {"measured": said, "rows": found.values}
        print_json({"model": str(model), "devices": list(names), **decision.to_json(), **values})


@dataclass(frozen=True, slots=True)
class _Found:
    """What was run.

    Attributes:
        rows: The ways of running the model.
        values: The same for ``--json``.
        tried: What the rows say of placements that a cost table can name, the explained answer among them.
        profiled: The answer run once more with profiling on.
        notes: Sentences about how it was run.
    """

    rows: Sequence[CandidateRow]
    values: Sequence[dict[str, Any]]
    tried: Callable[[Explanation], Sequence[Candidate]] = lambda _: ()
    profiled: MeasuredRun | None = None
    notes: tuple[str, ...] = ()


def _rates(request: Request, machine: Machine, placement: Placement, seconds: float, _: bool) -> _Found:
    """The answer and what OpenVINO offers for many requests, called in both ways."""
    from ov_autoplace.decide.comparison import compared_rates
    from ov_autoplace.explain.candidates import rate_rows
    from ov_autoplace.graph.prepare import prepare
    from ov_autoplace.placement.decision import RateRow
    from ov_autoplace.placement.plan import PoolPlan

    plan = placement.plan
    assert isinstance(plan, PoolPlan)
    with progress_bar() as progress:
        progress(0, 1, "measure rates")
        found = compared_rates(machine, prepare(request.model, machine.options.shapes), plan, seconds)
    rows = [RateRow.of(candidate, is_answer=candidate is found[-1]) for candidate in found]
    return _Found(rate_rows(rows), [asdict(row) for row in rows])


def _latencies(
    request: Request, machine: Machine, placement: Placement, seconds: float, profile: bool
) -> _Found:
    """The answer and its rivals, one request at a time."""
    from ov_autoplace.cli.request import decision_of
    from ov_autoplace.decide.comparison import comparison
    from ov_autoplace.explain.candidates import bench_rows
    from ov_autoplace.placement.decision import Candidate, Load

    with comparison(machine, request.model, placement) as compared:
        with progress_bar() as progress:
            rows = compared.rows(seconds, progress)
        profiled = _profiled(compared) if profile else None

    def tried(explanation: Explanation) -> list[Candidate]:
        found = []
        for row in rows:
            if row["median_ms"] is None:
                continue
            times = {Load.STEADY: np.array([row["median_ms"] / 1e3])}
            found.append(Candidate(row["name"], compared.plans[row["name"]], times=times))
            if row["name"] == "AUTOPLACE":
                found[-1].assignment = explanation.assignment
                found[-1].scheduled = decision_of(placement).scheduled
        return found

    rounds = [max(row[f"{prefix}samples"] for row in rows) for prefix in ("", "paused_")]
    how = f"{counted(rounds[0], 'round')} back to back, {rounds[1]:,} in which all rest 3 ms before each"
    return _Found(bench_rows(rows), rows, tried, profiled, (f"{how} inference",))


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
