"""What the profiler adds to every run, against a Python ``infer`` loop, on a model of one op.

    python tools/bench/profiler_overhead.py

Three ways to run the same compiled model are interleaved: the C++ profiler's timed loop, a Python loop over
``InferRequest.infer()``, and a bare C++ loop with no clock inside, which is the lower bound that both are
compared with.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import common
import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.cost.profiling import save_ir
from ov_autoplace.devices import profiler_for
from ov_autoplace.statistics import median_interval


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--runs", type=int, default=500, help="inferences of each way in each round")
    arguments = parser.parse_args()

    data = opset.parameter([1, 16], np.float32, name="data")
    model = ov.Model([opset.result(opset.relu(data), name="out")], [data], "one_op")
    core = ov.Core()
    request = core.compile_model(model, "CPU").create_infer_request()
    with tempfile.TemporaryDirectory() as folder:
        executable = profiler_for(core, ["CPU"]).compile(str(save_ir(model, Path(folder))), "CPU")

    runs = arguments.runs
    bare, profiled, python = (np.empty(arguments.rounds) for _ in range(3))
    for i in range(arguments.rounds):
        bare[i] = executable.run(1, warmup=1, inferences=runs)[0]
        start = time.perf_counter()
        executable.run(runs, warmup=0)
        profiled[i] = (time.perf_counter() - start) / runs
        request.infer()
        start = time.perf_counter()
        for _ in range(runs):
            request.infer()
        python[i] = (time.perf_counter() - start) / runs

    rows = []
    for name, seconds in (("bare C++ loop", bare), ("C++ profiler", profiled), ("Python infer loop", python)):
        whole, added = median_interval(seconds), median_interval(seconds - bare)
        rows.append(
            (
                name,
                f"{whole.median * 1e6:.3f}",
                f"{whole.low * 1e6:.3f} to {whole.high * 1e6:.3f}",
                f"{added.median * 1e6:.3f}",
                f"{added.low * 1e6:.3f} to {added.high * 1e6:.3f}",
            )
        )
    print(common.machine_line())
    common.print_table(
        "One inference of one op, microseconds (medians over interleaved rounds, 95 % intervals)",
        ("way", "per run", "interval", "added to the bare loop", "interval"),
        rows,
    )
    share = float(np.median(profiled - bare) / np.median(python - bare))
    print(f"the profiler adds {share:.2f} of what a Python loop adds (at most 0.50 is wanted)")


if __name__ == "__main__":
    main()
