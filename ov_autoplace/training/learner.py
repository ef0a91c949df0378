"""What changes with each step of pretraining, and the two kinds of steps: imitation and the policy gradient.

The whole of it is saved every few minutes. Everything random follows from the seed and the number of the
step, so a run that was killed and resumed ends with the same weights, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.examples import Example
from ov_autoplace.training.imitation import imitation_loss
from ov_autoplace.training.policy_gradient import PolicyGradientSettings, rollout, update
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.state import load_training, save_training

__all__ = ["Learner", "learning_rate"]

_FREE = ("save_minutes",)  # settings that do not change what comes out


class Learner:
    """A network in training.

    Args:
        config: Of the network.
        settings: The hyper-parameters.

    Attributes:
        network: With the weights of the last step.
        step: Steps made.
    """

    def __init__(self, config: NetworkConfig, settings: PretrainSettings) -> None:
        self.network = make_network(config, settings.seed)
        self.step = 0
        self._settings = settings
        self._average = {name: value.clone() for name, value in self.network.state_dict().items()}
        self._optimizer = torch.optim.AdamW(
            self.network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )
        self._generator = torch.Generator().manual_seed(settings.seed)

    def learn(self, examples: Sequence[Example]) -> dict[str, float]:
        """Make one step; returns what it did."""
        batch = collate([example.graph for example in examples])
        label = torch.from_numpy(np.concatenate([example.label for example in examples]))
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self._settings)
        kind = self._imitate if self.step < self._settings.imitation_steps else self._improve
        metrics = kind(batch, label, examples)
        # Early on the average forgets faster, or it would keep noise.
        decay = min(self._settings.average, (1 + self.step) / (10 + self.step))
        for name, value in self.network.state_dict().items():
            self._average[name].lerp_(value, 1 - decay)
        self.step += 1
        return metrics

    def finish(self) -> None:
        """Give the network its averaged weights for good, and put it in evaluation mode."""
        self.network.load_state_dict(self._average)
        self.network.eval()

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The network with its averaged weights, in evaluation mode."""
        own = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.finish()
        try:
            yield
        finally:
            self.network.load_state_dict(own)
            self.network.train()

    def save(self, path: Path) -> None:
        """Write the state to go on from.

        Raises:
            OutputError: The file cannot be written.
        """
        values = {"step": self.step, **self._identity()}
        save_training(path, self.network, self._optimizer, self._generators(), values, self._average)

    def resume(self, path: Path) -> None:
        """Go on from a state.

        Raises:
            TrainingError: There is none, or it belongs to a run with other settings.
        """
        values = load_training(path, self.network, self._optimizer, self._generators(), self._average)
        ours = self._identity()
        if type(values.get("step")) is not int or not all(
            isinstance(values.get(part), dict) for part in ours
        ):
            raise TrainingError(f"{path} is not the state of a pretraining run; start in another folder")
        for part, expected in ours.items():
            for key, value in expected.items():
                if key not in _FREE and values[part].get(key) != value:
                    raise TrainingError(
                        f"{path} belongs to a run with {key} = {values[part].get(key)!r}, not {value!r}; "
                        "resume with the same settings, or start in another folder"
                    )
        self.step = int(values["step"])

    def _identity(self) -> dict[str, dict[str, object]]:
        return {"settings": asdict(self._settings), "network": self.network.config.to_dict()}

    def _generators(self) -> dict[str, torch.Generator]:
        return {"samples": self._generator}

    def _imitate(self, batch: GraphBatch, label: Tensor, examples: Sequence[Example]) -> dict[str, float]:
        """One step towards the teacher's answers, above all where the policy's own are slow."""
        answers = self.network.answers(batch)
        gaps = _gaps(answers[-1], batch, examples)
        focus = self._settings.focus * (1 - batch.is_estimate.numpy())
        importance = torch.from_numpy(1.0 + focus * np.clip(gaps, 0.0, 1.0)).float()
        loss, metrics = self._imitation_loss(answers, batch, label, examples, importance)
        metrics["gap"] = float(gaps.mean())
        metrics["grad_norm"] = self._descend(loss)
        return metrics

    def _improve(self, batch: GraphBatch, label: Tensor, examples: Sequence[Example]) -> dict[str, float]:
        """One step of the policy gradient on the simulator, and one that keeps to the teacher."""
        settings = self._settings
        environment = Environment([example.truth.problem for example in examples])
        sampled = rollout(self.network, batch, settings.samples, self._generator)
        latencies = environment.latencies(environment.split(sampled.actions.numpy()))
        gradient = PolicyGradientSettings(
            samples=settings.samples,
            epochs=settings.epochs,
            clip=settings.clip,
            entropy=settings.entropy,
            max_grad_norm=settings.max_grad_norm,
        )
        rewards = environment.rewards(latencies)
        metrics = update(self.network, self._optimizer, batch, *sampled, rewards, gradient)
        best = np.array([example.best_seconds for example in examples])
        metrics["sampled_gap"] = float(np.mean(np.median(latencies / best[:, None], axis=1)) - 1)
        if settings.keep_imitating:
            loss, _ = self._imitation_loss(self.network.answers(batch), batch, label, examples)
            self._descend(settings.keep_imitating * loss)
        return metrics

    def _imitation_loss(
        self,
        answers: list[Tensor],
        batch: GraphBatch,
        label: Tensor,
        examples: Sequence[Example],
        importance: Tensor | None = None,
    ) -> tuple[Tensor, dict[str, float]]:
        return imitation_loss(
            answers,
            batch,
            label,
            self._settings.expected_cost,
            self._settings.early_rounds,
            importance,
            collate([example.truth for example in examples]),
            self._settings.estimate_labels,
        )

    def _descend(self, loss: Tensor) -> float:
        """One gradient step; returns the gradient's norm before clipping."""
        self._optimizer.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._settings.max_grad_norm)
        self._optimizer.step()
        return float(norm)


def _gaps(scores: Tensor, batch: GraphBatch, examples: Sequence[Example]) -> FloatArray:
    """How much slower than the teacher's the highest scores are; 1 where they do not fit into memory."""
    own = scores.detach().argmax(dim=1).numpy().astype(np.int32)
    gaps = np.ones(len(examples))
    for i, (example, (a, b)) in enumerate(zip(examples, pairwise(batch.node_offsets.tolist()), strict=True)):
        if example.true_problem.units.fits(own[a:b]):
            seconds = float(example.true_problem.evaluator.latencies([own[a:b]], 3 * example.best_seconds)[0])
            gaps[i] = seconds / example.best_seconds - 1.0
    return gaps


def learning_rate(step: int, settings: PretrainSettings) -> float:
    """Warm-up, then a cosine decay to a fiftieth; the policy gradient decays on its own."""
    if step < settings.imitation_steps:
        share, top = step / settings.imitation_steps, settings.learning_rate
    else:
        share = (step - settings.imitation_steps) / max(settings.policy_steps, 1)
        top = settings.policy_learning_rate
    warm = min(1.0, (step + 1) / max(settings.warm_up_steps, 1))
    return top * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
