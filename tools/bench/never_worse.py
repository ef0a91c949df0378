"""AUTOPLACE's answer against each single device, run in turns: is it ever slower than the best of them?

The answer is compiled apart from the devices even when it is one of them, so that it is measured like
any other and not equal by definition. Every model is shown, those that lose too.
"""

from __future__ import annotations

import argparse
import sys
from contextlib import ExitStack

import openvino as ov
from common import machine_line, print_table, unequal_pair
from model_set import chosen_models

import ov_autoplace
from ov_autoplace.cost.profiling import ProfilingSession
from ov_autoplace.devices import device_properties
from ov_autoplace.statistics import median_interval, paired_ratio

DEVICES = ("XCPU", "CPU")
BAR = 1.02
# Nobody is dropped before that many rounds: the table shows them all.
ROUNDS = 2000
# A median of fewer paired runs decides nothing on a machine that does other things too.
FEWEST_RUNS = 30


def compare(model: ov.Model, mode: str, seconds: float) -> list[str]:
    """The cells of the table; the last one is the verdict."""
    core = unequal_pair()
    placement = ov_autoplace.place(model, DEVICES, mode, core)
    properties = device_properties(core, DEVICES, {})
    with ExitStack() as stack:
        alone, placed = (
            stack.enter_context(ProfilingSession(core, model, DEVICES, properties)) for _ in range(2)
        )
        executables = [alone.compile_device(device) for device in DEVICES]
        executables.append(placed.compile_placement(placement.to_dict()))
        result = alone.race(executables, seconds, min_rounds=ROUNDS, max_rounds=ROUNDS)
    *singles, ours = [entry.samples for entry in result.entries]
    best = min(singles, key=lambda samples: median_interval(samples).median)
    ratio = paired_ratio(ours, best)
    medians = [f"{1e3 * median_interval(samples).median:.3f}" for samples in (*singles, ours)]
    chosen = placement.decision.chosen if placement.decision else placement.solver
    interval = f"{ratio.low:.3f} .. {ratio.high:.3f}"
    verdict = "yes" if ratio.median <= BAR else "NO"
    if len(ours) < FEWEST_RUNS:
        verdict = "too few runs"
    return [*medians, f"{ratio.median:.3f}", interval, str(len(ours)), chosen, verdict]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", nargs="*", default=[], help="parts of model names; all when left out")
    parser.add_argument("--mode", default="PROFILE", choices=("ZERO_SHOT", "PROFILE", "TUNE"))
    parser.add_argument("--seconds", type=float, default=10.0, help="measuring time per model")
    arguments = parser.parse_args()
    rows = []
    for name, model in chosen_models(arguments.models):
        rows.append([name, *compare(model, arguments.mode, arguments.seconds)])
        print(*rows[-1], file=sys.stderr, flush=True)  # the table comes at the end, after minutes
    print(machine_line())
    within = sum(row[-1] == "yes" for row in rows)
    print_table(
        f"{arguments.mode}: {within} of {len(rows)} models within {BAR} of the best device's time",
        (
            "model",
            *(f"{d} ms" for d in DEVICES),
            "AUTOPLACE ms",
            "ratio",
            "95 % interval",
            "runs",
            "chosen",
            "in",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
