"""A CPU on a part of its threads: who may win is estimated (``decide/widths.py``), who wins is measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from ov_autoplace._base.statistics import ESTIMATE_MARGIN
from ov_autoplace.cost.generic_target import SYNCHRONISATION_SECONDS
from ov_autoplace.cost.target import THREAD_SCALING
from ov_autoplace.decide.context import Context, Stage
from ov_autoplace.decide.verdict import Verdict
from ov_autoplace.decide.widths import (
    LONGEST_STOPPED_SECONDS,
    could_win,
    estimated_widths,
    narrow_seconds,
    width_candidate,
    widths_for,
)
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.graph.failing import can_crash_on_one_thread
from ov_autoplace.measure.sustained import race_seconds
from ov_autoplace.plan.decision import Candidate
from ov_autoplace.plan.findings import Finding, Kind

__all__ = ["Widths"]

# The largest share of a model's time that is waiting, as far as it is predicted and not bounded.
_USUALLY_SAVED = 0.6
# Racing a model with itself on fewer threads, besides compiling it.
_RACE_SECONDS = 0.6
# What that time is reserved for, and the most of what is left of a budget.
_PURPOSE, _MOST_RESERVED = "widths", 0.15
_RACED_WIDTHS = 3  # under a quota


class Widths(Stage):
    """Devices on fewer threads than OpenVINO gives them."""

    def estimate(self, context: Context) -> Verdict:
        """The verdict with the widths of its target's CPUs among the candidates.

        A width wins that is predicted faster by more than estimates can be wrong. Under a quota it is the
        geometric mean of mean latency and 99th percentile that has to be lower, and the percentile must not
        be higher.
        """
        machine, prepared = context.machine, context.prepared
        quota = None
        found = []
        for device in context.problem.table.devices:
            alone = context.verdict.alone(device)
            if alone is None:
                continue
            whole, widths = estimated_widths(machine, device, prepared.model, prepared.graph)
            if widths and alone is context.verdict.winner:
                quota = machine.quota
            for width, seconds in widths:
                expected = alone.expected_seconds + seconds - whole
                found.append(width_candidate(alone, device, width, expected))
        return _by_estimate(context.verdict, found, quota, "nothing was measured")

    def reserve(self, context: Context) -> None:  # noqa: D102
        if context.options.time_budget_ms is None:
            return
        found = self._challengers(context)
        if found:
            seconds = min(self._seconds(context, len(found)), _MOST_RESERVED * context.budget.free)
            context.budget.reserve(_PURPOSE, seconds)

    def propose(self, context: Context) -> list[Candidate]:
        """Widths that could beat the answer so far, those predicted fastest first."""
        context.budget.release(_PURPOSE)
        return self._challengers(context)

    def decide(self, context: Context, candidates: Sequence[Candidate]) -> Verdict:
        """Race them with the answer so far, and once more where only a setting may be why one failed."""
        if not candidates:
            return context.verdict
        with context.phase("measure"):
            return self._raced(context, list(candidates))

    def _raced(self, context: Context, found: list[Candidate]) -> Verdict:
        verdict = context.verdict
        context.allow(self._seconds(context, len(found)))
        answer = context.race.challenge(verdict, found)
        quota = context.machine.quota
        is_same_device = np.array_equal(found[0].assignment, verdict.winner.assignment)
        if quota is not None and is_same_device and not any(c.times or c.dropped for c in found):
            if can_crash_on_one_thread(context.prepared.model):  # nothing was compiled
                found = [_in_caller(c) if c.plan.width == Width(1) else c for c in found]
            return _by_estimate(verdict, found, quota, "the time budget ended before they could be run")
        failed = [c for c in found if c.dropped and c.plan.width == Width(1)]
        if not failed or answer.winner is not verdict.winner:
            return answer
        # Its setting lets OpenVINO compile a model otherwise than for all threads; that may be why it failed.
        again = replace(answer, findings=verdict.findings)
        return context.race.challenge(again, [_in_caller(c) for c in failed])

    @staticmethod
    def _seconds(context: Context, challengers: int) -> float:
        """What it takes to race so many widths with a device."""
        # Everybody is compiled once, and who wins a second time, with its rival.
        compilations, quota = (1 + challengers) + 2, context.machine.quota
        seconds = _RACE_SECONDS if quota is None else race_seconds(quota, 1 + challengers)
        return seconds + compilations * context.compile_seconds

    @staticmethod
    def _challengers(context: Context) -> list[Candidate]:
        machine, verdict, counted = context.machine, context.verdict, context.known.counted
        rivals = [c.seconds for c in verdict.candidates if c.plan.is_default and len(c.samples)]
        best = min([verdict.winner.seconds, *rivals])
        cores, quota = Cores.of_this_process().all, machine.quota
        found = []
        for column, device in zip(counted.columns, context.known.session.devices, strict=True):
            alone = verdict.alone(device)
            if alone is None or device not in counted.samples:
                continue
            seconds = float(np.median(counted.samples[device]))
            nodes = float(column.attribution.nodes_run.sum()) + column.other_nodes
            nodes *= sum(call.times for call in context.options.calls) or 1.0
            for width in widths_for(machine, device, context.prepared.model):
                share = cores / width.threads
                is_winner = quota is not None and alone is verdict.winner
                if (is_winner and seconds < LONGEST_STOPPED_SECONDS) or could_win(
                    seconds, nodes, share, best
                ):
                    guess = narrow_seconds(
                        seconds, nodes, share, SYNCHRONISATION_SECONDS, 0.0, THREAD_SCALING, _USUALLY_SAVED
                    )
                    found.append(width_candidate(alone, device, width, guess))
        found.sort(key=lambda candidate: _felt(candidate, quota))
        return found if quota is None else found[:_RACED_WIDTHS]


def _mean_and_tail(candidate: Candidate, quota: Quota | None) -> tuple[float, float]:
    """What inferences of a width, or of a CPU as a whole, are predicted to take one after another."""
    seconds = candidate.expected_seconds
    width = candidate.plan.width
    threads = Cores.of_this_process().all if width is None else width.threads
    return (seconds, seconds) if quota is None else quota.stretched(seconds, threads)


def _felt(candidate: Candidate, quota: Quota | None) -> float:
    """Geometric mean of the two."""
    return math.sqrt(math.prod(_mean_and_tail(candidate, quota)))


def _by_estimate(verdict: Verdict, found: Sequence[Candidate], quota: Quota | None, why: str) -> Verdict:
    """The verdict with widths that nobody ran among its candidates, see :meth:`Widths.estimate`.

    Args:
        verdict: Without them.
        found: The widths.
        quota: Which stops its winner and them; ``None`` = nothing does.
        why: Nobody ran them.
    """
    winner, candidates = verdict.winner, [*verdict.candidates, *found]
    tail = _mean_and_tail(winner, quota)[1]
    able = [candidate for candidate in found if quota is None or _mean_and_tail(candidate, quota)[1] <= tail]
    best = min(able, key=lambda candidate: _felt(candidate, quota), default=None)
    if best is None:
        return replace(verdict, candidates=candidates)
    gain = 1 - _felt(best, quota) / _felt(winner, quota)
    if gain < 0.001:
        return replace(verdict, candidates=candidates)
    if gain < ESTIMATE_MARGIN:
        note = Finding.of(Kind.NARROWER_BY_LITTLE, best.name, gain=100 * gain)
        return replace(verdict.noting(note), candidates=candidates)
    finding = Finding.of(Kind.NARROW_PREDICTED, best.name, winner.name, gain=100 * gain, detail=why)
    return replace(verdict, winner=best, findings=(finding,), candidates=candidates)


def _in_caller(candidate: Candidate) -> Candidate:
    """The same on one thread which is the calling one."""
    (device,) = candidate.plan.devices
    return width_candidate(candidate, device, Width(1, in_caller=True), candidate.expected_seconds)
