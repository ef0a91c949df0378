"""The policy that is tuned: it proposes placements, and learns from what they took."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

import numpy as np
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError, TrainingError
from ov_autoplace.measure.corrections import perturbed_table
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.policy.networks.distribution import PlacementDistribution
from ov_autoplace.policy.networks.network import PlacementNetwork, superposition_parameters
from ov_autoplace.problem.unit_costs import UnitCosts
from ov_autoplace.solvers.regions import regions_moved
from ov_autoplace.training.finetuning.exploration import explore
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.task import ZERO_SHOT, TuningTask
from ov_autoplace.training.finetuning.trials import Trial
from ov_autoplace.training.policy_gradient import PolicyGradientSettings, rollout, update

__all__ = ["EXPLORED", "GREEDY", "SAMPLED", "SEARCHED", "Answers", "PolicyTuner"]

GREEDY, SAMPLED, EXPLORED, SEARCHED = "policy", "policy sample", "explored", "searched"
"""Sources of proposals: the likeliest placement, draws from the policy itself, hotter ones, and where
searches end that begin with one of these, by the costs as they are known or as wrong as those usually are."""

# Units up to which a round searches by two tables of wrong costs, and by one: a search grows with the graph.
_TWO_UP_TO, _ONE_UP_TO = 200, 2_000
_STALE = 8  # longer searches are rarely worth a round that comes later
_OWN = (GREEDY, SAMPLED, ZERO_SHOT)


class Answers:
    """What the policy proposed for one model.

    Attributes:
        greedy: Its likeliest placement, ``int32[G]``.
        placements: That one, then samples, explored ones and those that were searched, ``int32[k, G]``.
        sources: Which of these each is.
        seconds: Simulated latencies, ``float64[k]``; ``inf`` = illegal.
    """

    def __init__(self, task: TuningTask, units: IntArray, sources: Sequence[str]) -> None:
        self.seconds = task.simulated(units)
        self.placements = np.stack([task.groups_of(row) for row in units])
        self.sources = tuple(sources)
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
        return task.groups_of(self._greedy(collate([task.graph])).numpy())

    def propose(self, task: TuningTask, temperature: float = 1.0) -> Answers:
        """The greedy placement, samples, above temperature 1 explored placements, and searched ones.

        A search begins with the greedy placement, and another with the fastest explored one. By the same
        costs they often end in the same place, so where more than the policy itself may propose, and in all
        but large graphs, others go by costs that are wrong by as much as profiles usually are.
        """
        with torch.no_grad():
            output = self.network(collate([task.graph]))
        policy = PlacementDistribution(output)
        settings = self.settings
        parts = [policy.greedy()[None], policy.sample(settings.proposals, self.generator)]
        sources = [GREEDY] + [SAMPLED] * settings.proposals
        random = np.random.default_rng(int(torch.randint(2**31, (1,), generator=self.generator)))
        greedy = parts[0][0].numpy().astype(np.int32)
        # A placement that does not fit into memory is no start; the search then begins with a single device.
        first = greedy if np.isfinite(task.simulated(greedy[None])[0]) else None
        searches: list[tuple[UnitCosts, IntArray | None]] = [(task.graph, first)]
        wrong_costs = (len(task.graph) <= _TWO_UP_TO) + (len(task.graph) <= _ONE_UP_TO)
        for _ in range(wrong_costs if settings.hottest > 1 else 0):
            wrong = task.problem.at(perturbed_table(task.corrected, random))
            searches.append((UnitCosts.of(wrong), first))
        if temperature > 1:
            groupings = task.graph.groupings
            explored = explore(output, groupings, settings.explored, temperature, self.generator)
            parts.append(explored)
            sources += [EXPLORED] * settings.explored
            searches.append((task.graph, _fastest(task, explored.numpy().astype(np.int32))))
        searched = []
        for costs, start in searches:
            with suppress(PlacementError):
                searched.append(regions_moved(costs, start=start, most_stale=_STALE)[None])
        drawn = torch.cat(parts).numpy().astype(np.int32)
        sources += [SEARCHED] * len(searched)
        return Answers(task, np.concatenate((drawn, *searched)), sources)

    def learn_simulated(self, task: TuningTask) -> dict[str, float]:
        """One update of PPO on the simulator with corrected costs, which needs no device."""
        batch = collate([task.graph])
        sampled = rollout(self.network, batch, self.settings.samples, self.generator)
        rewards = task.environment.rewards(task.environment.latencies([sampled.actions.numpy()]))
        return update(self.network, self.optimizer, batch, *sampled, rewards, self._gradient)

    def learn_measured(self, task: TuningTask, fresh: Sequence[Trial]) -> dict[str, float]:
        """Learn from measured latencies: PPO on what the policy drew itself, imitation of what was better.

        PPO's ratio of probabilities accounts for what the policy has changed since the draw, so it is for
        draws from the policy: those of this round, and never explored ones. For a draw from a hotter
        distribution the right weight would be its probability under the policy over that under the other,
        which for hundreds of units is 0 or beyond all bounds; and without a weight, every bad draw would push
        the probability of what is unlikely anyway further down, so exploring would make the policy surer
        still. Explored and remembered placements are imitated instead where they are faster than the
        policy's own answer, and say nothing where they are slower (self-imitation: Oh et al., 2018, arXiv
        1806.05635). That needs no ratio, and it is why what was found is not forgotten.

        Args:
            task: The model.
            fresh: Placements of this round.

        Returns:
            What the update of PPO did and, as ``imitation_loss``, nats per decision; each where it was made.
        """
        batch = collate([task.graph])
        with torch.no_grad():
            policy = PlacementDistribution(self.network(batch))
        greedy = task.groups_of(policy.greedy().numpy())
        metrics = self._reinforce(task, batch, policy, greedy, fresh)
        return metrics | self._imitate(task, batch, greedy)

    def _reinforce(
        self,
        task: TuningTask,
        batch: GraphBatch,
        policy: PlacementDistribution,
        greedy: IntArray,
        fresh: Sequence[Trial],
    ) -> dict[str, float]:
        """One update of PPO on this round's own draws, beside the likeliest placement."""
        own = {trial.key: trial.chosen for trial in fresh if trial.name in _OWN}
        own.setdefault(greedy.tobytes(), greedy)
        ratios = np.array([task.score(assignment) for assignment in own.values()])
        if np.isfinite(ratios).sum() < 2:
            return {}
        actions = self._actions(task, list(own.values()))
        rewards = -np.log(ratios)[None]
        return update(
            self.network, self.optimizer, batch, actions, policy.log_prob(actions), rewards, self._gradient
        )

    def _imitate(self, task: TuningTask, batch: GraphBatch, greedy: IntArray) -> dict[str, float]:
        """Steps towards the remembered placements that are faster than the policy's answer, by how much."""
        own = task.score(greedy)
        remembered = task.remembered(self.settings.remembered)
        better = [r for r in remembered if not r.refuted and task.relative_high(r) < own]
        if not better:
            return {}
        # Of an answer that cannot be run everything is better.
        gains = [np.log(own / task.relative(r)) if np.isfinite(own) else 1.0 for r in better]
        actions = self._actions(task, [trial.chosen for trial in better])
        weights = torch.tensor(gains, dtype=torch.float32) / sum(gains)
        loss = torch.zeros(())
        for _ in range(self.settings.epochs):
            output = self.network(batch)
            # Per decision, or large graphs would take larger steps.
            log_probs = PlacementDistribution(output).log_prob(actions)[:, 0] / len(output.logits)
            loss = -(weights * log_probs).sum()
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            nn.utils.clip_grad_norm_(self.network.parameters(), self.settings.max_grad_norm)
            self.optimizer.step()
        return {"imitation_loss": loss.item()}

    def _actions(self, task: TuningTask, assignments: Sequence[IntArray]) -> Tensor:
        """Device of each unit, ``int64[k, N]``, from that of each group."""
        return torch.from_numpy(
            np.stack([task.problem.units.from_groups(a) for a in assignments]).astype(np.int64)
        )

    def weights(self) -> dict[str, Tensor]:
        """A copy of the network's parameters and buffers."""
        return {name: value.detach().clone() for name, value in self.network.state_dict().items()}

    def _greedy(self, batch: GraphBatch) -> Tensor:
        with torch.no_grad():
            return PlacementDistribution(self.network(batch)).greedy()


def _fastest(task: TuningTask, units: IntArray) -> IntArray | None:
    """The placement with the lowest simulated latency of k, ``int32[N]``; ``None`` where all are illegal."""
    seconds = task.simulated(units)
    best = int(np.argmin(seconds))
    return units[best] if np.isfinite(seconds[best]) else None
