"""``ov-autoplace pretrain``: a policy from scratch."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ov_autoplace._base.extras import extra_needed
from ov_autoplace.cli import arguments
from ov_autoplace.cli.console import print_json, print_sentence, print_table
from ov_autoplace.cli.outputs import check_folder
from ov_autoplace.cli.settings_options import with_settings
from ov_autoplace.errors import OptionError, TrainingError
from ov_autoplace.training.settings import PretrainSettings

if TYPE_CHECKING:
    from ov_autoplace.training.execution import Executors

__all__ = ["pretrain"]

_EXAMPLES = 6000
_LIMIT_SECONDS = 300.0

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

Address = Annotated[
    str | None,
    typer.Option(
        "--ray",
        metavar="ADDRESS",
        help="Solve examples, roll out, compute gradients and judge on the nodes of this Ray cluster: "
        "HOST:PORT of its head from one of its nodes, auto, or ray://HOST:PORT. The checkpoint is the same.",
        show_default="this process",
    ),
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", min=1, help="With --ray: processors to use.", show_default="all that nodes offer"
    ),
]
Limit = Annotated[
    float | None,
    typer.Option(
        "--limit",
        min=1.0,
        help="With --ray: seconds that a unit of work may take before another worker tries it.",
        show_default=f"{_LIMIT_SECONDS:g}",
    ),
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
    ray: Address = None,
    workers: Workers = None,
    limit: Limit = None,
    as_json: arguments.Json = False,
    **settings: Any,
) -> None:
    """Train a policy from scratch on random machines, and write its checkpoint.

    Needs the packages of the extra `train`, and with --ray those of `fleet`.
    """
    with extra_needed("train", "training", TrainingError):
        from ov_autoplace.training.pretrain import pretrain as train
    check_folder(output)
    # A resumed run ends with the same weights, so it is no part of how to make them.
    command = shlex.join(["ov-autoplace", *(word for word in sys.argv[1:] if word != "--resume")])
    for name, value in {"--workers": workers, "--limit": limit}.items():
        if value is not None and ray is None:
            raise OptionError(f"{name} {value:g} is about a cluster; add --ray ADDRESS, or leave it out")
    if examples is not None and workloads is None:
        raise OptionError(f"--examples {examples} needs --workloads, a folder of graphs to make them of")
    if ray is not None:
        settings["threads"] = settings["threads"] or 1  # whatever the processors of a node
    with _executors(ray, workers, limit or _LIMIT_SECONDS) as executors:
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
            executors=executors,
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


@contextmanager
def _executors(address: str | None, workers: int | None, limit: float) -> Iterator[Executors]:
    """Who computes: the nodes of a cluster, or this process."""
    if address is None:
        from ov_autoplace.training.execution import in_this_process

        yield in_this_process
        return
    from ov_autoplace.fleet.learning import workers_at

    with workers_at(address, limit, workers) as executors:
        yield executors
