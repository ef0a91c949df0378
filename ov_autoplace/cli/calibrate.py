"""``ov-autoplace calibrate``: measures this machine once and writes a target profile."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, progress_bar
from ov_autoplace.cli.outputs import check_file, made_folder
from ov_autoplace.cli.placer_options import with_placer_options
from ov_autoplace.cost.target_json import save_target
from ov_autoplace.decide.options import PlacerOptions

__all__ = ["calibrate"]


@with_placer_options("isolation", purpose="calibrating")
def calibrate(
    models: Annotated[
        list[Path] | None,
        typer.Argument(
            metavar="[MODEL]...",
            show_default=False,
            help="Models to run as a whole, by which estimates of others like them are corrected.",
        ),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The target profile to write.")],
    devices: arguments.Devices = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Fewer sizes and repetitions; rougher rates.")
    ] = False,
    options: PlacerOptions,
    as_json: arguments.Json = False,
) -> None:
    """Measure this machine once: a target profile that other commands take as --target."""
    import openvino as ov

    from ov_autoplace.devices.models import read_model
    from ov_autoplace.devices.names import resolve_devices
    from ov_autoplace.measure.calibrate import calibrate as measure

    core = ov.Core()
    names = resolve_devices(core, devices)
    check_file(output)
    with progress_bar() as progress:
        target = measure(
            core,
            names,
            properties=options.properties,
            progress=progress,
            quick=quick,
            isolation=options.isolation,
            models=[read_model(core, path) for path in models or ()],
        )
    with made_folder(output.parent):
        save_target(target, output)
    if as_json:
        print_json({"target": str(output), "devices": list(names), "quick": quick})
    else:
        print_sentence(f"{output}: {', '.join(names)}")
