"""Answers of units in a folder, one file each as soon as they arrive: what ``--resume`` goes on from."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ov_autoplace._base.files import make_folder, write_text_atomically
from ov_autoplace._base.json_fields import read_json
from ov_autoplace.errors import FleetError

__all__ = ["KeptAnswers"]

_SCHEMA, _VERSION = "ov-autoplace fleet run", 1
_RUN = "run.json"
_PLAIN = re.compile(r"[^A-Za-z0-9._-]+")


class KeptAnswers:
    """The folder of one run.

    Args:
        folder: Made where it is missing.
        request: What the run is about; a run that is resumed must be about the same.
        resume: Go on with what is there.

    Raises:
        FleetError: There is a run that is not to be resumed, or none to resume, or one about something else.
        OutputError: The folder cannot be written.
    """

    def __init__(self, folder: Path, request: Mapping[str, Any], *, resume: bool) -> None:
        self._folder = folder
        run = {"schema": _SCHEMA, "version": _VERSION, "request": json.loads(json.dumps(request))}
        path = folder / _RUN
        if path.exists():
            if not resume:
                raise FleetError(
                    f"{folder} holds an earlier run; add --resume to go on with it, or give another folder"
                )
            found = read_json(path, FleetError, "the record of a run")
            if found != run:
                raise FleetError(
                    f"{path} tells of a run with {_difference(found, run)}; "
                    "give the same as then, or another folder"
                )
            return
        make_folder(folder)
        write_text_atomically(path, json.dumps(run, indent=1) + "\n")

    def get(self, name: str) -> dict[str, Any] | None:
        """What was kept under a name; ``None`` where nothing was, or where it cannot be read."""
        path = self._path(name)
        if not path.exists():
            return None
        try:
            value = read_json(path, FleetError, "an answer of a machine")
        except FleetError:
            return None  # measured again
        return value if isinstance(value, dict) and value.get("name") == name else None

    def put(self, name: str, value: Mapping[str, Any]) -> None:
        """Keep plain JSON values under a name, such as the outcome of a unit.

        Raises:
            OutputError: The file cannot be written.
        """
        write_text_atomically(self._path(name), json.dumps({**value, "name": name}) + "\n")

    def _path(self, name: str) -> Path:
        digest = hashlib.sha256(name.encode()).hexdigest()[:8]
        return self._folder / f"{_PLAIN.sub('-', name)[:80]}-{digest}.json"


def _difference(found: Any, run: Mapping[str, Any]) -> str:
    """The first field in which two runs differ, in words."""
    before = found.get("request") if isinstance(found, dict) else None
    if not isinstance(before, dict) or found.get("version") != _VERSION:
        return "another release of this program"
    now = run["request"]
    names = [name for name in {**before, **now} if before.get(name) != now.get(name)]
    if not names:
        return "another release of this program"
    return f"another {names[0].replace('_', ' ')} ({before.get(names[0])!r}, now {now.get(names[0])!r})"
