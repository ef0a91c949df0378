"""The hyper-parameters of the network of costs: the options of ``ov-autoplace pretrain``. Needs no torch."""

from __future__ import annotations

from dataclasses import dataclass

from ov_autoplace.errors import OptionError

__all__ = ["CostSettings"]


@dataclass(frozen=True)
class CostSettings:
    """How a network of costs is trained.

    Attributes:
        seed: Of weights and batches.
        members: Networks that are trained from other weights and in another order, and answer together.
        hidden: Width of each.
        layers: Rounds of messages; with 0, every op is predicted by itself.
        epochs: Passes over the networks, those of small files several times in each.
        networks_per_step: Networks in a batch, each with all its settings.
        learning_rate: Of AdamW, with a warm-up and a cosine decay.
        weight_decay: Of AdamW.
        average: Decay of the running average of weights that is saved.
        dropout: Share of edges, and of kinds of devices, that are left out in a step, so that neighbours and
            what is known of a kind help and are not relied on.
        noise: Standard deviation of the logarithm of what is known of a device: calibrations differ.
        threads: Threads that training runs on; 0 = all cores. Another number rounds sums differently.
    """

    seed: int = 0
    members: int = 4
    hidden: int = 64
    layers: int = 2
    epochs: int = 18
    networks_per_step: int = 8
    learning_rate: float = 3e-3
    weight_decay: float = 1e-3
    average: float = 0.99
    dropout: float = 0.3
    noise: float = 0.1
    threads: int = 1

    def __post_init__(self) -> None:
        for name in ("members", "hidden", "epochs", "networks_per_step", "learning_rate"):
            if not getattr(self, name) > 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be above 0")
        for name in ("seed", "layers", "weight_decay", "threads", "noise"):
            if getattr(self, name) < 0:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be at least 0")
        for name in ("average", "dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise OptionError(f"{name} is {getattr(self, name)}; it must be at least 0 and below 1")
