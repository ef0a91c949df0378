"""Pretraining from scratch: imitate a solver on random machines, then improve on the simulator itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ov_autoplace.policy.config import NetworkConfig, config_named
from ov_autoplace.policy.networks.checkpoint import save_checkpoint
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.training.evaluation import Evaluation, evaluate, greedy
from ov_autoplace.training.examples import Example, by_family, example_batches, validation_set
from ov_autoplace.training.learner import Learner
from ov_autoplace.training.logs import JsonLinesLog, progress
from ov_autoplace.training.provenance import data_digest, origin
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.targets import RandomTargets
from ov_autoplace.training.workload import Workload, load_folder

__all__ = ["PretrainResult", "pretrain"]

_STATE = "state.safetensors"
_LOG = "log.jsonl"
_VALIDATION_SEED = 1_000_003
_HELD_OUT_SEED = 2_000_003
_JUDGED_DEVICES, _JUDGED_PROBLEMS = 3, 210


@dataclass(frozen=True, eq=False)
class PretrainResult:
    """What a finished run leaves.

    Attributes:
        network: With averaged weights, in evaluation mode.
        evaluation: Of its greedy answers on the validation problems with two devices.
        steps: Steps made in all.
        seconds: Seconds that this process trained.
    """

    network: PlacementNetwork
    evaluation: Evaluation
    steps: int
    seconds: float


def pretrain(
    data: Path,
    out: Path,
    settings: PretrainSettings,
    *,
    config: NetworkConfig | None = None,
    targets: RandomTargets | None = None,
    held_out: Path | None = None,
    resume: bool = False,
    stop_after: int | None = None,
    command: str = "",
    batches: Iterable[list[Example]] | None = None,
) -> PretrainResult:
    """Train a policy and write its checkpoint.

    Args:
        data: Folder of workloads (``tools/workloads.py`` writes them).
        out: Folder for the checkpoint, the log (``log.jsonl``) and the state to resume from.
        settings: The hyper-parameters.
        config: The network's; ``None`` takes the one that the settings name.
        targets: How machines are drawn.
        held_out: Folder of workloads of families that ``data`` has none of; the finished policy is judged on
            them, and its card says how it did.
        resume: Go on from the state in ``out``.
        stop_after: Save the state and return at this step, as if killed right after.
        command: What made the checkpoint, for its card.
        batches: Examples that were made before, from the first step or the resumed one on; ``None`` makes
            them meanwhile, in ``settings.workers`` processes.

    Raises:
        TrainingError: The data cannot be read, or the state does not fit.
    """
    config = config or config_named(settings.config)
    targets = targets or RandomTargets()
    if config.num_devices is not None:
        targets = replace(targets, devices=((config.num_devices, 1.0),))
    workloads = load_folder(data)
    out.mkdir(parents=True, exist_ok=True)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    learner = Learner(config, settings)
    state = out / _STATE
    if resume:
        learner.resume(state)
    validation = validation_set(
        by_family(workloads),
        replace(targets, estimate=0.0),
        settings.validation_problems,
        min(count for count, _ in targets.devices),
        _VALIDATION_SEED,
    )
    started = saved = time.monotonic()
    last = min(settings.steps, settings.steps if stop_after is None else stop_after)
    with (
        _stream(data, targets, settings, learner.step, batches) as stream,
        JsonLinesLog(out / _LOG, keep=lambda record: record["step"] <= learner.step) as log,
        progress(settings.steps, f"pretraining {config.name}") as advance,
    ):
        advance(learner.step)
        for examples in stream:
            if learner.step >= last:
                break
            metrics = learner.learn(examples)
            record: dict[str, Any] = {"step": learner.step, **metrics}
            if learner.step % settings.evaluate_every == 0 or learner.step == settings.steps:
                with learner.averaged():
                    record |= evaluate(greedy(learner.network), validation).summary()
                advance(0, f"gap {100 * record['mean_gap']:.2f} %")
            log.write(record)
            advance(1)
            if time.monotonic() - saved > 60 * settings.save_minutes:
                learner.save(state)
                saved = time.monotonic()
    learner.save(state)
    seconds = time.monotonic() - started
    learner.finish()
    network = learner.network
    evaluation = evaluate(greedy(network), validation)
    if learner.step == settings.steps:
        training = {
            "settings": asdict(settings),
            "targets": asdict(targets),
            "data": {"workloads": len(workloads), "sha256": data_digest(data)},
            "command": command,
            "max_devices": max(count for count, _ in targets.devices),
            **origin(),
        }
        reports = {"validation": evaluation.report()}
        if held_out is not None:
            reports |= _judged(network, by_family(load_folder(held_out)), targets)
        save_checkpoint(out, network, training, reports)
    return PretrainResult(network, evaluation, learner.step, seconds)


@contextmanager
def _stream(
    data: Path,
    targets: RandomTargets,
    settings: PretrainSettings,
    first: int,
    batches: Iterable[list[Example]] | None,
) -> Iterator[Iterable[list[Example]]]:
    """Batches of examples, those given or fresh ones; the processes that make them end with the block."""
    if batches is not None:
        yield batches
        return
    sizes = settings.graphs_per_step, settings.units_per_step
    with closing(example_batches(data, targets, settings.seed, first, *sizes, settings.workers)) as fresh:
        yield fresh


def _judged(
    network: PlacementNetwork, families: Sequence[Sequence[Workload]], targets: RandomTargets
) -> dict[str, Any]:
    """Zero-shot gaps on held-out families and machines that were never drawn, by number of devices."""
    exact = replace(targets, estimate=0.0, untyped=0.0)
    reports = {}
    for devices in sorted({count for count, _ in targets.devices if count <= _JUDGED_DEVICES}):
        examples = validation_set(families, exact, _JUDGED_PROBLEMS, devices, _HELD_OUT_SEED)
        reports[f"held_out_{devices}_devices"] = evaluate(greedy(network), examples).report()
    return reports
