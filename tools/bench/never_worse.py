"""AUTOPLACE's answer against each single device, run in turns: is it ever slower than the best of them?

The answer is compiled apart from the devices even when it is one of them, so that it is measured like
any other and not equal by definition; short models are compiled several times. Every model is shown, those
that lose too.
"""

from __future__ import annotations

import argparse
import sys

import openvino as ov
from common import machine_line, print_table
from device_race import core_of, race_model
from model_set import chosen_models
from real_models import PAIRS

DEVICES = PAIRS["alias"]
BAR = 1.02
# A median of fewer paired runs decides nothing on a machine that does other things too.
FEWEST_RUNS = 30


def compare(model: ov.Model, mode: str, seconds: float) -> list[str]:
    """The cells of the table; the last one is the verdict."""
    race = race_model(core_of("alias"), model, DEVICES, seconds, modes=(mode,), rivals=())
    ratio = race.ratio(mode, race.best_device)
    medians = [f"{1e3 * race.interval(name).median:.3f}" for name in (*DEVICES, mode)]
    interval = f"{ratio.low:.3f} .. {ratio.high:.3f}"
    verdict = "yes" if ratio.median <= BAR else "NO"
    if race.rounds < FEWEST_RUNS:
        verdict = "too few runs"
    return [*medians, f"{ratio.median:.3f}", interval, race.runs, race.answers[mode].chosen, verdict]


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
            "rounds x copies",
            "chosen",
            "in",
        ),
        rows,
    )


if __name__ == "__main__":
    main()
