"""What the regression gate can hold any machine to: ratios that depend on the code, or hardly on the machine.

    python tools/bench/suite_gate.py [--seed 0]

Placement quality of solvers and the policy on fixed tables; how many of HETERO's subgraph counts the
simulator's rules repeat; how the processor time of our parts grows with graph size. Less than two minutes
on two cores.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from common import ROOT, machine_line, unequal_pair
from scaling import exponent, measure
from suite_process import Failure, in_child
from suite_report import print_result
from suite_result import Case, Ratio, Result, Table, exact_ratio

import ov_autoplace
import zoo
from model_checks import random_regions
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.solvers import solve
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload

__all__ = ["count_subgraphs", "place_tables", "run", "tables"]

SOLVERS = ("auto", "mincut", "expansion", "local", "greedy", "policy")
_MACHINES, _MACHINES_SEED = 3, 7_000_003
# All devices run all ops, at costs that are true, and hand-overs are cheap enough for placing to matter.
_RANDOM = RandomTargets(crossing=(-1.5, 0.5), unsupported=0.0, estimate=0.0, untyped=0.0)
_GRAPHS = ROOT / "tests" / "data" / "dnn-partitioning"
_MOST_GROUPS = 400
_COUNTED = ("mobilenet_v2", "bert_base", "two_tower", "inception_v3", "lstm_lm")
_REGIONS = (2, 5, 12)
_GROWING, _SIZES = "transformer", (1_000, 2_000, 4_000)
_GROWING_PARTS = ("simulate", "solve", "annotate")
_GUARDED = ("extract", "coarsen", *_GROWING_PARTS)


def run(quick: bool, seed: int) -> Result:
    """The gate's ratios.

    Args:
        quick: Makes no difference, so that every run can be compared with every other.
        seed: Of solvers and random placements.
    """
    pieces: tuple[tuple[str, Callable[[Any], _Part]], ...] = (
        ("place_tables", _quality),
        ("count_subgraphs", _counts),
        ("grow", _growth),
    )
    tables_, ratios, remarks, losing, winning = [], [], [], [], []
    for piece, part_of in pieces:
        outcome = in_child(f"suite_gate:{piece}", {"seed": seed})
        if isinstance(outcome, Failure):
            remarks.append(f"{piece}: did not end: {outcome.reason}")
            continue
        part = part_of(outcome)
        tables_.append(part[0])
        ratios += part[1]
        losing += part[2]
        winning += part[3]
    return Result(
        title="Ratios of the regression gate",
        command=f"python tools/bench/suite_gate.py --seed {seed}",
        tables=tuple(tables_),
        ratios=tuple(ratios),
        losing=tuple(sorted(losing, key=lambda case: -case.ratio)),
        winning=tuple(sorted(winning, key=lambda case: case.ratio)),
        remarks=tuple(remarks),
    )


_Part = tuple[Table, list[Ratio], list[Case], list[Case]]


def tables(seed: int) -> Iterator[tuple[str, CostTable]]:
    """Small networks of the zoo on machines whose devices suit different ops, and published cost graphs."""
    for i, name in enumerate(zoo.NAMES):
        model = zoo.build(name)
        fold_static_shapes(model)
        workload = Workload.of(coarsen(extract(model)), name, name)
        for machine in range(_MACHINES):
            random = np.random.default_rng((_MACHINES_SEED, seed, i, machine))
            table = random_task(workload, random, _RANDOM, 2).true
            yield f"{name} on random machine {machine}", table
    for path in sorted(_GRAPHS.glob("*_inference.json")):
        table = load_dnn_partitioning(path, 1)
        if len(table) <= _MOST_GROUPS:
            yield path.stem, table


def place_tables(seed: int) -> dict[str, dict[str, float]]:
    """Simulated seconds of the best single device and of every solver, and the proven bound, by table."""
    found = {}
    for name, table in tables(seed):
        single = solve(table, "single", seed=seed).latency_seconds
        rows = {solver: solve(table, solver, seed=seed) for solver in SOLVERS}
        bounds = [p.lower_bound_seconds for p in rows.values() if p.lower_bound_seconds is not None]
        found[name] = {"single": single, "bound": max([0.0, *bounds])}
        found[name] |= {solver: placement.latency_seconds for solver, placement in rows.items()}
    return found


def _quality(found: dict[str, dict[str, float]]) -> _Part:
    rows, ratios, losing, winning = [], [], [], []
    for solver in SOLVERS:
        over = np.array([row[solver] / row["single"] for row in found.values()])
        gap = np.array([row[solver] / max(row["bound"], 1e-12) for row in found.values()])
        optimal = int((gap <= 1 + 1e-9).sum())
        mean = float(np.exp(np.log(over).mean()))
        rows.append(
            (
                solver,
                f"{mean:.4f}",
                f"{over.max():.4f}",
                str(int((over < 1 - 1e-9).sum())),
                str(int((over > 1 + 1e-9).sum())),
                str(optimal),
            )
        )
        kind = "decided" if solver == "policy" else "exact"
        ratios.append(exact_ratio(f"{solver} over the best single device", mean, len(over), kind))
        if solver in ("auto", "policy"):
            for name, ratio in zip(found, over.tolist(), strict=True):
                case = Case(f"{solver} on {name}", "best single device", ratio)
                if abs(ratio - 1) > 1e-9:
                    (losing if ratio > 1 else winning).append(case)
    table = Table(
        f"Simulated latency over the best single device's, {len(found)} tables",
        ("solver", "geometric mean", "worst", "faster", "slower", "proven optimal"),
        tuple(rows),
    )
    return table, ratios, losing, winning


def count_subgraphs(seed: int) -> dict[str, list[list[int]]]:
    """Pairs of the simulator's and HETERO's number of subgraphs, by model."""
    found: dict[str, list[list[int]]] = {}
    for name in _COUNTED:
        model = zoo.build(name)
        for i, regions in enumerate(_REGIONS):
            device_of = random_regions(model, ("XCPU", "CPU"), regions, seed + i)
            annotated = model.clone()
            ov_autoplace.annotate(annotated, device_of)
            counted = ov_autoplace.count_subgraphs(annotated, device_of)
            compiled = unequal_pair().compile_model(annotated, "HETERO:XCPU,CPU")
            real = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
            found.setdefault(name, []).append([int(counted), int(real)])
    return found


def _counts(found: dict[str, list[list[int]]]) -> _Part:
    pairs = [pair for counts in found.values() for pair in counts]
    wrong = sum(counted != real for counted, real in pairs)
    table = Table(
        f"Subgraphs counted by our rules and by HETERO: {len(pairs) - wrong} of {len(pairs)} equal",
        ("model", "ours / HETERO's"),
        tuple((name, ", ".join(f"{a} / {b}" for a, b in counts)) for name, counts in found.items()),
    )
    # 1 plus the share, so that a first wrong count is a finite step.
    return (
        table,
        [exact_ratio("1 + share of wrong subgraph counts", 1 + wrong / len(pairs), len(pairs))],
        [],
        [],
    )


def grow(seed: int) -> list[dict[str, Any]]:
    """Processor seconds of our parts on growing models."""
    return [measure(_GROWING, size, seed, _GROWING_PARTS) for size in _SIZES]


def _growth(rows: list[dict[str, Any]]) -> _Part:
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
            "-" if slope is None else f"{slope.median:.2f} [{slope.low:.2f}, {slope.high:.2f}]",
        )
        for part, slope in slopes.items()
    ]
    columns = ("part", *(f"{row['ops']:,} ops" for row in rows), "exponent")
    return Table(f"Milliseconds of processor time, {_GROWING}", columns, tuple(body)), ratios, [], []


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    start = time.perf_counter()
    print(machine_line())
    print_result(run(True, arguments.seed))
    print(f"{time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
