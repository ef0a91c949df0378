"""The options of the placer on the command line: one entry each, which every command that places takes."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import copy
from enum import Enum
from functools import wraps
from typing import Annotated, Any, NamedTuple, get_args

import typer

from ov_autoplace._base.json_fields import parse_json, read_json
from ov_autoplace.cli.arguments import Target
from ov_autoplace.decide.options import PREFIX, PlacerOptions, split_config
from ov_autoplace.devices.device_config import DEVICE_PROPERTIES
from ov_autoplace.errors import OptionError

__all__ = ["options_of", "read_config", "with_placer_options"]


class _ModeName(str, Enum):
    zero_shot = "zero-shot"
    profile = "profile"
    tune = "tune"


class _ExecutorName(str, Enum):
    auto = "auto"
    hetero = "hetero"
    overlap = "overlap"


class _ArrivalsName(str, Enum):
    any_time = "any"
    steady = "steady"


class _Entry(NamedTuple):
    """An option: its type for typer, and what makes a value for :class:`PlacerOptions` of it."""

    annotation: Any
    read: Callable[[Any], Any] = lambda value: value


def _pairs(
    flag: str,
    form: str,
    text: str,
    parse: Callable[[str], Any] = str,
    split: Callable[[str, str], tuple[str, str, str]] = str.partition,
) -> _Entry:
    """An option that is given as ``NAME=VALUE``, once for each name."""

    def read(given: Sequence[str]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for pair in given:
            key, _, value = split(pair, "=")
            if not key or not value:
                raise OptionError(f"{flag} {pair!r} is not of the form {form}")
            result.pop(key.strip(), None)  # what is said again counts from where it is said last
            result[key.strip()] = parse(value.strip())
        return result

    option = typer.Option(flag, metavar=form, help=f"{text} Repeatable.")
    return _Entry(Annotated[list[str] | None, option], read)


def _shape(text: str) -> list[int]:
    sizes = text.removeprefix("[").removesuffix("]").strip()
    try:
        return [int(size) for size in sizes.split(",")] if sizes else []
    except ValueError as cause:
        raise OptionError(f"--shape {text!r} is not a list of sizes like [1,3,224,224]") from cause


# By field of PlacerOptions, in the order in which --help lists them.
_ENTRIES = {
    "mode": _Entry(
        Annotated[
            _ModeName | None,
            typer.Option(
                show_default="profile",
                help="zero-shot compiles nothing and estimates; profile compiles once per device and races "
                "the finalists; tune goes on measuring until the budget ends.",
            ),
        ],
        lambda mode: mode.value,
    ),
    "target": _Entry(Target),
    "time_budget_ms": _Entry(
        Annotated[
            float | None,
            typer.Option(
                "--time-budget-ms",
                show_default="2,000, and 30,000 to tune; more for slow models",
                help="Milliseconds for the whole decision.",
            ),
        ]
    ),
    # Names of ops and of inputs may hold an equals sign.
    "pins": _pairs(
        "--pin",
        "PATTERN=DEVICE",
        "Keep the ops of this name pattern on a device.",
        split=str.rpartition,
    ),
    "memory_limits": _pairs(
        "--memory-limit", "DEVICE=SIZE", "Use at most so much of a device, like GPU=2GiB."
    ),
    "shapes": _pairs(
        "--shape",
        "INPUT=SHAPE",
        "Size of a dynamic input, like x=[1,3,224,224].",
        _shape,
        split=str.rpartition,
    ),
    "solvers": _Entry(
        Annotated[
            str | None,
            typer.Option(
                metavar="NAME,...|none",
                show_default="portfolio,greedy",
                help="Solvers that propose placements, in this order, like portfolio,local; none leaves "
                "single devices and HETERO.",
            ),
        ]
    ),
    "seed": _Entry(Annotated[int | None, typer.Option(help="Seed of everything random.", show_default="0")]),
    "isolation": _Entry(
        Annotated[
            bool | None,
            typer.Option(
                "--isolation/--no-isolation",
                show_default="isolation",
                help="Measure in a child process, which a plugin may crash without harm.",
            ),
        ]
    ),
    "executor": _Entry(
        Annotated[
            _ExecutorName | None,
            typer.Option(
                show_default="auto",
                help="hetero: devices take turns; overlap: lanes and devices work at once; auto: the faster.",
            ),
        ],
        lambda executor: executor.value,
    ),
    "lanes": _Entry(
        Annotated[
            str | None,
            typer.Option(
                metavar="auto|NxT,...",
                show_default="auto",
                help="Into which lanes a CPU may be divided: 2x1 is two lanes of one thread each.",
            ),
        ]
    ),
    "arrivals": _Entry(
        Annotated[
            _ArrivalsName | None,
            typer.Option(
                show_default="any",
                help="any: what requests take after idle gaps counts, too; steady: they come back to back.",
            ),
        ],
        lambda arrivals: arrivals.value,
    ),
    "output_tolerance": _Entry(
        Annotated[
            str | None,
            typer.Option(
                metavar="auto|off|NUMBER",
                show_default="auto",
                help="By how much candidates' outputs may differ before one is refused; auto: by what "
                "precision explains.",
            ),
        ]
    ),
}
_FLAGS = {"pins": "--pin", "memory_limits": "--memory-limit", "shapes": "--shape"}  # otherwise as the field
_CONFIG = Annotated[
    str | None,
    typer.Option(
        metavar="FILE|JSON",
        help="OpenVINO properties to compile with: a JSON object, or a file that holds one. They are for all "
        'devices that know them; {"CPU": {...}} is for one.',
    ),
]


def with_placer_options(
    *names: str, purpose: str = "placing", **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the placer's options in the place of its parameter ``options``, a ``PlacerOptions``.

    Args:
        names: Fields of ``PlacerOptions`` that the command has a use for; all when left out.
        purpose: What the command does, for the sentence that refuses the others in ``--config``.
        **defaults: Fields that the command takes otherwise than ``PlacerOptions`` where they are not given.
    """
    taken = {
        name: _with_default(_ENTRIES[name].annotation, defaults[name])
        if name in defaults
        else _ENTRIES[name].annotation
        for name in names or _ENTRIES
    } | {"config": _CONFIG}

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        @wraps(command)
        def run(**given: Any) -> None:
            texts = {name: given.pop(name) for name in taken}
            command(**given, options=options_of(texts, purpose, defaults))

        parameters: list[inspect.Parameter] = []
        for own in inspect.signature(command, eval_str=True).parameters.values():
            if own.name != "options":
                parameters.append(own)
                continue
            parameters += [
                inspect.Parameter(name, own.kind, default=None, annotation=annotation)
                for name, annotation in taken.items()
            ]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
        return run

    return decorate


def _with_default(annotation: Any, default: str) -> Any:
    """An option whose help says what a command takes where it is not given."""
    kind, option = get_args(annotation)
    told = copy(option)
    told.show_default = default.lower()
    return Annotated[kind, told]


def options_of(
    texts: Mapping[str, Any], purpose: str = "placing", defaults: Mapping[str, Any] | None = None
) -> PlacerOptions:
    """The placer's options from what was typed.

    ``AUTOPLACE_*`` keys in the configuration count as the options of the same name; an option that is
    given explicitly wins.

    Args:
        texts: Value by option, ``None`` where it was not given, and ``config``.
        purpose: What they are for.
        defaults: Value by option, where it is not given.

    Raises:
        OptionError: A text that does not parse, or an ``AUTOPLACE_*`` key that does not exist or that the
            command has no option for.
    """
    own, properties = split_config(read_config(texts["config"]))
    properties = _grouped(properties)
    unused = sorted(set(own) - set(texts))
    if unused:
        raise OptionError(f"--config sets {PREFIX}{unused[0].upper()}, which {purpose} has no use for")
    explicit = {
        name: entry.read(texts[name]) for name, entry in _ENTRIES.items() if texts.get(name) not in (None, [])
    }
    try:
        return PlacerOptions.from_arguments({**(defaults or {}), **own, **explicit, "properties": properties})
    except OptionError as cause:
        raise OptionError(_as_typed(str(cause), explicit)) from cause


def _grouped(properties: Mapping[str, Any]) -> dict[str, Any]:
    """``{"CPU": {...}}``, as files of benchmark_app's have it, as one entry of ``DEVICE_PROPERTIES``."""
    own = {k: v for k, v in properties.items() if isinstance(v, dict) and k != DEVICE_PROPERTIES}
    if not own:
        return dict(properties)
    if DEVICE_PROPERTIES in properties:
        raise OptionError(
            f"--config gives {next(iter(own))} properties of its own beside {DEVICE_PROPERTIES}; "
            "put them there"
        )
    flat = {key: value for key, value in properties.items() if key not in own}
    return {**flat, DEVICE_PROPERTIES: own}


def _as_typed(sentence: str, explicit: Collection[str]) -> str:
    """A sentence about a property, or that begins with an argument's name, of the option that was typed."""
    for name in explicit:
        flag = _FLAGS.get(name, f"--{name.replace('_', '-')}")
        sentence = re.sub(rf"\b{PREFIX}{name.upper()}\b|^{name}\b", flag, sentence)
    return sentence


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
    elif not os.path.lexists(config):
        raise OptionError(f"--config {config!r} is neither a JSON object nor a file")
    else:
        value = read_json(config, OptionError, "a configuration")
    if not isinstance(value, dict):
        raise OptionError(f"--config {config} holds a {type(value).__name__}, not an object of properties")
    return value
