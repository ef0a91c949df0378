"""The runs of the section ``finetune``, each in a process of its own.

HSDAG *as published* is episodes of REINFORCE from random weights, 2,000 placements in all, nothing predicted
by a simulator, nothing imitated; every placement that it samples is run on the devices. One that is sampled
again counts as an evaluation again, as published, but is not compiled and run again: that would cost an hour,
and tell nothing new.
"""

from __future__ import annotations

import json
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from harness.environment import PAIRS, core_of, executor_of
from harness.process import seconds_since_start
from ov_autoplace import finetune
from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.place import place
from ov_autoplace.devices.models import read_model
from ov_autoplace.training.environment import Actions, Environment
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.files import LOG
from ov_autoplace.training.finetuning.policy_tuner import SAMPLED
from ov_autoplace.training.finetuning.request import FinetuneRequest
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.setup import load_task
from ov_autoplace.training.finetuning.task import Event, TuningTask, placement_text
from ov_autoplace.training.finetuning.trials import Trial
from rivals.papers import search


def tune(model: str, table: str, pair: str, seed: int, budget: float, network: str) -> dict[str, Any]:
    """A fine-tuning on the devices of a pair.

    Args:
        model: Its file.
        table: Gets the costs, which name what the log's placements place.
        pair: Of devices.
        seed: Of everything random.
        budget: Seconds, counted from the start of this process: loading is part of it.
        network: ``hsdag`` or ``gdp``, with random weights.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "tuned"
        result = finetune(
            model,
            PAIRS[pair],
            network=network,
            budget=budget,
            out=out,
            core=core_of(pair),
            seed=seed,
            executor=executor_of(pair),
            started=_started(),
        )
        (tuned,) = result.models
        lines = [json.loads(line) for line in (out / LOG).read_text(encoding="utf-8").splitlines()]
        save_table(load_table(out / f"{tuned.name}.table.json"), table)
    # Lanes have one rival on the device alone, which is the reference.
    singles = [tuned.best_single] if executor_of(pair) == "OVERLAP" else list(PAIRS[pair])
    return {
        "best_single": tuned.best_single,
        "singles": singles,
        "lines": lines,
        "wall": seconds_since_start(),
    }


def tune_by_solvers(model: str, table: str, pair: str, seed: int, budget: float) -> dict[str, Any]:
    """Mode TUNE, where solvers propose; see :func:`tune`.

    What it measured is known, but not when, so that all of it counts as measured at its end.
    """
    core = core_of(pair)
    milliseconds = 1e3 * (budget - seconds_since_start())
    options = {"time_budget_ms": milliseconds, "seed": seed, "executor": executor_of(pair)}
    decision = place(read_model(core, Path(model)), PAIRS[pair], "TUNE", core, **options).decision
    schedules = [c.scheduled for c in decision.candidates if c.scheduled is not None]
    costs = schedules[0].table if schedules else decision.table
    save_table(costs, table)
    ran = [c for c in decision.candidates if len(c.samples) or c.dropped]
    singles = {c.name: c.seconds for c in ran if not c.plan.lane_count and c.is_single and len(c.samples)}
    best = min(singles, key=singles.__getitem__)
    answer = next(c for c in ran if c.name == decision.chosen)
    # Single devices are measured in any case; as the answer, one of them was proposed too.
    proposed = [("proposed", answer)] if answer.name in singles else []
    lines = []
    for kind, candidate in [*(("measured", c) for c in ran), *proposed]:
        own = candidate.assignment if candidate.scheduled is None else candidate.scheduled.assignment
        if executor_of(pair) == "OVERLAP" and candidate.scheduled is None:
            own = np.zeros(len(costs), dtype=np.int32)
        relative = candidate.seconds / singles[best] if len(candidate.samples) else None
        lines.append(
            {
                "kind": kind,
                "source": candidate.name,
                "note": "",
                "relative": relative,
                "placement": placement_text(own),
                "at_seconds": seconds_since_start(),
            }
        )
    return {
        "best_single": best,
        "singles": list(singles),
        "lines": lines,
        "wall": seconds_since_start(),
    }


def tune_as_published(
    model: str, table: str, pair: str, seed: int, budget: float, evaluations: int
) -> dict[str, Any]:
    """HSDAG's own protocol on the devices of a pair; see :func:`tune`, and ``evaluations`` at most."""
    import torch

    torch.set_num_threads(1)
    machine = Machine(core_of(pair), PAIRS[pair], PlacerOptions(seed=seed, executor=executor_of(pair)))
    request = FinetuneRequest(
        models=(model,),
        machine=machine,
        checkpoint=None,
        budget_seconds=budget,
        started=_started(),
        out=Path(table).parent,
        superposition_only=False,
        resume=False,
        settings=FinetuneSettings(),
        network="hsdag",
    )
    with TuningBudget(budget, request.started) as time_left:
        task = load_task(Path(model).stem, model, request, time_left)
        try:
            save_table(task.table, table)
            environment = MeasuredEnvironment(task, time_left)
            raced = task.races.race_singles(task.singles)
            task.adopt_singles(raced)
            for trial in raced:
                environment.note("measured", trial)
            with suppress(BudgetEndedError):
                search(environment, "hsdag", evaluations, seed)
        finally:
            task.profiled.session.close()
    return {
        "best_single": task.single_name(task.best_single),
        "singles": [task.single_name(trial) for trial in task.singles],
        "lines": environment.lines,
        "wall": seconds_since_start(),
    }


class BudgetEndedError(Exception):
    """There is no time for another measurement."""


class MeasuredEnvironment(Environment):
    """Latencies from races on the devices, one line of a log for each legal placement that is asked for.

    Args:
        task: The model, whose devices alone were raced already.
        budget: Tells the time.

    Attributes:
        lines: The log.
    """

    def __init__(self, task: TuningTask, budget: TuningBudget) -> None:
        super().__init__([task.problem])
        self.lines: list[dict[str, Any]] = []
        self._task, self._budget = task, budget

    def latencies(self, actions: Sequence[Actions]) -> FloatArray:
        """Measure k placements of the model, ``int[k, N]``.

        Returns:
            Seconds, ``float64[1, k]``: ratios to the fastest device in the same race, times its simulated
            latency, which is what rewards refer to; ``inf`` = illegal, or it does not run.

        Raises:
            BudgetEndedError: There is no time for it.
        """
        legal = np.isfinite(super().latencies(actions)[0])
        relative = [self._relative(row) if ok else np.inf for row, ok in zip(actions[0], legal, strict=True)]
        return np.array([relative]) * self.best_single[:, None]

    def _relative(self, units: Actions) -> float:
        task = self._task
        assignment = task.groups_of(np.asarray(units, dtype=np.int32))
        known = task.known(assignment)
        if known is not None:
            self.note("proposed", known)
            return task.relative(known)
        trial = task.trial(SAMPLED, assignment)
        task.races.race(task.reference, [trial])
        task.races.bench.keep_only([task.reference])
        if not trial.dropped and not len(trial.samples):
            raise BudgetEndedError
        task.adopt(trial)
        self.note("measured", trial)
        return task.relative(trial)

    def note(self, kind: str, trial: Trial) -> None:
        """A line of the log."""
        new = kind == "measured"
        event = Event(kind, trial, *((tuple(trial.samples), tuple(trial.reference)) if new else ()))
        self.lines.append({"at_seconds": self._budget.spent, **self._task.line(event)})


def _started() -> float:
    """``time.perf_counter()`` when this process began, never earlier."""
    age = seconds_since_start()
    return time.perf_counter() - age
