"""The policy that is tuned: it proposes placements, and learns from what they took."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from ov_autoplace._arrays import IntArray
from ov_autoplace.errors import TrainingError
from ov_autoplace.policy.batch import GraphBatch, collate
from ov_autoplace.policy.distribution import PlacementDistribution
from ov_autoplace.policy.network import PlacementNetwork
from ov_autoplace.policy.superposition import superposition_parameters
from ov_autoplace.training.finetuning.measuring import Record
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.policy_gradient import PolicyGradientSettings, rollout, update

__all__ = ["Answers", "PolicyTuner"]


class Answers:
    """What the policy proposed for one model.

    Attributes:
        greedy: Its likeliest placement, ``int32[G]``.
        placements: That one and the samples after it, ``int32[1 + k, G]``.
        seconds: Simulated latencies, ``float64[1 + k]``; ``inf`` = illegal.
    """

    def __init__(self, task: TuningTask, units: IntArray) -> None:
        self.seconds = task.environment.latencies([units])[0]
        self.placements = np.stack([task.assignment_of(row) for row in units])
        self.greedy = self.placements[0]


class PolicyTuner:
    """A network with the optimiser and the random generator of its tuning.

    Args:
        network: Is trained in place.
        settings: The hyper-parameters.
        superposition_only: Train only what conditions the network on its graph.
        seed: Of the samples.

    Raises:
        TrainingError: There is no superposition to train.
    """

    def __init__(
        self, network: PlacementNetwork, settings: FinetuneSettings, superposition_only: bool, seed: int
    ) -> None:
        self.network = network.eval()
        self.settings = settings
        self.generator = torch.Generator().manual_seed(seed)
        trained = list(network.parameters())
        if superposition_only:
            trained = superposition_parameters(network)
            if not trained:
                raise TrainingError(
                    f"the network {network.config.name!r} has no superposition that could be trained alone"
                )
            network.requires_grad_(False)
            for parameter in trained:
                parameter.requires_grad_(True)
        self.optimizer = torch.optim.Adam(trained, lr=settings.learning_rate)
        self._gradient = PolicyGradientSettings(
            samples=settings.samples,
            epochs=settings.epochs,
            clip=settings.clip,
            entropy=settings.entropy,
            learning_rate=settings.learning_rate,
            max_grad_norm=settings.max_grad_norm,
        )

    def greedy(self, task: TuningTask) -> IntArray:
        """The likeliest placement, ``int32[G]``."""
        return task.assignment_of(self._greedy(collate([task.graph])).numpy().astype(np.int32))

    def propose(self, task: TuningTask) -> Answers:
        """The greedy placement and samples, simulated."""
        batch = collate([task.graph])
        samples = rollout(self.network, batch, self.settings.proposals, self.generator).actions
        units = torch.cat([self._greedy(batch)[None], samples])
        return Answers(task, units.numpy().astype(np.int32))

    def learn_simulated(self, task: TuningTask) -> dict[str, float]:
        """One update of PPO on the simulator with corrected costs, which needs no device."""
        batch = collate([task.graph])
        sampled = rollout(self.network, batch, self.settings.samples, self.generator)
        latencies = task.environment.latencies([sampled.actions.numpy()])
        rewards = task.environment.rewards(latencies)
        return update(self.network, self.optimizer, batch, *sampled, rewards, self._gradient)

    def learn_measured(self, task: TuningTask, fresh: Sequence[Record]) -> dict[str, float]:
        """One update of PPO on measured latencies.

        The placements are those that were just measured and the best ones measured before, which the policy
        need not have drawn: a baseline of few samples is noisy, and what was found is not to be forgotten.

        Args:
            task: The model.
            fresh: Placements of this round; at least two legal ones are needed for a baseline, counting the
                remembered ones.
        """
        records = list(dict.fromkeys([*fresh, *task.remembered(self.settings.remembered)]))
        ratios = np.array([task.relative(record) for record in records])
        if np.isfinite(ratios).sum() < 2:
            return {}
        batch = collate([task.graph])
        units = np.stack([task.units_of(record.assignment) for record in records])
        actions = torch.from_numpy(units.astype(np.int64))
        with torch.no_grad():
            old = PlacementDistribution(self.network(batch)).log_prob(actions)
        with np.errstate(divide="ignore"):
            rewards = -np.log(ratios)[None]
        return update(self.network, self.optimizer, batch, actions, old, rewards, self._gradient)

    def weights(self) -> dict[str, Tensor]:
        """A copy of the network's parameters and buffers."""
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def _greedy(self, batch: GraphBatch) -> Tensor:
        with torch.no_grad():
            return PlacementDistribution(self.network(batch)).greedy()
