"""What a fine-tuning run is asked for."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import openvino as ov

from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.names import core_with_extra_devices, device_settings, fingerprint, resolve_devices
from ov_autoplace.errors import OptionError
from ov_autoplace.policy.card import Card
from ov_autoplace.training.finetuning.settings import FinetuneSettings

__all__ = ["FinetuneRequest", "Source"]

Source: TypeAlias = "str | os.PathLike[str] | ov.Model"


@dataclass(frozen=True)
class FinetuneRequest:
    """The arguments of :func:`~ov_autoplace.training.finetune.finetune`, checked one by one.

    Attributes:
        models, devices, checkpoint, core, superposition_only, resume, network, command: As there.
        budget_seconds, started: The budget and when it began to count.
        out: The output folder.
        settings: The hyper-parameters.
        options: How the models are placed.
    """

    models: Sequence[Source]
    devices: str | Sequence[str] | None
    checkpoint: str | os.PathLike[str] | None
    budget_seconds: float
    started: float
    out: Path
    core: ov.Core | None
    superposition_only: bool
    resume: bool
    settings: FinetuneSettings
    network: str
    options: PlacerOptions
    command: str

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

    def machine(self) -> Machine:
        """The devices to choose from.

        Raises:
            OptionError: There is nothing to choose between.
        """
        core = self.core or core_with_extra_devices()
        devices = resolve_devices(core, self.devices)
        if len(devices) < 2:
            raise OptionError(
                f"tuning needs at least two devices to choose from, not {', '.join(devices) or 'none'}"
            )
        return Machine(core, devices, self.options)

    def identity(self, machine: Machine, base: Card | None) -> dict[str, Any]:
        """What must be the same in a run and in the one that resumes it."""
        options = self.options
        return {
            "models": ", ".join(self.names),
            "devices": ", ".join(machine.devices),
            "machine": fingerprint(machine.core, machine.devices),
            "device settings": repr(device_settings(machine.core, machine.devices)),
            "configuration": repr(sorted(options.properties.items(), key=str)),
            "shapes": repr(dict(options.shapes)),
            "pins": repr(dict(options.pins)),
            "memory limits": repr(dict(options.memory_limits)),
            "checkpoint": "none" if base is None else base.digest,
            "network": self.network if base is None else base.name,
            "trained part": "superposition" if self.superposition_only else "all",
        }
