"""Whether ``count_subgraphs`` equals the real ``HETERO_NUMBER_OF_SUBMODELS``, on random placements.

    python tools/bench/partition.py [model ...] [--placements 80] [--random-models 6] [--seed 0]

Every placement is compiled on HETERO with CPU and its alias XCPU. In zoo models whole co-location groups
move; placements that ``count_subgraphs`` refuses, because HETERO cannot run them, are counted apart. Random
models (``tests/random_models.py``) are placed op by op, constants and parameters too. Half of the
placements are drawn independently, half in runs.
Exit code 1 when any count differs.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
import openvino as ov
from common import ROOT, machine_line, print_table, unequal_pair
from rich.progress import track

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.placement.annotation import set_affinities
from ov_autoplace.placement.fitting import count_subgraphs
from zoo import NAMES, build

sys.path.insert(0, str(ROOT / "tests"))
from random_models import random_model

DEVICES = ("XCPU", "CPU")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(NAMES), help="zoo names; all of them by default")
    parser.add_argument("--size", choices=("small", "full"), default="small", help="of the zoo's models")
    parser.add_argument("--placements", type=int, default=80, help="per model")
    parser.add_argument("--random-models", type=int, default=6, help="how many random models to add")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()

    core = unequal_pair()
    for device in DEVICES:
        core.set_property(device, {"SNIPPETS_MODE": "DISABLE"})
    models = {name: build(name, arguments.size) for name in arguments.models}
    cases = {name: (model, colocation(model)) for name, model in models.items()}
    for i in range(arguments.random_models):
        model = random_model(arguments.seed + i, size=10 + 10 * i, shared_constants=i % 4)
        cases[f"random, {10 + 10 * i} ops"] = model, np.arange(len(model.get_ordered_ops()), dtype=np.int32)

    rows = []
    random = np.random.default_rng(arguments.seed)
    for name, (model, group_of) in cases.items():
        rows.append((name, *compare(core, model, group_of, arguments.placements, random, name)))
    print(machine_line())
    counted, equal = sum(row[3] for row in rows), sum(row[5] for row in rows)
    columns = (
        "model",
        "ops",
        "groups",
        "counted",
        "refused",
        "equal",
        "median",
        "largest",
        "ms / count",
        "ms / compile",
    )
    print_table(f"count_subgraphs against HETERO: {equal} of {counted} equal", columns, rows)
    return 0 if equal == counted else 1


def colocation(model: ov.Model) -> IntArray:
    """Co-location group of each op."""
    make_names_unique(model)
    return coarsen(extract(model)).group_of


def compare(
    core: ov.Core,
    model: ov.Model,
    group_of: IntArray,
    tries: int,
    random: np.random.Generator,
    name: str,
) -> tuple[int, int, int, int, int, float, int, str, str]:
    """Ops, groups, counted and refused placements, equal counts, median and largest count, times of one."""
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    groups = int(group_of.max()) + 1
    counts, equal, count_seconds, compile_seconds = [], 0, [], []
    for i in track(range(tries), description=name, transient=True):
        change = 0.5 if i % 2 else random.uniform(0.02, 0.3)
        device = np.cumsum(random.random(groups) < change) % 2
        device_of = {op: DEVICES[device[g]] for op, g in zip(names, group_of.tolist(), strict=True)}
        start = time.perf_counter()
        try:
            counts.append(count_subgraphs(model, device_of))
        except PlacementError:
            continue
        count_seconds.append(time.perf_counter() - start)
        set_affinities(model, device_of)
        start = time.perf_counter()
        real = int(core.compile_model(model, "HETERO").get_property("HETERO_NUMBER_OF_SUBMODELS"))
        compile_seconds.append(time.perf_counter() - start)
        if real == counts[-1]:
            equal += 1
        else:
            print(f"{name}, placement {i}: counted {counts[-1]}, HETERO made {real}")
    milliseconds = (f"{np.median(s) * 1e3:.3g}" for s in (count_seconds, compile_seconds))
    refused = tries - len(counts)
    return (
        len(names),
        groups,
        len(counts),
        refused,
        equal,
        float(np.median(counts)),
        max(counts),
        *milliseconds,
    )


if __name__ == "__main__":
    sys.exit(main())
