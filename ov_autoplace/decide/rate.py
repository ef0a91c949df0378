"""Deciding for many requests a second, as the hints THROUGHPUT and CUMULATIVE_THROUGHPUT ask for.

1. What OpenVINO offers is compiled: each device under its own hint, and all of them side by side.
2. A model that takes long gains nothing by how it is called, so on one device its hint is the answer.
3. On several devices the model is profiled, and its costs tell the best pipeline and the best mixture of
   placements.
4. These, copies of a narrow model and single ones in the calling thread are run against what OpenVINO offers,
   in turns, with waiting callers and with asynchronous requests (``decide/rate_race.py``).
5. Who is better in the mean and not worse in either way has to win once more, compiled anew; else OpenVINO's
   best is the answer.

Placements run on HETERO here, several requests of which overlap over the devices. Lanes inside a request are
the executor's; a compiled model of it would be one more
:data:`~ov_autoplace.placement.plan.Member`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.costs import CostSource, Measured
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.rate_candidates import (
    Entrant,
    able_devices,
    copies,
    hinted,
    mixed,
    other_bases,
    room_for_copies,
    without_hint,
)
from ov_autoplace.decide.rate_race import (
    Pair,
    best_hint,
    chosen,
    compile_entrant,
    confirmed,
    drop_wrong,
    finalists,
    measure,
    race_seconds,
    rows_of,
    were_entrants_disturbed,
)
from ov_autoplace.decide.unfolding import unfolded
from ov_autoplace.decide.verdict import ESTIMATE_MARGIN
from ov_autoplace.decide.widths import is_worth_measuring
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import AutoplaceError, PlacementError, ProfilingError
from ov_autoplace.graph.prepare import PreparedModel, prepare
from ov_autoplace.measure.counting import count_devices
from ov_autoplace.measure.model_file import UnreadableModelError, failing_on
from ov_autoplace.measure.outputs import OutputCheck
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import Candidate, Decision, RateRow
from ov_autoplace.placement.findings import Finding, Kind
from ov_autoplace.placement.fitting import fit_prepared
from ov_autoplace.placement.mixture import Mixture
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.plan import PoolPlan
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.rate import mixture_and_whole
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["place_for_rate"]

_log = logging.getLogger("ov_autoplace")

_RACE_SECONDS = 3.0
# Beyond, waking a thread for a request is a small part of it.
_LONG_SECONDS = 2e-3
_TRIALS = 5
_LEAST_FIRST = 0.5  # share of the time for races that the first one may take


def place_for_rate(machine: Machine, model: ov.Model) -> Placement:
    """How to run many requests of ``model``, which is not modified.

    Args:
        machine: Its options carry the hint.
        model: Any model.

    Returns:
        A placement whose plan is a :class:`~ov_autoplace.placement.plan.PoolPlan`; its ops are where
        the base has them.

    Raises:
        AutoplaceError: One of its kinds, when the request or the model cannot be met.
    """
    machine.check_rate()
    return _Decider(machine).place(model)


class _Decider:
    def __init__(self, machine: Machine) -> None:
        self._asked = machine
        self._machine = without_hint(machine)
        self._options = machine.options
        self._budget = Budget(machine.options.budget_seconds)
        self._costs = CostSource(self._machine, self._budget)
        self._seconds: dict[str, float] = {}
        self._entrants: list[Entrant] = []
        self._bound: float | None = None
        self._table: CostTable | None = None
        self._outputs: OutputCheck | None = None
        self._singles: dict[str, float] = {}  # requests per second of each device, by a cost table
        self._disturbed = False
        self._unprofiled = ""  # why there are no costs of the model

    def place(self, model: ov.Model) -> Placement:
        machine, options = self._machine, self._options
        prepared = prepare(model, options.shapes)
        if options.mode == "ZERO_SHOT":
            return self._estimated(prepared)
        if options.time_budget_ms == 0 and len(machine.devices) > 1:
            return self._estimated(prepared)
        try:
            opened = machine.open(prepared, self._budget)
        except UnreadableModelError as cause:
            return _Decider(self._asked.estimating(cause)).place(model)
        with opened as session:
            self._outputs = session.outputs
            session = session.untied() or session
            devices = able_devices(machine, session)
            self._enter(session, hinted(devices, prepared))
            settled = self._settled(prepared, devices)
            if settled is not None:
                return self._answer(prepared, settled, Finding.of(Kind.RATE_SETTLED, settled.base.name))
            if len(machine.devices) > 1:
                self._enter(session, self._profiled(session))
            if devices:
                self._enter(session, other_bases(machine, devices, prepared))
                self._enter(session, copies(machine, devices, prepared, room_for_copies(session, devices)))
            return self._raced(session, prepared)

    def _enter(self, session: ProfilingSession, entrants: Sequence[Entrant]) -> None:
        """Compile entrants; those that cannot be are marked, and those that the time is too short for."""
        start = time.perf_counter()
        for entrant in entrants:
            self._entrants.append(entrant)
            if not entrant.is_hint and self._budget.left <= 0:
                entrant.dropped = "the time budget ended before it could be compiled"
                continue
            try:
                compile_entrant(session, entrant)
            except ProfilingError as cause:
                entrant.dropped = f"cannot be run: {cause}"
        drop_wrong(session, self._entrants)
        taken = time.perf_counter() - start
        if self._options.time_budget_ms is None:
            self._budget.seconds += taken  # a budget that nobody gave grows with what compiling takes
        self._seconds["compile"] = self._seconds.get("compile", 0.0) + taken

    def _settled(self, prepared: PreparedModel, devices: Sequence[str]) -> Pair | None:
        """The hint of the only device, where nothing else is worth measuring."""
        hint = next((e for e in self._entrants if e.is_hint and not e.dropped), None)
        if len(self._machine.devices) > 1 or not devices or hint is None:
            return None
        only = Pair(hint, hint)
        if self._budget.left <= 0:
            return only
        try:
            if not is_worth_measuring(self._machine, devices[0], prepared.model):
                return only
        except AutoplaceError as cause:
            _log.debug("whether copies are worth measuring is not known: %s", cause)
        try:
            with failing_on(hint.name):
                # Other work makes many an inference long, and none short.
                seconds = float(np.min(hint.executables[0].run(_TRIALS)))
        except ProfilingError as cause:
            hint.dropped = f"cannot be run: {cause}"
            return None
        return only if seconds > _LONG_SECONDS else None

    def _profiled(self, session: ProfilingSession) -> list[Entrant]:
        """The best pipeline and the best mixture by the costs of the model on all devices."""
        start = time.perf_counter()
        try:
            is_firm = self._options.time_budget_ms is not None
            counted = count_devices(session, self._budget, is_firm=is_firm)
            if counted is None:
                return []
            known = Measured(session, counted)
            self._disturbed = counted.was_disturbed
            transfers, _ = self._costs.transfers(session, thorough=False)
            table = self._costs.counted(known, transfers).table
            mixture, whole = self._solved(table)
        except (ProfilingError, PlacementError) as cause:
            _log.info("pipelines and mixtures are left out: %s", cause)
            self._unprofiled = str(cause)
            return []
        finally:
            taken = time.perf_counter() - start
            if self._options.time_budget_ms is None:
                self._budget.seconds += taken
            self._seconds["profile"] = taken
        self._predict()
        return mixed(mixture, whole, session.properties)

    def _solved(self, table: CostTable) -> tuple[Mixture, Placement]:
        """The best mixture and the best placement for all requests."""
        self._table = table
        problem = Problem.of(table, self._options.memory_limits, self._options.pins, "rate")
        options = SolverOptions(seed=self._options.seed, policy=self._options.policy)
        mixture, whole = mixture_and_whole(problem, options)
        whole = replace(whole, latency_seconds=simulate(table, whole.assignment, "rate").latency_seconds)
        self._bound = mixture.bound_per_second
        self._singles = {
            table.devices[d]: 1 / float(problem.evaluator.latencies([a])[0])
            for d, a in problem.evaluator.singles().items()
        }
        return mixture, whole

    def _predict(self) -> None:
        """What the table says of the entrants that are there already."""
        for entrant in self._entrants:
            known = [self._singles[d] for d in entrant.members[0].devices if d in self._singles]
            if known:
                entrant.predicted = sum(known)

    def _raced(self, session: ProfilingSession, prepared: PreparedModel) -> Placement:
        start = time.perf_counter()
        if self._options.time_budget_ms is None:
            once = max(_RACE_SECONDS, race_seconds(len(self._entrants)))
            self._budget.seconds = max(self._budget.seconds, self._budget.spent + 2 * once)
        if all(e.dropped for e in self._entrants):
            refusals = map(session.compilation_failure, able_devices(self._machine, session))
            why = next(filter(None, refusals), "") or self._unprofiled
            if not why and self._budget.left <= 0:
                return self._estimated(prepared)
            raise self._not_run(why)
        measure(session, self._entrants, _LEAST_FIRST * self._budget.left, self._options.seed)
        winner, reference = chosen(self._entrants), best_hint(self._entrants)
        if winner is None:
            raise self._not_run()
        rows = rows_of(self._entrants)
        if reference is None:
            finding = Finding.of(Kind.RATE_WITHOUT_RIVAL, _name(winner))
            self._disturbed |= were_entrants_disturbed(self._entrants)
        else:
            winner, finding = self._confirmed(session, reference)
        self._seconds["measure"] = time.perf_counter() - start
        return self._answer(prepared, winner, finding, rows)

    def _not_run(self, why: str = "") -> ProfilingError:
        """What to raise where nobody could be run, because of ``why`` or of what is known of them."""
        known = (why, *(entrant.dropped for entrant in self._entrants))
        reason = next(filter(None, known), "no device may run all of it")
        return ProfilingError(f"the model cannot be run for a rate of requests: {reason}")

    def _confirmed(self, session: ProfilingSession, reference: Pair) -> tuple[Pair, Finding]:
        """The best of the finalists, if it beats OpenVINO's best compiled anew; else that. And why."""
        own = reference.base.name
        contenders = finalists(self._entrants)
        if all(e.is_hint for e in contenders):
            self._disturbed |= were_entrants_disturbed(contenders)
            return reference, _none_better(own)
        session.forget()
        for entrant in self._entrants:
            entrant.executables = ()
        for entrant in contenders:
            try:
                compile_entrant(session, entrant)
            except ProfilingError as cause:
                entrant.dropped = f"cannot be run again: {cause}"
        winner, rates, why = confirmed(session, contenders, self._budget, self._options.seed + 1)
        self._disturbed |= were_entrants_disturbed(contenders)
        if winner is not None:
            return winner, Finding.of(Kind.HIGHEST_RATE, _name(winner), own, **rates)
        best = best_hint(contenders) or reference
        return best, _none_better(best.base.name, why)

    def _estimated(self, prepared: PreparedModel) -> Placement:
        """Without running anything: the best device, unless another way promises more than estimates err."""
        machine = self._machine
        table = self._costs.estimate(prepared)
        mixture, whole = self._solved(table)
        own = device_properties(machine.core, table.devices, machine.options.properties)
        able = [d for d in table.devices if d in self._singles]
        self._entrants = hinted(able, prepared)
        self._predict()
        self._entrants += mixed(mixture, whole, own)
        for entrant in self._entrants:
            entrant.requests = entrant.fewest_requests

        bases = [e for e in self._entrants if e.is_base]
        alone = _clearly_best([e for e in bases if len(e.members[0].devices) == 1], None)
        base = _clearly_best(bases, alone)
        if base is None:
            raise PlacementError(machine.problem(table).why_no_single)
        dealt = _clearly_best([e for e in self._entrants if not e.is_base], base) or base
        answer = Pair(base, dealt)
        return self._answer(prepared, answer, Finding.of(Kind.RATE_PREDICTED, _name(answer)))

    def _answer(
        self, prepared: PreparedModel, answer: Pair, finding: Finding, rows: tuple[RateRow, ...] = ()
    ) -> Placement:
        base, dealt = answer.base, answer.dealt
        members = () if answer.is_one else dealt.members
        turns = () if answer.is_one or dealt.turns == tuple(range(len(members))) else dealt.turns
        name = _name(answer)
        said = () if self._outputs is None else self._outputs.findings(base.name)
        plan = PoolPlan(name, base.members[0], members, dealt.requests, turns)
        decision = Decision(
            chosen=name,
            findings=(finding, *said, *self._machine.remarks({})),
            mode=self._options.mode,
            candidates=(Candidate(name, plan),),
            seconds=dict(self._seconds),
            table=self._table,
            disturbed=self._disturbed,
            rates=tuple(
                replace(row, is_answer=row.name in (base.name, dealt.name))
                for row in rows or rows_of(self._entrants)
            ),
            rate_bound=self._bound,
            quota=self._machine.quota,
        )
        _log.info("%s", decision)
        placement = self._placed(prepared, base)
        return replace(placement, solver=name, own_plan=plan, decision=decision)

    def _placed(self, prepared: PreparedModel, base: Entrant) -> Placement:
        """Where the base has the ops."""
        if base.placement is not None:
            return unfolded(fit_prepared(prepared, base.placement))
        return Placement.on_device(prepared.given, base.members[0].devices[0])


def _clearly_best(entrants: Sequence[Entrant], known: Entrant | None) -> Entrant | None:
    """Who is predicted to have the highest rate, above a known one's by more than estimates err."""
    best = max(entrants, key=_promise, default=known)
    if known is None or best is None:
        return best
    return best if _promise(best) > (1 + ESTIMATE_MARGIN) * _promise(known) else known


def _promise(entrant: Entrant) -> float:
    return entrant.predicted or 0.0


def _none_better(name: str, why: str = "") -> Finding:
    why = why or "nothing else was better in both ways of calling it"
    return Finding.of(Kind.NO_RATE_BETTER, name, detail=why)


def _name(pair: Pair) -> str:
    return pair.base.name if pair.is_one else f"{pair.dealt.name}, for queues {pair.base.name}"
