"""Reference texts that are made from the code: the properties of a placement, and the command line.

Markdown, made with the package and typer alone; `sphinx_reference` puts it into the site.
"""

from __future__ import annotations

import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import MISSING, Field, fields
from typing import Any

import typer

from ov_autoplace import place
from ov_autoplace.cli.app import app
from ov_autoplace.decide.options import DEFAULT_BUDGET_MS, PREFIX, PROPERTY_NAMES, PlacerOptions

_TYPES = {
    "str": "text",
    "Sequence[tuple[int, int]]": "list of lanes and the threads of each",
    "str | None": "text",
    "int": "integer",
    "bool": "`YES` or `NO`",
    "float | None": "number",
    "float | str": "number or text",
    "Sequence[str]": "names, as a list or as one text with commas",
    "Mapping[str, str]": "object that maps names to texts",
    "Mapping[str, float]": "object that maps names to sizes",
    "Mapping[str, Sequence[int]]": "object that maps names to lists of integers",
}


EXAMPLES = {
    "mode": "TUNE",
    "executor": "HETERO",
    "lanes": "2x1,4x2",
    "arrivals": "STEADY",
    "output_tolerance": "1e-3",
    "time_budget_ms": "5000",
    "pins": '{"*softmax*": "CPU"}',
    "memory_limits": '{"GPU": "2GiB"}',
    "shapes": '{"input": [1, 3, 224, 224]}',
    "target": "laptop.json",
    "solvers": "portfolio,local",
    "seed": "1",
    "isolation": "NO",
    "application": "cameras.plan.json",
    "cache": "NO",
    "decide": "BEHIND",
}
"""A value of each option, as text."""


# A plan of several models is followed where models are compiled, and there is nothing to place.
_ARGUMENTS = inspect.signature(place).parameters


def options_markdown() -> str:
    """A section per option that has a type in text: property, argument, flag, type, default, meaning."""
    descriptions = attribute_descriptions(PlacerOptions)
    told = (field for field in fields(PlacerOptions) if field.name in EXAMPLES)
    return "\n".join(_option(field, descriptions) for field in told)


def _option(field: Field[Any], descriptions: dict[str, str]) -> str:
    rows = [
        ("argument of `place`", f"`{field.name}`" if field.name in _ARGUMENTS else "none"),
        ("command line", _flag(field.name)),
        ("type", _TYPES[str(field.type)]),
        ("default", _default(field)),
        ("example", f"`{EXAMPLES[field.name]}`"),
    ]
    table = "\n".join(f"| {what} | {value} |" for what, value in rows)
    as_property = PREFIX + field.name.upper()
    heading = as_property if as_property in PROPERTY_NAMES else field.name
    return f"## {heading}\n\n{descriptions[field.name]}\n\n| | |\n|---|---|\n{table}\n"


def _flag(name: str) -> str:
    """The option of ``annotate`` that sets a field, as Markdown."""
    commands: Any = typer.main.get_command(app)
    flags = (option.opts[0] for option in commands.commands["annotate"].params if option.name == name)
    return next((f"`{flag}`" for flag in flags), "none")


def _default(field: Field[Any]) -> str:
    if field.name == "time_budget_ms":
        return ", ".join(f"{ms:,.0f} in `{mode}`" for mode, ms in DEFAULT_BUDGET_MS.items())
    if field.default_factory is not MISSING:
        return "empty"
    if isinstance(field.default, tuple):
        return f"`{','.join(field.default)}`" if field.default else "empty"
    if isinstance(field.default, bool):
        return "`YES`" if field.default else "`NO`"
    return "none given" if field.default is None else f"`{field.default}`"


def attribute_descriptions(documented: type) -> dict[str, str]:
    """Description of each attribute in a class's docstring, as Markdown in one line."""
    _, _, text = (inspect.getdoc(documented) or "").partition("Attributes:\n")
    entries: Iterator[re.Match[str]] = re.finditer(r"^    (\w+): (.*(?:\n {8}.*)*)", text, re.MULTILINE)
    return {entry[1]: re.sub(r"\s+", " ", entry[2]).replace("``", "`") for entry in entries}


def command_line_markdown() -> str:
    """A section per command, as typer documents a program."""
    done = subprocess.run(
        [sys.executable, "-m", "typer", "ov_autoplace.cli.app", "utils", "docs", "--name", "ov-autoplace"],
        capture_output=True,
        text=True,
        check=True,
    )
    # Its list of commands cuts the descriptions off, and the site has a table of contents.
    text = re.sub(r"\*\*Commands\*\*:\n\n(?:\*.*\n)+\n", "", done.stdout)
    text = re.sub(r"\x08\n(Examples:\n(?:  .*\n?)+)", r"```sh\n\1```\n", text)
    # Two hyphens in prose would become a dash.
    text = re.sub(r"(`[^`\n]*`)|(--[a-z][a-z-]*)", lambda m: m[1] or f"`{m[2]}`", text)
    return text.removeprefix("# `ov-autoplace`\n\n")
