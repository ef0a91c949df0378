"""The hyper-parameters of pretraining, all in one place: each is an option of ``ov-autoplace pretrain``."""

from __future__ import annotations

from dataclasses import dataclass

from ov_autoplace.errors import OptionError

__all__ = ["PretrainSettings"]


@dataclass(frozen=True)
class PretrainSettings:
    """How a policy is pretrained: by imitation of solvers.

    Attributes:
        config: Name of the network's configuration.
        seed: Of weights, batches and dropout.
        steps: Gradient steps.
        graphs_per_step: Problems in one batch; all have the same number of devices.
        units_per_step: A batch is closed early when it has this many units, so that steps of large graphs
            are not slower than others.
        learning_rate: Of AdamW, after a warm-up and before a cosine decay.
        warm_up_steps: Steps in which the learning rate rises from 0.
        weight_decay: Of AdamW.
        max_grad_norm: Gradients are scaled down to this norm.
        expected_cost: Weight of the logarithm of the expected relaxed latency, beside the cross-entropy.
        estimate_labels: Weight of the cross-entropy where the policy sees an estimate of the costs.
        average: Decay of the running average of weights that is saved as the checkpoint.
        evaluate_every: Steps between evaluations on the validation problems.
        validation_problems: At most so many of them.
        save_minutes: Minutes between two saved states.
        threads: Threads that the network runs on; 0 = all cores. Another number of threads rounds sums
            differently.
    """

    config: str = "autoplace-base"
    seed: int = 0
    steps: int = 9_000
    graphs_per_step: int = 16
    units_per_step: int = 1_500
    learning_rate: float = 2e-3
    warm_up_steps: int = 100
    weight_decay: float = 1e-4
    max_grad_norm: float = 1.0
    expected_cost: float = 1.0
    estimate_labels: float = 0.3
    average: float = 0.998
    evaluate_every: int = 500
    validation_problems: int = 96
    save_minutes: float = 3.0
    threads: int = 0

    def __post_init__(self) -> None:
        positive = ("graphs_per_step", "units_per_step", "learning_rate", "save_minutes")
        for name in (*positive, "evaluate_every", "validation_problems"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("seed", "steps", "warm_up_steps", "threads"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be 0 or more")
        if not 0 <= self.average < 1:
            raise OptionError(f"average is {self.average}; it must be 0 or more and below 1")
