"""What a second ``compile_model`` on AUTOPLACE costs beside HETERO with the same affinities and cache.

Both sides compile the same file with their own warm ``CACHE_DIR``, alternating. HETERO's side does what
a user without this package does: read the model, set the affinities from a file, compile.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path

import numpy as np
import openvino as ov
from common import machine_line, print_table, unequal_pair

import ov_autoplace
import zoo
from ov_autoplace._base.statistics import median_interval, paired_ratio
from ov_autoplace.placement.annotation import completed


def _hetero(core: ov.Core, path: Path, affinities: Path, cache: Path) -> float:
    start = time.perf_counter()
    model = core.read_model(path)
    device_of = json.loads(affinities.read_text())
    for op in model.get_ops():
        op.get_rt_info()["affinity"] = device_of[op.get_friendly_name()]
    core.compile_model(model, "HETERO:XCPU,CPU", {"CACHE_DIR": str(cache)})
    return time.perf_counter() - start


def _autoplace(core: ov.Core, path: Path, cache: Path, pins: dict[str, str]) -> float:
    config = {"CACHE_DIR": str(cache), "AUTOPLACE_PINS": pins}
    start = time.perf_counter()
    core.compile_model(path, "AUTOPLACE:XCPU,CPU", config)
    return time.perf_counter() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    default = ["inception_v3", "resnet50", "bert_base", "mobilenet_v2"]
    parser.add_argument("--models", nargs="*", default=default)
    parser.add_argument("--size", default="full", choices=("small", "full"))
    parser.add_argument("--rounds", type=int, default=15)
    arguments = parser.parse_args()
    rows = []
    for name in arguments.models:
        model = zoo.build(name, arguments.size)
        # A pin makes the placement a mixed one, so that both sides compile the same two devices.
        heaviest = [
            op.get_friendly_name()
            for op in model.get_ordered_ops()
            if op.get_type_name() in ("MatMul", "Convolution")
        ]
        pins = {heaviest[0]: "XCPU", heaviest[-1]: "CPU"}
        core = unequal_pair()
        with tempfile.TemporaryDirectory() as folder:
            path, affinities = Path(folder, "model.xml"), Path(folder, "affinity.json")
            ov.save_model(model, path, compress_to_fp16=False)
            _autoplace(core, path, Path(folder, "a"), pins)
            stored = json.loads(next(Path(folder, "a").glob("autoplace-*.json")).read_text())
            placement = ov_autoplace.Placement.from_dict(completed(model, stored["placement"]))
            placement.save(affinities)
            _hetero(core, path, affinities, Path(folder, "h"))
            ours, theirs = [], []
            for i in range(arguments.rounds):
                for side in (0, 1) if i % 2 else (1, 0):
                    if side:
                        ours.append(_autoplace(core, path, Path(folder, "a"), pins))
                    else:
                        theirs.append(_hetero(core, path, affinities, Path(folder, "h")))
        ratio = paired_ratio(np.array(ours), np.array(theirs))
        rows.append(
            (
                name,
                len(placement.to_dict()),
                f"{1e3 * median_interval(np.array(ours)).median:.0f}",
                f"{1e3 * median_interval(np.array(theirs)).median:.0f}",
                f"{ratio.median:.3f}",
                f"{ratio.low:.3f} .. {ratio.high:.3f}",
                arguments.rounds,
            )
        )
    print(machine_line())
    print_table(
        "Second compile_model with CACHE_DIR (bar: ratio 1.10)",
        ("model", "ops", "AUTOPLACE ms", "HETERO ms", "ratio", "95 % interval", "rounds"),
        rows,
    )


if __name__ == "__main__":
    main()
