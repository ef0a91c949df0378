"""``ov-autoplace collect``: what the operations of models cost on this machine, for the network of costs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, progress_bar
from ov_autoplace.cli.outputs import check_distinct, check_file, made_folder

if TYPE_CHECKING:
    import openvino as ov

    from ov_autoplace.measure.collect import NamedModel

__all__ = ["collect", "named_models"]


def collect(
    models: arguments.Models,
    output: Annotated[
        Path,
        typer.Option("--output", "-o", help="The file to write; what it holds is not measured again."),
    ],
    devices: arguments.Devices = None,
    label: Annotated[
        str,
        typer.Option(
            "--label",
            help="What the environment changes of devices, such as AVX2 by ONEDNN_MAX_CPU_ISA.",
        ),
    ] = "",
    seconds: Annotated[
        float, typer.Option("--seconds", min=0.0, help="After so long no further model is begun.")
    ] = float("inf"),
    as_json: arguments.Json = False,
) -> None:
    """Measure what the operations of models take on every device, width and precision of this machine."""
    import openvino as ov

    from ov_autoplace.devices.models import check_model_file
    from ov_autoplace.devices.names import resolve_devices
    from ov_autoplace.measure.collect import collect as measure

    core = ov.Core()
    names = resolve_devices(core, devices)
    check_file(output)
    check_distinct([output], models)
    for path in models:
        check_model_file(path)
    with made_folder(output.parent), progress_bar() as progress:
        samples = measure(
            named_models(core, models), output, core, names, label=label, seconds=seconds, progress=progress
        )
    found = {"networks": len(samples.networks), "measurements": len(samples.measurements)}
    if as_json:
        print_json({"costs": str(output), "settings": [s.name for s in samples.settings], **found})
    else:
        print_sentence(f"{output}: {found['networks']} networks, {found['measurements']} measurements")


def named_models(core: ov.Core, paths: Sequence[Path]) -> Iterator[NamedModel]:
    """The models, each by its path and what it computes: a file that changed is another network."""
    from ov_autoplace.devices.models import read_model
    from ov_autoplace.graph.model_hash import model_hash
    from ov_autoplace.measure.collect import NamedModel

    for path in paths:
        model = read_model(core, path)
        yield NamedModel(f"{path.stem}-{model_hash(model)[:12]}", path.stem, model)
