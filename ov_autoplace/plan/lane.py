"""Lanes, and how tensors are handed over between what runs on them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ov_autoplace._base.json_fields import Record, naming, shown
from ov_autoplace._base.text import is_unicode
from ov_autoplace.devices.names import property_text
from ov_autoplace.errors import PlacementError

__all__ = ["Form", "Lane", "device_named", "read_forms", "read_lane", "texts_of"]

_WORDS = ("channels_last", "bf16")


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


def read_forms(entry: Record) -> dict[str, Form]:
    """Forms of tensors by the ops that make them."""
    found = {}
    for name in entry.fields:
        text = entry.text(name)
        with naming(f"{entry.where}: {name!r}", PlacementError):
            found[name] = Form.parse(text)
    return found


def read_lane(entry: Record) -> Lane:
    """A lane of a JSON object."""
    return Lane.of(device_named(entry, "device"), texts_of(entry.record("properties")))


def texts_of(record: Record) -> dict[str, str]:
    """A JSON object of texts that can be written again, none of them without a name."""
    found = {key: record.text(key) for key in record.fields}
    for key, value in found.items():
        if not key:
            raise PlacementError(f"{record.where}: a property without a name is {value!r}")
        if not is_unicode(key + value):
            raise PlacementError(
                f"{record.where}: the property {key!r} is {value!r}, which nothing can write"
            )
    return found


def device_named(record: Record, key: str) -> str:
    """A text that can be the name of a device."""
    name = record.text(key)
    if not name or not name.isprintable():
        raise PlacementError(f"{record.where}: {name!r} is no name of a device")
    return name
