"""``ov-autoplace pretrain``: the network of costs, from what ``collect`` measured."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, progress_bar
from ov_autoplace.cli.outputs import check_distinct, check_file, made_folder
from ov_autoplace.cli.settings_options import with_settings
from ov_autoplace.errors import TrainingError
from ov_autoplace.training.settings import CostSettings

__all__ = ["pretrain"]


@with_settings(CostSettings)
def pretrain(
    files: Annotated[
        list[Path],
        typer.Argument(
            metavar="FILE...", show_default=False, help="What ov-autoplace collect wrote, on any machines."
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write the network to.")],
    as_json: arguments.Json = False,
    **settings: Any,
) -> None:
    """Train the network of costs on what was collected, and judge it on a tenth of the networks.

    That tenth is not trained on. Needs the packages of the extra `train`.
    """
    with extra_needed("train", "training", TrainingError):
        from ov_autoplace.training.costs import train_costs
    import numpy as np

    from ov_autoplace.cost.samples import CostSamples
    from ov_autoplace.training.judging import is_validation, judge

    check_file(output)
    check_distinct([output], files)
    samples = [CostSamples.load(path) for path in files]
    training = [one.part(lambda network: not is_validation(network)) for one in samples]
    with made_folder(output.parent), progress_bar() as progress:
        network = train_costs(training, CostSettings(**settings), progress=progress)
        network.save(output)
    factors = np.concatenate([judge(one.part(is_validation), network).factors for one in samples])
    typical = float(np.exp(np.median(np.abs(factors)))) if len(factors) else None
    about = network.about
    if as_json:
        found = {name: about[name] for name in ("networks", "measurements", "devices")}
        print_json({"costs": str(output), **found, "validated": len(factors), "typical_factor": typical})
        return
    learned = f"{about['networks']} networks, {about['measurements']} measurements"
    print_sentence(f"{output}: learned from {learned} in {len(set(about['devices']))} settings of devices")
    if typical is None:
        print_sentence("none of the networks is kept for validation; collect more to see how far it is off")
    else:
        print_sentence(f"typically off by a factor of {typical:.3f} on {len(factors)} other measurements")
