"""An answer for many requests, run once more beside what OpenVINO offers: for tables, and to confirm it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.rate_candidates import (
    Entrant,
    able_devices,
    copies,
    hinted,
    other_bases,
    room_for_copies,
    without_hint,
)
from ov_autoplace.decide.rate_race import (
    Pair,
    compare_outputs,
    compile_entrant,
    drop_wrong,
    holds,
    measure,
    race_seconds,
    rows_of,
)
from ov_autoplace.decide.verdict import CONVINCING_ROUNDS
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import RateRow
from ov_autoplace.placement.plan import PoolPlan

__all__ = ["confirm_rate", "run_again"]

_SECONDS = 1.5


def run_again(
    machine: Machine, prepared: PreparedModel, plan: PoolPlan, seconds: float
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
    answers = [Entrant("AUTOPLACE (queue)" if plan.members else "AUTOPLACE", (plan.base,))]
    if plan.members:
        answers.append(Entrant("AUTOPLACE (waiting threads)", plan.members, plan.order))
    with bare.open(prepared, Budget(seconds)) as opened:
        session = opened.untied() or opened
        entrants = _compiled(session, hinted(able_devices(bare, session), prepared))
        for entrant in answers:
            compile_entrant(session, entrant)
        compare_outputs(session, [*entrants, *answers])
        measure(session, [*entrants, *answers], seconds, machine.options.seed, keep_all=True)
    return (*rows_of(entrants), *(replace(row, is_answer=True) for row in rows_of(answers)))


def confirm_rate(machine: Machine, prepared: PreparedModel, plan: PoolPlan) -> bool | None:
    """Whether a plan would be chosen again beside what OpenVINO offers, and a hint beside copies as well.

    Args:
        machine: Its options carry the hint.
        prepared: The model.
        plan: Was found on a busy machine.

    Returns:
        ``None`` where that cannot be told, because the machine is busy still.
    """
    bare = without_hint(machine)
    with bare.open(prepared, Budget(_SECONDS)) as opened:
        session = opened.untied() or opened
        devices = able_devices(bare, session)
        hints = _compiled(session, hinted(devices, prepared))
        base = next((hint for hint in hints if hint.members == (plan.base,)), Entrant("base", (plan.base,)))
        dealt = Entrant("dealt", plan.members, plan.order) if plan.members else base
        entrants = list(dict.fromkeys([*hints, base, dealt]))
        if base is dealt and base.is_hint:
            room = room_for_copies(session, devices)
            entrants += [*other_bases(bare, devices, prepared), *copies(bare, devices, prepared, room)]
        if entrants == [base]:
            return True  # there is nothing to compare with
        _compiled(session, entrants[len(hints) :])
        drop_wrong(session, entrants)
        seconds, seed = max(_SECONDS, race_seconds(len(entrants))), machine.options.seed
        measure(session, entrants, seconds, seed, keep_all=True)
        rounds = [len(own) for e in entrants if not e.dropped for own in (e.synchronous, e.asynchronous)]
        if 0 < min(rounds, default=0) < CONVINCING_ROUNDS:
            # The first round also warms up, so the others are no longer.
            measure(session, entrants, seconds * CONVINCING_ROUNDS / min(rounds), seed, keep_all=True)
    return holds(Pair(base, dealt), entrants)


def _compiled(session: ProfilingSession, entrants: Sequence[Entrant]) -> Sequence[Entrant]:
    """Entrants, compiled; those that cannot be are marked."""
    for entrant in entrants:
        try:
            compile_entrant(session, entrant)
        except ProfilingError as cause:
            entrant.dropped = f"cannot be run: {cause}"
    return entrants
