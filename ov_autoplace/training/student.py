"""What workers compute in pretraining: gradients, rollouts and latencies of answers, on a few problems each.

Everything here follows from the request, the weights and the job. What is random has a seed of its own, so a
unit that is computed again, elsewhere or after a kill, comes out the same bit for bit on processors of one
kind with one release of torch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ov_autoplace._base.arrays import FloatArray
from ov_autoplace.policy.config import NetworkConfig
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.network import make_network
from ov_autoplace.training.environment import Environment
from ov_autoplace.training.evaluation import greedy, seconds_of
from ov_autoplace.training.examples import Example
from ov_autoplace.training.execution import Weights
from ov_autoplace.training.imitation import imitation_loss
from ov_autoplace.training.labelled import Shard
from ov_autoplace.training.policy_gradient import PolicyGradientSettings, rollout, surrogate_loss
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.stored import StoredExamples

__all__ = ["Gradient", "Rewarded", "Student", "Training", "flat_gradient", "flat_weights"]

_SLOWEST = 4.0  # times the teacher's; what is slower is not worth simulating to the end
_MOST_KEPT = 1_000  # examples in a process beside others: about 350 MB


class Gradient(NamedTuple):
    """Of a loss that is a mean over problems or a sum.

    Attributes:
        values: By all parameters one after the other.
        weight: How many problems, where it is a mean: the mean over several parts weighs theirs with it.
        metrics: Of the same kind as the loss.
    """

    values: Weights
    weight: float
    metrics: dict[str, float]


class Rewarded(NamedTuple):
    """Placements that a policy sampled for B problems with N units in all.

    Attributes:
        actions: Device of every unit, ``int16[k, N]``.
        log_probs: Their log-probabilities, ``float32[k, B]``.
        rewards: As :meth:`Environment.rewards` gives them, ``float64[B, k]``.
        slowdowns: Latencies over the teacher's, ``float64[B, k]``.
    """

    actions: NDArray[np.int16]
    log_probs: NDArray[np.float32]
    rewards: FloatArray
    slowdowns: FloatArray


@dataclass(frozen=True, eq=False)
class Training:
    """The job of a pretraining run.

    Attributes:
        config: Of the network.
        settings: The hyper-parameters.
        messages: Who passes messages, of :data:`~ov_autoplace.policy.networks.messages.IMPLEMENTATIONS`.
        shards: Of examples, by the name of their set.
    """

    config: NetworkConfig
    settings: PretrainSettings
    messages: str
    shards: Mapping[str, tuple[Shard, ...]]

    def worker(self, is_alone: bool) -> Student:
        """Somebody who computes its units."""
        return Student(self, None if is_alone else _MOST_KEPT)


class Student:
    """Computes units of a pretraining run, with a network of its own."""

    def __init__(self, training: Training, most_kept: int | None) -> None:
        self._settings = training.settings
        self._messages = training.messages
        self._sets = {
            name: StoredExamples(shards, most_kept) for name, shards in training.shards.items() if shards
        }
        self._network = make_network(training.config, 0)
        self._taken = _Batch((), [], training.messages)
        if training.settings.threads:
            torch.set_num_threads(training.settings.threads)

    def run(self, kind: str, request: Mapping[str, Any], weights: Weights | None) -> Any:
        """Compute a unit: ``imitate``, ``roll_out``, ``improve`` or ``judge``, with what these take."""
        assert weights is not None
        _set_weights(self._network, weights)
        compute: dict[str, Callable[..., Any]] = {
            "imitate": self.imitate,
            "roll_out": self.roll_out,
            "improve": self.improve,
            "judge": self.judge,
        }
        return compute[kind](**request)

    def imitate(self, examples: Sequence[int], seed: int) -> Gradient:
        """The gradient towards the teacher's answers.

        Args:
            examples: Their numbers.
            seed: Of dropout.
        """
        taken = self._batch(examples)
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(seed)
            self._network.train()
            scores = self._network(taken.batch).unit_scores
        settings = self._settings
        loss, metrics = imitation_loss(
            scores,
            taken.batch,
            taken.label,
            settings.expected_cost,
            taken.truth,
            settings.estimate_labels,
        )
        metrics["gap"] = float(taken.gaps(scores).mean())
        return Gradient(flat_gradient(self._network, loss), float(len(examples)), metrics)

    def roll_out(self, examples: Sequence[int], seed: int) -> Rewarded:
        """Sample placements of problems, and simulate them.

        Args:
            examples: Their numbers.
            seed: Of the samples.
        """
        taken = self._batch(examples)
        # The baseline cancels what a reward of 0 means, so nobody solves anything for it.
        environment = Environment(
            [example.true_problem for example in taken.examples],
            reference_seconds=[example.best_seconds for example in taken.examples],
            slowest=_SLOWEST,
        )
        generator = torch.Generator().manual_seed(seed)
        sampled = rollout(self._network, taken.batch, self._settings.samples, generator)
        latencies = environment.latencies(environment.split(sampled.actions.numpy()))
        return Rewarded(
            sampled.actions.numpy().astype(np.int16),
            sampled.log_probs.numpy(),
            environment.rewards(latencies),
            latencies / environment.best_single[:, None],
        )

    def improve(
        self,
        examples: Sequence[int],
        rewarded: Rewarded,
        advantages: NDArray[np.float64],
        num_samples: int,
        num_graphs: int,
    ) -> Gradient:
        """This part's share of the gradient of PPO's objective, which is a sum over parts.

        Args:
            examples: Their numbers.
            rewarded: Of :meth:`roll_out`.
            advantages: Of these samples, ``float64[k, B]``; NaN = masked.
            num_samples: Samples that count, over all parts.
            num_graphs: Problems of all parts.
        """
        self._network.eval()
        loss, metrics = surrogate_loss(
            self._network,
            self._batch(examples).batch,
            torch.from_numpy(rewarded.actions.astype(np.int64)),
            torch.tensor(rewarded.log_probs),
            torch.tensor(advantages),
            gradient_settings(self._settings),
            num_samples,
            num_graphs,
        )
        return Gradient(flat_gradient(self._network, loss), 1.0, metrics)

    def judge(self, examples: Sequence[int], among: str) -> FloatArray:
        """Seconds that the policy's greedy answers take on the true tables, ``float64[n]``.

        Args:
            examples: Their numbers.
            among: The set they are from.
        """
        answer = greedy(self._network.eval(), self._messages)
        return np.array([seconds_of(answer, self._sets[among][i]) for i in examples])

    def _batch(self, numbers: Sequence[int]) -> _Batch:
        if tuple(numbers) != self._taken.numbers:  # what is asked of one part often follows each other
            examples = [self._sets["training"][i] for i in numbers]
            self._taken = _Batch(tuple(numbers), examples, self._messages)
        return self._taken


@dataclass(frozen=True, eq=False)
class _Batch:
    """Some examples as tensors."""

    numbers: tuple[int, ...]
    examples: list[Example]
    messages: str

    @cached_property
    def batch(self) -> GraphBatch:
        return collate([example.graph for example in self.examples], self.messages)

    @cached_property
    def truth(self) -> GraphBatch:
        return collate([example.truth for example in self.examples], self.messages)

    @property
    def label(self) -> Tensor:
        return torch.from_numpy(np.concatenate([example.label for example in self.examples]))

    def gaps(self, scores: Tensor) -> FloatArray:
        """How much slower than the teacher's the highest scores are; 1 where they do not fit into memory."""
        own = scores.detach().argmax(dim=1).numpy().astype(np.int32)
        gaps = np.ones(len(self.examples))
        ends = pairwise(self.batch.node_offsets.tolist())
        for i, (example, (a, b)) in enumerate(zip(self.examples, ends, strict=True)):
            if example.true_problem.units.fits(own[a:b]):
                evaluator = example.true_problem.evaluator
                seconds = float(evaluator.latencies([own[a:b]], 3 * example.best_seconds)[0])
                gaps[i] = seconds / example.best_seconds - 1.0
        return gaps


def gradient_settings(settings: PretrainSettings) -> PolicyGradientSettings:
    """Those of the policy gradient among the hyper-parameters."""
    return PolicyGradientSettings(
        samples=settings.samples,
        epochs=settings.epochs,
        clip=settings.clip,
        entropy=settings.entropy,
        max_grad_norm=settings.max_grad_norm,
    )


def flat_weights(network: PlacementNetwork) -> Weights:
    """All parameters one after the other."""
    return np.concatenate([p.detach().numpy().ravel() for p in network.parameters()])


def flat_gradient(network: PlacementNetwork, loss: Tensor) -> Weights:
    """Gradient of a loss by :func:`flat_weights`; 0 where the loss does not depend on one."""
    parameters = list(network.parameters())
    gradients = torch.autograd.grad(loss, parameters, allow_unused=True)
    return np.concatenate(
        [
            (torch.zeros_like(p) if g is None else g).numpy().ravel()
            for p, g in zip(parameters, gradients, strict=True)
        ]
    )


def _set_weights(network: PlacementNetwork, weights: Weights) -> None:
    first = 0
    with torch.no_grad():
        for parameter in network.parameters():
            values = weights[first : first + parameter.numel()]
            # Copied, so that tensors lie in memory as torch lays them, whoever made the array.
            parameter.copy_(torch.tensor(values).view_as(parameter))
            first += parameter.numel()
