"""The hyper-parameters of fine-tuning, all in one place."""

from __future__ import annotations

import math
from dataclasses import dataclass

from ov_autoplace.errors import OptionError

__all__ = ["FinetuneSettings"]

_POSITIVE = (
    "proposals",
    "explored",
    "measured",
    "patience",
    "learning_rate",
    "epochs",
    "clip",
    "max_grad_norm",
)
_NOT_NEGATIVE = ("simulated_updates", "remembered", "entropy", "threads", "novelty")


@dataclass(frozen=True)
class FinetuneSettings:
    """How a policy is tuned on measured latencies.

    Attributes:
        proposals: Placements that the policy samples per round, of which the best are measured.
        explored: Placements sampled besides in rounds at a higher temperature, with groups of ops that move
            together.
        heating: Factor by which the temperature rises after a round that brought nothing new to measure; it
            is 1 again when a new placement is faster than all before.
        hottest: The highest temperature; 1 proposes only what the policy itself thinks likely, and searches
            by the known costs alone.
        novelty: Of such placements those are measured that move at least this share of the work against
            everything known.
        measured: How many of them are compiled and run per round.
        hopeless: Placements predicted to take this much longer than the best single device are not worth
            compiling; ``inf`` measures whatever the policy proposes.
        inferences: Rounds of a race, at most: inferences of each placement in it.
        simulated_updates: Updates on the simulator per round; 0 learns from measurements alone.
        remembered: The best placements measured so far, of which those that are faster than the policy's own
            answer are imitated in every round; 0 learns from the policy's own samples alone.
        patience: A model is done when so many rounds in a row, at the highest temperature, brought nothing
            new to measure.
        learning_rate: Of Adam.
        samples: Placements per update on the simulator.
        epochs: Gradient steps per update.
        clip: PPO's bound on the change of a sample's probability.
        entropy: Weight of the entropy bonus.
        max_grad_norm: Gradients are scaled down to this norm.
        threads: Threads that the network runs on; 0 = as many as torch likes. Most models have so few ops
            that more threads only wait for each other.
    """

    proposals: int = 32
    explored: int = 256
    heating: float = 2.0
    hottest: float = 32.0
    novelty: float = 0.01
    measured: int = 3
    hopeless: float = 1.5
    inferences: int = 25
    simulated_updates: int = 3
    remembered: int = 5
    patience: int = 6
    learning_rate: float = 1e-3
    samples: int = 8
    epochs: int = 4
    clip: float = 0.2
    entropy: float = 0.003
    max_grad_norm: float = 1.0
    threads: int = 1

    def __post_init__(self) -> None:
        for name in _POSITIVE:
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in _NOT_NEGATIVE:
            if not getattr(self, name) >= 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if self.samples < 2:
            raise OptionError("samples is 1; the baseline of a sample is the mean of the others")
        if self.inferences < 6:
            raise OptionError(f"inferences is {self.inferences}; fewer than 6 pairs of runs prove nothing")
        for name in ("hopeless", "heating"):
            if not getattr(self, name) > 1:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be above 1")
        if not 1 <= self.hottest < math.inf:
            raise OptionError(f"hottest is {self.hottest}; it must be a number of 1 or more")
