"""How close ``auto`` comes, and how much it proves, where memory limits bind.

    python tools/bench/memory_limits.py [--time-limit 20] [--graphs gnmt] [--accelerators 2 3]

The graphs are those of dnn-partitioning with their published limits and 1 to 6 accelerators. "Best known" is
the least value that any run of this project has found, whatever it took (``BEST_KNOWN``); a run that finds
less says so.
"""

from __future__ import annotations

import argparse
import time

from common import ROOT, machine_line, print_table

from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.errors import CostTableError
from ov_autoplace.solvers import solve

GRAPHS = ROOT / "tests" / "data" / "dnn-partitioning"
NAMES = ("bert24", "gnmt", "bert_l-3", "resnet50")
# Seconds by graph and number of accelerators. Values with a * in the table's column were proven optimal by
# HiGHS on the whole program within 60 s: those of ``PROVEN``.
BEST_KNOWN = {
    ("bert24", 1): 0.571359,
    ("bert24", 2): 0.221803,
    ("bert24", 3): 0.100219,
    ("bert24", 4): 0.100219,
    ("bert24", 5): 0.100219,
    ("gnmt", 1): 1.064150,
    ("gnmt", 2): 0.536493,
    ("gnmt", 3): 0.304771,
    ("gnmt", 4): 0.226927,
    ("gnmt", 5): 0.226927,
    ("gnmt", 6): 0.226927,
    ("bert_l-3", 1): 0.577000,
    ("bert_l-3", 2): 0.414430,
    ("bert_l-3", 3): 0.401647,
    ("bert_l-3", 4): 0.401647,
    ("resnet50", 1): 3.707596,
    ("resnet50", 2): 2.900161,
    ("resnet50", 3): 2.176061,
    ("resnet50", 4): 1.560911,
    ("resnet50", 5): 0.996886,
    ("resnet50", 6): 0.651120,
}
PROVEN = {("bert24", 2), ("bert24", 3), ("gnmt", 2), ("bert_l-3", 2), ("bert_l-3", 3)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--time-limit", type=float, default=20.0)
    parser.add_argument("--graphs", nargs="+", default=list(NAMES), choices=NAMES)
    parser.add_argument("--accelerators", nargs="+", type=int, default=[1, 2, 3, 4, 5, 6])
    parser.add_argument("--solver", default="auto")
    arguments = parser.parse_args()
    print(machine_line())
    rows = []
    for name in arguments.graphs:
        for accelerators in arguments.accelerators:
            try:
                table = load_dnn_partitioning(GRAPHS / f"{name}_inference.json", accelerators)
            except CostTableError:
                continue  # the file names fewer accelerators
            begin = time.perf_counter()
            answer = solve(table, arguments.solver, time_limit=arguments.time_limit)
            seconds = time.perf_counter() - begin
            value, bound = answer.latency_seconds, answer.lower_bound_seconds
            best = BEST_KNOWN.get((name, accelerators))
            mark = "*" if (name, accelerators) in PROVEN else ""
            rows.append(
                [
                    name,
                    accelerators,
                    f"{value:.5f}",
                    f"{bound:.5f}",
                    f"{100 * (value / bound - 1):.1f}",
                    "-" if best is None else f"{best:.5f}{mark}",
                    "-" if best is None else f"{100 * (value / best - 1):+.2f}",
                    f"{seconds:.1f}",
                ]
            )
    columns = ["graph", "acc.", "answer s", "bound s", "above bound %", "best known", "above it %", "took s"]
    print_table(f"{arguments.solver}, {arguments.time_limit:g} s", columns, rows)


if __name__ == "__main__":
    main()
