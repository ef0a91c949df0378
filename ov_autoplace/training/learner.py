"""What changes with each step of pretraining, and the two kinds of steps: imitation and the policy gradient.

The whole of it is saved every few minutes. Everything random follows from the seed and the number of the
step, so a run that was killed and resumed ends with the same weights, bit for bit.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import inherit, make_network
from ov_autoplace.training.execution import Executor, unit_seed
from ov_autoplace.training.policy_gradient import advantages, reward_metrics
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.state import load_training, save_training
from ov_autoplace.training.student import Gradient, Rewarded, flat_weights, gradient_settings

__all__ = ["Learner", "learning_rate"]

_FREE = ("save_minutes",)  # settings that do not change what comes out

Parts = Sequence[Sequence[int]]


class Learner:
    """A network in training.

    Args:
        config: Of the network.
        settings: The hyper-parameters.
        parent: Whose weights to start from, see :func:`~ov_autoplace.policy.networks.network.inherit`;
            ``None`` = random ones.

    Attributes:
        network: With the weights of the last step.
        step: Steps made.
        best_step: Steps after which the best weights were kept; 0 = none were.
    """

    def __init__(
        self, config: NetworkConfig, settings: PretrainSettings, parent: PlacementNetwork | None = None
    ) -> None:
        self.network = make_network(config, settings.seed)
        if parent is not None:
            inherit(self.network, parent)
        self.step = 0
        self._settings = settings
        self.best_step = 0
        self._lowest = math.inf
        self._average = {name: value.clone() for name, value in self.network.state_dict().items()}
        self._best = {name: value.clone() for name, value in self._average.items()}
        self._optimizer = torch.optim.AdamW(
            self.network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay
        )

    def learn(self, parts: Parts, executor: Executor) -> dict[str, float]:
        """Make one step; returns what it did.

        Args:
            parts: Numbers of the examples in each part of the batch.
            executor: Who computes what each part contributes, for the job :class:`Training`.
        """
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self.step, self._settings)
        if self.step < self._settings.imitation_steps:
            metrics = self._imitate(parts, executor, 1.0)
        else:
            metrics = self._improve(parts, executor)
        # Early on the average forgets faster, or it would keep noise.
        decay = min(self._settings.average, (1 + self.step) / (10 + self.step))
        for name, value in self.network.state_dict().items():
            self._average[name].lerp_(value, 1 - decay)
        self.step += 1
        return metrics

    def keep_if_best(self, gap: float) -> None:
        """Keep the averaged weights, if no gap that they had before was as low."""
        if gap < self._lowest:
            self.best_step, self._lowest = self.step, gap
            for name, value in self._average.items():
                self._best[name].copy_(value)

    def finish(self) -> None:
        """Give the network its best weights for good, the last averaged ones where none were kept."""
        self.network.load_state_dict(self._best if self.best_step else self._average)
        self.network.eval()

    @contextmanager
    def averaged(self) -> Iterator[None]:
        """The network with its averaged weights, in evaluation mode."""
        own = {name: value.clone() for name, value in self.network.state_dict().items()}
        self.network.load_state_dict(self._average)
        self.network.eval()
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
        best = {"step": self.best_step, "gap": self._lowest if self.best_step else None}
        values = {"step": self.step, "best": best, **self._identity()}
        save_training(path, self.network, self._optimizer, {}, values, self._kept())

    def resume(self, path: Path) -> None:
        """Go on from a state.

        Raises:
            TrainingError: There is none, or it belongs to a run with other settings.
        """
        values = load_training(path, self.network, self._optimizer, {}, self._kept())
        ours = self._identity()
        is_whole = all(isinstance(values.get(part), dict) for part in (*ours, "best"))
        best = values["best"] if is_whole else {}
        if (
            type(values.get("step")) is not int
            or type(best.get("step")) is not int
            or not isinstance(best.get("gap"), float if best["step"] else (float, type(None)))
        ):
            raise TrainingError(f"{path} is not the state of a pretraining run; start in another folder")
        for part, expected in ours.items():
            for key, value in expected.items():
                if key not in _FREE and values[part].get(key) != value:
                    raise TrainingError(
                        f"{path} belongs to a run with {key} = {values[part].get(key)!r}, not {value!r}; "
                        "resume with the same settings, or start in another folder"
                    )
        self.step, self.best_step = values["step"], best["step"]
        self._lowest = best["gap"] if self.best_step else math.inf

    def _identity(self) -> dict[str, dict[str, object]]:
        return {"settings": asdict(self._settings), "network": self.network.config.to_dict()}

    def _kept(self) -> dict[str, Tensor]:
        """The averaged weights and the best of them, by names that differ."""
        return self._average | {f"best/{name}": value for name, value in self._best.items()}

    def _imitate(self, parts: Parts, executor: Executor, scale: float) -> dict[str, float]:
        """One step towards the teacher's answers."""
        weights = flat_weights(self.network)
        requests = [{"examples": part, "seed": self._seed(i)} for i, part in enumerate(parts)]
        found: list[Gradient] = executor.run("imitate", requests, weights)
        share = np.array([gradient.weight for gradient in found]) / sum(g.weight for g in found)
        return _summed(found, share) | {"grad_norm": self._descend(found, scale * share)}

    def _improve(self, parts: Parts, executor: Executor) -> dict[str, float]:
        """One step of the policy gradient on the simulator, and one that keeps to the teacher."""
        settings = self._settings
        weights = flat_weights(self.network)
        requests = [{"examples": part, "seed": self._seed(i)} for i, part in enumerate(parts)]
        sampled: list[Rewarded] = executor.run("roll_out", requests, weights)
        rewards = torch.from_numpy(np.concatenate([own.rewards for own in sampled]).T)
        advantage = advantages(rewards, gradient_settings(settings).normalise).numpy()
        ends = np.cumsum([len(part) for part in parts])[:-1]
        requests = [
            {
                "examples": part,
                "rewarded": own,
                "advantages": of_part,
                "num_samples": int(np.isfinite(advantage).sum()),
                "num_graphs": advantage.shape[1],
            }
            for part, own, of_part in zip(parts, sampled, np.split(advantage, ends, axis=1), strict=True)
        ]
        metrics: dict[str, float] = {}
        for _ in range(settings.epochs):
            found: list[Gradient] = executor.run("improve", requests, weights)
            metrics = _summed(found, np.ones(len(found)))
            metrics["grad_norm"] = self._descend(found, np.ones(len(found)))
            weights = flat_weights(self.network)
        slowdown = np.concatenate([own.slowdowns for own in sampled])
        metrics["sampled_gap"] = float(np.mean(np.median(slowdown, axis=1)) - 1)
        if settings.keep_imitating:
            self._imitate(parts, executor, settings.keep_imitating)
        return metrics | reward_metrics(rewards)

    def _descend(self, parts: Sequence[Gradient], share: FloatArray) -> float:
        """One step along the parts' gradients; returns the norm of their sum before clipping."""
        # In the order of the parts, whoever was ready first: sums of other orders round differently.
        total = np.zeros_like(parts[0].values)
        for gradient, factor in zip(parts, share.astype(np.float32), strict=True):
            total += factor * gradient.values
        first = 0
        for parameter in self.network.parameters():
            values = torch.from_numpy(total[first : first + parameter.numel()])
            parameter.grad = values.view_as(parameter).clone()
            first += parameter.numel()
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._settings.max_grad_norm)
        self._optimizer.step()
        return float(norm)

    def _seed(self, part: int) -> int:
        return unit_seed(self._settings.seed, self.step, part)


def _summed(gradients: Sequence[Gradient], share: FloatArray) -> dict[str, float]:
    """The metrics of all parts."""
    return {
        name: float(sum(f * g.metrics[name] for f, g in zip(share, gradients, strict=True)))
        for name in gradients[0].metrics
    }


def learning_rate(step: int, settings: PretrainSettings) -> float:
    """Warm-up, then a cosine decay to a fiftieth; the policy gradient decays on its own."""
    if step < settings.imitation_steps:
        share, top = step / settings.imitation_steps, settings.learning_rate
    else:
        share = (step - settings.imitation_steps) / max(settings.policy_steps, 1)
        top = settings.policy_learning_rate
    warm = min(1.0, (step + 1) / max(settings.warm_up_steps, 1))
    return top * warm * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * share)))
