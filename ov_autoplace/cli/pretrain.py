"""``ov-autoplace pretrain``: a policy from scratch."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, print_table
from ov_autoplace.cli.outputs import check_folder
from ov_autoplace.cli.settings_options import with_settings
from ov_autoplace.errors import OptionError, TrainingError
from ov_autoplace.training.settings import PretrainSettings

__all__ = ["pretrain"]

_EXAMPLES = 6000

Data = Annotated[
    Path,
    typer.Argument(
        metavar="FOLDER",
        show_default=False,
        help="Folder of examples, as tools/examples.py writes them, or --workloads.",
    ),
]
Workloads = Annotated[
    Path | None,
    typer.Option(
        "--workloads",
        help="Folder of graphs, as tools/workloads.py writes them; of these, examples that are missing are "
        "made and solved first.",
    ),
]
Count = Annotated[
    int | None,
    typer.Option(
        "--examples",
        min=1,
        help="With --workloads: examples to have; a shard holds 64.",
        show_default=str(_EXAMPLES),
    ),
]
Validation = Annotated[
    Path, typer.Option("--validation", help="Examples to judge the policy on in the meantime.")
]
Output = Annotated[
    Path,
    typer.Option("--output", "-o", help="Folder for the checkpoint, the log and the state to resume from."),
]
Checkpoint = Annotated[
    Path | None,
    typer.Option(
        "--checkpoint",
        help="Checkpoint whose weights to start from; parts that the configuration has not are left out.",
    ),
]
HeldOut = Annotated[
    Path | None,
    typer.Option("--held-out", help="Examples that no choice was made by, to judge the finished policy on."),
]
Resume = Annotated[
    bool, typer.Option("--resume", help="Go on from the state in the folder, to the same result.")
]


@with_settings(PretrainSettings)
def pretrain(
    data: Data,
    output: Output,
    validation: Validation,
    workloads: Workloads = None,
    examples: Count = None,
    checkpoint: Checkpoint = None,
    held_out: HeldOut = None,
    resume: Resume = False,
    as_json: arguments.Json = False,
    **settings: Any,
) -> None:
    """Train a policy from scratch on random machines, and write its checkpoint.

    Needs the packages of the extra `train`.
    """
    with extra_needed("train", "training", TrainingError):
        from ov_autoplace.training.pretrain import pretrain as train
    check_folder(output)
    # A resumed run ends with the same weights, so it is no part of how to make them.
    command = shlex.join(["ov-autoplace", *(word for word in sys.argv[1:] if word != "--resume")])
    if examples is not None and workloads is None:
        raise OptionError(f"--examples {examples} needs --workloads, a folder of graphs to make them of")
    result = train(
        data,
        output,
        PretrainSettings(**settings),
        validation=validation,
        workloads=workloads,
        count=examples or _EXAMPLES,
        checkpoint=checkpoint,
        held_out=held_out,
        resume=resume,
        command=command,
    )
    summary = result.evaluation.summary()
    if as_json:
        by_family = result.evaluation.by_family()
        print_json(
            {"checkpoint": str(output), "steps": result.steps, "validation": summary, "by_family": by_family}
        )
        return
    rows = [(family, f"{100 * gap:.2f} %") for family, gap in result.evaluation.by_family().items()]
    rows.append(("all", f"{100 * summary['mean_gap']:.2f} %"))
    print_table("gap to the best known placements of the validation problems", ["family", ">mean gap"], rows)
    print_sentence(
        f"{output}: step {result.best_step} of {result.steps}, {result.seconds / 60:.0f} min of this process"
    )
