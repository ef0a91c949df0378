"""Options of a command from a dataclass of hyper-parameters, so that each is documented in one place."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import fields
from typing import Annotated, Any

import typer

__all__ = ["with_settings"]


def with_settings(settings: type) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command an option for each field of a dataclass, with its description as help.

    The command takes them as ``**settings``. They are listed together below its own options.

    Args:
        settings: A dataclass whose fields have defaults, and descriptions in its docstring.
    """
    descriptions = _attribute_descriptions(settings)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        signature = inspect.signature(command, eval_str=True)
        parameters = [p for p in signature.parameters.values() if p.kind is not p.VAR_KEYWORD]
        for field in fields(settings):
            option = typer.Option(
                f"--{field.name.replace('_', '-')}",
                help=descriptions[field.name],
            )
            parameters.append(
                inspect.Parameter(
                    field.name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=Annotated[type(field.default), option],
                )
            )
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        command.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
        return command

    return decorate


def _attribute_descriptions(settings: type) -> dict[str, str]:
    """Description of each attribute, from the docstring."""
    _, _, text = (inspect.getdoc(settings) or "").partition("Attributes:\n")
    entries: list[tuple[str, Any]] = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", text, flags=re.MULTILINE)
    return {name: re.sub(r"\s+", " ", description.replace("``", "")) for name, description in entries}
