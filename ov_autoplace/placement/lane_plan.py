"""A plan for lanes: which ops are a submodel, and on which lane, in which order, submodels run.

It is all that the op ``autoplace::Schedule`` needs to know besides the model, small enough for a cache or a
file, and it says nothing about times.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ov_autoplace._base.json_fields import Record, naming, shown
from ov_autoplace._base.text import is_unicode
from ov_autoplace.devices.names import property_text
from ov_autoplace.errors import PlacementError

__all__ = ["Form", "Lane", "LanePlan"]

_WORDS = ("channels_last", "bf16")
_SCHEMA, _VERSION = "ov_autoplace.lane_plan", 1
_MOST = 2**31 - 1


@dataclass(frozen=True)
class Lane:
    """A device, or a part of one, that runs one submodel at a time.

    Lanes of equal device and properties are copies of each other: any of them can run what another was to.

    Attributes:
        device: OpenVINO's name of the device.
        properties: OpenVINO properties that its submodels are compiled with, as text, sorted by name.
    """

    device: str
    properties: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, device: str, properties: Mapping[str, Any] | None = None) -> Lane:
        """A lane with properties as OpenVINO's Python API takes them."""
        items = {key: property_text(value) for key, value in (properties or {}).items()}
        return cls(device, tuple(sorted(items.items())))


@dataclass(frozen=True)
class Form:
    """How a tensor lies in memory where a device makes it, and so how it is best handed over.

    Passed on otherwise, it would be rearranged twice, which can take longer than what it is made by.

    Attributes:
        channels_last: The second dimension comes last, as in NHWC.
        bf16: The device computes it in bf16 though the model says f32.
    """

    channels_last: bool = False
    bf16: bool = False

    def __str__(self) -> str:
        """For files, like ``channels_last bf16``."""
        return " ".join(word for word in _WORDS if getattr(self, word))

    @classmethod
    def parse(cls, text: str) -> Form:
        """Read what ``str`` wrote.

        Raises:
            PlacementError: It is nothing of the kind.
        """
        words = text.split()
        if not set(words) <= set(_WORDS):
            raise PlacementError(
                f"{shown(text)} is no form of a tensor; it has the words {', '.join(_WORDS)}"
            )
        return cls(**dict.fromkeys(words, True))


@dataclass(frozen=True, eq=False)
class LanePlan:
    """L lanes and S submodels.

    Attributes:
        lanes: The lanes, L.
        submodel_of: Submodel of each op by friendly name. Inputs, outputs, constants and state need none:
            what is said of them is ignored.
        lane_of: Lane of each submodel, S.
        rank: A lane that is free takes, of its ready submodels, the one of the smallest rank, S.
        forms: How the first output of an op is handed over, by friendly name, where that is not as the model
            has it.
    """

    lanes: tuple[Lane, ...]
    submodel_of: Mapping[str, int]
    lane_of: tuple[int, ...]
    rank: tuple[int, ...]
    forms: Mapping[str, Form] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if len(self.rank) != len(self.lane_of):
            raise PlacementError(
                f"a plan gives {len(self.lane_of)} submodels a lane, but {len(self.rank)} a rank"
            )
        wrong = [lane for lane in self.lane_of if not 0 <= lane < len(self.lanes)]
        if wrong:
            raise PlacementError(f"a plan puts a submodel on lane {wrong[0]}; it has {len(self.lanes)} lanes")
        for name, submodel in self.submodel_of.items():
            if not 0 <= submodel < len(self.lane_of):
                raise PlacementError(
                    f"a plan puts op {name!r} into submodel {submodel}; it has {len(self.lane_of)} submodels"
                )

    @cached_property
    def ops(self) -> tuple[tuple[str, ...], ...]:
        """The ops of each submodel, S."""
        found: list[list[str]] = [[] for _ in self.lane_of]
        for name, submodel in self.submodel_of.items():
            found[submodel].append(name)
        return tuple(map(tuple, found))

    def to_dict(self) -> dict[str, Any]:
        """Plain values for JSON, which :meth:`from_dict` reads."""
        return {
            "schema": _SCHEMA,
            "version": _VERSION,
            "lanes": [{"device": lane.device, "properties": dict(lane.properties)} for lane in self.lanes],
            "submodels": [
                {"lane": lane, "rank": rank, "ops": list(ops)}
                for lane, rank, ops in zip(self.lane_of, self.rank, self.ops, strict=True)
            ],
            "forms": {name: str(form) for name, form in self.forms.items()},
        }

    @classmethod
    def from_dict(cls, data: object, where: str = "a lane plan") -> LanePlan:
        """Read what :meth:`to_dict` wrote.

        Args:
            data: Parsed JSON.
            where: What holds it, for error sentences.

        Raises:
            PlacementError: It is nothing of the kind.
        """
        record = Record.of(data, where, PlacementError)
        record.require_schema(_SCHEMA, _VERSION)
        lanes = tuple(_lane(entry) for entry in record.records("lanes", "lane"))
        submodels = list(record.records("submodels", "submodel"))
        submodel_of: dict[str, int] = {}
        for number, entry in enumerate(submodels):
            for name in entry.texts("ops"):
                if name in submodel_of:
                    raise PlacementError(f"{entry.where}: op {name!r} is in another submodel too")
                submodel_of[name] = number
        return cls(
            lanes=lanes,
            submodel_of=submodel_of,
            lane_of=tuple(entry.integer("lane", 0, len(lanes) - 1) for entry in submodels),
            rank=tuple(entry.integer("rank", 0, _MOST) for entry in submodels),
            forms=_forms(record.record("forms")),
        )


def _forms(entry: Record) -> dict[str, Form]:
    found = {}
    for name in entry.fields:
        text = entry.text(name)
        with naming(f"{entry.where}: {name!r}", PlacementError):
            found[name] = Form.parse(text)
    return found


def _lane(entry: Record) -> Lane:
    device, own = entry.text("device"), entry.record("properties")
    properties = {key: own.text(key) for key in own.fields}
    if not device or not device.isprintable():
        raise PlacementError(f"{entry.where}: {device!r} is no name of a device")
    for key, value in properties.items():
        if not key:
            raise PlacementError(f"{entry.where}: a property without a name is {value!r}")
        if not is_unicode(key + value):
            raise PlacementError(f"{entry.where}: the property {key!r} is {value!r}, which nothing can write")
    return Lane.of(device, properties)
