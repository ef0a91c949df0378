"""Pretraining from scratch: imitate solvers on random machines, then improve on the simulator itself."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

import torch

from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import NetworkConfig, config_named
from ov_autoplace.policy.networks.checkpoint import save_checkpoint
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.training.evaluation import Evaluation, evaluate, greedy
from ov_autoplace.training.examples import Example, load_examples, stored_batches
from ov_autoplace.training.learner import Learner
from ov_autoplace.training.logs import JsonLinesLog, progress
from ov_autoplace.training.provenance import data_digest, origin
from ov_autoplace.training.settings import PretrainSettings

__all__ = ["PretrainResult", "pretrain"]

_STATE = "state.safetensors"
_LOG = "log.jsonl"


@dataclass(frozen=True, eq=False)
class PretrainResult:
    """What a finished run leaves.

    Attributes:
        network: With averaged weights, in evaluation mode.
        evaluation: Of its answers on the validation examples.
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
    validation: Path,
    config: NetworkConfig | None = None,
    held_out: Path | None = None,
    resume: bool = False,
    stop_after: int | None = None,
    command: str = "",
    batches: Iterable[list[Example]] | None = None,
) -> PretrainResult:
    """Train a policy and write its checkpoint.

    Args:
        data: Folder of examples (``tools/examples.py`` writes them).
        out: Folder for the checkpoint, the log (``log.jsonl``) and the state to resume from.
        settings: The hyper-parameters.
        validation: Folder of examples to judge the policy on in the meantime; of networks for a certain
            number of devices, those with so many.
        config: The network's; ``None`` takes the one that the settings name.
        held_out: Folder of examples that no choice was made by; the finished policy is judged on them, and
            its card says how it did.
        resume: Go on from the state in ``out``.
        stop_after: Save the state and return at this step, as if killed right after.
        command: What made the checkpoint, for its card.
        batches: Examples to take in place of those in ``data``, from the first step or the resumed one on.

    Raises:
        TrainingError: The data cannot be read, or the state does not fit.
    """
    config = config or config_named(settings.config)
    judged = _suitable(load_examples(validation), config)[: settings.validation_problems]
    if not judged:
        raise TrainingError(f"{validation} has no example that {config.name} can place; write some for it")
    if settings.threads:
        torch.set_num_threads(settings.threads)
    learner = Learner(config, settings)
    state = out / _STATE
    if resume:
        learner.resume(state)
    if batches is None:
        sizes = settings.graphs_per_step, settings.units_per_step
        batches = stored_batches(data, settings.seed, learner.step, *sizes)
    stream = iter(batches)
    first = list(islice(stream, 1))  # what is wrong with the data is said before anything is written
    out.mkdir(parents=True, exist_ok=True)
    started = saved = time.monotonic()
    last = min(settings.steps, settings.steps if stop_after is None else stop_after)
    with (
        JsonLinesLog(out / _LOG, keep=lambda record: record["step"] <= learner.step) as log,
        progress(settings.steps, f"pretraining {config.name}") as advance,
    ):
        advance(learner.step)
        for examples in chain(first, stream):
            if learner.step >= last:
                break
            if not _suitable(examples, config):
                raise TrainingError(
                    f"{config.name} decides between {config.num_devices} devices, and {data} has examples "
                    f"with {examples[0].graph.num_devices}; write some with {config.num_devices} alone"
                )
            metrics = learner.learn(examples)
            record: dict[str, Any] = {"step": learner.step, **metrics}
            if learner.step % settings.evaluate_every == 0 or learner.step == settings.steps:
                with learner.averaged():
                    record |= _gaps_of(learner.network, judged)
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
    evaluation = evaluate(greedy(network), judged)
    if learner.step == settings.steps:
        training = {
            "settings": asdict(settings),
            "data": {"sha256": data_digest(data)},
            "command": command,
            **origin(),
        }
        reports = {"validation": evaluation.report()}
        if held_out is not None:
            reports |= _judged(network, _suitable(load_examples(held_out), config))
        save_checkpoint(out, network, training, reports)
    return PretrainResult(network, evaluation, learner.step, seconds)


def _suitable(examples: Sequence[Example], config: NetworkConfig) -> list[Example]:
    """Those that a network can place: the papers' decide between a certain number of devices only."""
    return [e for e in examples if config.num_devices in (None, e.graph.num_devices)]


def _gaps_of(network: PlacementNetwork, examples: Sequence[Example]) -> dict[str, float]:
    """Gaps on all examples, and the mean gap by objective."""
    evaluation = evaluate(greedy(network), examples)
    by_objective: dict[str, list[float]] = {}
    for example, gap in zip(examples, evaluation.gaps.tolist(), strict=True):
        by_objective.setdefault(f"mean_gap_{example.objective}", []).append(gap)
    return evaluation.summary() | {name: sum(gaps) / len(gaps) for name, gaps in by_objective.items()}


def _judged(network: PlacementNetwork, examples: Sequence[Example]) -> dict[str, Any]:
    """Gaps by objective, and under it with and without memory limits, by number of devices."""
    kinds: dict[str, list[Example]] = {}
    for example in examples:
        limited = "_limited" if example.problem.units.has_memory_limits else ""
        name = f"held_out_{example.objective}{limited}_{example.graph.num_devices}_devices"
        kinds.setdefault(name, []).append(example)
    return {name: evaluate(greedy(network), kinds[name]).report() for name in sorted(kinds)}
