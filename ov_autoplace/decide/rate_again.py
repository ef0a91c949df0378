"""An answer for many requests, run once more beside what OpenVINO offers, for tables."""

from __future__ import annotations

from dataclasses import replace

from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.rate_candidates import Entrant, able_devices, hinted, without_hint
from ov_autoplace.decide.rate_race import compile_entrant, measure, rows_of
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.placement.decision import RateRow
from ov_autoplace.placement.rate_plan import RatePlan

__all__ = ["run_again"]


def run_again(
    machine: Machine, prepared: PreparedModel, plan: RatePlan, seconds: float
) -> tuple[RateRow, ...]:
    """Run a plan and everything that OpenVINO offers in turns; the plan's rows come last.

    Args:
        machine: Its options carry the hint.
        prepared: The model.
        plan: The answer.
        seconds: For all of it.

    Raises:
        ProfilingError: The plan cannot be run.
    """
    bare = without_hint(machine)
    answers = [Entrant("AUTOPLACE (queue)" if plan.dealt else "AUTOPLACE", (plan.base,))]
    if plan.dealt:
        answers.append(Entrant("AUTOPLACE (waiting threads)", plan.dealt, plan.order))
    with bare.open(prepared) as session:
        entrants = hinted(able_devices(bare, session), prepared)
        for entrant in entrants:
            try:
                compile_entrant(session, entrant)
            except ProfilingError as cause:
                entrant.dropped = f"cannot be run: {cause}"
        for entrant in answers:
            compile_entrant(session, entrant)
        measure(session, [*entrants, *answers], seconds, machine.options.seed, keep_all=True)
    return (*rows_of(entrants), *(replace(row, is_answer=True) for row in rows_of(answers)))
