"""The last races of tools/bench/finetune.py: what the placements that its runs proposed are worth."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
from device_race import core_of
from finetune_outcome import WITHIN, Outcome, improvements
from real_models import PAIRS

from ov_autoplace._base.statistics import paired_ratio
from ov_autoplace.cost.table import CostTable
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.placement.annotation import completed
from ov_autoplace.placement.placement import Placement
from ov_autoplace.training.finetuning.task import AFTER

__all__ = ["DeviceOf", "LastRace", "Run", "measured_outcome", "text_of"]

_FINALISTS = 3  # of each run, into the last race
_FASTEST = 6  # of the last race, to be compiled again
_COMPILATIONS = 2
_ROUNDS = 400

DeviceOf = dict[str, str]


@dataclass
class Run:
    """A fine-tuning that ended.

    Attributes:
        line: The line of the results file.
        lines: The measurement log.
        table: Its costs, which name what the placements of the log place.
    """

    seed: int
    kind: str
    line: dict[str, Any]
    lines: list[dict[str, Any]]
    table: CostTable

    def devices(self, line: dict[str, Any]) -> DeviceOf:
        """Device of each op in a line of the log."""
        assignment = np.array([ord(c) - ord("0") for c in line["placement"]], dtype=np.int32)
        return Placement.of_groups(self.table, assignment).to_dict()

    def finalists(self) -> list[DeviceOf]:
        """The best placements that it measured."""
        measured = [line for line in self.lines if line["kind"] == "measured" and line["relative"]]
        measured.sort(key=lambda line: line["relative"])
        return [self.devices(line) for line in measured[:_FINALISTS]]


def text_of(device_of: DeviceOf) -> str:
    """The same for the same placement, whatever groups it was made of."""
    return " ".join(device_of[name] for name in sorted(device_of))


class LastRace:
    """Races of placements of one model, relative to the pair's second device alone, which is the CPU.

    Args:
        pair: Of devices, as in ``real_models.PAIRS``.
        model: Is run as it is.
        placements: All that take part beside the single devices.
        seconds: For each race.

    Attributes:
        singles: Text of each device alone.
        placements: Device of each op, by text.
        ratios: Latency over the second device's, by text: of the last races that each was in.
    """

    def __init__(self, pair: str, model: ov.Model, placements: list[DeviceOf], seconds: float) -> None:
        core, devices = core_of(pair), PAIRS[pair]
        self._session = ProfilingSession(core, model, devices, device_properties(core, devices, {}))
        self._reference = devices[1]
        self._seconds = seconds
        names = list(placements[0])
        alone = {device: dict.fromkeys(names, device) for device in devices}
        self.singles = {device: text_of(device_of) for device, device_of in alone.items()}
        self.placements = {text_of(device_of): device_of for device_of in [*alone.values(), *placements]}
        self.ratios: dict[str, float] = {}
        self._race(list(self.placements), 1)
        fastest = sorted(self.ratios, key=self.ratios.__getitem__)[:_FASTEST]
        self._final = dict.fromkeys([*self.singles.values(), *fastest])
        self._race(list(self._final), _COMPILATIONS)

    @property
    def best(self) -> str:
        """The fastest placement of those that were compiled again."""
        return min(self._final, key=lambda text: self.ratios.get(text, np.inf))

    @property
    def best_single(self) -> float:
        """Ratio of the fastest device alone, of those that can run the model."""
        return min(self.ratios.get(text, np.inf) for text in self.singles.values())

    def check(self, placements: dict[str, DeviceOf]) -> None:
        """Race more placements beside the best one."""
        self.placements |= placements
        self._race([*self.singles.values(), self.best, *placements], _COMPILATIONS, set(placements))

    def close(self) -> None:
        """Let go of the devices."""
        self._session.close()

    def _race(self, texts: list[str], compilations: int, about: set[str] | None = None) -> None:
        """Compile and race placements; note the ratios of some of them, which are all if not said."""
        logs: dict[str, list[float]] = {}
        for _ in range(compilations):
            self._session.forget()
            executables = {}
            for text in dict.fromkeys(texts):
                try:
                    device_of = completed(self._session.model, self.placements[text])
                    executables[text] = self._session.compile_placement(device_of)
                except ProfilingError as cause:
                    print(f"left out of the last race: {cause}", file=sys.stderr)
            result = self._session.race(
                list(executables.values()), self._seconds, max_rounds=_ROUNDS, confidence=0.9999
            )
            samples = {text: e.samples for text, e in zip(executables, result.entries, strict=True)}
            reference = samples[self.singles[self._reference]]
            for text, own in samples.items():
                if len(own):
                    logs.setdefault(text, []).append(float(np.log(paired_ratio(own, reference).median)))
        for text, values in logs.items():
            if about is None or text in about:
                self.ratios[text] = float(np.exp(np.mean(values)))


def measured_outcome(name: str, run: Run, race: LastRace, claims: dict[str, DeviceOf]) -> Outcome:
    """When a run's policy proposed something within 1 % of the best, and how good its best proposal was.

    Claims that were not raced yet do not count; they are added to ``claims``.
    """
    best = race.ratios[race.best]
    reference = race.ratios[race.singles[run.line["result"]["best_single"]]]
    found: list[float] = []
    hit: dict[str, Any] = {"evaluations": None}
    measured = 0
    for line in run.lines:
        measured += line["kind"] == "measured"
        kinds = ("proposed",) if line["source"] in run.table.devices else ("proposed", "measured")
        if line["kind"] not in kinds or line["note"] == AFTER:  # that one was counted before
            continue
        if line["relative"] is None:
            found.append(np.inf)
            continue
        device_of = run.devices(line)
        text = text_of(device_of)
        ratio = race.ratios.get(text, line["relative"] * reference) / best
        if ratio <= WITHIN and text not in race.ratios:
            claims[text] = device_of
            ratio = np.inf
        found.append(ratio)
        if hit["evaluations"] is None and ratio <= WITHIN:
            hit = {"evaluations": len(found), "seconds": line["at_seconds"], "measured": measured}
    return Outcome(
        model=name,
        seed=run.seed,
        kind=run.kind,
        of=len(found),
        ratio=min(found, default=np.inf),
        curve=improvements(found),
        measurements=measured,
        wall=run.line["wall"],
        others=run.line["others"],
        **hit,
    )
