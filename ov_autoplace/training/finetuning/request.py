"""What a fine-tuning run is asked for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import openvino as ov

from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.policy.card import Card
from ov_autoplace.training.finetuning.settings import FinetuneSettings

__all__ = ["FinetuneRequest", "Source"]

Source: TypeAlias = "str | os.PathLike[str] | ov.Model"


@dataclass(frozen=True)
class FinetuneRequest:
    """The arguments of :func:`~ov_autoplace.training.finetune.finetune`, checked one by one.

    Attributes:
        models, checkpoint, superposition_only, resume, network, command: As there.
        machine: The devices to choose from, and how models are placed on them.
        budget_seconds, started: The budget and when it began to count.
        out: The output folder.
        settings: The hyper-parameters.
    """

    models: Sequence[Source]
    machine: Machine
    checkpoint: str | os.PathLike[str] | None
    budget_seconds: float
    started: float
    out: Path
    superposition_only: bool = False
    resume: bool = False
    settings: FinetuneSettings = field(default_factory=FinetuneSettings)
    network: str = "hsdag"
    command: str = ""

    @property
    def options(self) -> PlacerOptions:
        """How models are placed."""
        return self.machine.options

    @property
    def tunes_lanes(self) -> bool:
        """Whether placements are schedules on the lanes of one CPU."""
        return self.options.executor == "OVERLAP"

    @property
    def names(self) -> list[str]:
        """A name for each model that files can have; those that share one are numbered."""
        texts = [m.get_friendly_name() if isinstance(m, ov.Model) else Path(m).stem for m in self.models]
        plain = [re.sub(r"[^\w.-]+", "_", text).strip(".") or "model" for text in texts]
        count, seen = Counter(plain), Counter[str]()
        names = []
        for name in plain:
            seen[name] += 1
            names.append(f"{name}-{seen[name]}" if count[name] > 1 else name)
        return names

    def identity(self, base: Card | None) -> dict[str, Any]:
        """What must be the same in a run and in the one that resumes it."""
        machine, options = self.machine, self.options
        return {
            "models": ", ".join(self.names),
            "devices": ", ".join(machine.devices),
            "machine": machine.fingerprint,
            "device settings": repr(machine.device_settings),
            "configuration": repr(sorted(options.properties.items(), key=str)),
            "shapes": repr(dict(options.shapes)),
            "pins": repr(dict(options.pins)),
            "memory limits": repr(dict(options.memory_limits)),
            "checkpoint": "none" if base is None else base.digest,
            "network": self.network if base is None else base.name,
            "trained part": "superposition" if self.superposition_only else "all",
        } | ({"lanes": repr(list(options.lanes))} if self.tunes_lanes else {})
