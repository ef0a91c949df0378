"""Fine-tuning runs on scripted devices: everything but the measurements is real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from ov_autoplace.decide.machine import Machine
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.training.finetuning.request import FinetuneRequest
from ov_autoplace.training.finetuning.result import FinetuneResult
from ov_autoplace.training.finetuning.run import run
from ov_autoplace.training.finetuning.settings import FinetuneSettings
from ov_autoplace.training.finetuning.task import TuningTask
from ov_autoplace.training.finetuning.trials import ReferenceRaces
from ov_autoplace.training.logs import read_log
from training.chains import chain_table, fast_and_slow
from training.scripted_devices import Clock, ScriptedSession, scripted_model

GROUPS = 12
FAST_ON = [0] * 4 + [1] * 4 + [0] * 4
TRUE = chain_table(0.01 * fast_and_slow(FAST_ON, ratio=3.0), transfer=0.002, launch=0.001)
BELIEVED = replace(TRUE, transfer_seconds_per_byte=np.full((2, 2), 0.02))  # ten times too dear
SMALL = replace(CONFIGS["gdp"], hidden=8, layers=1)
SETTINGS = FinetuneSettings(
    proposals=16, explored=32, inferences=8, simulated_updates=1, patience=3, learning_rate=3e-3
)


class ScriptedMachine(Machine):
    """Devices that only have names."""

    fingerprint = "here"
    device_settings: ClassVar[dict[str, dict[str, str]]] = {}


class World:
    """Scripted devices in place of OpenVINO's, and a clock that only work moves."""

    def __init__(self, checkpoint: Path, out: Path) -> None:
        self.clock = Clock(per_look=0.02)
        self.sessions: list[ScriptedSession] = []
        self.true, self.believed = TRUE, BELIEVED
        self.checkpoint, self.out = checkpoint, out
        self.digest = "digest"
        self.interrupt_in_race = -1
        self.pins: dict[str, str] = {}
        self.load = self._load_task

    def _load_task(self, name, source, request, budget, known) -> TuningTask:
        session = ScriptedSession(self.true, clock=self.clock, compile_seconds=0.3, seed=len(self.sessions))
        session.interrupt_in_race = self.interrupt_in_race
        self.sessions.append(session)
        table = known or self.believed
        settings = request.settings
        races = ReferenceRaces(session, table, budget, settings.inferences, request.options.seed, 0.3)  # type: ignore[arg-type]
        return TuningTask(name, scripted_model(table, session, self.digest, pins=self.pins), races)

    def tune(self, *names: str, budget: float = 60.0, devices=TRUE.devices, **options) -> FinetuneResult:
        placing = {name: options.pop(name) for name in ("seed", "progress") if name in options}
        arguments = {"checkpoint": self.checkpoint, "settings": SETTINGS, "out": self.out} | options
        machine = ScriptedMachine(None, devices, PlacerOptions(**placing))  # type: ignore[arg-type]
        request = FinetuneRequest(
            models=[f"{name}.xml" for name in names or ("net",)],
            machine=machine,
            budget_seconds=budget,
            started=self.clock.now,
            **arguments,
        )
        return run(request, self.load, self.clock.perf_counter)

    def lines(self, *kinds: str) -> list[dict]:
        return [line for line in read_log(self.out / "measurements.jsonl") if line["kind"] in kinds]

    def best(self, name: str = "net") -> tuple[int, ...]:
        device_of = json.loads((self.out / f"best.{name}.affinity.json").read_text())
        return tuple(self.true.devices.index(device_of[group]) for group in self.true.names)
