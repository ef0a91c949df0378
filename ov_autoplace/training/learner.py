"""What changes with each step of pretraining, and the step itself: towards the teachers' answers.

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
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import inherit, make_network
from ov_autoplace.training.examples import Example
from ov_autoplace.training.imitation import imitation_loss
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.state import load_training, save_training

__all__ = ["Learner", "learning_rate"]

_FREE = ("save_minutes",)  # settings that do not change what comes out


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

    def learn(self, examples: Sequence[Example]) -> dict[str, float]:
        """Make one step towards the teacher's answers to a batch of examples; returns what it did."""
        settings = self._settings
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate(self.step, settings)
        batch = collate([example.graph for example in examples])
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._seed)
            self.network.train()
            scores = self.network(batch).unit_scores
        loss, metrics = imitation_loss(
            scores,
            batch,
            torch.from_numpy(np.concatenate([example.label for example in examples])),
            settings.expected_cost,
            collate([example.truth for example in examples]),
            settings.estimate_labels,
        )
        metrics["gap"] = float(_gaps(scores, batch, examples).mean())
        metrics["grad_norm"] = self._descend(loss)
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

    def _descend(self, loss: Tensor) -> float:
        """One step along a gradient; returns its norm before clipping."""
        self._optimizer.zero_grad()
        loss.backward()
        for parameter in self.network.parameters():
            if parameter.grad is None:  # it decays nevertheless
                parameter.grad = torch.zeros_like(parameter)
        norm = torch.nn.utils.clip_grad_norm_(self.network.parameters(), self._settings.max_grad_norm)
        self._optimizer.step()
        return float(norm)

    @property
    def _seed(self) -> int:
        """Of the dropout of the next step."""
        numbers = np.random.SeedSequence((self._settings.seed, self.step, 0))
        return int(numbers.generate_state(1, np.uint64)[0])


def _gaps(scores: Tensor, batch: GraphBatch, examples: Sequence[Example]) -> FloatArray:
    """How much slower than the teacher's the highest scores are; 1 where they do not fit into memory."""
    own = scores.detach().argmax(dim=1).numpy().astype(np.int32)
    gaps = np.ones(len(examples))
    ends = pairwise(batch.node_offsets.tolist())
    for i, (example, (a, b)) in enumerate(zip(examples, ends, strict=True)):
        if example.true_problem.units.fits(own[a:b]):
            evaluator = example.true_problem.evaluator
            seconds = float(evaluator.latencies([own[a:b]], 3 * example.best_seconds)[0])
            gaps[i] = seconds / example.best_seconds - 1.0
    return gaps


def learning_rate(step: int, settings: PretrainSettings) -> float:
    """Warm-up, then a cosine decay to a fiftieth."""
    warm = min(1.0, (step + 1) / max(settings.warm_up_steps, 1))
    decayed = 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * step / settings.steps))
    return settings.learning_rate * warm * decayed
