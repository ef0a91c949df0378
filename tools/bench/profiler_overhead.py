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
from suite_report import print_result
from suite_result import Case, Result, Table, interval_cell, measured_ratio

from ov_autoplace._base.statistics import median_interval, paired_ratio
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.session import save_ir

WANTED = 0.5
_ROUNDS, _RUNS = 200, 500


def run(quick: bool, seed: int, rounds: int | None = None, runs: int = _RUNS) -> Result:
    """Interleave the three ways.

    Args:
        quick: A quarter of the rounds.
        seed: Not used: nothing here is random.
        rounds: Overrides ``quick``.
        runs: Inferences of each way in each round.
    """
    rounds = rounds or (_ROUNDS // 4 if quick else _ROUNDS)
    bare, profiled, python = measure(rounds, runs)
    rows = [
        (name, *microseconds(seconds), *microseconds(seconds - bare))
        for name, seconds in (
            ("bare C++ loop", bare),
            ("C++ profiler", profiled),
            ("Python infer loop", python),
        )
    ]
    share = float(np.median(profiled - bare) / np.median(python - bare))
    against = paired_ratio(profiled, python)
    case = Case(
        "one inference of one op with its clock", "Python infer loop", against.median, interval_cell(against)
    )
    return Result(
        title="Profiler: overhead",
        command=f"python tools/bench/profiler_overhead.py --rounds {rounds} --runs {runs}",
        tables=(
            Table(
                f"One inference of one op, microseconds: medians over {rounds} interleaved rounds, "
                "95 % intervals",
                ("way", "per run", "interval", "added to the bare loop", "interval"),
                tuple(rows),
            ),
        ),
        ratios=(measured_ratio("C++ profiler over the bare loop", paired_ratio(profiled, bare), rounds),),
        losing=(case,) if against.low > 1 else (),
        winning=(case,) if against.high < 1 else (),
        remarks=(
            f"the profiler adds {share:.2f} of what a Python loop adds; at most {WANTED:.2f} is wanted",
        ),
        data={"bare": bare.tolist(), "profiler": profiled.tolist(), "python": python.tolist()},
    )


def measure(rounds: int, runs: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Seconds of one inference in each round: bare loop, profiler and Python, ``float64[rounds]`` each."""
    data = opset.parameter([1, 16], np.float32, name="data")
    model = ov.Model([opset.result(opset.relu(data), name="out")], [data], "one_op")
    core = ov.Core()
    request = core.compile_model(model, "CPU").create_infer_request()
    with tempfile.TemporaryDirectory() as folder:
        executable = profiler_for(core, ["CPU"]).compile(str(save_ir(model, Path(folder))), "CPU")

    bare, profiled, python = (np.empty(rounds) for _ in range(3))
    for i in range(rounds):
        bare[i] = executable.run(1, warmup=1, inferences=runs)[0]
        start = time.perf_counter()
        executable.run(runs, warmup=0)
        profiled[i] = (time.perf_counter() - start) / runs
        request.infer()
        start = time.perf_counter()
        for _ in range(runs):
            request.infer()
        python[i] = (time.perf_counter() - start) / runs
    return bare, profiled, python


def microseconds(seconds: np.ndarray) -> tuple[str, str]:
    """Median and interval."""
    median, low, high = (1e6 * value for value in median_interval(seconds))
    return f"{median:.3f}", f"{low:.3f} to {high:.3f}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--runs", type=int, default=_RUNS, help="inferences of each way in each round")
    arguments = parser.parse_args()
    print(common.machine_line())
    print_result(run(False, 0, arguments.rounds, arguments.runs))


if __name__ == "__main__":
    main()
