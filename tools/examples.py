"""Writes placement problems with a teacher's answers, for training to read or for a policy to be judged on.

Workloads (``tools/workloads.py`` writes them) on random machines, of all objectives. Example i depends on the
seed and i alone, whatever the number of processes; shards that a killed run left are kept.

    python tools/examples.py build/examples --workloads build/workloads --count 6000 --workers 2

Another run with a larger count, and with one objective and number of devices, adds examples of that kind.

``ov-autoplace pretrain --workloads`` makes the same examples itself.

With ``--judge``, workloads and objectives take turns on held-out machines (``held_out_machines``), and each
problem is solved as well as is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache, partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import track

from held_out_machines import held_out_task
from ov_autoplace._base.files import write_atomically
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.simulator import OBJECTIVES
from ov_autoplace.training.examples import by_family, label_task
from ov_autoplace.training.labelled import Labelled, load_labelled, shard_bytes
from ov_autoplace.training.teaching import SHARD, Teaching, shard_path
from ov_autoplace.training.workload import Workload, load_folder

JUDGED = (
    *(("hetero", devices, limited) for limited in (False, True) for devices in (2, 3, 4, 8)),
    *(("overlap", devices, False) for devices in (2, 3, 4, 8)),
    *(("rate", devices, False) for devices in (2, 3, 4)),
)
"""What a policy is judged by: objective, number of columns, and whether memory limits bind."""


def judged_problem(
    families: Sequence[Sequence[Workload]], seed: int, number: int, kind: tuple[str, int, bool]
) -> Labelled:
    """Problem ``number`` of a kind of :data:`JUDGED`; families take turns, and so do their workloads."""
    objective, devices, limited = kind
    family = families[number % len(families)]
    workload = family[number // len(families) % len(family)]
    random = np.random.default_rng((seed, JUDGED.index(kind), number))
    while True:
        task = held_out_task(workload, random, devices, objective, limited)
        try:
            return label_task(task, thorough=True)
        except PlacementError:
            continue  # no device runs all of what must stay together, or too little memory was drawn


def write_examples(
    folder: Path,
    workloads: Path,
    count: int,
    seed: int,
    workers: int = 1,
    judge: bool = False,
    kind: tuple[str | None, int | None] = (None, None),
) -> None:
    """Write at least ``count`` examples, in shards of 64, of which those that are there already are kept.

    Args:
        folder: Where to.
        workloads: Folder of workloads.
        count: How many.
        seed: Of everything random.
        workers: Processes.
        judge: Whether to write what policies are judged by.
        kind: Of the others, the objective and number of devices; ``None`` draws it.
    """
    _families(workloads)  # what is wrong with it is said here, not in a process
    folder.mkdir(parents=True, exist_ok=True)
    make = partial(_write, folder=folder, workloads=workloads, seed=seed, judge=judge, kind=kind)
    shards = [i for i in range(-(-count // SHARD)) if not shard_path(folder, i).exists()]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for _ in track(pool.map(make, shards), "shards", len(shards)):
            pass


@cache
def _families(workloads: Path) -> tuple[tuple[Workload, ...], ...]:
    """Once per process."""
    return by_family(load_folder(workloads))


def _write(
    shard: int,
    folder: Path,
    workloads: Path,
    seed: int,
    judge: bool,
    kind: tuple[str | None, int | None],
) -> None:
    families = _families(workloads)
    if judge:
        kinds = len(JUDGED)
        numbers = range(shard * SHARD, (shard + 1) * SHARD)
        content = shard_bytes(
            [judged_problem(families, seed, i // kinds, JUDGED[i % kinds]) for i in numbers]
        )
    else:
        content = Teaching(families, seed, *kind).shard(shard)
    write_atomically(shard_path(folder, shard), content)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the shards go")
    parser.add_argument("--workloads", type=Path, required=True, help="folder of workloads")
    parser.add_argument("--count", type=int, default=6000, help="examples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--judge", action="store_true", help="problems to judge by, on held-out machines")
    parser.add_argument("--objective", choices=OBJECTIVES, help="of all examples (default: drawn)")
    parser.add_argument("--devices", type=int, help="of all examples (default: drawn)")
    arguments = parser.parse_args()
    write_examples(
        arguments.folder,
        arguments.workloads,
        arguments.count,
        arguments.seed,
        arguments.workers,
        arguments.judge,
        (arguments.objective, arguments.devices),
    )
    for path in sorted(arguments.folder.glob("*.npz"))[:1]:
        print(f"{path.name}: {len(load_labelled(path))} examples")


if __name__ == "__main__":
    main()
