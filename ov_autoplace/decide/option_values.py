"""What the options of a placement may be: one function per option, which reads its value or refuses it."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import openvino as ov

from ov_autoplace._base.json_fields import parse_json, shown
from ov_autoplace._base.text import nearest
from ov_autoplace.errors import OptionError

if TYPE_CHECKING:
    from ov_autoplace.graph.shapes import Call

__all__ = ["ARRIVALS", "DECIDE", "DEFAULT_SOLVERS", "EXECUTORS", "MODES", "PARSERS", "PREFIX", "nearest_of"]

PREFIX = "AUTOPLACE_"
MODES = ("ZERO_SHOT", "PROFILE", "TUNE")
EXECUTORS = ("AUTO", "HETERO", "OVERLAP")
ARRIVALS = ("ANY", "STEADY")
DECIDE = ("NOW", "BEHIND")
DEFAULT_SOLVERS = ("portfolio", "greedy")
_NO_SOLVERS = "none"
_MOST_TIMES = 100_000
_SWITCH = {"YES": True, "TRUE": True, "NO": False, "FALSE": False}
_LANES = re.compile(r"([1-9]\d{0,3})x([1-9]\d{0,3})")
_SIZE_SUFFIXES = {"KB": 1e3, "MB": 1e6, "GB": 1e9, "KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "B": 1}


def nearest_of(name: str, known: Sequence[str], prefix: str = "") -> str:
    """The end of a sentence about a name that does not exist.

    Args:
        name: That name.
        known: Those that there are.
        prefix: What all of them begin with, which makes none of them more alike.
    """
    near = nearest(name.removeprefix(prefix), [one.removeprefix(prefix) for one in known])
    everything = ", ".join(known)
    return f"; all: {everything}" if near is None else f"; did you mean {prefix}{near}? All: {everything}"


def _one_of(name: str, known: Sequence[str]) -> Callable[[Any], str]:
    def parse(value: Any) -> str:
        text = str(value).upper().replace("-", "_")
        if text not in known:
            raise OptionError(f"{PREFIX}{name} is {value!r}; it can be {', '.join(known)}")
        return text

    return parse


def _lanes(value: Any) -> tuple[tuple[int, int], ...]:
    if not isinstance(value, str):
        # A tuple of pairs, as this function makes one.
        value = ",".join(f"{count}x{threads}" for count, threads in value)
    text = value.strip().lower()
    if text in ("", "auto"):
        return ()
    found = [_LANES.fullmatch(part.strip()) for part in text.split(",")]
    if None in found:
        raise OptionError(
            f"{PREFIX}LANES is {value!r}; write auto, or lanes and their threads like 2x1 or 4x2,8x1"
        )
    return tuple(dict.fromkeys((int(match[1]), int(match[2])) for match in found if match))


def _budget(value: Any) -> float | None:
    if value is None:
        return None
    try:
        milliseconds = float(value)
    except (TypeError, ValueError, OverflowError):
        milliseconds = -1.0
    if not 0 <= milliseconds < float("inf"):
        raise OptionError(
            f"{PREFIX}TIME_BUDGET_MS is {value!r}; it must be a number of milliseconds, 0 or more"
        )
    return milliseconds


def _output_tolerance(value: Any) -> float | str:
    text = str(value).strip().upper()
    if text in ("AUTO", "OFF"):
        return text
    try:
        tolerance = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        tolerance = math.nan
    if not 0 <= tolerance < math.inf:
        raise OptionError(
            f"{PREFIX}OUTPUT_TOLERANCE is {value!r}; it can be AUTO, OFF, or a number, 0 or more, like 1e-3"
        )
    return tolerance


def _mapping(name: str, value: Any) -> Mapping[str, Any]:
    if isinstance(value, str):
        try:
            value = parse_json(value) if value else {}
        except (ValueError, RecursionError) as cause:
            raise OptionError(f"{PREFIX}{name} is {value!r}, which is not a JSON object: {cause}") from cause
    if not isinstance(value, Mapping) or not all(isinstance(key, str) for key in value):
        raise OptionError(f"{PREFIX}{name} is {value!r}; it must map names to values")
    return dict(value)


def _pins(value: Any) -> Mapping[str, str]:
    pins = _mapping("PINS", value)
    for pattern, device in pins.items():
        if not isinstance(device, str) or not device:
            raise OptionError(f"{PREFIX}PINS maps {pattern!r} to {device!r}; it must be a device name")
    return pins


def _memory_limits(value: Any) -> Mapping[str, float]:
    return {device: _bytes(device, limit) for device, limit in _mapping("MEMORY_LIMITS", value).items()}


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
            f"{PREFIX}MEMORY_LIMITS of {device} is {value!r}; write bytes, or like 500MB or 2GiB"
        )
    return result


def _shapes(value: Any) -> Mapping[str, Sequence[int]] | tuple[Call, ...]:
    if isinstance(value, str) and value.lstrip().startswith("["):
        try:
            value = parse_json(value)
        except (ValueError, RecursionError) as cause:
            raise OptionError(f"{PREFIX}SHAPES is {value!r}, which is not JSON: {cause}") from cause
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _calls(value)
    return _shape_of_each(_mapping("SHAPES", value))


def _calls(values: Sequence[Any]) -> tuple[Call, ...]:
    """Several sets of shapes, each with how often it comes."""
    # Imported here, because options are read where the package is imported, and graphs need the core.
    from ov_autoplace.graph.shapes import Call

    found = []
    for value in values:
        if isinstance(value, Call):
            found.append(value)
            continue
        if not isinstance(value, Mapping) or set(value) - {"shapes", "times"} or "shapes" not in value:
            raise OptionError(
                f"{PREFIX}SHAPES holds {shown(value)}; a set of shapes is like "
                '{"shapes": {"input": [1, 64]}, "times": 10}'
            )
        times = value.get("times", 1)
        if type(times) not in (int, float) or not 0 < times <= _MOST_TIMES:
            raise OptionError(
                f"{PREFIX}SHAPES has 'times' {times!r}; it must be a number above 0 and at most {_MOST_TIMES}"
            )
        found.append(Call(_shape_of_each(_mapping("SHAPES", value["shapes"])), float(times)))
    if not found:
        raise OptionError(f"{PREFIX}SHAPES is an empty list; leave it out, or give a set of shapes")
    return tuple(found)


def _shape_of_each(shapes: Mapping[str, Any]) -> Mapping[str, Sequence[int]]:
    for name, shape in shapes.items():
        valid = isinstance(shape, (Sequence, ov.Shape)) and not isinstance(shape, str)
        if not valid or not all(type(d) is int and 0 <= d < 2**63 for d in shape):
            raise OptionError(
                f"{PREFIX}SHAPES gives {name!r} the shape {shape!r}; "
                "it must be a list of sizes like [1, 3, 224, 224]"
            )
    return {name: list(shape) for name, shape in shapes.items()}


def _seed(value: Any) -> int:
    try:
        seed = int(value)
    except (TypeError, ValueError, OverflowError):
        seed = -1
    if not 0 <= seed < 2**63:
        raise OptionError(f"seed is {value!r}; it must be an integer, 0 or more")
    return seed


def _switch(name: str) -> Callable[[Any], bool]:
    def parse(value: Any) -> bool:
        text = "YES" if value is True else "NO" if value is False else str(value).upper()
        if text not in _SWITCH:
            raise OptionError(f"{PREFIX}{name} is {value!r}; it can be YES or NO")
        return _SWITCH[text]

    return parse


def _path(value: Any) -> str | None:
    return None if value is None or value == "" else str(value)


def _solvers(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        text = value.strip()
        value = () if text.lower() in ("", _NO_SOLVERS) else [name.strip() for name in text.split(",")]
    if not isinstance(value, Sequence) or not all(isinstance(name, str) for name in value):
        raise OptionError(f"solvers is {value!r}; it must be a list of names, like 'portfolio,greedy'")
    if tuple(value) == DEFAULT_SOLVERS:
        return DEFAULT_SOLVERS  # without loading any
    # Imported here, because solvers know options; a solver that was registered since counts.
    from ov_autoplace.solvers.registry import SOLVERS

    for name in value:
        if name not in SOLVERS:
            raise OptionError(f"solvers names {name!r}{nearest_of(name, list(SOLVERS))}")
    return tuple(dict.fromkeys(value))


PARSERS: dict[str, Callable[[Any], Any]] = {
    "mode": _one_of("MODE", MODES),
    "time_budget_ms": _budget,
    "pins": _pins,
    "memory_limits": _memory_limits,
    "shapes": _shapes,
    "target": _path,
    "solvers": _solvers,
    "seed": _seed,
    "isolation": _switch("ISOLATION"),
    "executor": _one_of("EXECUTOR", EXECUTORS),
    "lanes": _lanes,
    "arrivals": _one_of("ARRIVALS", ARRIVALS),
    "output_tolerance": _output_tolerance,
    "application": _path,
    "cache": _switch("CACHE"),
    "decide": _one_of("DECIDE", DECIDE),
}
"""By field of ``PlacerOptions``."""
