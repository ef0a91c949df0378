"""How every part grows with the size of a model, 100 to 50,000 ops, beside HETERO's own compilation.

    python tools/bench/scaling.py [--quick] [--seed 0] [--kinds chain ...] [--sizes 100 1000 ...]

Models are those of ``graph_scale.py``; each row runs in a process of its own. Times are seconds of
processor time of all threads, which is what an idle machine's clock shows or less. ``solve`` and
``policy`` place the coarse graph on the analytic costs of a catalogue machine, ``simulate`` is one
placement in two halves, ``annotate`` writes it into a copy of the model, and ``HETERO`` compiles that for
XCPU and CPU. A part's growth exponent is the slope of log(seconds) over log(ops).
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from common import ROOT, machine_line, unequal_pair
from graph_scale import BUILDERS, measure_steps, peak_mb
from scipy.stats import linregress, t
from suite_process import Failure, in_child
from suite_report import print_result
from suite_result import Ratio, Result, Table

import ov_autoplace
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.target import Target
from ov_autoplace.placement.placement import Placement
from ov_autoplace.simulator import problem_of
from ov_autoplace.solvers import solve
from ov_autoplace.statistics import Interval, median_interval

__all__ = ["PARTS", "exponent", "measure", "measure_hetero", "run"]

PARTS = ("clone", "extract", "coarsen", "simulate", "solve", "policy", "annotate", "HETERO")
_SIZES = {True: (100, 1_000, 5_000), False: (100, 300, 1_000, 3_000, 10_000, 25_000, 50_000)}
_KINDS = {True: ("transformer", "unrolled_lstm"), False: tuple(BUILDERS)}
_REPEATS = 3
_TIMEOUT = {True: 120.0, False: 900.0}
# Below, what grows with a model is hidden by what every model costs.
_SMALLEST_FOR_EXPONENT = 1_000
_TARGET = ROOT / "ov_autoplace" / "targets" / "core-ultra-7-155h.json"
_SIMULATIONS = 20


def run(
    quick: bool, seed: int, kinds: Sequence[str] | None = None, sizes: Sequence[int] | None = None
) -> Result:
    """All parts on all sizes.

    Args:
        quick: Up to 5,000 ops, two kinds of models.
        seed: Of the weights.
        kinds: Of models, keys of ``graph_scale.BUILDERS``.
        sizes: Numbers of ops.
    """
    kinds, sizes = kinds or _KINDS[quick], sizes or _SIZES[quick]
    tables, ratios, data, remarks = [], [], {}, []
    for kind in kinds:
        rows = []
        for size in sizes:
            arguments = {"kind": kind, "num_ops": size, "seed": seed}
            row = in_child("scaling:measure", arguments, timeout=_TIMEOUT[quick])
            if isinstance(row, Failure):
                remarks.append(f"{kind} of {size:,} ops: not measured: {row.reason}")
                continue
            compiled = in_child("scaling:measure_hetero", arguments, timeout=_TIMEOUT[quick])
            if isinstance(compiled, Failure):
                remarks.append(f"{kind} of {size:,} ops: HETERO did not compile it: {compiled.reason}")
            else:
                row["seconds"] |= compiled["seconds"]
                row["HETERO peak MB"] = compiled["peak MB"]
            rows.append(row)
        slopes = {part: exponent(rows, part) for part in PARTS}
        tables.append(_table(kind, rows, slopes))
        ratios += [
            Ratio(f"{kind}: exponent of {part}", *found, len(rows) * _REPEATS, "growth")
            for part, found in slopes.items()
            # OpenVINO's own parts are shown, not guarded.
            if found is not None and part not in ("clone", "HETERO")
        ]
        data[kind] = rows
    return Result(
        title="Speed of every part against graph size",
        command=f"python tools/bench/scaling.py{' --quick' * quick} --seed {seed}",
        tables=tuple(tables),
        ratios=tuple(ratios),
        remarks=tuple(remarks),
        data=data,
    )


def measure(kind: str, num_ops: int, seed: int, parts: Sequence[str] = PARTS) -> dict[str, Any]:
    """Our parts on one model: lists of processor seconds, sizes and memory.

    Args:
        kind: A key of ``graph_scale.BUILDERS``.
        num_ops: Of the model, about.
        seed: Of the weights.
        parts: What is measured besides ``clone``, ``extract`` and ``coarsen``.
    """
    model = BUILDERS[kind](num_ops, np.random.default_rng(seed))
    before = peak_mb()
    steps = measure_steps(model, _REPEATS)
    table = analytic_table(steps.coarse, Target.load(_TARGET), ("GPU", "CPU"))
    halves = (np.arange(len(table)) >= len(table) // 2).astype(np.int32)
    problem = problem_of(table)

    def simulate() -> None:
        for _ in range(_SIMULATIONS):
            problem.simulate(halves)

    placement = Placement.of_groups(table, halves)
    calls: dict[str, tuple[Callable[[], object], float]] = {
        "simulate": (simulate, _SIMULATIONS),
        # A copy of a table has nothing derived from it yet.
        "solve": (lambda: solve(replace(table)), 1),
        "policy": (lambda: solve(replace(table), "policy"), 1),
        "annotate": (lambda: ov_autoplace.annotate(model, placement), 1),
    }
    seconds = dict(steps.seconds)
    for part, (call, times) in calls.items():
        if part in parts:
            call()  # libraries are loaded and the policy is compiled once per process
            seconds[part] = [_processor_seconds(call) / times for _ in range(_REPEATS)]
    return {
        "ops": len(steps.graph),
        "groups": len(steps.coarse),
        "seconds": seconds,
        "added MB": peak_mb() - before,
        "peak MB": peak_mb(),
    }


def measure_hetero(kind: str, num_ops: int, seed: int) -> dict[str, Any]:
    """HETERO's compilation of the model in two halves."""
    model = BUILDERS[kind](num_ops, np.random.default_rng(seed))
    ops = [op.friendly_name for op in model.get_ordered_ops()]
    graph = ov_autoplace.extract(model)
    place = {name: ("XCPU", "CPU")[i >= len(graph) // 2] for i, name in enumerate(graph.names)}
    ov_autoplace.annotate(model, {name: place[name] for name in ops if name in place})
    core = unequal_pair()
    seconds = _processor_seconds(lambda: core.compile_model(model, "HETERO:XCPU,CPU"))
    return {"seconds": {"HETERO": [seconds]}, "peak MB": peak_mb()}


def exponent(rows: Sequence[Mapping[str, Any]], part: str) -> Interval | None:
    """Slope of log(seconds) over log(ops) with its 95 % interval; ``None`` for fewer than three points.

    Args:
        rows: With ``ops`` and ``seconds`` by part; every repetition is one point. Models of less than 1,000
            ops are left out where enough others are there.
        part: A key of ``seconds``.
    """
    measured = [row for row in rows if part in row["seconds"]]
    large = [row for row in measured if row["ops"] >= 0.9 * _SMALLEST_FOR_EXPONENT]
    used = large if len(large) > 1 else measured
    points = np.array([(row["ops"], s) for row in used for s in row["seconds"][part]])
    if len(used) < 2 or len(points) < 3 or (points <= 0).any():
        return None
    fit = linregress(*np.log(points.T))
    width = float(t.ppf(0.975, len(points) - 2) * fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - width, float(fit.slope) + width)


def _processor_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _table(kind: str, rows: Sequence[Mapping[str, Any]], slopes: Mapping[str, Interval | None]) -> Table:
    body = [
        (
            f"{row['ops']:,}",
            f"{row['groups']:,}",
            *(_cell(row["seconds"].get(part)) for part in PARTS),
            f"{row['added MB']:.0f}",
            f"{row['peak MB']:.0f}",
            f"{row['HETERO peak MB']:.0f}" if "HETERO peak MB" in row else "-",
        )
        for row in rows
    ]
    found = [
        "-" if slope is None else f"{slope.median:.2f} [{slope.low:.2f}, {slope.high:.2f}]"
        for slope in slopes.values()
    ]
    body.append(("exponent", "", *found, "", "", ""))
    return Table(
        f"{kind}: milliseconds of processor time, median of {_REPEATS} (HETERO once)",
        ("ops", "groups", *PARTS, "added MB", "peak MB", "HETERO peak MB"),
        tuple(body),
        "Added: what our parts need over the model itself.",
    )


def _cell(seconds: Sequence[float] | None) -> str:
    if not seconds:
        return "-"
    return f"{1e3 * median_interval(np.array(seconds)).median:.3g}"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="up to 5,000 ops, two kinds of models")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kinds", nargs="+", choices=tuple(BUILDERS))
    parser.add_argument("--sizes", nargs="+", type=int, metavar="OPS")
    arguments = parser.parse_args()
    print(machine_line())
    print_result(run(arguments.quick, arguments.seed, arguments.kinds, arguments.sizes))


if __name__ == "__main__":
    main()
