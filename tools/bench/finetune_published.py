"""HSDAG's published protocol on measured latency: every placement that it samples is run on the devices.

Episodes of REINFORCE from random weights, 2,000 placements in all, nothing predicted by a simulator, nothing
imitated. A placement that is sampled again counts as an evaluation again, as published, but is not compiled
and run again: that would cost an hour, and tell nothing new.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import torch

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace._base.budget import Budget
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.training.environment import Actions, Environment
from ov_autoplace.training.finetuning.budget import Interruption
from ov_autoplace.training.finetuning.files import TuningFolder
from ov_autoplace.training.finetuning.measuring import Record
from ov_autoplace.training.finetuning.policy_tuner import SAMPLED
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.setup import FinetuneRequest, load_task, machine_of
from ov_autoplace.training.finetuning.task import Event, TuningTask
from ov_autoplace.training.search import search

__all__ = ["BudgetEndedError", "MeasuredEnvironment", "tune_as_published"]


class BudgetEndedError(Exception):
    """There is no time for another measurement."""


class MeasuredEnvironment(Environment):
    """Latencies from races on the devices, one line of a log for each legal placement that is asked for.

    Args:
        task: The model, whose devices alone were raced already.
        budget: Tells the time.
        folder: Gets the log of measurements.
    """

    def __init__(self, task: TuningTask, budget: Budget, folder: TuningFolder) -> None:
        super().__init__([task.table], [task.graph])
        self._task, self._budget, self._folder = task, budget, folder

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
        task, assignment = self._task, self.assignment(0, units)
        record = task.known(assignment)
        if record is not None:
            self.write("proposed", record)
            return task.relative(record)
        record = Record(assignment, SAMPLED, task.predicted(assignment))
        task.bench.race(task.reference, [record])
        task.bench.keep_only([task.reference])
        if not record.failure and not len(record.samples):
            raise BudgetEndedError
        task.adopt(record)
        self.write("measured", record)
        return task.relative(record)

    def write(self, kind: str, record: Record) -> None:
        """A line of the log."""
        new = kind == "measured"
        samples, reference = (record.samples, record.reference) if new else ((), ())
        event = Event(kind, record, tuple(samples), tuple(reference))
        self._folder.write(self._task, event, self._budget.spent)


def tune_as_published(
    model: Path,
    devices: Sequence[str],
    core: ov.Core,
    out: Path,
    budget_seconds: float,
    evaluations: int,
    seed: int,
    started: float,
) -> dict[str, Any]:
    """One run from scratch on one model.

    Args:
        model: Its file.
        devices: Real devices.
        core: Where they are.
        out: Gets the log and the costs, which name what the log's placements place.
        budget_seconds: Of wall-clock time, counted from ``started``.
        evaluations: Placements to sample, at most.
        seed: Of parameters, samples and dropout.
        started: ``time.perf_counter()`` when the budget began to count.
    """
    torch.set_num_threads(1)
    request = FinetuneRequest(
        models=[model],
        devices=devices,
        checkpoint=None,
        budget_seconds=budget_seconds,
        started=started,
        out=out,
        core=core,
        superposition_only=False,
        resume=False,
        settings=FinetuneSettings(),
        config="hsdag",
        options=PlacerOptions.from_arguments({"seed": seed}),
        command="",
    )
    budget = Budget(budget_seconds, started)
    folder = TuningFolder(out, resume=False)
    folder.create()
    stopped = "evaluations"
    with Interruption() as interruption, closing(folder):
        task = load_task(model.stem, model, request, machine_of(request), budget, interruption)
        try:
            folder.save_table(task.name, task.table)
            environment = MeasuredEnvironment(task, budget, folder)
            raced = task.bench.race_singles(task.singles)
            task.adopt_singles(raced)
            for record in raced:
                environment.write("measured", record)
            try:
                search(task.table, "hsdag", evaluations, seed, environment=environment)
            except BudgetEndedError:
                stopped = "budget"
        finally:
            task.prepared.session.close()
    return {
        "stopped": stopped,
        "best": min(task.relative(record) for record in task.remembered(1)),
        "best_single": task.single_name(task.best_single),
        "measurements": task.measurements,
        "seconds": budget.spent,
    }
