"""What the regression gate can hold any machine to: ratios that depend on the code, or hardly on the machine.

Placement quality of solvers on fixed tables; how many of HETERO's subgraph counts our rules
repeat; how the processor time of our parts grows with graph size. Less than two minutes on two cores.

The counts are of random placements, half of them drawn independently, half in runs: whole co-location groups
of zoo models move; random models (``tests/random_models.py``) are placed op by op, constants and parameters
too. Placements that ``count_subgraphs`` refuses, because HETERO cannot run them, are counted apart.
``--with models=all placements=80 random_models=6`` is the long check.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import openvino as ov

import zoo
from harness import GRAPHS
from harness.environment import PAIRS, core_of
from harness.methods import SINGLE, Comparison, Instance, compare, solver
from harness.process import Pieces
from harness.result import Ratio, Result, Table, exact_ratio, interval_cell
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.passes import NAMED, formed
from ov_autoplace.plan.annotation import set_affinities
from ov_autoplace.plan.fitting import count_subgraphs
from problems.tables import coarse_graph, on_random_machine
from random_models import random_model
from rivals import RivalOptions
from sections.scaling import exponent, measure

SOLVERS = ("portfolio", "mincut", "expansion", "local", "greedy")
_MACHINES, _MACHINES_SEED = 3, 7_000_003
_MOST_GROUPS = 400
_COUNTED = ("mobilenet_v2", "bert_base", "two_tower", "inception_v3", "lstm_lm")
_DEVICES = PAIRS["alias"]
_GROWING, _SIZES = "transformer", (1_000, 2_000, 4_000)
_GROWING_PARTS = ("simulate", "solve", "annotate")
_GUARDED = ("extract", "coarsen", *_GROWING_PARTS)


def run(
    quick: bool,
    seed: int,
    models: tuple[str, ...] = _COUNTED,
    placements: int = 3,
    random_models: int = 0,
) -> Result:
    """The gate's ratios.

    Args:
        quick: Makes no difference, so that every run can be compared with every other.
        seed: Of solvers and random placements.
        models: Of the zoo, in which subgraphs are counted, or ``all``.
        placements: Of each of them.
        random_models: How many random models are counted in besides.
    """
    counted = list(zoo.NAMES if "all" in models else models)
    pieces = Pieces()
    methods = {SINGLE: solver("single"), **{name: solver(name) for name in SOLVERS}}
    found = compare("fixed tables", list(instances(seed)), methods, RivalOptions(seed=seed))
    tables, ratios = [found.table()], quality(found)
    what = {"models": counted, "placements": placements, "random_models": random_models}
    if (pairs := pieces("subgraphs", compare_counts, seed=seed, **what)) is not None:
        table, ratio = counts(pairs)
        tables.append(table)
        ratios.append(ratio)
    if (rows := pieces("growth", grow, seed=seed)) is not None:
        table, of_growth = _growth(rows)
        tables.append(table)
        ratios += of_growth
    return Result(
        title="Ratios of the regression gate",
        tables=tuple(tables),
        ratios=tuple(ratios),
        cases=tuple(found.cases([SINGLE])),
        remarks=tuple(pieces.remarks),
    )


def instances(seed: int) -> Iterator[Instance]:
    """Small networks of the zoo on machines whose devices suit different ops, and published cost graphs."""
    for i, name in enumerate(zoo.NAMES):
        graph = coarse_graph(zoo.build(name))
        for machine in range(_MACHINES):
            table = on_random_machine(graph, 2, np.random.default_rng((_MACHINES_SEED, seed, i, machine)))
            yield Instance(f"{name} on random machine {machine}", name, table)
    for path in sorted(GRAPHS.glob("*_inference.json")):
        table = load_dnn_partitioning(path, 1)
        if len(table) <= _MOST_GROUPS:
            yield Instance(path.stem, path.stem, table)


def quality(found: Comparison) -> list[Ratio]:
    """Of each solver, the geometric mean of its latencies over the best single device's."""
    ratios = []
    for name in SOLVERS:
        over = found.latency(name) / found.latency(SINGLE)
        over = over[np.isfinite(over)]  # HETERO would part what has to stay together in a greedy answer
        mean = float(np.exp(np.log(over).mean()))
        ratios.append(exact_ratio(f"{name} over the best single device", mean, len(over)))
    return ratios


def compare_counts(
    seed: int, models: list[str], placements: int, random_models: int
) -> dict[str, list[list[int]]]:
    """Pairs of our and of HETERO's number of subgraphs by model; none of what is refused."""
    core = core_of("alias")
    for device in _DEVICES:
        core.set_property(device, {"SNIPPETS_MODE": "DISABLE"})
    found: dict[str, list[list[int]]] = {}
    for i, name in enumerate(models):
        model = formed(zoo.build(name), NAMED)
        group_of = coarsen(extract(model)).group_of
        found[name] = _count(core, model, group_of, placements, (seed, i))
    for i in range(random_models):
        model = random_model(seed + i, size=10 + 10 * i, shared_constants=i % 4)
        group_of = np.arange(len(model.get_ordered_ops()))
        found[f"random, {10 + 10 * i} ops"] = _count(
            core, model, group_of, placements, (seed, len(models) + i)
        )
    return found


def _count(
    core: ov.Core, model: ov.Model, group_of: np.ndarray, placements: int, seed: tuple[int, int]
) -> list[list[int]]:
    random = np.random.default_rng(seed)
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    pairs = []
    for i in range(placements):
        change = 0.5 if i % 2 else random.uniform(0.02, 0.3)
        device = np.cumsum(random.random(int(group_of.max()) + 1) < change) % 2
        device_of = {op: _DEVICES[device[g]] for op, g in zip(names, group_of.tolist(), strict=True)}
        try:
            ours = count_subgraphs(model, device_of)
        except PlacementError:
            pairs.append([])
            continue
        set_affinities(model, device_of)
        compiled = core.compile_model(model, f"HETERO:{','.join(_DEVICES)}")
        pairs.append([int(ours), int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS"))])
    return pairs


def counts(found: dict[str, list[list[int]]]) -> tuple[Table, Ratio]:
    """What :func:`compare_counts` found comes to."""
    ran = {name: [pair for pair in pairs if pair] for name, pairs in found.items()}
    every = [pair for pairs in ran.values() for pair in pairs]
    wrong = sum(ours != real for ours, real in every)
    rows = []
    for name, pairs in ran.items():
        differ = ", ".join(f"{ours} / {real}" for ours, real in pairs if ours != real)
        most = max((ours for ours, _ in pairs), default=0)
        rows.append((name, len(pairs), len(found[name]) - len(pairs), most, differ or "-"))
    columns = ("model", "counted", "refused", "most subgraphs", "ours / HETERO's where they differ")
    title = f"Subgraphs counted by our rules and by HETERO: {len(every) - wrong} of {len(every)} equal"
    # 1 plus the share, so that a first wrong count is a finite step.
    share = 1 + wrong / max(len(every), 1)
    return Table(title, columns, rows), exact_ratio("1 + share of wrong subgraph counts", share, len(every))


def grow(seed: int) -> list[dict[str, Any]]:
    """Processor seconds of our parts on growing models."""
    return [measure(_GROWING, size, seed, _GROWING_PARTS) for size in _SIZES]


def _growth(rows: list[dict[str, Any]]) -> tuple[Table, list[Ratio]]:
    slopes = {part: exponent(rows, part) for part in _GUARDED}
    ratios = [
        Ratio(f"growth of {part} with ops", *slope, len(rows), "growth")
        for part, slope in slopes.items()
        if slope is not None
    ]
    body = [
        (
            part,
            *(f"{1e3 * float(np.median(row['seconds'][part])):.3g}" for row in rows),
            "-" if slope is None else interval_cell(slope, 2),
        )
        for part, slope in slopes.items()
    ]
    columns = ("part", *(f"{row['ops']:,} ops" for row in rows), "exponent")
    return Table(f"Milliseconds of processor time, {_GROWING}", columns, body), ratios
