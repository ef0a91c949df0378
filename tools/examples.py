"""Writes placement problems with a teacher's answers, for training to read or for a policy to be judged on.

Workloads (``tools/workloads.py`` writes them) on random machines, of all objectives. Example i depends on the
seed and i alone, whatever the number of processes; shards that a killed run left are kept.

    python tools/examples.py build/examples --workloads build/workloads --count 6000 --workers 2

With ``--judge``, workloads and objectives take turns on held-out machines (``held_out_machines``), and each
problem is solved as well as is known.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import track

from held_out_machines import held_out_task
from ov_autoplace.errors import PlacementError
from ov_autoplace.training.examples import by_family, label_task, make_labelled
from ov_autoplace.training.labelled import Labelled, load_labelled, save_labelled
from ov_autoplace.training.targets import EVERY_OBJECTIVE
from ov_autoplace.training.workload import Workload, load_folder

__all__ = ["JUDGED", "judged_problem", "write_examples"]

_SHARD = 64

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
    folder: Path, workloads: Path, count: int, seed: int, workers: int = 1, judge: bool = False
) -> None:
    """Write at least ``count`` examples, in shards of 64, of which those that are there already are kept."""
    by_family(load_folder(workloads))  # what is wrong with it is said here, not in a process
    folder.mkdir(parents=True, exist_ok=True)
    make = partial(_write, folder=folder, workloads=workloads, seed=seed, judge=judge)
    shards = [i for i in range(-(-count // _SHARD)) if not _path(folder, i).exists()]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        for _ in track(pool.map(make, shards), "shards", len(shards)):
            pass


def _path(folder: Path, shard: int) -> Path:
    return folder / f"{shard:05d}.npz"


def _write(shard: int, folder: Path, workloads: Path, seed: int, judge: bool) -> None:
    families = by_family(load_folder(workloads))
    numbers = range(shard * _SHARD, (shard + 1) * _SHARD)
    if judge:
        kinds = len(JUDGED)
        problems = [judged_problem(families, seed, i // kinds, JUDGED[i % kinds]) for i in numbers]
    else:
        problems = [make_labelled(families, np.random.default_rng((seed, i)), EVERY_OBJECTIVE) for i in numbers]
    save_labelled(_path(folder, shard), problems)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the shards go")
    parser.add_argument("--workloads", type=Path, required=True, help="folder of workloads")
    parser.add_argument("--count", type=int, default=6000, help="examples (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--workers", type=int, default=2, help="processes (default: %(default)s)")
    parser.add_argument("--judge", action="store_true", help="problems to judge by, on held-out machines")
    arguments = parser.parse_args()
    write_examples(
        arguments.folder,
        arguments.workloads,
        arguments.count,
        arguments.seed,
        arguments.workers,
        arguments.judge,
    )
    for path in sorted(arguments.folder.glob("*.npz"))[:1]:
        print(f"{path.name}: {len(load_labelled(path))} examples")


if __name__ == "__main__":
    main()
