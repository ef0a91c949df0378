"""Decisions kept in ``CACHE_DIR``, beside OpenVINO's own blobs, so that a second compile searches nothing."""

from __future__ import annotations

import hashlib
import json
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

import openvino as ov

from ov_autoplace._base.files import os_reason, possible, read_json, write_text_atomically
from ov_autoplace._base.locks import remove_unless_locked
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.devices.conditions import measuring_conditions
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_properties, property_text
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.errors import AutoplaceError, OptionError, OutputError
from ov_autoplace.placement.lane_plan import LanePlan
from ov_autoplace.placement.placement import Placement
from ov_autoplace.plugin.model_hash import model_hash, weights_hash
from ov_autoplace.policy.card import checkpoint_key

__all__ = ["DecisionCache", "StoredDecision", "cache_folder"]

_log = logging.getLogger("ov_autoplace")
_SCHEMA = 4
_CHECKED = {True: "it holds", False: "it does not hold", None: "the machine is still busy"}
_Stored = TypeVar("_Stored")


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


@dataclass(frozen=True)
class StoredDecision:
    """What an entry holds.

    Attributes:
        device_of: The device of every op.
        disturbed: It was found while other work kept the devices busy, and wants to be checked.
        width: On how many threads of its one device it runs; ``None`` = as OpenVINO does by itself.
        plan: How its ops run on lanes that work at once; ``None`` = on one device, or in HETERO's turns.
    """

    device_of: dict[str, str]
    disturbed: bool
    width: Width | None = None
    plan: LanePlan | None = None


@dataclass(frozen=True)
class DecisionCache:
    """The one file in which the decision for a model, devices and options is kept.

    Attributes:
        path: The file.
        devices: The devices of the request.
        most_bytes: How much all decisions in the folder may take together; beyond, those go that were not
            used for the longest time.
    """

    path: Path
    devices: tuple[str, ...]
    most_bytes: int = 64 << 20

    @classmethod
    def of(
        cls, core: ov.Core, model: ov.Model, devices: Sequence[str], options: PlacerOptions
    ) -> DecisionCache | None:
        """The cache entry of a request, or ``None`` when no ``CACHE_DIR`` is set."""
        folder = cache_folder(core, options.properties)
        if not folder:
            return None
        asked = {
            f.name: getattr(options, f.name)
            for f in fields(options)
            if f.name not in ("properties", "progress")
        }
        asked["policy"] = checkpoint_key(options.policy)
        properties = {k: v for k, v in options.properties.items() if k not in CACHE_PROPERTIES}
        settings = json.dumps([asked, properties], sort_keys=True, default=property_text)
        conditions = measuring_conditions(core, devices, device_properties(core, devices, properties))
        key = hashlib.sha256()
        cores = Cores.of_this_process()
        usable = f"decision {_SCHEMA}, {cores.usable} usable cores, {cores.quota}, {cores.of_kind}"
        for part in (*conditions, usable, model_hash(model), ",".join(devices), settings):
            key.update(part.encode("utf-8", "surrogatepass") + b"\0")
        key.update(_content(options.target))
        if options.output_tolerance != "OFF":
            key.update(weights_hash(model).encode())  # who computes wrong was refused
        return cls(Path(folder) / f"autoplace-{key.hexdigest()[:32]}.json", tuple(devices))

    @property
    def lock(self) -> Path:
        """The lock of whoever makes this decision."""
        return self.path.with_suffix(".lock")

    def load(self, ops: Collection[str]) -> StoredDecision | None:
        """What is stored, or ``None``; an entry that does not fit is dropped with a warning.

        Args:
            ops: Friendly names of all ops of the model.
        """
        return self.read(lambda data: self._stored(data, ops))

    def read(self, parse: Callable[[Mapping[str, Any]], _Stored]) -> _Stored | None:
        """What is kept, or ``None``; an entry that does not fit is dropped with a warning.

        Args:
            parse: Makes something of the entry, or raises an ``AutoplaceError`` that says what is wrong.
        """
        if not self.path.exists():
            return None
        try:
            data = read_json(self.path, AutoplaceError, "a stored decision")
            if not isinstance(data, dict):
                raise AutoplaceError("it has another schema")
            stored = parse(data)
        except AutoplaceError as cause:
            self.drop(str(cause))
            return None
        with suppress(OSError):
            os.utime(self.path)  # what was used last goes last
        return stored

    def _stored(self, data: Mapping[str, Any], ops: Collection[str]) -> StoredDecision:
        if data.get("schema") != _SCHEMA:
            raise AutoplaceError("it has another schema")
        device_of, disturbed = data.get("placement"), data.get("disturbed")
        if not isinstance(device_of, dict) or not isinstance(disturbed, bool):
            raise AutoplaceError("it holds no placement")
        width = None if data.get("width") is None else Width.parse(str(data["width"]))
        if width is not None and len(set(device_of.values())) != 1:
            raise AutoplaceError(f"it gives {len(set(device_of.values()))} devices the width {width}")
        plan = None if data.get("plan") is None else LanePlan.from_dict(data["plan"])
        if plan is not None and (unknown := set(plan.submodel_of).difference(ops)):
            raise AutoplaceError(f"its plan is for other ops, such as {min(unknown)!r}")
        for op, device in device_of.items():
            if device not in self.devices:
                raise AutoplaceError(f"it places {op!r} on {device!r}, not on {', '.join(self.devices)}")
        strange = set(ops).symmetric_difference(device_of)
        if strange:
            raise AutoplaceError(f"it is for other ops, such as {min(strange)!r}")
        return StoredDecision(device_of, disturbed, width, plan)

    def checked(
        self,
        stored: _Stored,
        is_disturbed: bool,
        confirm: Callable[[_Stored], bool | None],
        keep: Callable[[str], None],
    ) -> _Stored | None:
        """What is stored, unless it was found on a busy machine and does not hold.

        Args:
            stored: An entry.
            is_disturbed: Whether it was found so.
            confirm: Runs it once more; ``None`` where that tells nothing.
            keep: Writes the entry without the mark, and with a reason.
        """
        if not is_disturbed:
            return stored
        answer = confirm(stored)
        _log.info("a decision that was found on a busy machine was checked: %s", _CHECKED[answer])
        if answer:
            keep("found while other work disturbed the measurements, and confirmed by a race")
        return None if answer is False else stored

    def drop(self, reason: str) -> None:
        """Remove the entry, which is of no use."""
        _log.warning("%s is damaged or does not fit and is made anew: %s", self.path, reason)
        with suppress(OSError):
            self.path.unlink()

    def store(self, placement: Placement) -> None:
        """Keep a decision; a folder that cannot be written costs a warning, not the compile."""
        decision = placement.decision
        disturbed = decision.disturbed if decision else False
        self.write(
            StoredDecision(placement.decided(), disturbed, placement.width, placement.plan),
            chosen=decision.chosen if decision else placement.solver,
            reason=str(decision or ""),
        )

    def write(self, stored: StoredDecision, chosen: str | None, reason: str) -> None:
        """:meth:`store` of something that is no new decision."""
        data = {
            "schema": _SCHEMA,
            "chosen": chosen,
            "decision": reason,
            "disturbed": stored.disturbed,
            "width": None if stored.width is None else str(stored.width),
            "plan": None if stored.plan is None else stored.plan.to_dict(),
            "placement": stored.device_of,
        }
        self.keep(data)

    def keep(self, data: Mapping[str, Any]) -> None:
        """Write the entry; a folder that cannot be written costs a warning, not the compile."""
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text_atomically(self.path, json.dumps(data, ensure_ascii=False))
        except (OutputError, OSError, UnicodeError) as cause:
            _log.warning("the decision is not kept: %s", cause)
        else:
            self._evict()

    def _evict(self) -> None:
        """Remove the entries that were not used for longest while there are too many; never this one."""
        entries = []
        for path in self.path.parent.glob("autoplace-*.json"):
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
