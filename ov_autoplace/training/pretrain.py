"""Pretraining from scratch: imitate a solver on random machines, then improve on the simulator's own terms.

Everything random follows from the seed and the number of the step, and the whole state is saved every few
minutes, so a run that was killed and resumed ends with the same weights, bit for bit.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.policy.networks.checkpoint import save_checkpoint
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.evaluation import Evaluation, evaluate, greedy
from ov_autoplace.training.imitation import imitation_loss
from ov_autoplace.training.logs import JsonLinesLog, progress
from ov_autoplace.training.policy_gradient import PolicyGradientSettings, rollout, update
from ov_autoplace.training.problems import Problem, by_family, problem_batches, validation_set
from ov_autoplace.training.provenance import data_digest, origin
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.state import load_training, save_training
from ov_autoplace.training.targets import RandomTargets
from ov_autoplace.training.workload import Workload, load_folder

__all__ = ["PretrainResult", "pretrain"]

_STATE = "state.safetensors"
_LOG = "log.jsonl"
_FREE = ("workers", "save_minutes")  # settings that do not change what comes out
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
    batches: Iterable[list[Problem]] | None = None,
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
        batches: Problems that were made before, from the first step or the resumed one on; ``None`` makes
            them meanwhile, in ``settings.workers`` processes.

    Raises:
        TrainingError: The data cannot be read, or the state does not fit.
    """
    config = config or _named_config(settings.config)
    targets = targets or RandomTargets()
    if config.num_devices is not None:
        targets = replace(targets, devices=((config.num_devices, 1.0),))
    workloads = load_folder(data)
    out.mkdir(parents=True, exist_ok=True)
    if settings.threads:
        torch.set_num_threads(settings.threads)
    network = make_network(config, settings.seed)
    average = {name: value.clone() for name, value in network.state_dict().items()}
    optimizer = torch.optim.AdamW(
        network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
    )
    generator = torch.Generator().manual_seed(settings.seed)
    step = 0
    state = out / _STATE
    if resume:
        step = _resume(state, network, average, optimizer, generator, settings)
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
        _stream(data, targets, settings, step, batches) as stream,
        JsonLinesLog(out / _LOG, keep=lambda record: record["step"] <= step) as log,
        progress(settings.steps, f"pretraining {config.name}") as advance,
    ):
        advance(step)
        for step, problems in enumerate(stream, start=step):  # noqa: B020 - goes on from the resumed step
            if step >= last:
                break
            batch = collate([problem.graph for problem in problems])
            label = torch.from_numpy(np.concatenate([problem.label for problem in problems]))
            for group in optimizer.param_groups:
                group["lr"] = learning_rate(step, settings)
            if step < settings.imitation_steps:
                metrics = _imitate(network, optimizer, batch, label, problems, settings)
            else:
                metrics = _improve(network, optimizer, batch, label, problems, generator, settings)
            _average(average, network, settings.average, step)
            record: dict[str, Any] = {"step": step + 1, **metrics}
            if (step + 1) % settings.evaluate_every == 0 or step + 1 == settings.steps:
                with _weights(network, average):
                    record |= evaluate(greedy(network), validation).summary()
                advance(0, f"gap {100 * record['mean_gap']:.2f} %")
            log.write(record)
            advance(1)
            if time.monotonic() - saved > 60 * settings.save_minutes:
                _save(state, network, average, optimizer, generator, settings, step + 1)
                saved = time.monotonic()
    step = last
    _save(state, network, average, optimizer, generator, settings, step)
    seconds = time.monotonic() - started
    network.load_state_dict(average)
    network.eval()
    evaluation = evaluate(greedy(network), validation)
    if step == settings.steps:
        training = {
            "settings": asdict(settings),
            "targets": asdict(targets),
            "data": {"workloads": len(workloads), "sha256": data_digest(data)},
            "command": command,
            "max_devices": config.num_devices or max(count for count, _ in targets.devices),
            **origin(),
        }
        reports = {"validation": evaluation.report()}
        if held_out is not None:
            reports |= _judged(network, by_family(load_folder(held_out)), targets)
        save_checkpoint(out, network, training, reports)
    return PretrainResult(network, evaluation, step, seconds)


@contextmanager
def _stream(
    data: Path,
    targets: RandomTargets,
    settings: PretrainSettings,
    first: int,
    batches: Iterable[list[Problem]] | None,
) -> Iterator[Iterable[list[Problem]]]:
    """Batches of problems, those given or fresh ones; the processes that make them end with the block."""
    if batches is not None:
        yield batches
        return
    sizes = settings.graphs_per_step, settings.units_per_step
    with closing(problem_batches(data, targets, settings.seed, first, *sizes, settings.workers)) as fresh:
        yield fresh


def learning_rate(step: int, settings: PretrainSettings) -> float:
    """Warm-up, then a cosine decay to a fiftieth; the policy gradient decays on its own."""
    if step < settings.imitation_steps:
        share, top = step / settings.imitation_steps, settings.learning_rate
    else:
        share = (step - settings.imitation_steps) / max(settings.policy_steps, 1)
        top = settings.policy_learning_rate
    warm = min(1.0, (step + 1) / max(settings.warm_up_steps, 1))
    return top * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))


def _named_config(name: str) -> NetworkConfig:
    if name not in CONFIGS:
        raise TrainingError(f"there is no configuration {name!r}; there are {', '.join(CONFIGS)}")
    return CONFIGS[name]


def _judged(
    network: PlacementNetwork, families: Sequence[Sequence[Workload]], targets: RandomTargets
) -> dict[str, Any]:
    """Zero-shot gaps on held-out families and machines that were never drawn, by number of devices."""
    exact = replace(targets, estimate=0.0, untyped=0.0)
    reports = {}
    for devices in sorted({count for count, _ in targets.devices if count <= _JUDGED_DEVICES}):
        problems = validation_set(families, exact, _JUDGED_PROBLEMS, devices, _HELD_OUT_SEED)
        reports[f"held_out_{devices}_devices"] = evaluate(greedy(network), problems).report()
    return reports


def _imitate(
    network: PlacementNetwork,
    optimizer: torch.optim.Optimizer,
    batch: GraphBatch,
    label: Tensor,
    problems: Sequence[Problem],
    settings: PretrainSettings,
) -> dict[str, float]:
    """One step towards the teacher's answers, above all where the policy's own are slow."""
    answers = network.answers(batch)
    own = answers[-1].argmax(dim=1).numpy()
    answer_of = {id(p.graph): own[a:b] for p, (a, b) in zip(problems, _spans(batch), strict=True)}
    gaps = evaluate(lambda graph: answer_of[id(graph)], problems).gaps
    focus = settings.focus * (1 - batch.is_estimate.numpy())
    importance = torch.from_numpy(1.0 + focus * np.clip(gaps, 0.0, 1.0)).float()
    loss, metrics = imitation_loss(
        answers,
        batch,
        label,
        settings.expected_cost,
        settings.early_rounds,
        importance,
        collate([problem.truth for problem in problems]),
        settings.estimate_labels,
    )
    metrics["gap"] = float(gaps.mean())
    metrics["grad_norm"] = _descend(network, optimizer, loss, settings)
    return metrics


def _improve(
    network: PlacementNetwork,
    optimizer: torch.optim.Optimizer,
    batch: GraphBatch,
    label: Tensor,
    problems: Sequence[Problem],
    generator: torch.Generator,
    settings: PretrainSettings,
) -> dict[str, float]:
    """One step of the policy gradient on the simulator, and one that keeps to the teacher."""
    environment = Environment([p.task.true for p in problems], [p.graph for p in problems])
    sampled = rollout(network, batch, settings.samples, generator)
    latencies = environment.latencies(environment.split(sampled.actions.numpy()))
    gradient = PolicyGradientSettings(
        samples=settings.samples,
        epochs=settings.epochs,
        clip=settings.clip,
        entropy=settings.entropy,
        max_grad_norm=settings.max_grad_norm,
    )
    metrics = update(
        network,
        optimizer,
        batch,
        sampled.actions,
        sampled.log_probs,
        environment.rewards(latencies),
        gradient,
    )
    best = np.array([problem.best_seconds for problem in problems])
    metrics["sampled_gap"] = float(np.mean(np.median(latencies / best[:, None], axis=1)) - 1)
    if settings.keep_imitating:
        loss, _ = imitation_loss(
            network.answers(batch),
            batch,
            label,
            settings.expected_cost,
            settings.early_rounds,
            truth=collate([problem.truth for problem in problems]),
            estimate_labels=settings.estimate_labels,
        )
        _descend(network, optimizer, settings.keep_imitating * loss, settings)
    return metrics


def _spans(batch: GraphBatch) -> list[tuple[int, int]]:
    """First unit and the one behind the last of each graph."""
    return list(pairwise(batch.node_offsets.tolist()))


def _descend(
    network: PlacementNetwork, optimizer: torch.optim.Optimizer, loss: Tensor, settings: PretrainSettings
) -> float:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_(network.parameters(), settings.max_grad_norm)
    optimizer.step()
    return float(norm)


def _average(average: dict[str, Tensor], network: PlacementNetwork, decay: float, step: int) -> None:
    """Move the running average towards the weights; early on it forgets faster, or it would keep noise."""
    decay = min(decay, (1 + step) / (10 + step))
    for name, value in network.state_dict().items():
        average[name].lerp_(value, 1 - decay)


@contextmanager
def _weights(network: PlacementNetwork, weights: dict[str, Tensor]) -> Iterator[None]:
    """The network with other weights, in evaluation mode."""
    own = {name: value.clone() for name, value in network.state_dict().items()}
    network.load_state_dict(weights)
    network.eval()
    try:
        yield
    finally:
        network.load_state_dict(own)
        network.train()


def _save(
    path: Path,
    network: PlacementNetwork,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    settings: PretrainSettings,
    step: int,
) -> None:
    values = {"step": step, "settings": asdict(settings), "network": network.config.to_dict()}
    save_training(path, network, optimizer, {"samples": generator}, values, average)


def _resume(
    path: Path,
    network: PlacementNetwork,
    average: dict[str, Tensor],
    optimizer: torch.optim.Optimizer,
    generator: torch.Generator,
    settings: PretrainSettings,
) -> int:
    """Load a state; returns the number of steps that it had made.

    Raises:
        TrainingError: There is none, or it belongs to a run with other settings.
    """
    values = load_training(path, network, optimizer, {"samples": generator}, average)
    ours = {"settings": asdict(settings), "network": network.config.to_dict()}
    if type(values.get("step")) is not int or not all(isinstance(values.get(part), dict) for part in ours):
        raise TrainingError(f"{path} is not the state of a pretraining run; start in another folder")
    for part, expected in ours.items():
        changed = [
            key for key, value in expected.items() if key not in _FREE and values[part].get(key) != value
        ]
        if changed:
            raise TrainingError(
                f"{path} belongs to a run with {changed[0]} = {values[part].get(changed[0])!r}, not "
                f"{expected[changed[0]]!r}; resume with the same settings, or start in another folder"
            )
    return int(values["step"])
