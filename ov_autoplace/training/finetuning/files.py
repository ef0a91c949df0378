"""What a fine-tuning run keeps on disk, so that a kill loses at most the measurement in progress.

The output folder is a checkpoint, and holds besides: ``measurements.jsonl`` (a line per measurement),
``state.safetensors`` (what the policy's training needs to go on), ``MODEL.table.json`` (the costs as they
were profiled), ``best.MODEL.affinity.json`` (the device of every op in the best placement that is proven),
``best.MODEL.plan.json`` (how that one runs) and ``learning_curve.png``.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import make_folder, staged_folder, write_text_atomically
from ov_autoplace._base.json_fields import Record
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.table_json import load_table, save_table
from ov_autoplace.errors import OutputError, TrainingError
from ov_autoplace.policy.card import CARD
from ov_autoplace.training.finetuning.learning_curve import draw_learning_curve
from ov_autoplace.training.finetuning.task import Event, TuningTask
from ov_autoplace.training.logs import JsonLinesLog, read_log

__all__ = ["KINDS", "LOG", "TuningFolder", "check_line"]

LOG = "measurements.jsonl"
KINDS = ("measured", "again", "proposed", "confirmed", "refuted")
"""What a line of the log tells, see :class:`~ov_autoplace.training.finetuning.task.Event`."""

_MOST = 2**31 - 1
_LOWEST_MS, _HIGHEST_MS = 1e-6, 1e12
_TEXTS = ("model", "source", "reference", "failure", "note", "placement")
_STATE, _CURVE = "state.safetensors", "learning_curve.png"


class TuningFolder:
    """The output folder of a run.

    Args:
        path: The folder; it is made by :meth:`create`.
        resume: Whether to go on with the run that it holds.

    Attributes:
        resumed: Whether there is a run to go on with.

    Raises:
        TrainingError: It holds something that would be overwritten.
        OutputError: It cannot be written.
    """

    def __init__(self, path: Path, resume: bool) -> None:
        self.path = path
        self.state = path / _STATE
        self.curve = path / _CURVE
        self.resumed = resume and self.state.exists()
        self._log: JsonLinesLog | None = None
        self._lines: list[dict[str, Any]] = []
        if path.exists() and not path.is_dir():
            raise OutputError(f"cannot write to {path}: it is a file, not a folder")
        if self.state.exists() and not resume:
            raise TrainingError(
                f"{path} holds a tuning run already; continue it with resume, or give another folder"
            )
        if (path / CARD).exists() and not self.resumed:
            raise TrainingError(
                f"{path} holds a checkpoint, which tuning would overwrite; give another folder"
            )
        existing = next(folder for folder in (path, *path.absolute().parents) if folder.exists())
        with staged_folder(existing):
            pass  # refuse a folder that cannot be written now, not after minutes

    def create(self) -> None:
        """Make the folder and open its log, once.

        Raises:
            TrainingError: The log of the run to go on with holds something else.
            OutputError: The folder cannot be written.
        """
        if self._log is not None:
            return
        make_folder(self.path)
        # Without a state, what a killed run left was written before its first measurement.
        self._log = JsonLinesLog(self.path / LOG, keep=None if self.resumed else lambda _: False)
        self._lines = read_log(self.path / LOG)
        for number, line in enumerate(self._lines, start=1):
            check_line(line, f"{self.path / LOG}: line {number}")

    def lines(self, name: str | None = None) -> list[dict[str, Any]]:
        """The measurement log, of one model or of all."""
        return [line for line in self._lines if name is None or line["model"] == name]

    def write(self, task: TuningTask, event: Event, at_seconds: float) -> None:
        """Append a line to the log; it is on its way to the disk when this returns."""
        if self._log is None:
            raise TrainingError(f"the log of {self.path} is not open")
        line = {"at_seconds": round(at_seconds, 3), **task.line(event)}
        self._log.write(line)
        self._lines.append(line)

    def close(self) -> None:
        """Close the log."""
        if self._log is not None:
            self._log.close()

    def best_file(self, task: TuningTask) -> Path:
        """Where the best placement of a model is."""
        return self.path / f"best.{task.name}.affinity.json"

    def save_best(self, task: TuningTask) -> None:
        """Write the best placement that is proven, and how it runs, each file whole or not at all."""
        placement = task.placement(task.champion)
        placement.save(self.best_file(task))
        plan = json.dumps(placement.plan.to_json(), indent=1, ensure_ascii=False)
        write_text_atomically(self.path / f"best.{task.name}.plan.json", plan + "\n")

    def save_table(self, name: str, table: CostTable) -> None:
        """Keep the costs as they were profiled."""
        save_table(table, self._table_file(name))

    def load_table(self, name: str) -> CostTable:
        """The costs that the run was started with."""
        return load_table(self._table_file(name))

    def draw(self) -> None:
        """Draw the learning curve."""
        draw_learning_curve(self._lines, self.curve)

    def _table_file(self, name: str) -> Path:
        return self.path / f"{name}.table.json"


def check_line(line: dict[str, Any], where: str) -> None:
    """Refuse a line that :meth:`~ov_autoplace.training.finetuning.task.TuningTask.line` did not write.

    Whether it fits the model of its name, the task looks itself.

    Args:
        line: The line, parsed.
        where: What it is, for error sentences.

    Raises:
        TrainingError: A field is missing or is something else.
    """
    record = Record.of(line, where, TrainingError)
    for key in _TEXTS:
        record.text(key)
    kind = record.text("kind")
    if kind not in KINDS:
        raise TrainingError(f"{where}: there is no kind {kind[:60]!r}; there are {', '.join(KINDS)}")
    for key in ("measurement", "round", "subgraphs"):
        record.integer(key, 0, _MOST)
    for key in ("predicted_ms", "temperature", "relative", "best"):
        if key not in line:  # where null is what is not finite
            raise TrainingError(f"{where}: {key!r} is missing")
        record.number(key, null=math.inf)
    for key in ("ms", "reference_ms"):
        for value in record.numbers(key):
            if not _LOWEST_MS <= value <= _HIGHEST_MS:
                raise TrainingError(f"{where}: {key!r} holds {value}, which is no latency in milliseconds")
