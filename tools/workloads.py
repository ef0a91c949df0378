"""Writes the graphs that the learned policy is trained on, or judged on, as small files.

Each is one network of the zoo, folded, extracted and coarsened as for a placement, without weights, or a
random graph: of the training set's families or of a held-out shape. Families take turns; the numbers of
groups are spread evenly over the orders of magnitude. The same arguments write the same files. Families of
different splits have different structures (``tools/fingerprints.py``).
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np
from rich.progress import track

import zoo
from held_out_shapes import TEST_SHAPES, VALIDATION_SHAPES, shape_workload
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.training.random_graphs import RANDOM_FAMILIES, random_workload
from ov_autoplace.training.workload import Workload

SPLITS = {
    "training": (zoo.TRAINING_FAMILIES, RANDOM_FAMILIES),
    "validation": (zoo.VALIDATION_FAMILIES, tuple(VALIDATION_SHAPES)),
    "held-out": (zoo.HELD_OUT_FAMILIES, tuple(TEST_SHAPES)),
}
"""Families of networks and of random graphs by split."""

_GUESS = 6  # ops per group, to begin with
_TRIES = 5


def network_workload(family: str, groups: int, seed: int) -> Workload:
    """A network of a family with about so many groups; families of few large ops cannot have fewer."""
    num_ops = _GUESS * groups
    best: Workload | None = None
    for _ in range(_TRIES):
        model = zoo.build_scaled(family, num_ops, seed)
        coarse = prepare(model).groups({})
        if best is None or abs(np.log(len(coarse) / groups)) < abs(np.log(len(best) / groups)):
            best = Workload.of(coarse, f"{family}-{groups}-{seed}", family)
        if abs(len(coarse) - groups) <= 0.1 * groups:
            break
        num_ops = max(1, round(num_ops * groups / len(coarse)))
    return best


def write_workloads(
    folder: Path, split: str, count: int, random_count: int, seed: int, smallest: int, largest: int
) -> list[Workload]:
    """Write ``count`` networks of a split and ``random_count`` random graphs into ``folder``."""
    random = np.random.default_rng((seed, ("training", "held-out", "validation").index(split)))
    families, shapes = SPLITS[split]
    wanted = [families[i % len(families)] for i in range(count)]
    wanted += [shapes[i % len(shapes)] for i in range(random_count)]
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for i, family in enumerate(track(wanted, f"{split} graphs", disable=not sys.stdout.isatty())):
        groups = round(float(np.exp(random.uniform(np.log(smallest), np.log(largest)))))
        workload = _workload(family, groups, int(random.integers(1 << 31)))
        workload.save(folder / f"{i:05d}-{family}.npz")
        written.append(workload)
    return written


def _workload(family: str, groups: int, seed: int) -> Workload:
    if family in zoo.FAMILIES:
        return network_workload(family, groups, seed)
    return (random_workload if family in RANDOM_FAMILIES else shape_workload)(family, groups, seed)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where the files go")
    parser.add_argument("--split", choices=tuple(SPLITS), default="training")
    parser.add_argument("--count", type=int, default=300, help="networks of the zoo (default: %(default)s)")
    parser.add_argument("--random", type=int, default=0, help="random graphs besides (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--groups", default="5..800", metavar="A..B", help="sizes (default: %(default)s)")
    arguments = parser.parse_args()
    try:
        smallest, largest = (int(bound) for bound in arguments.groups.split(".."))
    except ValueError:
        parser.error(f"--groups takes two numbers, such as 5..800, not {arguments.groups!r}")
    if not 1 <= smallest <= largest:
        parser.error(f"--groups must go from a number above 0 to one not below it, not {arguments.groups}")
    workloads = write_workloads(
        arguments.folder,
        arguments.split,
        arguments.count,
        arguments.random,
        arguments.seed,
        smallest,
        largest,
    )
    for family in dict.fromkeys(workload.family for workload in workloads):
        sizes = sorted(len(workload) for workload in workloads if workload.family == family)
        print(f"{family:24} {len(sizes):4} graphs of {sizes[0]} to {sizes[-1]} groups")


if __name__ == "__main__":
    main()
