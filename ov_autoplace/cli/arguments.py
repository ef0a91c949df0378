"""Arguments and options that several commands share; those of the placer are in ``placer_options``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

__all__ = ["Devices", "Json", "Model", "Models", "Target"]

Model = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL", show_default=False, help="IR (.xml), ONNX or any file that OpenVINO reads."
    ),
]
Models = Annotated[
    list[Path],
    typer.Argument(metavar="MODEL...", show_default=False, help="IR, ONNX, or any file that OpenVINO reads."),
]
Devices = Annotated[
    str | None,
    typer.Option("--devices", "-d", help="Real devices, like GPU,CPU.", show_default="all of this machine"),
]
Target = Annotated[
    str | None,
    typer.Option(help="Target profile: a file made by calibrate, or the name of a catalogued one."),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")]
