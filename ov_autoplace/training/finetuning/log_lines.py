"""What a line of the measurement log must hold, before a run goes on from it."""

from __future__ import annotations

import math
from typing import Any

from ov_autoplace._base.json_fields import Record
from ov_autoplace.errors import TrainingError

__all__ = ["KINDS", "check_line"]

KINDS = ("measured", "again", "proposed", "confirmed", "refuted")
"""Of :class:`~ov_autoplace.training.finetuning.task.Event`."""

_MOST = 2**31 - 1
_LOWEST_MS, _HIGHEST_MS = 1e-6, 1e12
_TEXTS = ("model", "source", "reference", "failure", "note", "placement")


def check_line(line: dict[str, Any], where: str) -> None:
    """Refuse a line that :meth:`~ov_autoplace.training.finetuning.task.TuningTask.line` did not write.

    Whether it fits the model of its name, the task looks itself.

    Args:
        line: The line, parsed.
        where: What it is, for error sentences.

    Raises:
        TrainingError: A field is missing or is something else.
    """
    trial = Record.of(line, where, TrainingError)
    for key in _TEXTS:
        trial.text(key)
    kind = trial.text("kind")
    if kind not in KINDS:
        raise TrainingError(f"{where}: there is no kind {kind[:60]!r}; there are {', '.join(KINDS)}")
    for key in ("measurement", "round", "subgraphs"):
        trial.integer(key, 0, _MOST)
    for key in ("predicted_ms", "temperature", "relative", "best"):
        if key not in line:  # where null stands for what is not finite
            raise TrainingError(f"{where}: {key!r} is missing")
        trial.number(key, null=math.inf)
    for key in ("ms", "reference_ms"):
        for value in trial.numbers(key):
            if not _LOWEST_MS <= value <= _HIGHEST_MS:
                raise TrainingError(f"{where}: {key!r} holds {value}, which is no latency in milliseconds")
