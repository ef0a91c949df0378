"""Pretraining from scratch: imitate solvers on random machines."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import torch

from ov_autoplace._base.files import make_folder
from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.card import load_card
from ov_autoplace.policy.config import NetworkConfig, config_named
from ov_autoplace.policy.networks.checkpoint import load_network, save_checkpoint
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.problem.problem import Problem
from ov_autoplace.training.evaluation import Evaluation, greedy, seconds_of
from ov_autoplace.training.labelled import Labelled
from ov_autoplace.training.learner import Learner
from ov_autoplace.training.logs import JsonLinesLog, progress
from ov_autoplace.training.provenance import data_digest, origin
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.stored import StoredExamples
from ov_autoplace.training.teaching import Teaching, teach_folder

__all__ = ["PretrainResult", "pretrain"]

_STATE = "state.safetensors"
_LOG = "log.jsonl"


@dataclass(frozen=True, eq=False)
class PretrainResult:
    """What a finished run leaves.

    Attributes:
        network: With the averaged weights of the best step, in evaluation mode.
        evaluation: Of its answers on the validation examples.
        steps: Steps made in all.
        best_step: The step, of those that were evaluated, with the lowest geometric mean of the gaps on the
            validation examples.
        seconds: Seconds that this process trained.
    """

    network: PlacementNetwork
    evaluation: Evaluation
    steps: int
    best_step: int
    seconds: float


def pretrain(
    data: Path,
    out: Path,
    settings: PretrainSettings,
    *,
    validation: Path,
    workloads: Path | None = None,
    count: int = 0,
    config: NetworkConfig | None = None,
    checkpoint: Path | None = None,
    held_out: Path | None = None,
    resume: bool = False,
    stop_after: int | None = None,
    command: str = "",
) -> PretrainResult:
    """Train a policy and write its checkpoint.

    Args:
        data: Folder of examples. A network for a certain number of devices learns from those with so many.
        out: Folder for the checkpoint, the log (``log.jsonl``) and the state to resume from.
        settings: The hyper-parameters.
        validation: Folder of examples to judge the policy on in the meantime; of networks for a certain
            number of devices, those with so many.
        workloads: Folder of workloads, of which ``data`` is filled up to ``count`` examples first.
        count: How many; those that are there are kept.
        config: The network's; ``None`` takes the one that the settings name.
        checkpoint: Whose weights to start from; its network must have all parts of the configuration.
            ``None`` = random weights.
        held_out: Folder of examples that no choice was made by; the finished policy is judged on them, and
            its card says how it did.
        resume: Go on from the state in ``out``.
        stop_after: Save the state and return at this step, as if killed right after.
        command: What made the checkpoint, for its card.

    Raises:
        TrainingError: The data cannot be read, or state or checkpoint do not fit.
        CheckpointError: The checkpoint cannot be read.
        OutputError: A folder or file cannot be written.
    """
    if settings.threads:
        torch.set_num_threads(settings.threads)
    config = config or config_named(settings.config)
    judged = _Judged.load("validation", validation, config, settings.validation_problems)
    last = None if held_out is None else _Judged.load("held_out", held_out, config)
    parent = None if checkpoint is None else load_network(checkpoint)
    learner = Learner(config, settings, parent)
    state = out / _STATE
    if resume:
        learner.resume(state)
    if workloads is not None:
        teach_folder(data, count, Teaching.of(workloads, settings.seed))
    examples = StoredExamples.load(data)
    if not len(examples.placeable(config.num_devices)):
        raise TrainingError(
            f"{config.name} decides between {config.num_devices} devices, and {data} has no example "
            "with so many"
        )
    seconds = _train(learner, settings, examples, judged, out, stop_after)
    learner.finish()
    evaluation = judged.evaluate(learner.network)
    if learner.step == settings.steps:
        about = {
            "settings": asdict(settings),
            "best_step": learner.best_step,
            "started_from": None if checkpoint is None else load_card(checkpoint).digest,
            "data": {"sha256": data_digest(data)},
            "command": command,
            **origin(),
        }
        reports = {"validation": evaluation.report()}
        if last is not None:
            reports |= last.by_kind(learner.network)
        save_checkpoint(out, learner.network, about, reports)
    return PretrainResult(learner.network, evaluation, learner.step, learner.best_step, seconds)


def _train(
    learner: Learner,
    settings: PretrainSettings,
    examples: StoredExamples,
    judged: _Judged,
    out: Path,
    stop_after: int | None,
) -> float:
    """Make the steps that are left; returns seconds."""
    state = out / _STATE
    make_folder(out)
    started = saved = time.monotonic()
    last = min(settings.steps, settings.steps if stop_after is None else stop_after)
    num_devices = learner.network.config.num_devices
    with (
        JsonLinesLog(out / _LOG, keep=lambda record: record["step"] <= learner.step) as log,
        progress(settings.steps, f"pretraining {learner.network.config.name}") as advance,
    ):
        advance(learner.step)
        while learner.step < last:
            sizes = settings.graphs_per_step, settings.units_per_step
            batch = examples.batch(settings.seed, learner.step, *sizes, num_devices)
            metrics = learner.learn([examples[i] for i in batch])
            record: dict[str, Any] = {"step": learner.step, **metrics}
            if learner.step % settings.evaluate_every == 0 or learner.step == settings.steps:
                with learner.averaged():
                    record |= judged.gaps(learner.network)
                learner.keep_if_best(record["geometric_gap"])
                advance(0, f"gap {100 * record['geometric_gap']:.2f} %")
            log.write(record)
            advance(1)
            if time.monotonic() - saved > 60 * settings.save_minutes:
                learner.save(state)
                saved = time.monotonic()
    learner.save(state)
    return time.monotonic() - started


@dataclass(frozen=True, eq=False)
class _Judged:
    """Examples that a policy is judged on, those that its network can place."""

    name: str
    examples: StoredExamples
    numbers: tuple[int, ...]

    @classmethod
    def load(cls, name: str, folder: Path, config: NetworkConfig, most: int | None = None) -> _Judged:
        examples = StoredExamples.load(folder)
        numbers = examples.placeable(config.num_devices)[:most].tolist()
        if not numbers:
            raise TrainingError(f"{folder} has no example that {config.name} can place; write some for it")
        return cls(name, examples, tuple(numbers))

    def evaluate(self, network: PlacementNetwork) -> Evaluation:
        """All answers of a network in evaluation mode."""
        return Evaluation.of(self._seconds(network), self._problems)

    def gaps(self, network: PlacementNetwork) -> dict[str, float]:
        """Gaps on all examples, and the mean gap by objective."""
        evaluation = self.evaluate(network)
        by_objective: dict[str, list[float]] = {}
        for problem, gap in zip(self._problems, evaluation.gaps.tolist(), strict=True):
            by_objective.setdefault(f"mean_gap_{problem.task.objective}", []).append(gap)
        return evaluation.summary() | {name: sum(gaps) / len(gaps) for name, gaps in by_objective.items()}

    def by_kind(self, network: PlacementNetwork) -> dict[str, Any]:
        """Reports by objective, and under it with and without memory limits, by number of devices."""
        kinds: dict[str, list[int]] = {}
        for i, problem in enumerate(self._problems):
            table = problem.task.shown
            units = Problem.of(table, objective=problem.task.objective).units
            limited = "_limited" if units.has_memory_limits else ""
            name = f"{self.name}_{problem.task.objective}{limited}_{table.num_devices}_devices"
            kinds.setdefault(name, []).append(i)
        seconds, problems = self._seconds(network), self._problems
        found = {}
        for name in sorted(kinds):
            own = kinds[name]
            found[name] = Evaluation.of([seconds[i] for i in own], [problems[i] for i in own]).report()
        return found

    @cached_property
    def _problems(self) -> list[Labelled]:
        return [self.examples.labelled(i) for i in self.numbers]

    def _seconds(self, network: PlacementNetwork) -> list[float]:
        answer = greedy(network)
        return [seconds_of(answer, self.examples[i]) for i in self.numbers]
