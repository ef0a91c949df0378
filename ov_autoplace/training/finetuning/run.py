"""The run of a fine-tuning, from the first compilation to the last saved file."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from torch import Tensor

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import OptionError, TrainingError
from ov_autoplace.policy.card import load_card
from ov_autoplace.policy.networks.checkpoint import save_checkpoint
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.files import TuningFolder
from ov_autoplace.training.finetuning.lanes import lanes_to_tune
from ov_autoplace.training.finetuning.policy_tuner import PolicyTuner
from ov_autoplace.training.finetuning.report import card_metrics, card_training, tuned_model
from ov_autoplace.training.finetuning.request import FinetuneRequest, Source
from ov_autoplace.training.finetuning.result import FinetuneResult
from ov_autoplace.training.finetuning.rounds import TuningRounds
from ov_autoplace.training.finetuning.setup import check_same_run, checked_values, load_task, network_of
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.state import load_state, load_training, training_bytes
from ov_autoplace.training.threads import torch_threads

__all__ = ["run"]

Load = Callable[[str, Source, FinetuneRequest, TuningBudget, CostTable | None], TuningTask]
"""As :func:`~ov_autoplace.training.finetuning.setup.load_task`."""

_INTERRUPTED = "interrupted"
_SAVE_SHARE = 0.05  # of the time may go into saving


def run(
    request: FinetuneRequest, load: Load = load_task, clock: Callable[[], float] = time.perf_counter
) -> FinetuneResult:
    """Tune; see :func:`~ov_autoplace.training.finetune.finetune`.

    Args:
        request: What to do.
        load: Reads, compiles and profiles a model.
        clock: Tells the time in seconds.
    """
    if not request.models:
        raise OptionError("there is no model to tune on; give at least one")
    devices = request.machine.devices
    columns = lanes_to_tune(request.machine) if request.tunes_lanes else len(devices)
    if columns < 2:
        raise OptionError(
            f"tuning needs at least two devices to choose from, not {', '.join(devices) or 'none'}; "
            "for the lanes of one CPU, set executor to OVERLAP"
        )
    with (
        TuningBudget(request.budget_seconds, request.started, clock) as budget,
        torch_threads(request.settings.threads),
    ):
        tuning = _Tuning(request, budget, load, columns)
        try:
            return tuning.finish(tuning.run())
        finally:
            tuning.close()


class _Tuning:
    """A run while it lasts."""

    def __init__(self, request: FinetuneRequest, budget: TuningBudget, load: Load, columns: int) -> None:
        self.request = request
        self.load = load
        self.budget = budget
        self.folder = TuningFolder(request.out, request.resume)
        self.base = None if request.checkpoint is None else load_card(request.checkpoint)
        self.tuner = PolicyTuner(
            network_of(request, columns),
            request.settings,
            request.superposition_only,
            request.options.seed,
        )
        self.best_weights = self.tuner.weights()
        self.tasks: list[TuningTask] = []
        self.earlier_seconds = 0.0  # of the runs that this one resumes
        self.saved_at = 0.0

    def run(self) -> str:
        """Tune until there is a reason to stop, and return it.

        Raises:
            KeyboardInterrupt: Ctrl-C, before anything was measured.
        """
        try:
            self.prepare()
        except KeyboardInterrupt:
            if not self.tasks:
                raise
            return _INTERRUPTED
        return self.measure()

    def prepare(self) -> None:
        """Profile the models, or take what an earlier run knew; what is known is in the folder at once."""
        saved: dict[str, Any] | None = None
        if self.folder.resumed:
            saved = checked_values(self.folder.state, load_state(self.folder.state)[1])
            check_same_run(self.folder.path, saved["identity"], self._identity)
            self.earlier_seconds = saved["seconds"]
            load_training(self.folder.state, *self._trained)
        for name, source in zip(self.request.names, self.request.models, strict=True):
            self._say(f"{name}: profile")
            before = self.budget.spent
            is_known = saved is not None and name in saved["digests"]
            known = self.folder.load_table(name) if is_known else None
            task = self.load(name, source, self.request, self.budget, known)
            if saved is not None and is_known and saved["digests"][name] != task.profiled.digest:
                task.profiled.session.close()
                raise TrainingError(
                    f"the model {name!r} is not the one that the run in {self.folder.path} was started with"
                )
            self.folder.create()
            self.tasks.append(task)
            earlier = saved["seconds_of"][name] if saved is not None and is_known else 0.0
            task.seconds = self.budget.spent - before + earlier
            task.restore(self.folder.lines(name))
            if saved is not None and is_known:
                task.exploration.steps = saved["heated"][name]
                self._learn_again(task, saved)
            else:
                self.folder.save_table(name, task.table)
            self._save()
        self.rounds = TuningRounds(
            self.tuner,
            self.folder,
            self.request.settings,
            self.budget,
            self._say,
            self.earlier_seconds,
        )

    def _learn_again(self, task: TuningTask, saved: Mapping[str, Any]) -> None:
        """Learn from what was measured after the state was saved, before the run was killed."""
        fresh = [trial for trial in task.trials.values() if trial.number > saved["measurements"][task.name]]
        if fresh:
            self.tuner.learn_measured(task, fresh)

    def measure(self) -> str:
        """Alternate between the models until the budget ends; returns why it stopped."""
        try:
            for task in self.tasks:
                self._on_account_of(task, self.rounds.first_race)
            if not any(task.measurements for task in self.tasks):
                raise TrainingError(
                    f"the budget of {self.budget.seconds:g} s ended before anything could be measured; "
                    "give more time"
                )
            self.budget.timed("draw", self.folder.draw)
            while True:
                self._reserve()
                patience = self.request.settings.patience
                active = [t for t in self.tasks if t.exploration.idle < patience and t.measurements]
                if not active:
                    return "nothing new"
                if not self._round_of_each(active):
                    return "budget"
                if self.budget.allows(self.budget.duration("compare")):
                    self.budget.timed("compare", self._keep_best_weights)
                self._save(often=True)
        except KeyboardInterrupt:
            return _INTERRUPTED

    def _round_of_each(self, tasks: list[TuningTask]) -> int:
        """One round of each model that there is time for; returns how many there were."""
        rounds = 0
        for task in tasks:
            self.budget.check()
            if self.budget.allows(self.rounds.shortest_seconds(task)):
                self._on_account_of(task, self.rounds.round)
                rounds += 1
        return rounds

    def finish(self, stopped: str) -> FinetuneResult:
        """Measure what the tuned policy proposes, test the best placements once more, and save everything."""
        if any(task.measurements for task in self.tasks):
            self._keep_best_weights()
        for task, greedy in self._answers(self.best_weights):
            self.budget.release(f"last races {task.name}")
            if stopped != _INTERRUPTED and task.measurements:
                self._on_account_of(task, lambda t, g=greedy: self.rounds.last_races(t, g))
            else:
                task.after = task.known(greedy)
        self._save()
        self.folder.draw()
        measured = {task.name for task in self.tasks if task.measurements}
        return FinetuneResult(
            models=tuple(tuned_model(task, self.folder) for task in self.tasks if task.measurements),
            not_reached=tuple(name for name in self.request.names if name not in measured),
            checkpoint=self.folder.path,
            learning_curve=self.folder.curve,
            seconds=self.seconds,
            stopped=stopped,
        )

    def close(self) -> None:
        """Let go of files and devices."""
        self.folder.close()
        for task in self.tasks:
            task.profiled.session.close()

    @property
    def seconds(self) -> float:
        """Time spent, that of earlier runs included."""
        return self.earlier_seconds + self.budget.spent

    def _keep_best_weights(self) -> None:
        """Remember the weights whose greedy answers are best, as measured or as predicted by now."""
        last = self.tuner.weights()
        if self._score(last) <= self._score(self.best_weights):
            self.best_weights = last
        self.tuner.network.load_state_dict(last)

    def _score(self, weights: Mapping[str, Tensor]) -> float:
        """Mean logarithm of the relative latency of greedy answers."""
        answers = self._answers(weights)
        return float(np.mean([np.log(task.score(greedy)) for task, greedy in answers if task.measurements]))

    def _answers(self, weights: Mapping[str, Tensor]) -> list[tuple[TuningTask, IntArray]]:
        """Greedy answers with other weights, which the network then keeps."""
        self.tuner.network.load_state_dict(dict(weights))
        return [(task, self._answer(task)) for task in self.tasks]

    def _answer(self, task: TuningTask) -> IntArray:
        return self.budget.timed(f"forward {task.name}", lambda: self.tuner.greedy(task))

    def _reserve(self) -> None:
        """Keep time for what comes last."""
        saving = self.budget.duration("save") + self.budget.duration("draw")
        answers = 3 * sum(self.budget.duration(f"forward {task.name}") for task in self.tasks)
        self.budget.reserve("end", 1.5 * saving + answers)
        for task in self.tasks:
            self.budget.reserve(f"last races {task.name}", self.rounds.last_seconds(task))

    @property
    def _identity(self) -> dict[str, Any]:
        return self.request.identity(self.base)

    @property
    def _trained(self) -> tuple[Any, ...]:
        """What a training state consists of, beside its values."""
        return self.tuner.network, self.tuner.optimizer, self.tuner.generator, self.best_weights

    def _save(self, often: bool = False) -> None:
        """Save the state and the checkpoint; of calls that come often, some are left out."""
        if often and self.budget.spent - self.saved_at < self.budget.duration("save") / _SAVE_SHARE:
            return
        self.budget.timed("save", self._write_files)
        self.saved_at = self.budget.spent

    def _write_files(self) -> None:
        values = {
            "identity": self._identity,
            "digests": {task.name: task.profiled.digest for task in self.tasks},
            "measurements": {task.name: task.measurements for task in self.tasks},
            "seconds": self.seconds,
            "seconds_of": {task.name: task.seconds for task in self.tasks},
            "heated": {task.name: task.exploration.steps for task in self.tasks},
        }
        network, optimizer, generator, best = self._trained
        state = training_bytes(network, optimizer, generator, values, best)
        last = self.tuner.weights()
        network.load_state_dict(self.best_weights)
        training = card_training(self.request, self.base, self.tasks, self.seconds)
        # In one step: a checkpoint without its state could neither be resumed nor tuned anew.
        beside = {self.folder.state.name: state}
        save_checkpoint(self.folder.path, network, training, card_metrics(self.tasks), beside)
        network.load_state_dict(last)

    def _on_account_of(self, task: TuningTask, action: Any) -> None:
        """Do something with a model, and count the time as spent on it."""
        before = self.budget.spent
        try:
            action(task)
        finally:
            task.seconds += self.budget.spent - before

    def _say(self, text: str) -> None:
        if self.request.options.progress is not None:
            done, total = int(10 * self.budget.spent), int(10 * self.budget.seconds)
            self.request.options.progress(min(done, total), total, text)
