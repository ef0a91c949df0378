"""The rounds of a fine-tuning: the policy proposes, the best are measured, and it learns."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.training.finetuning.budget import TuningBudget
from ov_autoplace.training.finetuning.exploration import is_novel, work_shares
from ov_autoplace.training.finetuning.files import TuningFolder
from ov_autoplace.training.finetuning.policy_tuner import EXPLORED, SEARCHED, Answers, PolicyTuner
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.task import AFTER, ZERO_SHOT, Event, TuningTask
from ov_autoplace.training.finetuning.trials import Trial

__all__ = ["TuningRounds"]

_CLOSE = 1.25  # single devices this close to the fastest one stay in the races
_SHORTEST_ROUND = 12  # inferences: one placement and the reference until a race looks at its clock


class TuningRounds:
    """What is done with one model at a time.

    Args:
        tuner: The policy.
        folder: Where everything measured goes at once.
        settings: The hyper-parameters.
        budget: The time that all may take.
        say: Tells the caller what is going on.
        earlier_seconds: Time that the runs took which this one resumes.
    """

    def __init__(
        self,
        tuner: PolicyTuner,
        folder: TuningFolder,
        settings: FinetuneSettings,
        budget: TuningBudget,
        say: Callable[[str], None],
        earlier_seconds: float = 0.0,
    ) -> None:
        self._tuner = tuner
        self._folder = folder
        self._settings = settings
        self._budget = budget
        self._say = say
        self._earlier_seconds = earlier_seconds

    def first_race(self, task: TuningTask) -> None:
        """Measure all single devices, and the policy's answer as it is; nothing when that was done before."""
        if task.before is not None:
            return
        self._say(f"{task.name}: race the devices")
        if not task.measurements and not self._race_singles(task):
            return
        greedy = self._budget.timed(f"forward {task.name}", lambda: self._tuner.greedy(task))
        task.before = task.known(greedy)
        if task.before is not None:
            task.before.proposed = True
            self._log(task, Event("proposed", task.before, note=ZERO_SHOT))
        else:
            task.before = task.trial(ZERO_SHOT, greedy)
            if np.isfinite(task.before.expected_seconds):
                self._measure(task, [task.before])
        task.correct()

    def _race_singles(self, task: TuningTask) -> bool:
        """Find the fastest device; returns whether the budget sufficed."""
        ran = task.races.race_singles(task.singles)
        task.adopt_singles(ran)
        if ran:
            # Before the log, so that a killed run that measured anything has left a placement.
            self._folder.save_best(task)
        for trial in ran:
            self._log(task, Event("measured", trial, tuple(trial.samples), tuple(trial.reference)))
        return bool(ran)

    def shortest_seconds(self, task: TuningTask) -> float:
        """Estimate of the shortest round: one proposal and one placement measured."""
        forward = self._budget.duration(f"forward {task.name}")
        propose = self._budget.duration(f"propose {task.name}", unknown=3 * forward)
        propose += self._budget.duration(f"correct {task.name}")
        return propose + task.races.bench.longest_compilation + _SHORTEST_ROUND * task.reference_seconds

    def last_seconds(self, task: TuningTask) -> float:
        """Estimate of :meth:`last_races`."""
        once = max(trial.known_seconds for trial in (task.reference, task.champion))
        races, compilations = (1, 1) if task.champion in task.singles else (3, 4)
        return (
            compilations * task.races.bench.longest_compilation + races * 2 * self._settings.inferences * once
        )

    def round(self, task: TuningTask) -> None:
        """One round."""
        task.rounds += 1
        self._say(f"{task.name}: {task.measurements} measured, best {task.relative(task.champion):.3f}")
        task.temperature = task.exploration.temperature(self._settings)
        answers = self._budget.timed(
            f"propose {task.name}", lambda: self._tuner.propose(task, task.temperature)
        )
        fresh = self._choose(task, answers)
        fastest = min(task.relative(trial) for trial in task.remembered(1))
        if fresh:
            self._measure(task, fresh)
            self._budget.timed(f"correct {task.name}", task.correct)
        promising = any(task.relative(trial) < fastest for trial in fresh)
        moving = task.known(answers.greedy) is None
        task.exploration.note(self._settings, bool(fresh), promising, moving)
        self._learn(task, fresh)

    def last_races(self, task: TuningTask, greedy: IntArray) -> None:
        """Measure the tuned policy's answer, and test the best placement once more if it is a mix."""
        self._say(f"{task.name}: last races")
        task.after = task.known(greedy)
        if task.after is not None:
            self._log(task, Event("proposed", task.after, note=AFTER))
        else:
            task.after = task.trial(AFTER, greedy)
            if np.isfinite(task.after.expected_seconds):
                self._measure(task, [task.after])
        while task.champion not in task.singles:
            champion = task.champion
            self._prove(task, champion)
            if task.champion is champion:
                return

    def _choose(self, task: TuningTask, answers: Answers) -> list[Trial]:
        """The most promising proposals that were not measured yet, the likeliest one first."""
        limit = self._settings.hopeless * task.single_seconds
        shares = work_shares(task.table)
        seen = [trial.chosen for trial in task.trials.values()]
        chosen: dict[bytes, Trial] = {}
        for i in [0, *(1 + np.argsort(answers.seconds[1:], kind="stable")).tolist()]:
            assignment, seconds = answers.placements[i], float(answers.seconds[i])
            if not np.isfinite(seconds) or seconds > limit:
                continue
            source, known = answers.sources[i], task.known(assignment)
            if known is not None:
                if known in task.singles and not known.proposed:
                    known.proposed = True
                    self._log(task, Event("proposed", known, note=source))
                continue
            if len(chosen) == self._settings.measured or assignment.tobytes() in chosen:
                continue
            # Near what is known there is always something new; a measurement of it would tell nothing.
            novelty = self._settings.novelty
            if source not in (EXPLORED, SEARCHED) or is_novel(assignment, seen, shares, novelty):
                chosen[assignment.tobytes()] = task.trial(source, assignment, seconds)
                seen.append(assignment)
        return list(chosen.values())

    def _measure(self, task: TuningTask, fresh: Sequence[Trial]) -> None:
        """Race new placements, and prove the best of them if it looks faster than every device."""
        close = [r for r in task.singles if r is not task.reference and task.relative(r) <= _CLOSE]
        before = task.champion
        mix = [] if before in task.singles else [before]
        self._race(task, [*mix, *close, *fresh])
        if not mix and task.champion is not before:
            self._folder.save_best(task)
        single = task.best_single
        found = [r for r in fresh if not r.dropped and task.races.is_convincing(r, single)]
        found = [r for r in found if r.ratio.median < task.champion.ratio.median]
        if found:
            self._prove(task, min(found, key=lambda r: r.ratio.median))
        task.races.bench.keep_only([task.reference, task.champion, *close])

    def _prove(self, task: TuningTask, trial: Trial) -> None:
        """A second compilation decides whether a mix is, or stays, the best placement."""
        self._say(f"{task.name}: compile {trial.name} again")
        verdict = task.races.confirm(trial, task.best_single, task.champion)
        if verdict is None:
            return
        before = task.champion
        won = verdict.winner.plan == trial.plan
        if won:
            task.confirm(trial)
        else:
            trial.refuted = True
        if task.champion is not before:
            self._folder.save_best(task)
        self._log(task, Event("confirmed" if won else "refuted", trial, note=verdict.reason))

    def _race(self, task: TuningTask, others: Sequence[Trial]) -> None:
        """Race placements against the reference, and log them."""
        before = {trial.key: len(trial.samples) for trial in others}
        for trial in task.races.race(task.reference, others):
            kind, first = "again" if trial.number else "measured", before[trial.key]
            task.adopt(trial)
            samples = tuple(trial.samples[first:].tolist())
            reference = tuple(trial.reference[first:].tolist())
            self._log(task, Event(kind, trial, samples, reference))

    def _learn(self, task: TuningTask, fresh: Sequence[Trial]) -> None:
        """Updates on what was measured, and on the simulator, as long as there is time."""
        label = f"update {task.name}"
        updates: list[Callable[[], object]] = [lambda: self._tuner.learn_measured(task, fresh)]
        updates += [lambda: self._tuner.learn_simulated(task)] * self._settings.simulated_updates
        for update in updates:
            self._budget.check()
            # An update is some passes forwards and backwards, until it is known how long one takes.
            guess = 4 * self._settings.epochs * self._budget.duration(f"forward {task.name}")
            if self._budget.allows(self._budget.duration(label, unknown=guess)):
                self._budget.timed(label, update)

    def _log(self, task: TuningTask, event: Event) -> None:
        self._folder.write(task, event, self._earlier_seconds + self._budget.spent)
