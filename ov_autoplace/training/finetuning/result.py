"""What a run of fine-tuning leaves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ov_autoplace.plan.placement import Placement

__all__ = ["FinetuneResult", "TunedModel"]


@dataclass(frozen=True, eq=False)
class TunedModel:
    """What tuning found for one model. Latencies are relative to the best single device of the same race.

    Attributes:
        name: Unique in the run.
        devices: What it was placed on.
        before: Latency of the placement that the policy proposed before it was tuned; ``None`` = it could
            not be measured.
        after: The same for the tuned policy.
        best: Latency of ``placement``; 1 where no mix of devices was proven to be faster.
        best_single: Name of the fastest single device.
        single_seconds: Its median latency.
        placement: The best placement that is proven.
        file: Where it is.
        measurements: How many placements were measured, the single devices included.
        seconds: Time spent on this model, profiling included.
        reason: Why ``placement`` was chosen.
    """

    name: str
    devices: tuple[str, ...]
    before: float | None
    after: float | None
    best: float
    best_single: str
    single_seconds: float
    placement: Placement
    file: Path
    measurements: int
    seconds: float
    reason: str

    @property
    def break_even(self) -> float | None:
        """Inferences after which the tuning has paid for itself; ``None`` when nothing is saved."""
        saved = self.single_seconds * (1.0 - self.best)
        return self.seconds / saved if saved > 0 else None


@dataclass(frozen=True, eq=False)
class FinetuneResult:
    """What a run of :func:`finetune` leaves.

    Attributes:
        models: One entry per model that was measured.
        not_reached: Names of the models for which there was no time.
        checkpoint: Folder of the tuned policy.
        learning_curve: The picture.
        seconds: Time spent, that of the runs that this one resumed included.
        stopped: ``"budget"``, ``"nothing new"`` (not even the boldest proposals were) or ``"interrupted"``
            (Ctrl-C).
    """

    models: tuple[TunedModel, ...]
    not_reached: tuple[str, ...]
    checkpoint: Path
    learning_curve: Path
    seconds: float
    stopped: str
