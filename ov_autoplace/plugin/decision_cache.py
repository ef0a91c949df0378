"""Decisions that are kept, so that a second compile searches nothing.

They are in ``CACHE_DIR``, beside OpenVINO's own blobs, or where there is none in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import openvino as ov

from ov_autoplace._base.files import os_reason, possible, write_text_atomically
from ov_autoplace._base.json_fields import Record
from ov_autoplace._base.locks import remove_unless_locked
from ov_autoplace._base.user_cache import user_cache_folder
from ov_autoplace.decide.option_values import PARSERS, PREFIX
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.conditions import measuring_conditions
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_properties, property_text
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import AutoplaceError, OptionError, OutputError
from ov_autoplace.graph.model_hash import model_hash, weights_hash
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import Plan, read_plan

if TYPE_CHECKING:  # compiling with a decision that is kept, which shall be quick, makes none
    from ov_autoplace.plan.decision import Decision

__all__ = ["DECISIONS", "DecisionCache", "StoredDecision", "cache_folder", "kept_decisions", "reason_of"]

_log = logging.getLogger("ov_autoplace")
_SCHEMA, _VERSION = "ov_autoplace.decision", 5
DECISIONS = "decisions/autoplace-*.json"
"""Where decisions are in the user's cache folder."""

_FOLDER, _PATTERN = DECISIONS.split("/")
_VARIABLE = f"{PREFIX}CACHE"
_CHECKED = {True: "it holds", False: "it does not hold", None: "the machine is still busy"}


def cache_folder(core: ov.Core, properties: Mapping[str, Any]) -> str:
    """``CACHE_DIR`` of a request, or of its Core; empty when neither has one.

    Raises:
        OptionError: No folder can have this name.
    """
    folder = str(properties.get("CACHE_DIR", core.get_property("CACHE_DIR")))
    try:
        possible(folder)
    except OSError as cause:
        raise OptionError(f"CACHE_DIR is {folder!r}: {os_reason(cause)}") from cause
    return folder


def _own_folder() -> Path | None:
    """Where decisions are kept without being asked; ``None`` where there is no home."""
    folder = user_cache_folder()
    return None if folder is None else folder / _FOLDER


def reason_of(plan: Plan, decision: Decision | None = None) -> str:
    """How it was decided to run a model so, a sentence."""
    return str(decision or f"{plan.name}: there is nothing to choose")


def kept_decisions() -> list[Path]:
    """The entries in the user's cache folder, in order of their names."""
    folder = _own_folder()
    return sorted(folder.glob(_PATTERN)) if folder is not None else []


def _is_wanted(options: PlacerOptions) -> bool:
    """Whether decisions are kept without being asked.

    Raises:
        OptionError: The variable of the environment is neither YES nor NO.
    """
    told = os.environ.get(_VARIABLE, "")
    return options.cache and (not told or PARSERS["cache"](told))


class StoredDecision(NamedTuple):
    """What an entry holds.

    Attributes:
        plan: How the model with folded shapes is run.
        disturbed: It was found while other work kept the devices busy, and wants to be checked.
        reason: Of the decision, a sentence.
    """

    plan: Plan
    disturbed: bool
    reason: str

    @classmethod
    def read(cls, path: Path) -> StoredDecision:
        """What a file holds.

        Raises:
            AutoplaceError: It is damaged.
        """
        record = Record.load(path, AutoplaceError, "a stored decision")
        record.require_schema(_SCHEMA, _VERSION)
        plan = read_plan(record.fields.get("plan"))
        return cls(plan, record.flag("disturbed", True), record.text("decision"))


@dataclass(frozen=True)
class DecisionCache:
    """The one file in which the decision for a model, devices and options is kept.

    Attributes:
        path: The file.
        devices: The devices of the request.
        is_asked: Somebody named the folder, and is told where it cannot be written.
        most_bytes: How much all decisions in the folder may take together; beyond, those go that were not
            used for the longest time.
    """

    path: Path
    devices: tuple[str, ...]
    is_asked: bool = True
    most_bytes: int = 64 << 20

    @classmethod
    def of(
        cls, core: ov.Core, model: ov.Model, devices: Sequence[str], options: PlacerOptions
    ) -> DecisionCache | None:
        """The cache entry of a request; ``None`` where decisions are not kept."""
        named = cache_folder(core, options.properties)
        folder = Path(named) if named else _own_folder()
        if folder is None or not (named or _is_wanted(options)):
            return None
        asked = {
            f.name: getattr(options, f.name)
            for f in fields(options)
            if f.name not in ("properties", "progress", "cache", "decide")
        }
        properties = {k: v for k, v in options.properties.items() if k not in CACHE_PROPERTIES}
        settings = json.dumps([asked, properties], sort_keys=True, default=property_text)
        conditions = measuring_conditions(core, devices, device_properties(core, devices, properties))
        key = hashlib.sha256()
        cores = Cores.of_this_process()
        usable = f"decision {_VERSION}, {cores.usable} usable cores, {cores.quota}, {cores.of_kind}"
        for part in (*conditions, usable, model_hash(model), ",".join(devices), settings):
            key.update(part.encode("utf-8", "surrogatepass") + b"\0")
        key.update(_content(options.target))
        if options.output_tolerance != "OFF":
            key.update(weights_hash(model).encode())  # who computes wrong was refused
        return cls(folder / f"autoplace-{key.hexdigest()[:32]}.json", tuple(devices), bool(named))

    @property
    def lock(self) -> Path:
        """The lock of whoever makes this decision."""
        return self.path.with_suffix(".lock")

    def load(self, ops: Collection[str]) -> StoredDecision | None:
        """What is stored, or ``None``; an entry that does not fit is dropped with a warning.

        Args:
            ops: Friendly names of all ops of the model.
        """
        if not self.path.exists():
            return None
        try:
            stored = StoredDecision.read(self.path)
            stored.plan.check_fits(self.devices, ops)
        except AutoplaceError as cause:
            self.drop(str(cause))
            return None
        with suppress(OSError):
            os.utime(self.path)  # what was used last goes last
        return stored

    def checked(self, stored: StoredDecision, confirm: Callable[[Plan], bool | None]) -> Plan | None:
        """What is stored, unless it was found on a busy machine and does not hold.

        Args:
            stored: An entry.
            confirm: Runs it once more; ``None`` where that tells nothing.
        """
        if not stored.disturbed:
            return stored.plan
        answer = confirm(stored.plan)
        _log.info("a decision that was found on a busy machine was checked: %s", _CHECKED[answer])
        if answer:
            self._keep(
                stored.plan,
                "found while other work disturbed the measurements, and confirmed by a race",
                disturbed=False,
            )
        return None if answer is False else stored.plan

    def drop(self, reason: str) -> None:
        """Remove the entry, which is of no use."""
        _log.warning("%s is damaged or does not fit and is made anew: %s", self.path, reason)
        with suppress(OSError):
            self.path.unlink()

    def store(self, placement: Placement) -> None:
        """Keep a decision; a folder that cannot be written costs a warning, not the compile."""
        decision = placement.decision
        disturbed = decision is not None and decision.disturbed
        self._keep(placement.plan, reason_of(placement.plan, decision), disturbed=disturbed)

    def _keep(self, plan: Plan, reason: str, *, disturbed: bool) -> None:
        data = {
            "schema": _SCHEMA,
            "version": _VERSION,
            "decision": reason,
            "disturbed": disturbed,
            "plan": plan.to_json(),
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text_atomically(self.path, json.dumps(data, ensure_ascii=False))
        except (OutputError, OSError, UnicodeError) as cause:
            _log.log(
                logging.WARNING if self.is_asked else logging.INFO, "the decision is not kept: %s", cause
            )
        else:
            self._evict()

    def _evict(self) -> None:
        """Remove the entries that were not used for longest while there are too many; never this one."""
        entries = []
        for path in self.path.parent.glob(_PATTERN):
            with suppress(OSError):  # another process may be doing the same
                status = path.stat()
                entries.append((status.st_mtime_ns, status.st_size, path))
        total = sum(size for _, size, _ in entries)
        for _, size, path in sorted(entries):
            if total <= self.most_bytes:
                break
            if path != self.path:
                with suppress(OSError):
                    path.unlink()
                    remove_unless_locked(path.with_suffix(".lock"))
                total -= size


def _content(target: str | None) -> bytes:
    """What is in the file of a target profile; nothing where it cannot be read, as its user will be told."""
    if target is None:
        return b""
    from ov_autoplace.cost.target_json import target_path

    try:
        return possible(target_path(target)).read_bytes()
    except OSError:
        return b""
