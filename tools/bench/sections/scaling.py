"""How every part grows with the size of a model, 100 to 100,000 ops, beside HETERO's own compilation.

A million ops take half an hour for each kind of model and are asked for:
``--with sizes=30000,100000,300000,1000000 kinds=transformer hours=1``.

HETERO and our parts run in processes of their own, so that one that dies or takes too long
is told and the rest is shown. Each kind of model gets its share of the time, and what does not fit is told
too. Times are seconds of processor time of all threads, which is what an idle machine's clock shows or less;
memory is the most that was resident while a part ran. ``read`` and ``clone`` are OpenVINO's own. ``prepare``
is all that comes before the groups: cloning, names, folding and extracting. Above 10,000 ops it also tells
the kinds of ops apart, so that its exponent means something on one side of that only. ``estimate`` asks the
devices (here one, the CPU) what they support and makes the table of a catalogue machine, on which ``solve``,
``solve 3`` (on three devices) and ``overlap`` place the coarse graph; ``simulate`` is one
placement in two halves, which ``annotate`` writes into the model, ``write`` into files as the command does,
and ``explain`` takes apart. ``HETERO`` compiles it for XCPU and CPU. A part's growth exponent is the
slope of log(seconds) over log(ops).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from scipy.stats import linregress, t

import ov_autoplace
from harness.environment import core_of
from harness.process import Pieces
from harness.result import Ratio, Result, Table, interval_cell
from ov_autoplace._base.files import temporary_folder
from ov_autoplace._base.statistics import Interval, median_interval
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.passes import NAMED, run_passes
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.graph.support import supported_ops
from ov_autoplace.plan.fitting import fit
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulator_of
from ov_autoplace.plugin.annotated_files import AnnotatedFiles, save_fitted
from ov_autoplace.solvers import solve
from problems.growing import BUILDERS, UNSEEN

_OURS = ("prepare", "simulate", "solve", "solve 3", "overlap", "annotate", "write", "explain")
PARTS = ("read", "clone", "extract", "coarsen", "estimate", *_OURS, "HETERO")
_NOT_OURS = ("read", "clone", "HETERO")
_SIZES = {True: (100, 1_000, 5_000), False: (100, 1_000, 3_000, 10_000, 30_000, 100_000)}
_KINDS = {True: ("transformer", "unrolled_lstm"), False: tuple(BUILDERS)}
_LARGEST_FOR_HETERO = 30_000  # ops; 50,000 took 160 s
_REPEATS = 3
_HOURS = {True: 0.05, False: 1.0}  # of a run
_TIMEOUT = {True: 60.0, False: 1800.0}  # seconds of a piece
_LONG = 8.0  # processor seconds of a part that is not repeated
# Below, what grows with a model is hidden by what every model costs.
_SMALLEST_FOR_EXPONENT = 1_000
_TARGET = "core-ultra-7-155h"
_SIMULATIONS = 20


def run(
    quick: bool, seed: int, kinds: tuple[str, ...] = (), sizes: tuple[int, ...] = (), hours: float = 0.0
) -> Result:
    """All parts on all sizes.

    Args:
        quick: Up to 5,000 ops, two kinds of models.
        seed: Of the weights.
        kinds: Of models, keys of ``growing.BUILDERS``.
        sizes: Numbers of ops, rising.
        hours: Of the whole run, at most about; 0 for as many as usual.
    """
    kinds, sizes = kinds or _KINDS[quick], sizes or _SIZES[quick]
    tables, ratios, data, remarks = [], [], {}, []
    end = time.perf_counter() + 3600 * (hours or _HOURS[quick])
    for i, kind in enumerate(kinds):
        pieces = Pieces(_TIMEOUT[quick], (end - time.perf_counter()) / (len(kinds) - i))
        rows = _rows(pieces, kind, sizes, seed)
        remarks += pieces.remarks
        slopes = {part: exponent(rows, part) for part in PARTS}
        tables += [_table(kind, rows, slopes), _memory_table(kind, rows)]
        ratios += [
            Ratio(f"{kind}: exponent of {part}", *found, len(_points(rows, part)), "growth")
            for part, found in slopes.items()
            # OpenVINO's own parts are shown, not guarded.
            if found is not None and part not in _NOT_OURS
        ]
        data[kind] = rows
    return Result(
        "Speed of every part against graph size", tuple(tables), tuple(ratios), (), tuple(remarks), data
    )


def _rows(pieces: Pieces, kind: str, sizes: Sequence[int], seed: int) -> list[dict[str, Any]]:
    """Everything about one kind of model; a piece that failed is not tried on what is larger."""
    rows = []
    left = {"our parts": measure, "HETERO's compilation": measure_hetero}
    for size in sizes:
        row: dict[str, Any] = {"seconds": {}, "peaks": {}}
        if size > _LARGEST_FOR_HETERO:
            left.pop("HETERO's compilation", None)
        for piece, function in tuple(left.items()):
            title = f"{kind} of {size:,} ops: {piece}"
            outcome = pieces(title, function, kind=kind, num_ops=size, seed=seed)
            if outcome is None:
                del left[piece]
                continue
            both = {key: row[key] | outcome[key] for key in ("seconds", "peaks")}
            row |= {**outcome, **both}
        if row["seconds"]:
            rows.append(row)
    return rows


def measure(kind: str, num_ops: int, seed: int, parts: Sequence[str] = _OURS) -> dict[str, Any]:
    """Our parts on one model: lists of processor seconds, sizes and memory.

    Args:
        kind: A key of ``growing.BUILDERS``.
        num_ops: Of the model, about.
        seed: Of the weights.
        parts: What is measured besides reading, cloning, extracting, coarsening and estimating.
    """
    core = core_of("alias")
    with temporary_folder() as folder:
        ov.serialize(BUILDERS[kind](num_ops, np.random.default_rng(seed)), folder / "net.xml")
        timer = _Timer()
        model = timer.repeated("read", lambda: core.read_model(folder / "net.xml"))
        run_passes(model, NAMED)
        graph = timer.repeated("extract", lambda: ov_autoplace.extract(model))
        coarse = timer.repeated("coarsen", lambda: coarsen(graph))

        def estimate() -> CostTable:
            supported_ops(core, model, graph.names, ("CPU",))
            return _table_of(coarse)

        table = timer.repeated("estimate", estimate)
        timer.repeated("clone", lambda: model.clone() and None)
        halves = (np.arange(len(table)) >= len(table) // 2).astype(np.int32)
        simulator = simulator_of(table)
        three = analytic_table(coarse, load_target(_TARGET), ("GPU", "CPU", "NPU"))
        placement = Placement.of_groups(table, halves)
        files = AnnotatedFiles.of(folder, "net")
        calls: dict[str, Callable[[], object]] = {
            "prepare": lambda: prepare(model),
            "simulate": lambda: [simulator.simulate(halves) for _ in range(_SIMULATIONS)],
            # A copy of a table has nothing derived from it yet.
            "solve": lambda: solve(replace(table)),
            "solve 3": lambda: solve(replace(three)),
            "overlap": lambda: solve(replace(table), objective="overlap"),
            "annotate": lambda: ov_autoplace.annotate(model, placement),
            "write": lambda: save_fitted(fit(model, placement), files, in_place=True),
            "explain": lambda: HeteroExplanation(replace(table), halves).all_groups(),
        }
        for part in parts:
            timer.repeated(part, calls[part])
    seconds = timer.seconds
    if "simulate" in seconds:
        seconds["simulate"] = [taken / _SIMULATIONS for taken in seconds["simulate"]]
    return {"ops": len(graph), "groups": len(coarse), "seconds": seconds, "peaks": timer.peaks}


def measure_hetero(kind: str, num_ops: int, seed: int) -> dict[str, Any]:
    """HETERO's compilation of the model in two halves."""
    model = BUILDERS[kind](num_ops, np.random.default_rng(seed))
    ops = [op.friendly_name for op in model.get_ordered_ops()]
    graph = ov_autoplace.extract(model)
    place = {name: ("XCPU", "CPU")[i >= len(graph) // 2] for i, name in enumerate(graph.names)}
    ov_autoplace.annotate(model, {name: place[name] for name in ops if name in place})
    core, timer = core_of("alias"), _Timer()
    timer.once("HETERO", lambda: core.compile_model(model, "HETERO:XCPU,CPU"))
    return {"ops": len(graph), "seconds": timer.seconds, "peaks": timer.peaks}


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


class _Timer:
    """Processor seconds of parts, each repetition's, and the most memory that was resident while they ran."""

    def __init__(self) -> None:
        self.seconds: dict[str, list[float]] = {}
        self.peaks: dict[str, float] = {}

    def repeated(self, part: str, call: Callable[[], Any]) -> Any:
        """Measure a part; returns what its last call does."""
        answer = self.once(part, call)
        # The first call loads libraries: it counts only where that is little.
        if self.seconds[part][0] <= _LONG:
            self.seconds[part].clear()
            for _ in range(_REPEATS):
                del answer
                answer = self.once(part, call)
        return answer

    def once(self, part: str, call: Callable[[], Any]) -> Any:
        """Measure one call."""
        _forget_peak()
        start = time.process_time()
        answer = call()
        self.seconds.setdefault(part, []).append(time.process_time() - start)
        self.peaks[part] = max(self.peaks.get(part, 0.0), peak_mb())
        return answer


def _forget_peak() -> None:
    """Let the peak of this process start anew from what is resident now."""
    with suppress(OSError):  # where that cannot be, peaks are those since the start
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def peak_mb() -> float:
    """Largest resident memory of this process since it was last forgotten; Linux reports kilobytes."""
    status = Path("/proc/self/status").read_text(encoding="ascii", errors="replace")
    return int(status.partition("VmHWM:")[2].split(maxsplit=1)[0]) / 1024


def _table_of(graph: CoarseGraph) -> CostTable:
    return analytic_table(graph, load_target(_TARGET), ("GPU", "CPU"))


def _table(kind: str, rows: Sequence[Mapping[str, Any]], slopes: Mapping[str, Interval | None]) -> Table:
    body = [
        (
            f"{row['ops']:,}",
            f"{row['groups']:,}" if "groups" in row else "-",
            *(_cell(row["seconds"].get(part)) for part in PARTS),
        )
        for row in rows
    ]
    found = ["-" if slope is None else interval_cell(slope, 2) for slope in slopes.values()]
    body.append(("exponent", "", *found))
    return Table(
        f"{kind}: milliseconds of processor time, median of {_REPEATS} (HETERO, and what takes "
        f"more than {_LONG:.0f} s, once)",
        ("ops", "groups", *PARTS),
        body,
        "Nothing was tuned to this kind." if kind in UNSEEN else "",
    )


def _memory_table(kind: str, rows: Sequence[Mapping[str, Any]]) -> Table:
    body = [
        (f"{row['ops']:,}", *(f"{row['peaks'][part]:.0f}" if part in row["peaks"] else "-" for part in PARTS))
        for row in rows
    ]
    return Table(f"{kind}: MB resident at most", ("ops", *PARTS), body)


def _cell(seconds: Sequence[float] | None) -> str:
    if not seconds:
        return "-"
    return f"{1e3 * median_interval(np.array(seconds)).median:.3g}"
