"""The options of a placement, as Python arguments and as OpenVINO-style ``AUTOPLACE_*`` properties."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import openvino as ov

from ov_autoplace.errors import OptionError

__all__ = ["MODES", "NO_POLICY", "PREFIX", "PROPERTY_NAMES", "PlacerOptions", "Progress", "split_config"]

PREFIX = "AUTOPLACE_"
MODES = ("ZERO_SHOT", "PROFILE", "TUNE")
NO_POLICY = "none"
_SIZE_SUFFIXES = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "B": 1}

Progress = Callable[[int, int, str], None]
"""Called with (steps done, steps in all, what is being done)."""


@dataclass(frozen=True)
class PlacerOptions:
    """What a caller may ask of the placer; each field but the last two is also a property.

    Attributes:
        mode: ``ZERO_SHOT`` (nothing is compiled), ``PROFILE`` (compiled once per device, finalists are
            raced) or ``TUNE`` (placements are measured and the costs corrected until the budget ends).
        time_budget_ms: Milliseconds for measuring candidates; ``None`` takes the mode's default.
        pin: ``{op name pattern: device}`` with shell-style wildcards.
        memory_limit: ``{device: bytes}``.
        shapes: ``{input name: shape}`` for dynamic inputs.
        target: A target profile (path, catalogue name), for machines other than this one or to spare
            the calibration.
        policy: Checkpoint of the policy that proposes placements: a folder, ``base`` (the shipped one) or
            ``none``. ``None`` is the shipped one, and none where it is missing or the devices are too many.
        seed: Seed of everything random.
        properties: OpenVINO properties that the model will be compiled with.
        progress: Called as the work goes on.
    """

    mode: str = "PROFILE"
    time_budget_ms: float | None = None
    pin: Mapping[str, str] = field(default_factory=dict)
    memory_limit: Mapping[str, float] = field(default_factory=dict)
    shapes: Mapping[str, Sequence[int]] = field(default_factory=dict)
    target: str | None = None
    policy: str | None = None
    seed: int = 0
    properties: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress | None = None

    def __post_init__(self) -> None:
        for name, parse in _PARSERS.items():
            object.__setattr__(self, name, parse(getattr(self, name)))

    @classmethod
    def from_arguments(cls, arguments: Mapping[str, Any]) -> PlacerOptions:
        """From keyword arguments, refusing unknown ones with the nearest valid name.

        Raises:
            OptionError: An unknown name or a bad value.
        """
        known = [f.name for f in fields(cls)]
        for name in arguments:
            if name not in known:
                raise OptionError(f"there is no option {name!r}{_nearest(name, known)}")
        return cls(**arguments)


def split_config(config: Mapping[str, Any] | None) -> tuple[dict[str, Any], dict[str, Any]]:
    """Split a ``compile_model`` configuration.

    Returns:
        The placer's arguments (``AUTOPLACE_MODE`` becomes ``mode``) and OpenVINO's own properties.

    Raises:
        OptionError: An ``AUTOPLACE_*`` key that does not exist.
    """
    own, rest = {}, {}
    for key, value in (config or {}).items():
        if not str(key).startswith(PREFIX):
            # The functions of openvino.properties wrap what they are given.
            rest[key] = value.value if isinstance(value, ov.OVAny) else value
        elif key in PROPERTY_NAMES:
            own[key[len(PREFIX) :].lower()] = value
        else:
            raise OptionError(f"there is no property {key}{_nearest(key, PROPERTY_NAMES)}")
    return own, rest


def _nearest(name: str, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.0)
    return f"; did you mean {close[0]}? All: {', '.join(known)}"


def _mode(value: Any) -> str:
    mode = str(value).upper().replace("-", "_")
    if mode not in MODES:
        raise OptionError(f"{PREFIX}MODE is {value!r}; it can be {', '.join(MODES)}")
    return mode


def _budget(value: Any) -> float | None:
    if value is None:
        return None
    try:
        milliseconds = float(value)
    except (TypeError, ValueError):
        milliseconds = -1.0
    if not 0 <= milliseconds < float("inf"):
        raise OptionError(
            f"{PREFIX}TIME_BUDGET_MS is {value!r}; it must be a number of milliseconds, 0 or more"
        )
    return milliseconds


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = json.loads(value) if value else {}
        except ValueError as cause:
            raise OptionError(f"{PREFIX}{name} is {value!r}, which is not a JSON object: {cause}") from cause
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise OptionError(f"{PREFIX}{name} is {value!r}; it must map names to values")
    return dict(value)


def _pin(value: Any) -> Mapping[str, str]:
    pins = _mapping("PIN", value)
    for pattern, device in pins.items():
        if not isinstance(device, str) or not device:
            raise OptionError(f"{PREFIX}PIN maps {pattern!r} to {device!r}; it must be a device name")
    return pins


def _memory_limit(value: Any) -> Mapping[str, float]:
    return {device: _bytes(device, limit) for device, limit in _mapping("MEMORY_LIMIT", value).items()}


def _bytes(device: str, value: Any) -> float:
    text = str(value).strip().upper()
    scale = 1.0
    for suffix in sorted(_SIZE_SUFFIXES, key=len, reverse=True):
        if text.endswith(suffix):
            text, scale = text[: -len(suffix)].strip(), float(_SIZE_SUFFIXES[suffix])
            break
    try:
        result = float(text) * scale
    except ValueError:
        result = -1.0
    if not result >= 0:
        raise OptionError(
            f"{PREFIX}MEMORY_LIMIT of {device} is {value!r}; write bytes, or like 500MB or 2GiB"
        )
    return result


def _shapes(value: Any) -> Mapping[str, Sequence[int]]:
    shapes = _mapping("SHAPES", value)
    for name, shape in shapes.items():
        valid = isinstance(shape, Sequence) and not isinstance(shape, str)
        if not valid or not all(isinstance(d, int) and not isinstance(d, bool) and d >= 0 for d in shape):
            raise OptionError(
                f"{PREFIX}SHAPES gives {name!r} the shape {shape!r}; "
                "it must be a list of sizes like [1, 3, 224, 224]"
            )
    return shapes


def _seed(value: Any) -> int:
    try:
        seed = int(value)
    except (TypeError, ValueError):
        seed = -1
    if not 0 <= seed < 2**63:
        raise OptionError(f"{PREFIX}SEED is {value!r}; it must be an integer, 0 or more")
    return seed


def _target(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _policy(value: Any) -> str | None:
    if value is None or value == "":
        return None
    if not isinstance(value, (str, os.PathLike)):
        raise OptionError(
            f"{PREFIX}POLICY is {value!r}; it must be the folder of a checkpoint, 'base' or 'none'"
        )
    text = os.fsdecode(value)
    return text.lower() if text.lower() in ("base", NO_POLICY) else text


_PARSERS: dict[str, Callable[[Any], Any]] = {
    "mode": _mode,
    "time_budget_ms": _budget,
    "pin": _pin,
    "memory_limit": _memory_limit,
    "shapes": _shapes,
    "target": _target,
    "policy": _policy,
    "seed": _seed,
}

PROPERTY_NAMES = tuple(PREFIX + name.upper() for name in _PARSERS)
"""The properties that ``compile_model`` and ``set_property`` take for AUTOPLACE."""
