"""On which part of a CPU's threads a model should run: who may win is estimated, who wins is measured.

Running on fewer threads saves the time that threads wait for each other at every node, and costs the time
that their work takes on those that remain::

    seconds(width) = (seconds(all) - nodes x synchronisation x log2(all / width)) x (all / width) ^ scaling

On two cores, 85 networks were measured at 2.6 us a node (0.85 to 4.6) and at a scaling of about 0.7: work on
twice as many threads takes 0.6 of the time. A width is only compiled where it could win even if both were
better for it than was ever measured, so a model that takes long pays nothing for the question.

That holds where the cores are there for the model. Under a quota of processor time the default takes all of
them for a part of each period and none for the rest of it, however many nodes there are: no width is ruled
out there, and who wins is measured over whole periods (``measure/sustained.py``).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import openvino as ov

from ov_autoplace._base.budget import Budget
from ov_autoplace.cost.analytic import analytic_table, busy_groups, group_seconds
from ov_autoplace.cost.generic_target import SYNCHRONISATION_SECONDS, generic_target
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target import THREAD_SCALING
from ov_autoplace.decide.bounds import MINIMAL_GAIN
from ov_autoplace.decide.costs import Measured
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.proposals import ProposalSource
from ov_autoplace.decide.race import Race
from ov_autoplace.decide.verdict import ESTIMATE_MARGIN, Verdict
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.failing import can_fail
from ov_autoplace.graph.prepare import PreparedModel
from ov_autoplace.measure.sustained import race_seconds
from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.findings import Finding, Kind
from ov_autoplace.placement.plan import WholePlan
from ov_autoplace.problem.problem import Problem

__all__ = [
    "estimated",
    "is_worth_measuring",
    "narrow_seconds",
    "raced",
    "reserve",
    "width_candidate",
    "widths_for",
]

# In favour of fewer threads: what a node saves per halving, what an inference does, and how work scales.
_MOST_PER_NODE, _MOST_ONCE, _LEAST_SCALING = 5e-6, 10e-6, 0.3
# No model runs faster than at so many times the rates that are assumed for a machine without a profile.
_FASTER_THAN_ASSUMED = 2.0
# The largest share of a model's time that is waiting, as far as it is predicted and not bounded.
_USUALLY_SAVED = 0.6
# Racing a model with itself on fewer threads, besides compiling it.
_RACE_SECONDS = 0.6
# What that time is reserved for, and the most of what is left of a budget.
_PURPOSE, _MOST_RESERVED = "widths", 0.15
# Under a quota: how many widths are raced, and the longest inference on all threads for which it is done. One
# that takes so many periods is stopped in all of them on any number of threads.
_RACED_WIDTHS, _LONGEST_SECONDS = 3, 0.5


def widths_for(machine: Machine, device: str, model: ov.Model) -> tuple[Width, ...]:
    """The widths that a model may be given on a device, the narrowest first.

    None where the user chose how many threads there are, on a single core, and for a model whose shapes are
    not known: what is best for one shape may be slower than the default for another.

    Args:
        machine: The devices.
        device: One of them.
        model: With its shape computations folded.
    """
    widths = _possible_widths(machine, device, model)
    if not widths or not can_fail(model):
        return widths
    return tuple(replace(width, in_caller=width.threads == 1) for width in widths)


def _possible_widths(machine: Machine, device: str, model: ov.Model) -> tuple[Width, ...]:
    """:func:`widths_for`, whoever the thread of a single one belongs to."""
    is_dynamic = any(value.get_partial_shape().is_dynamic for value in model.inputs)
    return () if is_dynamic and not machine.options.shapes else machine.widths(device)


def is_worth_measuring(machine: Machine, device: str, model: ov.Model) -> bool:
    """Whether a width could beat a device's default, by the size of a model of which nothing is known yet.

    Args:
        machine: The devices.
        device: One of them.
        model: With unique names and its shape computations folded.

    Raises:
        OptionError: A shape does not fit.
    """
    widths = widths_for(machine, device, model)
    if not widths:
        return False
    target = machine.target or generic_target(machine.core, (device,))
    coarse = coarsen(extract(model, machine.options.shapes))
    nodes = int(busy_groups(coarse).sum())
    table = analytic_table(coarse, target, (device,))
    work = float(table.op_seconds.sum()) - nodes * target.device(device).op_overhead_seconds
    seconds = max(work, 0.0) / _FASTER_THAN_ASSUMED
    if machine.quota is not None and work < _LONGEST_SECONDS:
        return True
    cores = Cores.of_this_process().all
    return any(_could_win(seconds, nodes, cores / width.threads, seconds) for width in widths)


def raced(
    machine: Machine,
    known: Measured,
    prepared: PreparedModel,
    problem: Problem,
    verdict: Verdict,
    budget: Budget,
) -> Verdict:
    """The verdict after a race of its winner with a CPU on a part of its threads, where that could win.

    Args:
        machine: The devices.
        known: What was measured of the model on all threads.
        prepared: The model.
        problem: Its costs.
        verdict: The answer so far.
        budget: Grows by what this takes, unless the user gave it.
    """
    budget.release(_PURPOSE)
    found = _challengers(machine, known, prepared, verdict)
    if not found:
        return verdict
    options, quota = machine.options, machine.quota
    if options.time_budget_ms is None:
        budget.seconds += _seconds(machine, known, len(found))
    race = Race(known.session, problem, known.counted.samples, ProposalSource(()), options, budget)
    answer = race.challenge(verdict, found)
    is_same_device = np.array_equal(found[0].assignment, verdict.winner.assignment)
    if quota is not None and is_same_device and not any(len(c.samples) or c.dropped for c in found):
        # Nothing was compiled, so the setting is the one that compiles nothing otherwise.
        found = [_in_caller(c) if c.plan.width == Width(1) else c for c in found]
        return _by_estimate(verdict, found, quota, "the time budget ended before they could be run")
    failed = [c for c in found if c.dropped and c.plan.width == Width(1)]
    if not failed or answer.winner is not verdict.winner:
        return answer
    # Its setting lets OpenVINO compile a model otherwise than for all threads, which may be why it failed.
    return race.challenge(replace(answer, findings=verdict.findings), [_in_caller(c) for c in failed])


def reserve(
    machine: Machine, known: Measured, prepared: PreparedModel, verdict: Verdict, budget: Budget
) -> None:
    """Keep time for :func:`raced`, which does not let a budget grow that the user gave.

    Args:
        machine: The devices.
        known: What was measured of the model on all threads.
        prepared: The model.
        verdict: The fastest of the devices, with all of them.
        budget: The time that is divided.
    """
    budget.release(_PURPOSE)
    if machine.options.time_budget_ms is None:
        return
    found = _challengers(machine, known, prepared, verdict)
    if found:
        budget.reserve(_PURPOSE, min(_seconds(machine, known, len(found)), _MOST_RESERVED * budget.free))


def _seconds(machine: Machine, known: Measured, challengers: int) -> float:
    """What it takes to race so many widths with a device."""
    # Everybody is compiled once, and who wins a second time, with its rival.
    compilations = (1 + challengers) + 2
    compile_seconds = known.counted.compile_seconds / len(machine.devices)
    seconds = _RACE_SECONDS if machine.quota is None else race_seconds(machine.quota, 1 + challengers)
    return seconds + compilations * compile_seconds


def _challengers(
    machine: Machine, known: Measured, prepared: PreparedModel, verdict: Verdict
) -> list[Candidate]:
    """Widths that could beat an answer, to be raced with it, those that promise most first.

    Args:
        machine: The devices.
        known: What was measured of the model on all threads.
        prepared: The model.
        verdict: The answer so far, and all others; a width is for a device that may run the whole model.
    """
    counted = known.counted
    rivals = [c.seconds for c in verdict.candidates if c.plan.is_default and len(c.samples)]
    best = min([verdict.winner.seconds, *rivals])
    cores, quota = Cores.of_this_process().all, machine.quota
    found = []
    for column, device in zip(counted.columns, known.session.devices, strict=True):
        alone = verdict.alone(device)
        if alone is None or device not in counted.samples:
            continue
        seconds = float(np.median(counted.samples[device]))
        nodes = int(column.attribution.nodes_run.sum()) + column.other_nodes
        for width in widths_for(machine, device, prepared.model):
            share = cores / width.threads
            is_stopped = quota is not None and alone is verdict.winner and seconds < _LONGEST_SECONDS
            if is_stopped or _could_win(seconds, nodes, share, best):
                guess = narrow_seconds(
                    seconds, nodes, share, SYNCHRONISATION_SECONDS, 0.0, THREAD_SCALING, _USUALLY_SAVED
                )
                found.append(width_candidate(alone, device, width, guess))
    found.sort(key=lambda candidate: _felt(candidate, quota))
    return found if quota is None else found[:_RACED_WIDTHS]


def _mean_and_tail(candidate: Candidate, quota: Quota | None) -> tuple[float, float]:
    """What inferences of a width, or of a CPU as a whole, are predicted to take one after another."""
    seconds = candidate.promised_seconds
    width = candidate.plan.width
    threads = Cores.of_this_process().all if width is None else width.threads
    return (seconds, seconds) if quota is None else quota.stretched(seconds, threads)


def _felt(candidate: Candidate, quota: Quota | None) -> float:
    """Geometric mean of the two."""
    return math.sqrt(math.prod(_mean_and_tail(candidate, quota)))


def estimated(machine: Machine, table: CostTable, prepared: PreparedModel, verdict: Verdict) -> Verdict:
    """The verdict of ``ZERO_SHOT`` with the widths of its target's CPUs among the candidates.

    A width wins that is predicted faster by more than estimates can be wrong. Under a quota it is the
    geometric mean of mean latency and 99th percentile that has to be lower, and the percentile must not be
    higher.
    """
    target = machine.target or generic_target(machine.core, machine.devices)
    coarse = prepared.groups(machine.options.pins)
    quota = None
    found = []
    for d, device in enumerate(table.devices):
        alone = verdict.alone(device)
        if alone is None:
            continue
        for width in _possible_widths(machine, device, prepared.model):
            if width.cores:
                continue  # profiles know threads, not which cores they are on
            if alone is verdict.winner:
                quota = machine.quota
            seconds = float(group_seconds(coarse, target.device(device).on_threads(width.threads)).sum())
            change = seconds - float(table.op_seconds[:, d].sum())
            # Nothing was compiled, so the setting is the one that compiles nothing otherwise.
            width = replace(width, in_caller=width.threads == 1)
            found.append(width_candidate(alone, device, width, alone.promised_seconds + change))
    return _by_estimate(verdict, found, quota, "nothing was measured")


def _by_estimate(verdict: Verdict, found: Sequence[Candidate], quota: Quota | None, why: str) -> Verdict:
    """The verdict with widths that nobody ran among its candidates, see :func:`estimated`.

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
    return width_candidate(candidate, device, Width(1, in_caller=True), candidate.promised_seconds)


def width_candidate(alone: Candidate, device: str, width: Width, seconds: float) -> Candidate:
    """A device on a part of its threads, as far as it is known.

    Args:
        alone: The device as OpenVINO runs it by itself, or on another part.
        device: Its name.
        width: The part.
        seconds: What it is predicted to take.
    """
    plan = WholePlan(device, width)
    return Candidate(plan.name, plan, seconds, assignment=alone.assignment)


def _could_win(seconds: float, nodes: int, share: float, best: float) -> bool:
    least = narrow_seconds(seconds, nodes, share, _MOST_PER_NODE, _MOST_ONCE, _LEAST_SCALING)
    return least < (1 - MINIMAL_GAIN) * best


def narrow_seconds(
    seconds: float,
    nodes: int,
    share: float,
    per_node: float,
    once: float,
    scaling: float,
    most_saved: float = 1.0,
) -> float:
    """What a model takes on a part of the cores, see the head of this file.

    Args:
        seconds: What it takes on all of them.
        nodes: How many nodes are executed.
        share: All cores over those of the part.
        per_node: Seconds that each halving saves per node.
        once: Seconds that each halving saves per inference.
        scaling: Work on ``n`` times the cores is ``n`` to this power times as fast.
        most_saved: Share of ``seconds`` that can be waiting.
    """
    saved = min((nodes * per_node + once) * math.log2(share), most_saved * seconds)
    return float((seconds - saved) * share**scaling)
