"""The run of a fine-tuning, from the first compilation to the table of results."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import openvino as ov

from ov_autoplace._arrays import IntArray
from ov_autoplace.devices import core_with_extra_devices, device_settings, fingerprint, resolve_devices
from ov_autoplace.errors import CheckpointError, OptionError, TrainingError
from ov_autoplace.models import read_model
from ov_autoplace.options import PlacerOptions
from ov_autoplace.policy.checkpoint import Card, load_card, load_network
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.policy.network import PlacementNetwork, make_network
from ov_autoplace.training.budget import Budget, Interruption
from ov_autoplace.training.checkpoint_writer import CheckpointWriter
from ov_autoplace.training.finetune import FinetuneResult, TunedModel
from ov_autoplace.training.finetune_settings import FinetuneSettings
from ov_autoplace.training.measuring import Record, Workbench
from ov_autoplace.training.policy_tuner import Answers, PolicyTuner
from ov_autoplace.training.preparing import Machine, prepare
from ov_autoplace.training.state import load_state, load_training, save_training
from ov_autoplace.training.tuning_files import TuningFolder
from ov_autoplace.training.tuning_task import AFTER, ZERO_SHOT, Event, TuningTask

__all__ = ["FinetuneRequest", "run"]

_CLOSE = 1.25  # single devices this close to the fastest one stay in the races
_SAVE_SHARE = 0.05  # of the time may go into saving
_Result = TypeVar("_Result")


@dataclass(frozen=True)
class FinetuneRequest:
    """The arguments of :func:`~ov_autoplace.training.finetune.finetune`, checked one by one."""

    models: Sequence[str | os.PathLike[str] | ov.Model]
    devices: str | Sequence[str] | None
    checkpoint: str | os.PathLike[str] | None
    budget_seconds: float
    started: float
    out: Path
    core: ov.Core | None
    superposition_only: bool
    resume: bool
    settings: FinetuneSettings
    config: str
    options: PlacerOptions
    command: str


def run(request: FinetuneRequest) -> FinetuneResult:
    """Tune; see :func:`~ov_autoplace.training.finetune.finetune`."""
    if not request.models:
        raise OptionError("there is no model to tune on; give at least one")
    with Interruption() as interruption:
        tuning = _Tuning(request, interruption)
        try:
            tuning.prepare()
            stopped = tuning.measure()
            return tuning.finish(stopped)
        finally:
            tuning.close()


class _Tuning:
    """A run while it lasts."""

    def __init__(self, request: FinetuneRequest, interruption: Interruption) -> None:
        self.request = request
        self.settings = request.settings
        self.interruption = interruption
        self.budget = Budget(request.budget_seconds, request.started)
        self.folder = TuningFolder(request.out, request.resume)
        self.tasks: list[TuningTask] = []
        self.earlier_seconds = 0.0  # of the runs that this one resumes
        self._durations: dict[str, float] = {}
        self._saved_at = 0.0
        self._last_greedy: dict[str, bytes] = {}

    # -- from the request to models that can be raced --------------------------------------------------------

    def prepare(self) -> None:
        """Load the policy, profile the models, and put the first files into the folder."""
        request = self.request
        core = request.core or core_with_extra_devices()
        devices = resolve_devices(core, request.devices)
        if len(devices) < 2:
            raise OptionError(f"tuning needs at least two devices to choose from, not {', '.join(devices)}")
        options = request.options
        self.machine = Machine(core, devices, options.properties, options.shapes, options.pin, options.seed)
        self.base = load_card(request.checkpoint) if request.checkpoint is not None else None
        self.saved = load_state(self.folder.state)[1]["values"] if self.folder.resumed else None
        if self.saved is not None:
            self._check_same_run(self.saved)
            self.earlier_seconds = self.saved["seconds"]
        self.tuner = PolicyTuner(
            self._network(len(devices)), self.settings, request.superposition_only, options.seed
        )
        # On resume the weights that the folder holds are those that its exported network was made with.
        self.writer = CheckpointWriter(
            request.out, load_card(request.out) if self.saved is not None else self.base
        )
        for name, source in zip(_names(request.models), request.models, strict=True):
            self._say(f"{name}: profile")
            self._timed_for(name, lambda name=name, source=source: self._prepare_model(name, source))  # type: ignore[misc]
        self.best_weights = self.tuner.weights()
        if self.saved is not None:
            extra = {f"best/{name}": value for name, value in self.best_weights.items()}
            load_training(
                self.folder.state, self.tuner.network, self.tuner.optimizer, self._generators, extra
            )
        self.folder.create()
        for task in self.tasks:
            if self.saved is None:
                self.folder.save_table(task.name, task.table)
            task.restore(self.folder.lines(task.name))
        self._save()

    def _prepare_model(self, name: str, source: str | os.PathLike[str] | ov.Model) -> None:
        model = source if isinstance(source, ov.Model) else read_model(self.machine.core, Path(source))
        known = self.folder.load_table(name) if self.saved is not None else None
        prepared = prepare(model, self.machine, self.budget, self.interruption, known)
        if self.saved is not None and self.saved["models"].get(name) != prepared.digest:
            prepared.session.close()
            raise TrainingError(
                f"the model {name!r} is not the one that the run in {self.folder.path} was started with"
            )
        bench = Workbench(
            prepared.session,
            prepared.table,
            self.budget,
            self.interruption,
            self.settings.inferences,
            self.request.options.seed,
        )
        bench.note_compilation(prepared.compile_seconds)
        options = self.request.options
        try:
            self.tasks.append(TuningTask(name, prepared, bench, options.memory_limit, options.pin))
        except BaseException:
            prepared.session.close()
            raise

    def _network(self, num_devices: int) -> PlacementNetwork:
        request = self.request
        if request.checkpoint is None:
            if request.config not in CONFIGS:
                raise TrainingError(
                    f"there is no configuration {request.config!r}; there are {', '.join(CONFIGS)}"
                )
            config = CONFIGS[request.config]
            if config.num_devices is not None:
                config = replace(config, num_devices=num_devices)
            return make_network(config, request.options.seed)
        network = load_network(request.checkpoint)
        if network.config.num_devices not in (None, num_devices):
            raise CheckpointError(
                f"the policy of {request.checkpoint} decides between exactly {network.config.num_devices} "
                f"devices, not {num_devices}"
            )
        return network

    def _check_same_run(self, saved: Mapping[str, Any]) -> None:
        """Refuse to go on with another run's measurements."""
        ours = self._identity()
        for what, value in ours.items():
            if saved["identity"].get(what) != value:
                raise TrainingError(
                    f"the run in {self.folder.path} had another {what} ({saved['identity'].get(what)}, not "
                    f"{value}); resume it as it was started, or give another folder"
                )
        names = list(_names(self.request.models))
        if list(saved["models"]) != names:
            raise TrainingError(
                f"the run in {self.folder.path} tunes on {', '.join(saved['models'])}, not {', '.join(names)}"
            )

    def _identity(self) -> dict[str, Any]:
        """What must not change from a run to the one that resumes it."""
        machine, options = self.machine, self.request.options
        return {
            "devices": ",".join(machine.devices),
            "machine": fingerprint(machine.core, machine.devices),
            "device settings": repr(device_settings(machine.core, machine.devices)),
            "configuration": repr(sorted(options.properties.items(), key=str)),
            "shapes": repr(dict(options.shapes)),
            "pins": repr(dict(options.pin)),
            "memory limits": repr(dict(options.memory_limit)),
            "checkpoint": "none" if self.base is None else self.base.digest,
            "network": self.request.config if self.base is None else self.base.name,
            "part to train": "superposition" if self.request.superposition_only else "all",
        }

    # -- rounds -----------------------------------------------------------------------------------------------

    def measure(self) -> str:
        """Alternate between the models until the budget ends; returns why it stopped."""
        try:
            for task in self.tasks:
                self._timed_for(task.name, lambda task=task: self._first_race(task))  # type: ignore[misc]
            self._timed("draw", self.folder.draw)
            self._reserve()
            while True:
                active = [task for task in self.tasks if task.dry < self.settings.patience]
                if not active:
                    return "nothing new"
                advanced = False
                for task in active:
                    self.interruption.check()
                    if self.budget.allows(self._round_seconds(task)):
                        self._timed_for(task.name, lambda task=task: self._round(task))  # type: ignore[misc]
                        advanced = True
                if not advanced:
                    return "budget"
                self._keep_best_weights()
                self._save(often=True)
        except KeyboardInterrupt:
            return "interrupted"

    def _first_race(self, task: TuningTask) -> None:
        """All single devices and the policy's answer as it is."""
        if task.before is not None:
            return
        self._say(f"{task.name}: race the devices")
        greedy = self._timed(f"forward {task.name}", lambda: self.tuner.greedy(task))
        task.reference = task.best_single
        others = [record for record in task.singles if record is not task.reference]
        known = next((r for r in task.singles if r.key == greedy.tobytes()), None)
        before = known or Record(greedy, ZERO_SHOT, task.predicted(greedy))
        if known is None and np.isfinite(before.predicted_seconds):
            others.append(before)
        self._race(task, others)
        fastest = task.best_single
        if fastest is not task.reference and task.reference.number:
            # Ratios refer to one device; the first race tells which.
            task.reference = fastest
            self._race(task, [record for record in others if record is not fastest])
        if known is not None and known.number:
            self._log(task, Event("proposed", known, note=ZERO_SHOT))
        task.before = before
        task.champion = task.best_single
        task.correct()
        self.folder.save_best(task)

    def _round(self, task: TuningTask) -> None:
        """The policy proposes, the best are measured, and it learns."""
        task.rounds += 1
        self._say(f"{task.name}: {task.measurements} measured, best {task.relative(task.champion):.3f}")
        answers = self._timed(f"propose {task.name}", lambda: self.tuner.propose(task))
        fresh = self._choose(task, answers)
        task.dry = 0 if fresh or task.known(answers.greedy) is None else task.dry + 1
        if fresh:
            self._measure(task, fresh)
            task.correct()
        self._learn(task, fresh)

    def _choose(self, task: TuningTask, answers: Answers) -> list[Record]:
        """The most promising proposals that were not measured yet, the likeliest one first."""
        limit = self.settings.hopeless * task.predicted(task.best_single.assignment)
        chosen: dict[bytes, Record] = {}
        for i in [0, *(1 + np.argsort(answers.seconds[1:], kind="stable"))]:
            assignment, seconds = answers.placements[i], float(answers.seconds[i])
            if not np.isfinite(seconds) or seconds > limit:
                continue
            source = "policy sample" if i else "policy"
            known = task.known(assignment)
            if known is not None:
                self._note_proposed(task, known, source)
            elif len(chosen) < self.settings.measured:
                chosen.setdefault(assignment.tobytes(), Record(assignment, source, seconds))
        return list(chosen.values())

    def _note_proposed(self, task: TuningTask, record: Record, source: str) -> None:
        """The policy thought of a placement that somebody else had thought of first."""
        if record in task.singles and record.number and not record.proposed:
            record.proposed = True
            self._log(task, Event("proposed", record, note=source))

    def _measure(self, task: TuningTask, fresh: Sequence[Record]) -> None:
        """Race new placements, and prove the best of them if it looks faster than every device."""
        single = task.best_single
        close = [r for r in task.singles if r is not task.reference and task.relative(r) <= _CLOSE]
        mix = [task.champion] if task.champion not in task.singles else []
        self._race(task, [*mix, *close, *fresh])
        single = task.best_single
        if task.champion in task.singles and task.champion is not single:
            task.champion = single
            self.folder.save_best(task)
        found = [r for r in fresh if not r.refuted and not r.failure and len(r.samples)]
        found = [r for r in found if task.bench.is_convincing(r, single)]
        found = [r for r in found if r.ratio.median < task.champion.ratio.median]
        if found:
            self._prove(task, min(found, key=lambda r: r.ratio.median))
        task.bench.keep_only([task.reference, task.champion, *close])

    def _prove(self, task: TuningTask, record: Record) -> None:
        """A second compilation decides whether a mix is the new best placement."""
        self._say(f"{task.name}: compile {record.source} again")
        contest = task.bench.confirm(record, task.best_single, task.champion)
        if contest is None:
            return
        if contest.winner.proposal.assignment is record.assignment:
            task.champion = record
            self._log(task, Event("confirmed", record, note=contest.reason))
            self.folder.save_best(task)
        else:
            record.refuted = True
            self._log(task, Event("refuted", record, note=contest.reason))
            if task.champion is record:
                task.champion = task.best_single
                self.folder.save_best(task)

    def _race(self, task: TuningTask, others: Sequence[Record]) -> None:
        """Race placements against the reference and log them."""
        before = {record.key: len(record.samples) for record in [task.reference, *others]}
        ran = task.bench.race(task.reference, others)
        if len(task.reference.samples) and not task.reference.number:
            ran = [task.reference, *ran]
        for record in ran:
            kind = "again" if record.number else "measured"
            first = before[record.key]
            task.adopt(record)
            samples = tuple(record.samples[first:].tolist())
            reference = tuple(record.reference[first:].tolist())
            self._log(task, Event(kind, record, samples, reference))

    def _learn(self, task: TuningTask, fresh: Sequence[Record]) -> None:
        """Updates on what was measured, and on the simulator, as long as there is time."""
        label = f"update {task.name}"
        self.interruption.check()
        if self.budget.allows(self._durations.get(label, 0.0)):
            self._timed(label, lambda: self.tuner.learn_measured(task, fresh))
        for _ in range(self.settings.simulated_updates):
            self.interruption.check()
            if self.budget.allows(self._durations.get(label, 0.0)):
                self._timed(label, lambda: self.tuner.learn_simulated(task))

    def _keep_best_weights(self) -> None:
        """Remember the weights whose greedy answers are best, as measured or as predicted by now."""
        last = self.tuner.weights()
        if self._score(last) <= self._score(self.best_weights):
            self.best_weights = last
        self.tuner.network.load_state_dict(last)

    def _score(self, weights: Mapping[str, Any]) -> float:
        """Mean logarithm of the relative latency of greedy answers."""
        return float(np.mean([np.log(task.score(greedy)) for task, greedy in self._greedy(weights)]))

    def _greedy(self, weights: Mapping[str, Any]) -> list[tuple[TuningTask, IntArray]]:
        self.tuner.network.load_state_dict(dict(weights))
        return [(task, self.tuner.greedy(task)) for task in self.tasks]

    # -- the end ----------------------------------------------------------------------------------------------

    def finish(self, stopped: str) -> FinetuneResult:
        """Measure what the tuned policy proposes, test the winners once more, and save everything."""
        self._keep_best_weights()
        for task, greedy in self._greedy(self.best_weights):
            self.budget.release(f"last races {task.name}")
            if stopped != "interrupted":
                self._timed_for(task.name, lambda t=task, g=greedy: self._last_races(t, g))  # type: ignore[misc]
            else:
                task.after = task.known(greedy)
        self.budget.release("save")
        self._save()
        self.folder.draw()
        return FinetuneResult(
            models=tuple(self._result(task) for task in self.tasks if task.measurements),
            checkpoint=self.folder.path,
            learning_curve=self.folder.curve,
            seconds=self._seconds,
            stopped=stopped,
        )

    def _last_races(self, task: TuningTask, greedy: IntArray) -> None:
        self._say(f"{task.name}: last races")
        record = task.known(greedy) or Record(greedy, AFTER, task.predicted(greedy))
        if not record.number and np.isfinite(record.predicted_seconds):
            self._measure(task, [record])
        elif record.number:
            self._log(task, Event("proposed", record, note=AFTER))
        task.after = record
        if task.champion not in task.singles:
            self._prove(task, task.champion)

    def _result(self, task: TuningTask) -> TunedModel:
        single, best = task.best_single, task.champion
        name = task.single_name(single)
        gain = 100 * (1 - task.relative(best))
        if best in task.singles:
            reason = f"{name} is the fastest device and no mix of devices was proven to be faster"
        else:
            reason = (
                f"a mix of devices was measured {gain:.1f} % faster than {name}, and again when compiled anew"
            )
        return TunedModel(
            name=task.name,
            devices=task.table.devices,
            before=_known(task, task.before),
            after=_known(task, task.after),
            best=task.relative(best),
            best_single=name,
            single_seconds=task.bench.seconds_of(single),
            placement=replace(task.placement(best), solver=task.single_name(best)),
            file=self.folder.best_file(task),
            measurements=task.measurements,
            seconds=task.seconds,
            reason=reason,
        )

    def close(self) -> None:
        """Let go of files and devices."""
        self.folder.close()
        for task in self.tasks:
            task.prepared.session.close()

    # -- files and clocks -------------------------------------------------------------------------------------

    @property
    def _generators(self) -> dict[str, Any]:
        return {"samples": self.tuner.generator}

    @property
    def _seconds(self) -> float:
        return self.earlier_seconds + self.budget.spent

    def _log(self, task: TuningTask, event: Event) -> None:
        self.folder.write(task, event, self._seconds)

    def _save(self, often: bool = False) -> None:
        """Save the state and the checkpoint; of calls that come often, some are left out."""
        duration = self._durations.get("save", 0.0)
        if often and self.budget.spent - self._saved_at < duration / _SAVE_SHARE:
            return
        self._timed("save", self._write_files)
        self._saved_at = self.budget.spent

    def _write_files(self) -> None:
        last = self.tuner.weights()
        self.tuner.network.load_state_dict(self.best_weights)
        self.writer.save(self.tuner.network, self._training(), self._metrics())
        self.tuner.network.load_state_dict(last)
        values = {
            "identity": self._identity(),
            "models": {task.name: task.prepared.digest for task in self.tasks},
            "seconds": self._seconds,
            "seconds_of": {task.name: task.seconds for task in self.tasks},
        }
        extra = {f"best/{name}": value for name, value in self.best_weights.items()}
        save_training(
            self.folder.state, self.tuner.network, self.tuner.optimizer, self._generators, values, extra
        )

    def _training(self) -> dict[str, Any]:
        """How the checkpoint came about, for its card."""
        base: Card | None = self.base
        training = {} if base is None else dict(base.training)
        most = training.get("max_devices")
        devices = len(self.machine.devices)
        tuned = {
            "base": None
            if base is None
            else {"name": base.name, "digest": base.digest, "training": training},
            "models": [task.name for task in self.tasks],
            "devices": list(self.machine.devices),
            "machine": fingerprint(self.machine.core, self.machine.devices),
            "settings": asdict(self.settings),
            "seed": self.request.options.seed,
            "superposition_only": self.request.superposition_only,
            "seconds": round(self._seconds, 1),
            "measurements": sum(task.measurements for task in self.tasks),
            "command": self.request.command,
            "date": datetime.now(timezone.utc).isoformat(timespec="seconds"),
        }
        return {"finetuning": _jsonable(tuned)} | (
            {"max_devices": max(most, devices)} if isinstance(most, int) else {}
        )

    def _metrics(self) -> dict[str, Any]:
        return {
            task.name: {
                "before": _known(task, task.before),
                "after": _known(task, task.after),
                "best": task.relative(task.champion),
                "best_single": task.single_name(task.best_single),
                "measurements": task.measurements,
            }
            for task in self.tasks
            if task.measurements
        }

    def _reserve(self) -> None:
        """Keep time for what comes last."""
        self.budget.reserve("save", 1.5 * (self._durations.get("save", 0) + self._durations.get("draw", 0)))
        for task in self.tasks:
            once = max(task.bench.seconds_of(r) for r in [task.reference, task.champion])
            races = 2 * self.settings.inferences * once
            self.budget.reserve(f"last races {task.name}", 3 * task.bench.compile_seconds + 2 * races)

    def _round_seconds(self, task: TuningTask) -> float:
        """Estimate of the shortest round: one proposal and one placement measured."""
        forward = self._durations.get(f"forward {task.name}", 0.0)
        propose = self._durations.get(f"propose {task.name}", 3 * forward)
        return propose + task.bench.compile_seconds + 12 * task.reference_seconds

    def _timed(self, label: str, action: Callable[[], _Result]) -> _Result:
        before = self.budget.spent
        try:
            return action()
        finally:
            self._durations[label] = self.budget.spent - before

    def _timed_for(self, name: str, action: Callable[[], object]) -> None:
        """Do something for a model, on its account."""
        before = self.budget.spent
        try:
            action()
        finally:
            for task in self.tasks:
                if task.name == name:
                    task.seconds += self.budget.spent - before

    def _say(self, text: str) -> None:
        if self.request.options.progress is not None:
            done, total = int(10 * self.budget.spent), int(10 * self.budget.seconds)
            self.request.options.progress(min(done, total), total, text)


def _known(task: TuningTask, record: Record | None) -> float | None:
    """Relative latency of a placement, when it was measured."""
    if record is None or not len(record.samples):
        return None
    return task.relative(record)


def _jsonable(value: Any) -> Any:
    """Infinite settings as text; JSON has no infinity."""
    if isinstance(value, dict):
        return {key: _jsonable(item) for key, item in value.items()}
    return str(value) if isinstance(value, float) and not np.isfinite(value) else value


def _names(models: Sequence[str | os.PathLike[str] | ov.Model]) -> list[str]:
    """A name for each model that files can have; those that share one are numbered."""
    texts = [
        model.get_friendly_name() if isinstance(model, ov.Model) else Path(model).stem for model in models
    ]
    plain = [re.sub(r"[^\w.-]+", "_", text).strip(".") or "model" for text in texts]
    count = Counter(plain)
    seen: Counter[str] = Counter()
    names = []
    for name in plain:
        seen[name] += 1
        names.append(f"{name}-{seen[name]}" if count[name] > 1 else name)
    return names
