"""Many requests a second, as the hints THROUGHPUT and CUMULATIVE_THROUGHPUT ask for.

1. What OpenVINO offers is compiled: each device under its own hint, and all of them side by side.
2. A model that takes long gains nothing by how it is called, so on one device its hint is the answer.
3. On several devices the model is profiled, and its costs tell the best pipeline and the best mixture of
   placements.
4. These, copies of a narrow model and single ones in the calling thread are run against what OpenVINO offers,
   in turns, with waiting callers and with asynchronous requests.
5. Who is better in the mean and not worse in either way (``decide/rate_rule.py``) has to win once more,
   compiled anew; else OpenVINO's best is the answer.

Placements run on HETERO here, several requests of which overlap over the devices. Lanes inside a request are
the executor's; a compiled model of it would be one more
:data:`~ov_autoplace.plan.plan.Member`.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace

from ov_autoplace._base.statistics import CONVINCING_ROUNDS, ESTIMATE_MARGIN
from ov_autoplace.cost.table import CostTable
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.costs import Measured
from ov_autoplace.decide.outlook import Outlook
from ov_autoplace.decide.pools import able_devices, copies, copies_that_fit, hinted, mixed, other_bases
from ov_autoplace.decide.rate_rule import (
    RATE_LOADS,
    Pair,
    best_hint,
    chosen,
    finalists,
    were_loads_disturbed,
)
from ov_autoplace.decide.verdict import Verdict, sure_unrun
from ov_autoplace.decide.workbench import Workbench
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import AutoplaceError, PlacementError, ProfilingError
from ov_autoplace.measure.counting import count_devices
from ov_autoplace.measure.isolation.interface import Pool
from ov_autoplace.measure.loads import sample_seconds
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.mixture import Mixture
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import PoolPlan
from ov_autoplace.plan.simulator import simulate
from ov_autoplace.solvers.rate import mixture_and_whole
from ov_autoplace.solvers.solver import SolverOptions

__all__ = ["Rates", "enter_pools", "rate_seconds", "run_pools"]

_log = logging.getLogger("ov_autoplace")

_RACE_SECONDS = 3.0
# Beyond, waking a thread for a request is a small part of it.
_LONG_SECONDS = 2e-3
_TRIALS = 5
_FIRST = 0.5  # share of the time for races that the first one may take
_ROUNDS = 24
_NOT_CONFIRMED = "the time budget ended before anything else was confirmed to be better"


class Rates(Stage):
    """Ways to run many requests."""

    def __init__(self) -> None:
        self._field: list[Candidate] = []
        self._settled: Pair | None = None
        self._singles: dict[str, float] = {}  # requests per second of each device, by a cost table
        self._disturbed = False
        self._unprofiled = ""  # why there are no costs of the model

    def estimate(self, context: Context) -> Verdict:
        """The best device, unless another way is predicted better by more than estimates err."""
        machine, table = context.machine, context.problem.table
        mixture, whole = self._solved(context, table)
        own = device_properties(machine.core, table.devices, context.options.properties)
        self._field = hinted([d for d in table.devices if d in self._singles], context.prepared)
        self._predict()
        self._field = sure_unrun([*self._field, *mixed(mixture, whole, own)])
        bases = [c for c in self._field if len(c.plan.models) == 1]
        alone = _clearly_best([c for c in bases if len(c.plan.models[0].devices) == 1], None)
        base = _clearly_best(bases, alone)
        if base is None:
            raise PlacementError(context.problem.why_no_single)
        pool = _clearly_best([c for c in self._field if len(c.plan.models) > 1], base) or base
        answer = Pair(base, pool)
        return self._verdict(answer, Finding.of(Kind.RATE_PREDICTED, answer.name))

    def propose(self, context: Context) -> list[Candidate]:
        """What OpenVINO offers, and everything that could be better."""
        machine, prepared, session = context.machine, context.prepared, context.session
        devices = able_devices(machine, session)
        self._enter(context, hinted(devices, prepared))
        self._settled = self._only(context, devices)
        if self._settled is not None:
            return self._field
        if len(machine.devices) > 1:
            self._enter(context, self._profiled(context))
        if devices:
            fitting = copies_that_fit(session, devices)
            self._enter(context, other_bases(machine, devices, prepared))
            self._enter(context, copies(machine, devices, prepared, fitting))
        return self._field

    def decide(self, context: Context, candidates: Sequence[Candidate]) -> Verdict:
        """Race all of them, and the best ones again, compiled anew."""
        if self._settled is not None:
            finding = Finding.of(Kind.RATE_SETTLED, self._settled.name)
            return self._verdict(self._settled, finding)
        with context.phase("measure"):
            once = max(_RACE_SECONDS, rate_seconds(len(candidates)))
            context.allow(max(0.0, context.budget.spent + 2 * once - context.budget.seconds))
            if all(c.dropped for c in candidates):
                return self._not_run(context)
            run_pools(context.bench, candidates, _FIRST * context.budget.left)
            winner, reference = chosen(candidates), best_hint(candidates)
            if winner is None:
                raise self._failure()
            if reference is not None:
                return self._confirmed(context, reference)
            self._disturbed |= were_loads_disturbed(candidates)
            return self._verdict(winner, Finding.of(Kind.RATE_WITHOUT_RIVAL, winner.name))

    def _enter(self, context: Context, candidates: Sequence[Candidate]) -> None:
        """Compile candidates; those that cannot be are marked, and those that the time is too short for."""
        start = time.perf_counter()
        self._field += candidates
        with context.phase("compile"):
            enter_pools(context.bench, self._field)
        # A budget that nobody gave grows with what compiling takes.
        context.allow(time.perf_counter() - start)

    def _only(self, context: Context, devices: Sequence[str]) -> Pair | None:
        """The hint of the only device, where nothing else is worth measuring."""
        machine = context.machine
        hint = next((c for c in self._field if c.plan.is_default and not c.dropped), None)
        if len(machine.devices) > 1 or not devices or hint is None:
            return None
        only = Pair(hint, hint)
        if context.budget.left <= 0:
            return only
        try:
            if not Outlook.of(machine, devices[0], context.prepared.model).may_win:
                return only
        except AutoplaceError as cause:
            _log.debug("whether copies are worth measuring is not known: %s", cause)
        try:
            # Other work makes many an inference long, and none short.
            seconds = context.bench.shortest_seconds(hint, _TRIALS)
        except ProfilingError as cause:
            hint.dropped = f"cannot be run: {cause}"
            return None
        return only if seconds > _LONG_SECONDS else None

    def _profiled(self, context: Context) -> list[Candidate]:
        """The best pipeline and the best mixture by the costs of the model on all devices."""
        session, start = context.session, time.perf_counter()
        try:
            with context.phase("profile"):
                is_firm = context.options.time_budget_ms is not None
                counted = count_devices(session, context.budget, is_firm=is_firm)
                if counted is None:
                    return []
                self._disturbed = counted.was_disturbed
                transfers, _ = context.costs.transfers(session, thorough=False)
                table = context.costs.counted(Measured(session, counted), transfers).table
                mixture, whole = self._solved(context, table)
        except (ProfilingError, PlacementError) as cause:
            _log.info("pipelines and mixtures are left out: %s", cause)
            self._unprofiled = str(cause)
            return []
        finally:
            context.allow(time.perf_counter() - start)
        self._predict()
        return mixed(mixture, whole, session.properties)

    def _solved(self, context: Context, table: CostTable) -> tuple[Mixture, Placement]:
        """The best mixture and the best placement for all requests."""
        problem = context.problem = context.machine.problem(table, "rate")
        options = SolverOptions(seed=context.options.seed)
        mixture, whole = mixture_and_whole(problem, options)
        whole = replace(whole, latency_seconds=simulate(table, whole.assignment, "rate").latency_seconds)
        context.rate_bound = mixture.bound_per_second
        self._singles = {
            table.devices[d]: 1 / float(problem.evaluator.latencies([a])[0])
            for d, a in problem.evaluator.singles().items()
        }
        return mixture, whole

    def _predict(self) -> None:
        """What the table says of the candidates that are there already."""
        for candidate in self._field:
            known = [self._singles[d] for d in candidate.plan.models[0].devices if d in self._singles]
            if known:
                candidate.predicted_seconds = 1 / sum(known)

    def _not_run(self, context: Context) -> Verdict:
        """What is estimated, where there was no time to run anybody.

        Raises:
            ProfilingError: There is another reason.
        """
        refusals = map(context.session.compilation_failure, able_devices(context.machine, context.session))
        why = next(filter(None, refusals), "") or self._unprofiled
        if why or context.budget.left > 0:
            raise self._failure(why)
        context.problem = context.machine.problem(context.costs.estimate(context.prepared))
        return self.estimate(context)

    def _failure(self, why: str = "") -> ProfilingError:
        """What to raise where nobody could be run, because of ``why`` or of what is known of them."""
        known = (why, *(candidate.dropped for candidate in self._field))
        reason = next(filter(None, known), "no device may run all of it")
        return ProfilingError(f"the model cannot be run for a rate of requests: {reason}")

    def _confirmed(self, context: Context, reference: Pair) -> Verdict:
        """The best of the finalists, if it beats OpenVINO's best compiled anew; else that. And why."""
        best = finalists(self._field)
        if all(c.plan.is_default for c in best):
            self._disturbed |= were_loads_disturbed(best)
            return self._none_better(reference)
        # What was measured before chose them, and counts no more.
        contenders = [replace(c, times={}) for c in best]
        context.bench.forget()
        enter_pools(context.bench, contenders)
        run_pools(context.bench, contenders, context.budget.left, keep_all=True)
        self._disturbed |= were_loads_disturbed(contenders)
        winner, reference = chosen(contenders), best_hint(contenders) or reference
        if winner is None or winner.is_hint:
            return self._none_better(reference)
        ratios = winner.ratios(reference)
        if ratios is None:
            return self._none_better(reference, _NOT_CONFIRMED)
        if min(ratio.high for ratio in ratios) >= 1:
            return self._none_better(reference)
        waiting, queued = ratios
        rates = {"waiting": 1 / waiting.median, "queued": 1 / queued.median}
        return self._verdict(winner, Finding.of(Kind.HIGHEST_RATE, winner.name, reference.name, **rates))

    def _none_better(self, reference: Pair, why: str = "") -> Verdict:
        why = why or "nothing else was better in both ways of calling it"
        return self._verdict(reference, Finding.of(Kind.NO_RATE_BETTER, reference.name, detail=why))

    def _verdict(self, answer: Pair, finding: Finding) -> Verdict:
        """The verdict for an answer, which takes the place of what it is made of among the candidates."""
        winner = answer.candidate()
        field = [winner if c.name == winner.name else c for c in self._field]
        candidates = field if winner in field else [*field, winner]
        return Verdict(winner, (finding,), candidates, self._disturbed)


def rate_seconds(candidates: int) -> float:
    """How long so many candidates have to run, in both ways, for a race that proves something."""
    return len(RATE_LOADS) * CONVINCING_ROUNDS * candidates * sample_seconds()


def enter_pools(bench: Workbench, candidates: Sequence[Candidate]) -> None:
    """Compile candidates, which then know how many requests they want; those that fail are marked.

    Those whose outputs are wrong are marked, too, unless nobody would be left.

    Args:
        bench: Compiles them.
        candidates: All of them, also those that are compiled or marked already.
    """
    for candidate in candidates:
        candidate.dropped = "" if candidate.is_wrong else candidate.dropped

    def is_affordable(candidate: Candidate, _: list[Candidate]) -> bool:
        return bench.is_compiled(candidate) or candidate.plan.is_default or bench.budget.left > 0

    asked = [c for c in candidates if not c.dropped]
    right = bench.enter(asked, is_affordable)
    wrong = [c for c in asked if c.is_wrong]
    for candidate in asked:
        if not right and candidate.is_wrong:
            candidate.dropped = ""
        elif candidate not in right and not candidate.dropped:
            candidate.dropped = "the time budget ended before it could be compiled"
    for candidate in (*right, *wrong):
        pool, plan = bench.executable(candidate), candidate.plan
        assert isinstance(pool, Pool)
        assert isinstance(plan, PoolPlan)
        candidate.plan = replace(plan, requests=pool.requests)


def run_pools(
    bench: Workbench, candidates: Sequence[Candidate], seconds: float, *, keep_all: bool = False
) -> None:
    """Race candidates first with waiting callers, then asynchronously; those that fail are marked.

    Args:
        bench: Has compiled them.
        candidates: Whom to run.
        seconds: For all of it.
        keep_all: Nobody leaves for being slower.
    """
    rounds = _ROUNDS if keep_all else CONVINCING_ROUNDS
    for load in RATE_LOADS:
        running = [c for c in candidates if not c.dropped]
        if not running:
            return
        part = seconds / len(RATE_LOADS)
        try:
            raced = bench.race(running, load, part, min_rounds=rounds, max_rounds=_ROUNDS)
        except ProfilingError as cause:
            for candidate in running:
                candidate.dropped = str(cause)
            return
        for candidate, timing in raced.timings.items():
            candidate.remember(load, timing.samples)
            candidate.dropped = timing.dropped if timing.has_failed else ""


def _clearly_best(candidates: Sequence[Candidate], known: Candidate | None) -> Candidate | None:
    """Who is predicted to have the highest rate, above a known one's by more than estimates err."""
    best = min(candidates, key=lambda c: c.expected_seconds, default=known)
    if known is None or best is None:
        return best
    return best if best.expected_seconds * (1 + ESTIMATE_MARGIN) < known.expected_seconds else known
