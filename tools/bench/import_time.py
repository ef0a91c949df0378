"""What ``import ov_autoplace`` costs beyond ``import openvino``.

Each round starts two fresh interpreters in random order, one that imports openvino alone and one that
imports both, and takes the difference of the times that they report themselves.
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys

import numpy as np
from common import machine_line, print_table

from ov_autoplace._base.statistics import median_interval

_CODE = "import time; t = time.perf_counter(); import openvino{extra}; print(time.perf_counter() - t)"


def _seconds(extra: str) -> float:
    command = [sys.executable, "-c", _CODE.format(extra=extra)]
    return float(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    rounds = parser.parse_args().rounds
    variants = {"openvino": "", "openvino + ov_autoplace": ", ov_autoplace"}
    samples: dict[str, list[float]] = {name: [] for name in variants}
    for i in range(rounds + 1):
        for name in random.sample(list(variants), k=2):
            seconds = _seconds(variants[name])
            if i:  # the first round fills the file cache
                samples[name].append(seconds)
    rows = []
    difference = np.subtract(*(np.array(samples[name]) for name in reversed(variants)))
    for name, values in [*samples.items(), ("difference (bar: 50 ms)", difference)]:
        median, low, high = median_interval(np.asarray(values))
        rows.append((name, f"{1e3 * median:.1f}", f"{1e3 * low:.1f} .. {1e3 * high:.1f}", len(values)))
    print(machine_line())
    print_table("Import time", ("import", "median ms", "95 % interval", "samples"), rows)


if __name__ == "__main__":
    main()
