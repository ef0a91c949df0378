"""Arguments and options that several commands share, and how their texts are read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from ov_autoplace._base.files import read_json
from ov_autoplace._base.text import parse_json
from ov_autoplace.decide.options import split_config
from ov_autoplace.errors import OptionError

__all__ = [
    "Config",
    "Devices",
    "Isolation",
    "Json",
    "MemoryLimits",
    "Mode",
    "ModeName",
    "Model",
    "Pins",
    "Policy",
    "Seed",
    "Shapes",
    "Solvers",
    "Target",
    "TimeBudget",
    "pairs",
    "placer_arguments",
    "read_config",
]


class ModeName(str, Enum):
    """How much may be run to find a placement."""

    zero_shot = "zero-shot"
    profile = "profile"
    tune = "tune"


Model = Annotated[
    Path, typer.Argument(show_default=False, help="IR (.xml), ONNX or any file that OpenVINO reads.")
]
Devices = Annotated[
    str | None,
    typer.Option("--devices", "-d", help="Real devices, like GPU,CPU.", show_default="all of this machine"),
]
Mode = Annotated[
    ModeName | None,
    typer.Option(
        show_default="profile",
        help="zero-shot compiles nothing and estimates; profile compiles once per device and races the "
        "finalists; tune goes on measuring until the budget ends.",
    ),
]
Target = Annotated[
    str | None,
    typer.Option(help="Target profile: a file made by calibrate, or the name of a catalogued one."),
]
TimeBudget = Annotated[
    float | None, typer.Option("--time-budget-ms", help="Milliseconds for running candidates.")
]
Pins = Annotated[
    list[str] | None,
    typer.Option(
        "--pin", metavar="PATTERN=DEVICE", help="Keep the ops of this name pattern on a device. Repeatable."
    ),
]
MemoryLimits = Annotated[
    list[str] | None,
    typer.Option(
        "--memory-limit",
        metavar="DEVICE=SIZE",
        help="Use at most so much of a device, like GPU=2GiB. Repeatable.",
    ),
]
Shapes = Annotated[
    list[str] | None,
    typer.Option(
        "--shape", metavar="INPUT=SHAPE", help="Size of a dynamic input, like x=[1,3,224,224]. Repeatable."
    ),
]
Policy = Annotated[
    str | None,
    typer.Option(
        metavar="FOLDER|base|none",
        show_default="base",
        help="Checkpoint of the policy that proposes placements; base is the shipped one.",
    ),
]
Solvers = Annotated[
    str | None,
    typer.Option(
        metavar="NAME,...|none",
        show_default="auto,greedy",
        help="Solvers that propose placements, in this order, like auto,local; none leaves single devices, "
        "HETERO and the policy.",
    ),
]
Seed = Annotated[int | None, typer.Option(help="Seed of everything random.", show_default="0")]
Isolation = Annotated[
    bool | None,
    typer.Option(
        "--isolation/--no-isolation",
        show_default="isolation",
        help="Measure in a child process, which a plugin may crash without harm.",
    ),
]
Config = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|JSON",
        help="OpenVINO properties to compile with: a JSON object, or a file that holds one.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]


def placer_arguments(
    *,
    mode: ModeName | None,
    target: str | None,
    time_budget_ms: float | None,
    pins: Sequence[str] | None,
    memory_limits: Sequence[str] | None,
    shapes: Sequence[str] | None,
    policy: str | None = None,
    solvers: str | None = None,
    seed: int | None,
    isolation: bool | None = None,
    config: str | None,
) -> dict[str, Any]:
    """Keyword arguments of :func:`ov_autoplace.place` from the texts of the command line.

    ``AUTOPLACE_*`` keys in the configuration count as the options of the same name; an option that is
    given explicitly wins.

    Raises:
        OptionError: A text that does not parse, or an ``AUTOPLACE_*`` key that does not exist.
    """
    own, properties = split_config(read_config(config))
    explicit: dict[str, Any] = {
        "mode": mode.value if mode is not None else None,
        "target": target,
        "time_budget_ms": time_budget_ms,
        "pins": pairs("--pin", pins, str, last=True),
        "memory_limits": pairs("--memory-limit", memory_limits, str),
        "shapes": pairs("--shape", shapes, _shape, last=True),
        "policy": policy,
        "solvers": solvers,
        "seed": seed,
        "isolation": isolation,
    }
    given = {name: value for name, value in explicit.items() if value not in (None, {})}
    return {**own, **given, "properties": properties}


def pairs(
    option: str, texts: Sequence[str] | None, parse: Callable[[str], Any], last: bool = False
) -> dict[str, Any]:
    """``["a=1", "b=2"]`` as a dictionary.

    Args:
        option: For the error's sentence.
        texts: What the user wrote.
        parse: Reads the part behind the equals sign.
        last: Split at the last equals sign: op names and input names may hold some.

    Raises:
        OptionError: No equals sign, or an empty side.
    """
    result: dict[str, Any] = {}
    for text in texts or ():
        key, _, value = text.rpartition("=") if last else text.partition("=")
        if not key or not value:
            raise OptionError(f"{option} {text!r} is not of the form NAME=VALUE")
        result.pop(key.strip(), None)  # what is said again counts from where it is said last
        result[key.strip()] = parse(value.strip())
    return result


def read_config(config: str | None) -> dict[str, Any]:
    """The JSON object in ``config``, which is the object itself or the path of a file.

    Raises:
        OptionError: It is neither.
    """
    if config is None:
        return {}
    if config.lstrip().startswith("{"):
        try:
            value = parse_json(config)
        except (ValueError, RecursionError) as cause:
            raise OptionError(f"--config {config!r} is not a JSON object: {cause}") from cause
    else:
        value = read_json(config, OptionError, "a configuration")
    if not isinstance(value, dict):
        raise OptionError(f"--config {config} holds a {type(value).__name__}, not an object of properties")
    return value


def _shape(text: str) -> list[int]:
    sizes = text.removeprefix("[").removesuffix("]").strip()
    try:
        return [int(size) for size in sizes.split(",")] if sizes else []
    except ValueError as cause:
        raise OptionError(f"--shape {text!r} is not a list of sizes like [1,3,224,224]") from cause
