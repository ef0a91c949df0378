"""The log of a run: JSON lines that survive a kill."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np

from ov_autoplace._base.files import os_reason, possible, write_text_atomically
from ov_autoplace._base.json_fields import parse_json
from ov_autoplace.errors import OutputError, TrainingError

__all__ = ["JsonLinesLog", "read_log"]


class JsonLinesLog:
    """An append-only log: one JSON object per line, handed to the system at once.

    A line that a kill tore is cut off when the log is opened again.
    """

    def __init__(self, path: str | Path, keep: Callable[[dict[str, Any]], bool] | None = None) -> None:
        """Open a log for appending, and make it when it is missing.

        Args:
            path: The file.
            keep: Which of the records already there to keep. A run that resumes from a state saved at step s
                writes everything after s again, and so keeps ``lambda record: record["step"] <= s``.

        Raises:
            TrainingError: The file holds something else.
            OutputError: The file cannot be written.
        """
        self.path = Path(path)
        try:
            _cut_torn_line(self.path)
            if keep is not None and self.path.exists():
                try:
                    kept = [record for record in read_log(self.path) if keep(record)]
                except (KeyError, TypeError) as cause:
                    raise TrainingError(
                        f"{path} is the log of something else; give another folder"
                    ) from cause
                write_text_atomically(self.path, "".join(map(_line, kept)))
            # Nothing is buffered that closing the file would have to write.
            self._file = self.path.open("ab", buffering=0)
        except OSError as cause:
            raise OutputError(f"cannot write the log {path}: {cause.strerror}") from cause

    def write(self, record: Mapping[str, Any]) -> None:
        """Append one record; NumPy numbers become plain ones, and what is not finite becomes ``null``."""
        left = memoryview(_line(record).encode())
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as cause:
            raise OutputError(f"cannot write the log {self.path}: {cause.strerror}") from cause

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __enter__(self) -> JsonLinesLog:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def read_log(path: str | Path) -> list[dict[str, Any]]:
    """The records of a log, oldest first; a line still being written, or torn by a kill, is left out.

    Raises:
        TrainingError: The file cannot be read, or does not hold one JSON object per line.
    """
    try:
        lines = possible(path).read_bytes().split(b"\n")[:-1]
    except OSError as cause:
        raise TrainingError(f"cannot read the log {path}: {os_reason(cause)}") from cause
    records = []
    for number, line in enumerate(lines, start=1):
        try:
            record = parse_json(line.decode())
        except (ValueError, RecursionError) as cause:
            raise TrainingError(f"{path} is not a log: line {number} does not parse as JSON") from cause
        if not isinstance(record, dict):
            raise TrainingError(f"{path} is not a log: line {number} is not a JSON object")
        records.append(record)
    return records


def _line(record: Mapping[str, Any]) -> str:
    return json.dumps(_plain(record), allow_nan=False, ensure_ascii=False) + "\n"


def _plain(value: Any) -> Any:
    """The same value in JSON's own types."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _cut_torn_line(path: Path) -> None:
    """Cut a file after its last line break."""
    if not path.exists():
        return
    content = path.read_bytes()
    end = content.rfind(b"\n") + 1
    if end < len(content):
        os.truncate(path, end)
