"""How well the analytic cost table ranks groups and models, against the profiled one of the same devices.

    python tools/bench/analytic.py [model ...] [--size full]

Prints per model and device the Spearman rank correlation over the groups that take time, and the ratio of
the analytic to the profiled total, for a calibrated target and for the generic one.
"""

from __future__ import annotations

import argparse

import numpy as np
from common import machine_line, print_table, unequal_pair
from scipy.stats import spearmanr

from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.table import CostTable
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.measure.calibrate import calibrate
from ov_autoplace.measure.profiled import profile
from zoo import NAMES, build

DEVICES = ("XCPU", "CPU")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="*", default=list(NAMES), help="zoo names; all of them by default")
    parser.add_argument("--size", choices=("small", "full"), default="full", help="of the zoo's models")
    arguments = parser.parse_args()
    core = unequal_pair()
    targets = {
        "calibrated": calibrate(core, DEVICES, quick=True),
        "generic": generic_target(core, DEVICES),
    }
    rows = []
    for name in arguments.models:
        model = build(name, arguments.size)
        profiled = profile(model, DEVICES, core)
        coarse = coarsen(extract(model))
        for kind, target in targets.items():
            analytic = analytic_table(coarse, target, DEVICES)
            for device in DEVICES:
                correlation, ratio, groups = compare(analytic, profiled, DEVICES.index(device))
                rows.append((name, device, kind, groups, f"{correlation:.2f}", f"{ratio:.2f}"))
    print(machine_line())
    columns = ("model", "device", "target", "groups", "rank correlation", "analytic / profiled")
    print_table("Analytic against profiled op times", columns, rows)


def compare(analytic: CostTable, profiled: CostTable, device: int) -> tuple[float, float, int]:
    """Rank correlation, ratio of totals, and number of groups that both tables know and give time to.

    Profiling coarsens further, since it knows what the device fused: a profiled group is compared with
    the sum of the analytic groups whose ops it holds.
    """
    group_of = {op: g for g, ops in enumerate(profiled.members or ()) for op in ops}
    estimate = np.zeros(len(profiled))
    for g, ops in enumerate(analytic.members or ()):
        shares = np.bincount([group_of[op] for op in ops if op in group_of], minlength=len(profiled))
        if shares.sum():
            estimate += analytic.op_seconds[g, device] * shares / shares.sum()
    measured = profiled.op_seconds[:, device]
    busy = (measured > 0) & np.isfinite(measured)
    correlation = float(spearmanr(estimate[busy], measured[busy]).statistic)
    return correlation, float(estimate[busy].sum() / measured[busy].sum()), int(busy.sum())


if __name__ == "__main__":
    main()
