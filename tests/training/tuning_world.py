"""Fine-tuning runs on scripted devices: everything but the measurements is real."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from ov_autoplace._base import budget as budget_module
from ov_autoplace.policy.config import CONFIGS
from ov_autoplace.training.finetune import finetune
from ov_autoplace.training.finetuning import run as run_module
from ov_autoplace.training.finetuning.result import FinetuneResult
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
SMALL = replace(CONFIGS["autoplace-base"], hidden=8, layers=1, rounds=1, looks=0)
SETTINGS = FinetuneSettings(
    proposals=16, explored=32, inferences=8, simulated_updates=1, patience=3, learning_rate=3e-3
)


class World:
    """Scripted devices in place of OpenVINO's, and a clock that only work moves."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, checkpoint: Path, out: Path) -> None:
        self.clock = Clock(per_look=0.02)
        self.sessions: list[ScriptedSession] = []
        self.true, self.believed = TRUE, BELIEVED
        self.checkpoint, self.out = checkpoint, out
        self.digest = "digest"
        self.interrupt_in_race = -1
        self.pins: dict[str, str] = {}
        monkeypatch.setattr(budget_module, "time", self.clock)
        monkeypatch.setattr(run_module, "load_task", self._load_task)
        # Real devices only for their names; nothing is compiled on them.
        self.core = ov.Core()
        monkeypatch.setattr(
            "ov_autoplace.training.finetuning.request.resolve_devices", lambda *_: self.true.devices
        )
        for module in ("request", "report"):
            monkeypatch.setattr(f"ov_autoplace.training.finetuning.{module}.fingerprint", lambda *_: "here")
        monkeypatch.setattr("ov_autoplace.training.finetuning.request.device_settings", lambda *_: {})

    def _load_task(self, name, source, request, machine, budget, known=None) -> TuningTask:
        session = ScriptedSession(self.true, clock=self.clock, compile_seconds=0.3, seed=len(self.sessions))
        session.interrupt_in_race = self.interrupt_in_race
        self.sessions.append(session)
        table = known or self.believed
        settings = request.settings
        races = ReferenceRaces(session, table, budget, settings.inferences, request.options.seed, 0.3)  # type: ignore[arg-type]
        return TuningTask(name, scripted_model(table, session, self.digest, pins=self.pins), races)

    def tune(self, *names: str, budget: float = 60.0, **options) -> FinetuneResult:
        arguments = {"checkpoint": self.checkpoint, "settings": SETTINGS, "out": self.out} | options
        return finetune(
            [f"{name}.xml" for name in names or ("net",)],
            core=self.core,
            budget=budget,
            started=self.clock.now,
            **arguments,
        )

    def lines(self, *kinds: str) -> list[dict]:
        return [line for line in read_log(self.out / "measurements.jsonl") if line["kind"] in kinds]

    def best(self, name: str = "net") -> tuple[int, ...]:
        device_of = json.loads((self.out / f"best.{name}.affinity.json").read_text())
        return tuple(self.true.devices.index(device_of[group]) for group in self.true.names)
