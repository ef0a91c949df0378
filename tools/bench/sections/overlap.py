"""Lanes that work at once over the best width: networks that branch, and networks where lanes lose.

Each network is placed in a process of its own, once by default (what a user gets) and once with the executor
demanded (the best schedule, whether or not it wins). That schedule, the widths of the CPU and the answer are
compiled several times each and run in turns: back to back, and once after each pause of 3 ms, when lanes
and threads have gone to sleep. The best width is the one with the lowest median back to back; an answer that
is a width is measured like any other, so that its ratio shows the noise.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
import openvino as ov

import ov_autoplace
from harness.copies import race_copies
from harness.process import Pieces
from harness.result import Case, Result, Table, bar, interval_cell, measured_ratio
from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace._core import Profiler
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.widths import widths_for
from ov_autoplace.errors import AutoplaceError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.decision import Candidate
from ov_autoplace.placement.plan import LanePlan, Plan, WholePlan
from ov_autoplace.placement.planning import lane_plan
from ov_autoplace.placement.simulator import simulate
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers.tasks import task_graphs
from problems import branching

__all__ = ["compare", "run"]

_DEVICE, _LANES, _ANSWER = "CPU", "lanes", "answer"
_PAUSE, _COPIES, _SECONDS, _TIMEOUT = 3e-3, 2, 2.0, 240.0
# A lane that others' samples let fall asleep wakes up within the first of several inferences.
_SAMPLE = 5e-3
_WANTED, _WANTED_NETWORKS, _WANTED_KINDS = 0.85, 12, 6
_MOST = 1.02  # slower than this is a loss that counts
_TOWERS = {f"two towers/{layers}x{width}": (layers, width) for layers, width in ((16, 128), (16, 512))}
_QUICK = ("two towers/16x512", "siamese/105", "bidirectional LSTM/64", "speech decoder/1 token")


def run(
    quick: bool,
    seed: int,
    models: tuple[str, ...] = (),
    groups: int = 0,
    group: int = 0,
    schedules: int = 0,
) -> Result:
    """One row per network: lanes and the answer over the best width.

    Args:
        quick: Four networks.
        seed: Of inputs and orders.
        models: Parts of names; those that have one of them in theirs. All when empty.
        groups: Into how many parts the networks are divided, for a machine that is idle for short times only.
        group: Which of the parts to run, from 0.
        schedules: How many random schedules of each network are predicted and measured besides.
    """
    pieces = Pieces(timeout=_TIMEOUT)
    every = (*_TOWERS, *branching.NETWORKS, *branching.LOSING)
    names = [
        name for name in (_QUICK if quick else every) if not models or any(part in name for part in models)
    ]
    names = names[group::groups] if groups else names
    found: dict[str, Mapping[str, Any]] = {}
    for name in names:
        outcome = pieces(name, compare, name=name, seed=seed, schedules=schedules)
        if outcome is None:
            # OpenVINO crashes on one thread with some networks, here without the decision's child process.
            outcome = pieces(f"{name}, no widths", compare, name=name, seed=seed, schedules=0, widths=False)
        if outcome is not None:
            found[name] = outcome
    return _result(found, seed, pieces.remarks)


def compare(name: str, seed: int, schedules: int, widths: bool = True) -> dict[str, Any]:
    """Place one network both ways and race lanes, widths and answer.

    Args:
        name: Of the network.
        seed: Of inputs and orders.
        schedules: How many random ones to try.
        widths: Whether the widths of the CPU take part.

    Returns:
        ``predicted``: seconds of the schedule; ``errors``: of random ones, see :func:`errors_of`;
        ``submodels``; ``chosen`` and ``reason`` of the answer; ``decision_seconds``; ``back_to_back`` and
        ``after_pauses``: seconds of everybody in the same rounds.
    """
    model = branching.two_towers(*_TOWERS[name]) if name in _TOWERS else branching.build(name)
    start = time.perf_counter()
    answer = ov_autoplace.place(model, _DEVICE, seed=seed)
    decision_seconds = time.perf_counter() - start
    demanded = ov_autoplace.place(model, _DEVICE, seed=seed, executor="OVERLAP")
    if answer.decision is None or demanded.decision is None:
        raise AutoplaceError(f"{name} was placed without a decision")
    machine = Machine(ov.Core(), (_DEVICE,))
    with ProfilingSession(machine.core, model, (_DEVICE,), seed=seed, isolation=False) as session:
        plans: dict[str, Plan] = {_DEVICE: WholePlan(_DEVICE)}
        for width in widths_for(machine, _DEVICE, session.model) if widths else ():
            plan = WholePlan(_DEVICE, width)
            plans[plan.name] = plan
        if demanded.plan.lane_count:
            plans[_LANES] = demanded.plan
        chosen = answer.decision.chosen
        plans[_ANSWER] = answer.plan
        calls = {who: partial(plan.one_model.compile, session) for who, plan in plans.items()}
        executables: dict[str, list[Any]] = {who: [] for who in calls}
        for copy in range(_COPIES):
            # Where a copy lies in memory depends on those before it, so they take turns.
            for who in list(calls)[:: 1 if copy % 2 else -1]:
                executables[who].append(calls[who]())
                session.forget()
        failures: dict[str, str] = {}
        steady = race_copies(
            executables, _SECONDS, seed, failures, partial(Profiler.race, min_sample_seconds=_SAMPLE)
        )
        paused = race_copies(
            executables, _SECONDS, seed, failures, partial(Profiler.race, pause_seconds=_PAUSE)
        )
        executables.clear()
        schedule = demanded.decision.winner
        errors = errors_of(session, schedule, schedules, seed) if schedule.plan.lane_count else []
    if failures:
        raise AutoplaceError("; ".join(f"{who} failed: {why}" for who, why in failures.items()))
    return {
        "errors": errors,
        "predicted": demanded.latency_seconds if schedule.plan.lane_count else None,
        "submodels": schedule.subgraphs if schedule.plan.lane_count else None,
        "chosen": chosen,
        "reason": answer.decision.reason,
        "decision_seconds": decision_seconds,
        "back_to_back": {who: samples.tolist() for who, samples in steady.samples.items()},
        "after_pauses": {who: samples.tolist() for who, samples in paused.samples.items()},
    }


def errors_of(session: ProfilingSession, best: Candidate, count: int, seed: int) -> list[float]:
    """Predicted over measured seconds of random schedules, minus 1, both over the whole model on one lane.

    Args:
        session: The model.
        best: A schedule, from which some chains and branches go to other lanes.
        count: How many schedules.
        seed: Of what goes where, and of the order.
    """
    assert isinstance(best.plan, LanePlan)
    assert best.scheduled is not None
    table, random = best.scheduled.table, np.random.default_rng(seed)
    problem = Problem.of(table, objective="overlap")
    graphs = [graph.units for graph in task_graphs(problem)]
    whole = np.zeros(len(problem.units), np.int32)
    known = {whole.tobytes()}
    assignments = [whole]
    for _ in range(20 * count):
        if len(assignments) > count:
            break
        moved = problem.units.from_groups(best.scheduled.assignment)
        tasks = graphs[int(random.integers(len(graphs)))]
        for task in random.integers(len(tasks), size=int(random.integers(1, 5))):
            moved[tasks[task]] = random.integers(table.num_devices)
        if moved.tobytes() not in known:
            known.add(moved.tobytes())
            assignments.append(moved)
    executables, predicted = {}, []
    for i, assignment in enumerate(problem.units.to_groups(a) for a in assignments):
        plan = lane_plan(table, assignment, best.plan.lanes, best.plan.forms)
        predicted.append(simulate(table, assignment, "overlap").latency_seconds)
        executables[str(i)] = [plan.compile(session)]
    race = partial(Profiler.race, min_sample_seconds=_SAMPLE)
    raced = race_copies(executables, _SECONDS, seed, failures := {}, race)
    if failures:
        raise AutoplaceError("; ".join(failures.values()))
    measured = np.array([float(np.median(raced.samples[str(i)])) for i in range(len(predicted))])
    ratios = np.array(predicted) / measured
    return (ratios[1:] / ratios[0] - 1).tolist()


def _result(found: Mapping[str, Mapping[str, Any]], seed: int, failures: Sequence[str]) -> Result:
    rows, cases, ratios, remarks = [], [], [], list(failures)
    winning: list[str] = []
    losing: list[str] = []
    errors: list[float] = []
    for name, outcome in found.items():
        steady, paused = outcome["back_to_back"], outcome["after_pauses"]
        widths = [who for who in steady if who not in (_LANES, _ANSWER)]
        best = min(widths, key=lambda who: float(np.median(steady[who])))
        cells = [name, f"{1e6 * float(np.median(steady[best])):.0f}", best.removeprefix(f"{_DEVICE} ")]
        for who in (_LANES, _ANSWER):
            for what, samples in (("back to back", steady), ("after pauses", paused)):
                if who not in samples:
                    cells.append("-")
                    continue
                ratio = paired_ratio(np.array(samples[who]), np.array(samples[best]))
                cells.append(interval_cell(ratio))
                cases.append(Case(name, best, ratio.median, f"{who}, {what}"))
                if who == _ANSWER and ratio.low > 1 and ratio.median > _MOST:
                    losing.append(f"{name} {what} {ratio.median:.3f}")
                if who == _LANES and what == "back to back":
                    ratios.append(measured_ratio(f"overlap: {name}", ratio, len(samples[who])))
                    if ratio.median <= _WANTED:
                        winning.append(name)
        predicted = outcome["predicted"]
        if predicted is not None:
            error = predicted / float(np.median(steady[_LANES])) - 1
            errors.append(abs(error))
            cells.append(f"{100 * error:+.0f} %")
        else:
            cells.append("-")
        rows.append(
            (*cells, outcome["submodels"] or "-", outcome["chosen"], f"{outcome['decision_seconds']:.1f}")
        )
    kinds = {branching.kind_of(name) for name in winning}
    remarks.append(
        f"lanes at most {_WANTED} of the best width: {len(winning)} networks of {len(kinds)} kinds "
        f"(wanted {_WANTED_NETWORKS} of {_WANTED_KINDS}): {', '.join(winning) or 'none'}"
    )
    remarks.append(f"answers slower than {_MOST} of the best width: {', '.join(losing) or 'none'}")
    tried = {name: np.abs(outcome["errors"]) for name, outcome in found.items() if outcome["errors"]}
    if tried:
        every = np.concatenate(list(tried.values()))
        remarks.append(bar(f"median error of {len(every)} random schedules", 0.10, float(np.median(every))))
        medians = ", ".join(f"{name} {np.median(own):.0%}" for name, own in tried.items())
        remarks.append(f"median error of random schedules by network: {medians}")
    if errors:
        remarks.append(bar("median error of the prediction, back to back", 0.10, float(np.median(errors))))
    columns = (
        "network",
        "best width us",
        "which",
        "lanes",
        "lanes, 3 ms",
        "answer",
        "answer, 3 ms",
        "predicted",
        "submodels",
        "chosen",
        "decision s",
    )
    title = "Over the best width, medians of paired rounds (lower is better)"
    return Result(
        "Lanes, measured",
        (Table(title, columns, rows),),
        tuple(ratios),
        tuple(cases),
        tuple(remarks),
        {"seed": seed, "networks": dict(found)},
    )
