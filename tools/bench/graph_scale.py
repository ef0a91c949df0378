"""How extraction and coarsening grow with the size of a model: 100 to 50,000 ops.

Three shapes of model: a chain of layers, a transformer (attention written out op by op) and an unrolled
LSTM whose steps all share one set of weights. Each row runs in a fresh process, which measures its peak
memory; ``ov.Model.clone``, OpenVINO's own walk over the same ops, stands beside as yardstick. Times are
processor time of one thread, which is what the clock shows on an idle machine.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import openvino as ov
from common import machine_line, print_table
from openvino import opset13 as ops

from ov_autoplace.graph import coarsen, extract
from ov_autoplace.graph.computation_graph import CoarseGraph, ComputationGraph

WIDTH = 32
SIZES = (100, 1_000, 5_000, 10_000, 25_000, 50_000)


def _weight(random: np.random.Generator, *shape: int) -> ov.Node:
    return ops.constant(random.standard_normal(shape, dtype=np.float32))


def chain(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Layers of MatMul, Add and Relu in two branches that meet after every layer."""
    x = ops.parameter([8, WIDTH], np.float32)
    y: ov.Node = x
    for _ in range(max(1, num_ops // 11)):
        branches = [
            ops.relu(
                ops.add(ops.matmul(y, _weight(random, WIDTH, WIDTH), False, False), _weight(random, 1, WIDTH))
            )
            for _ in range(2)
        ]
        y = ops.add(*branches)
    return ov.Model([ops.result(y)], [x], "chain")


def transformer(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Post-norm layers of one attention head and a feed-forward part."""
    x = ops.parameter([8, WIDTH], np.float32)
    scale, last = ops.constant(np.float32(WIDTH**-0.5)), ops.constant(np.array([-1], np.int64))

    def dense(node: ov.Node) -> ov.Node:
        product = ops.matmul(node, _weight(random, WIDTH, WIDTH), False, False)
        return ops.add(product, _weight(random, 1, WIDTH))

    y: ov.Node = x
    for _ in range(max(1, num_ops // 37)):
        query, key, value = dense(y), dense(y), dense(y)
        scores = ops.softmax(ops.multiply(ops.matmul(query, key, False, True), scale), -1)
        y = ops.add(y, dense(ops.matmul(scores, value, False, False)))
        y = ops.multiply(ops.mvn(y, last, True, 1e-5, "inside_sqrt"), _weight(random, WIDTH))
        y = ops.add(y, dense(ops.gelu(dense(y), "erf")))
        y = ops.multiply(ops.mvn(y, last, True, 1e-5, "inside_sqrt"), _weight(random, WIDTH))
    return ov.Model([ops.result(y)], [x], "transformer")


def unrolled_lstm(num_ops: int, random: np.random.Generator) -> ov.Model:
    """Steps of a decomposed LSTM cell over a constant input."""
    x = ops.parameter([1, WIDTH], np.float32)
    weights = _weight(random, 2 * WIDTH, 4 * WIDTH)
    axis = ops.constant(1)
    hidden, memory = x, x
    for _ in range(max(1, num_ops // 12)):
        gates = ops.matmul(ops.concat([x, hidden], 1), weights, False, False)
        keep, write, new, show = ops.split(gates, axis, 4).outputs()
        kept = ops.multiply(ops.sigmoid(keep), memory)
        memory = ops.add(kept, ops.multiply(ops.sigmoid(write), ops.tanh(new)))
        hidden = ops.multiply(ops.sigmoid(show), ops.tanh(memory))
    return ov.Model([ops.result(hidden)], [x], "unrolled_lstm")


BUILDERS: dict[str, Callable[[int, np.random.Generator], ov.Model]] = {
    build.__name__: build for build in (chain, transformer, unrolled_lstm)
}


@dataclass(frozen=True, slots=True)
class Steps:
    """Processor seconds of the same step again and again, and what was made.

    Attributes:
        seconds: By step, one number per repetition.
        added_mb, peak_mb: Largest memory of the process, over what it had before the steps and in all.
        graph, coarse: Of the last repetition.
    """

    seconds: dict[str, list[float]]
    added_mb: float
    peak_mb: float
    graph: ComputationGraph
    coarse: CoarseGraph


def measure_steps(model: ov.Model, repeats: int = 3) -> Steps:
    """Time extraction, coarsening and, as yardstick, ``clone``."""
    seconds: dict[str, list[float]] = {"clone": [], "extract": [], "coarsen": []}
    before = peak_mb()
    for _ in range(repeats):
        start = time.process_time()
        graph = extract(model)
        middle = time.process_time()
        coarse = coarsen(graph)
        end = time.process_time()
        seconds["extract"].append(middle - start)
        seconds["coarsen"].append(end - middle)
    peak = peak_mb()
    for _ in range(repeats):
        start = time.process_time()
        model.clone()
        seconds["clone"].append(time.process_time() - start)
    return Steps(seconds, peak - before, peak, graph, coarse)


def peak_mb() -> float:
    """Largest resident memory of this process so far; Linux reports kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(name: str, num_ops: int) -> dict[str, float]:
    """One row: the best of three runs of each step, and megabytes on top of the model itself."""
    steps = measure_steps(BUILDERS[name](num_ops, np.random.default_rng(0)))
    return {step: min(values) for step, values in steps.seconds.items()} | {
        "ops": len(steps.graph),
        "groups": len(steps.coarse),
        "added_mb": steps.added_mb,
        "peak_mb": steps.peak_mb,
    }


def main() -> None:
    """Print one table per kind of model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--one", nargs=2, metavar=("KIND", "OPS"), help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(measure(arguments.one[0], int(arguments.one[1]))))
        return
    print(machine_line())
    for name in BUILDERS:
        rows = []
        for size in arguments.sizes:
            command = [sys.executable, __file__, "--one", name, str(size)]
            rows.append(
                json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
            )
        large = [row for row in rows if row["ops"] >= 1_000]
        exponent = ""
        if len(large) > 1:
            total = [row["extract"] + row["coarsen"] for row in large]
            slope = np.polyfit(np.log([row["ops"] for row in large]), np.log(total), 1)[0]
            exponent = f", time grows as ops^{slope:.2f} from 1,000 ops on"
        print_table(
            f"{name}{exponent}",
            ["ops", "groups", "extract ms", "coarsen ms", "clone ms", "added MB", "peak MB"],
            [
                [f"{row['ops']:.0f}", f"{row['groups']:.0f}"]
                + [f"{row[step] * 1e3:.1f}" for step in ("extract", "coarsen", "clone")]
                + [f"{row[step]:.0f}" for step in ("added_mb", "peak_mb")]
                for row in rows
            ],
        )


if __name__ == "__main__":
    main()
