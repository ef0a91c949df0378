"""Decisions kept in ``CACHE_DIR``, beside OpenVINO's own blobs, so that a second compile searches nothing."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._version import __version__
from ov_autoplace.devices import fingerprint, property_text
from ov_autoplace.errors import AutoplaceError, OutputError
from ov_autoplace.files import read_json, write_text_atomically
from ov_autoplace.options import PlacerOptions
from ov_autoplace.placement.placement import Placement
from ov_autoplace.policy.checkpoint import checkpoint_key

__all__ = ["DecisionCache", "cache_folder", "model_hash"]

_log = logging.getLogger("ov_autoplace")
_SCHEMA = 1


def cache_folder(core: ov.Core, properties: Mapping[str, Any]) -> str:
    """``CACHE_DIR`` of a request, or of its Core; empty when neither has one."""
    return str(properties.get("CACHE_DIR") or core.get_property("CACHE_DIR"))


@dataclass(frozen=True)
class DecisionCache:
    """The one file in which the decision for a model, devices and options is kept."""

    path: Path

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
        target = (
            Path(options.target).read_bytes() if options.target and Path(options.target).exists() else b""
        )
        asked["policy"] = checkpoint_key(options.policy)
        settings = json.dumps([asked, dict(options.properties)], sort_keys=True, default=property_text)
        key = hashlib.sha256()
        for part in (__version__, model_hash(model), fingerprint(core, devices), ",".join(devices), settings):
            key.update(part.encode() + b"\0")
        key.update(target)
        return cls(Path(str(folder)) / f"autoplace-{key.hexdigest()[:32]}.json")

    def load(self) -> dict[str, str] | None:
        """The device of every op, or ``None`` when nothing usable is stored."""
        if not self.path.exists():
            return None
        try:
            data = read_json(self.path, AutoplaceError, "a stored decision")
            if not isinstance(data, dict) or data.get("schema") != _SCHEMA:
                return None
            return Placement.from_dict(data["placement"]).to_dict()
        except (AutoplaceError, KeyError, AttributeError) as cause:
            _log.warning("%s is damaged and will be replaced (%s)", self.path, cause)
            return None

    def store(self, placement: Placement) -> None:
        """Keep a decision; a folder that cannot be written costs a warning, not the compile."""
        decision = placement.decision
        data = {
            "schema": _SCHEMA,
            "chosen": decision.chosen if decision else placement.solver,
            "decision": str(decision or ""),
            "placement": placement.to_dict(),
        }
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_text_atomically(self.path, json.dumps(data, ensure_ascii=False))
        except (OutputError, OSError) as cause:
            _log.warning("the decision is not kept: %s", cause)


def model_hash(model: ov.Model) -> str:
    """Hash of what a placement depends on: names, types, shapes and wiring, but not the weights."""
    digest = hashlib.sha256()
    for op in model.get_ordered_ops():
        parts = [op.get_friendly_name(), op.get_type_name()]
        parts += [f"{o.get_element_type()}{o.get_partial_shape()}" for o in op.outputs()]
        parts += [v.get_node().get_friendly_name() for v in op.input_values()]
        digest.update("\0".join(parts).encode("utf-8", "surrogatepass") + b"\n")
    return digest.hexdigest()
