"""How every part grows with the size of a model, 100 to 50,000 ops, beside HETERO's own compilation.

The policy, HETERO and our other parts run in processes of their own, so that one that dies or takes too long
is told and the rest is shown. A whole run takes at most about 17 minutes: each kind of model gets its share
of them, and what does not fit is told too. Times are seconds of processor time of all threads, which is what
an idle machine's clock shows or less. ``clone`` is OpenVINO's own walk over the same ops, as a yardstick.
``solve`` and ``policy`` place the coarse graph on the analytic costs of a catalogue machine, ``simulate`` is
one placement in two halves, ``annotate`` writes it into a copy of the model, and ``HETERO`` compiles that for
XCPU and CPU. A part's growth exponent is the slope of log(seconds) over log(ops).
"""

from __future__ import annotations

import resource
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.stats import linregress, t

import ov_autoplace
from harness.environment import core_of
from harness.process import Failure, in_child
from harness.result import Ratio, Result, Table, interval_cell
from ov_autoplace._base.statistics import Interval, median_interval
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulator_of
from ov_autoplace.solvers import solve
from problems.growing import BUILDERS

__all__ = ["PARTS", "exponent", "measure", "measure_hetero", "measure_policy", "rows_within", "run"]

PARTS = ("clone", "extract", "coarsen", "simulate", "solve", "policy", "annotate", "HETERO")
_SIZES = {True: (100, 1_000, 5_000), False: (100, 300, 1_000, 3_000, 10_000, 20_000, 50_000)}
_KINDS = {True: ("transformer", "unrolled_lstm"), False: tuple(BUILDERS)}
_REPEATS = 3
_WHOLE = {True: 150.0, False: 1000.0}  # seconds of a run
_TIMEOUT = {True: 60.0, False: 240.0}  # of a piece; HETERO takes 160 s for 50,000 ops
_LONG = 8.0  # processor seconds of a part that is not repeated
# Below, what grows with a model is hidden by what every model costs.
_SMALLEST_FOR_EXPONENT = 1_000
_TARGET = "core-ultra-7-155h"
_SIMULATIONS = 20
_MEMORY = ("added MB", "peak MB", "policy peak MB", "HETERO peak MB")


def run(quick: bool, seed: int, kinds: tuple[str, ...] = (), sizes: tuple[int, ...] = ()) -> Result:
    """All parts on all sizes.

    Args:
        quick: Up to 5,000 ops, two kinds of models.
        seed: Of the weights.
        kinds: Of models, keys of ``growing.BUILDERS``.
        sizes: Numbers of ops, rising.
    """
    kinds, sizes = kinds or _KINDS[quick], sizes or _SIZES[quick]
    tables, ratios, data, remarks = [], [], {}, []
    end = time.perf_counter() + _WHOLE[quick]
    for i, kind in enumerate(kinds):
        share = (end - time.perf_counter()) / (len(kinds) - i)
        rows, missing = rows_within(share, _TIMEOUT[quick], kind, sizes, seed)
        remarks += missing
        slopes = {part: exponent(rows, part) for part in PARTS}
        tables.append(_table(kind, rows, slopes))
        ratios += [
            Ratio(f"{kind}: exponent of {part}", *found, len(_points(rows, part)), "growth")
            for part, found in slopes.items()
            # OpenVINO's own parts are shown, not guarded.
            if found is not None and part not in ("clone", "HETERO")
        ]
        data[kind] = rows
    return Result(
        "Speed of every part against graph size", tuple(tables), tuple(ratios), (), tuple(remarks), data
    )


def rows_within(
    seconds: float,
    timeout: float,
    kind: str,
    sizes: Sequence[int],
    seed: int,
    call: Callable[..., Any] = in_child,
    clock: Callable[[], float] = time.perf_counter,
) -> tuple[list[dict[str, Any]], list[str]]:
    """Everything about one kind of model, as far as the time allows; and what is missing, as sentences.

    Args:
        seconds: For all of it.
        timeout: Seconds of one piece. A piece that takes longer is not tried on what comes after.
        kind: Of models, a key of ``growing.BUILDERS``.
        sizes: Numbers of ops, rising.
        seed: Of the weights.
        call: Runs a piece.
        clock: Tells the time.
    """
    rows, missing = [], []
    pieces = {
        "our parts": measure,
        "the policy": measure_policy,
        "HETERO's compilation": measure_hetero,
    }
    end = clock() + seconds
    for size in sizes:
        row: dict[str, Any] = {"seconds": {}}
        for piece, function in tuple(pieces.items()):
            start = clock()
            limit = min(timeout, end - start)
            outcome: Any = Failure("no time was left")
            if limit > 0:
                outcome = call(function, {"kind": kind, "num_ops": size, "seed": seed}, timeout=limit)
            if not isinstance(outcome, Failure):
                row |= {**outcome, "seconds": row["seconds"] | outcome["seconds"]}
                continue
            reason = outcome.reason
            if clock() - start >= limit:
                del pieces[piece]
                reason += "; larger ones were not tried"
            missing.append(f"{kind} of {size:,} ops: {piece} not measured: {reason}")
        if row["seconds"]:
            rows.append(row)
    return rows, missing


def measure(
    kind: str, num_ops: int, seed: int, parts: Sequence[str] = ("simulate", "solve", "annotate")
) -> dict[str, Any]:
    """Our parts on one model: lists of processor seconds, sizes and memory.

    Args:
        kind: A key of ``growing.BUILDERS``.
        num_ops: Of the model, about.
        seed: Of the weights.
        parts: What is measured besides ``clone``, ``extract`` and ``coarsen``.
    """
    model = BUILDERS[kind](num_ops, np.random.default_rng(seed))
    before = peak_mb()
    graph = ov_autoplace.extract(model)
    coarse = coarsen(graph)
    seconds: dict[str, list[float]] = {
        "extract": _repeated(lambda: ov_autoplace.extract(model)),
        "coarsen": _repeated(lambda: coarsen(graph)),
    }
    seconds["clone"] = _repeated(model.clone)
    table = _table_of(coarse)
    halves = (np.arange(len(table)) >= len(table) // 2).astype(np.int32)
    simulator = simulator_of(table)

    def simulate() -> None:
        for _ in range(_SIMULATIONS):
            simulator.simulate(halves)

    placement = Placement.of_groups(table, halves)
    calls: dict[str, tuple[Callable[[], object], int]] = {
        "simulate": (simulate, _SIMULATIONS),
        # A copy of a table has nothing derived from it yet.
        "solve": (lambda: solve(replace(table)), 1),
        "annotate": (lambda: ov_autoplace.annotate(model, placement), 1),
    }
    for part in parts:
        call, times = calls[part]
        seconds[part] = [taken / times for taken in _repeated(call)]
    return {
        "ops": len(graph),
        "groups": len(coarse),
        "seconds": seconds,
        "added MB": peak_mb() - before,
        "peak MB": peak_mb(),
    }


def measure_policy(kind: str, num_ops: int, seed: int) -> dict[str, Any]:
    """The policy's placement of the coarse graph."""
    graph = ov_autoplace.extract(BUILDERS[kind](num_ops, np.random.default_rng(seed)))
    table = _table_of(coarsen(graph))
    seconds = {"policy": _repeated(lambda: solve(replace(table), "policy"))}
    return {"ops": len(graph), "groups": len(table), "seconds": seconds, "policy peak MB": peak_mb()}


def measure_hetero(kind: str, num_ops: int, seed: int) -> dict[str, Any]:
    """HETERO's compilation of the model in two halves."""
    model = BUILDERS[kind](num_ops, np.random.default_rng(seed))
    ops = [op.friendly_name for op in model.get_ordered_ops()]
    graph = ov_autoplace.extract(model)
    place = {name: ("XCPU", "CPU")[i >= len(graph) // 2] for i, name in enumerate(graph.names)}
    ov_autoplace.annotate(model, {name: place[name] for name in ops if name in place})
    core = core_of("alias")
    seconds = _processor_seconds(lambda: core.compile_model(model, "HETERO:XCPU,CPU"))
    return {"ops": len(graph), "seconds": {"HETERO": [seconds]}, "HETERO peak MB": peak_mb()}


def exponent(rows: Sequence[Mapping[str, Any]], part: str) -> Interval | None:
    """Slope of log(seconds) over log(ops) with its 95 % interval; ``None`` for fewer than three points.

    Args:
        rows: With ``ops`` and ``seconds`` by part; every repetition is one point. Models of less than 1,000
            ops are left out where enough others are there.
        part: A key of ``seconds``.
    """
    points = _points(rows, part)
    if len(set(points[:, 0])) < 2 or len(points) < 3 or (points <= 0).any():
        return None
    fit = linregress(*np.log(points.T))
    width = float(t.ppf(0.975, len(points) - 2) * fit.stderr)
    return Interval(float(fit.slope), float(fit.slope) - width, float(fit.slope) + width)


def _points(rows: Sequence[Mapping[str, Any]], part: str) -> np.ndarray:
    """Ops and seconds of what an exponent is fitted to, ``float64[n, 2]``."""
    measured = [row for row in rows if part in row["seconds"]]
    large = [row for row in measured if row["ops"] >= 0.9 * _SMALLEST_FOR_EXPONENT]
    used = large if len(large) > 1 else measured
    return np.array([(row["ops"], s) for row in used for s in row["seconds"][part]]).reshape(-1, 2)


def peak_mb() -> float:
    """Largest resident memory of this process so far; Linux reports kilobytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _table_of(graph: CoarseGraph) -> CostTable:
    return analytic_table(graph, load_target(_TARGET), ("GPU", "CPU"))


def _repeated(call: Callable[[], object]) -> list[float]:
    """Processor seconds of each repetition."""
    # The first call loads libraries and compiles the policy; it counts only where that is little beside it.
    first = _processor_seconds(call)
    return [first] if first > _LONG else [_processor_seconds(call) for _ in range(_REPEATS)]


def _processor_seconds(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def _table(kind: str, rows: Sequence[Mapping[str, Any]], slopes: Mapping[str, Interval | None]) -> Table:
    body = [
        (
            f"{row['ops']:,}",
            f"{row['groups']:,}" if "groups" in row else "-",
            *(_cell(row["seconds"].get(part)) for part in PARTS),
            *(f"{row[key]:.0f}" if key in row else "-" for key in _MEMORY),
        )
        for row in rows
    ]
    found = ["-" if slope is None else interval_cell(slope, 2) for slope in slopes.values()]
    body.append(("exponent", "", *found, *[""] * len(_MEMORY)))
    return Table(
        f"{kind}: milliseconds of processor time, median of {_REPEATS} (HETERO, and what takes "
        f"more than {_LONG:.0f} s, once)",
        ("ops", "groups", *PARTS, *_MEMORY),
        body,
        "Added: what our parts but the policy need over the model itself.",
    )


def _cell(seconds: Sequence[float] | None) -> str:
    if not seconds:
        return "-"
    return f"{1e3 * median_interval(np.array(seconds)).median:.3g}"
