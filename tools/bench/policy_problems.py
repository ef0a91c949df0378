"""The placement problems that the learned policy is judged on, and the best placements known for them.

Nothing here was trained on: the networks are of the held-out families (``zoo.HELD_OUT_FAMILIES``), the
machines are random ones from seeds of their own, or those of the catalogue, which training has never seen.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Literal

import numpy as np
import openvino as ov
from common import ROOT  # noqa: F401  # importing it makes tools/ importable
from rich.progress import track

import zoo
from ov_autoplace._base.files import write_text_atomically
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.solvers import Constraints, solve
from ov_autoplace.training.examples import by_family
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload, load_folder
from workloads import write_workloads

__all__ = [
    "HELD_OUT_SEED",
    "BestKnown",
    "Problem",
    "Solved",
    "catalogue_problems",
    "held_out_workloads",
    "random_problems",
    "real_models",
    "solve_all",
]

HELD_OUT_SEED = 2_000_003
"""Random machine i with D devices comes from the seed ``(HELD_OUT_SEED, D, i)``. Training draws from
``(seed, number)`` with small seeds, and validates with 1,000,003."""

PAIRS = {
    2: (
        ("i9-12900k-flex-170", ("GPU", "CPU")),
        ("core-ultra-7-155h", ("GPU", "CPU")),
        ("core-ultra-7-155h", ("NPU", "CPU")),
    ),
    3: (("core-ultra-7-155h", ("GPU", "NPU", "CPU")),),
}
"""Machines of the catalogue by number of devices."""

_NAMES = {
    "gnmt": "gnmt",
    "bert": "bert_base",
    "vit": "vit_base",
    "amoebanet": "amoebanet",
    "inception_v3": "inception_v3",
    "resnet": "resnet50",
    "unet": "unet",
}
_SCALED_OPS = (300, 1500)  # of further networks of each family, with random sizes
_SEEDS = (0, 1, 2)  # of the longer searches
_PROVEN = 1e-9


@dataclass(frozen=True, eq=False)
class Problem:
    """A network on a machine.

    Attributes:
        name, family: Of the network and the machine.
        true: What placements are scored on.
        shown: What is read to place; the same table unless it is an estimate.
    """

    name: str
    family: str
    true: CostTable
    shown: CostTable


@dataclass(frozen=True)
class BestKnown:
    """What the solvers know of a table, in seconds.

    Attributes:
        seconds: Of the fastest placement that was found.
        bound: Proven below every placement.
        usual: Of the default solver's answer, without more time.
    """

    seconds: float
    bound: float
    usual: float

    @property
    def is_proven(self) -> bool:
        """Whether no placement can be faster."""
        return self.seconds <= self.bound * (1 + _PROVEN)


@dataclass(frozen=True, eq=False)
class Solved:
    """A problem with what is known about it."""

    problem: Problem
    best: BestKnown


def held_out_workloads(folder: Path) -> list[Workload]:
    """The workloads of a folder; it is written (as by ``tools/workloads.py``) where it does not exist."""
    if not folder.exists():
        write_workloads(folder, "held-out", 120, 0, seed=0, smallest=5, largest=800)
    return [w for w in load_folder(folder) if w.family in zoo.HELD_OUT_FAMILIES]


def random_problems(
    workloads: Sequence[Workload], count: int, devices: int, *, estimates: bool = False
) -> list[Problem]:
    """Held-out networks on random machines; families take turns, and so do the networks of each.

    Args:
        workloads: Of held-out families.
        count: How many problems.
        devices: Devices of each machine.
        estimates: Whether the table that is read holds estimates of the true one.
    """
    families = by_family(workloads)
    targets = RandomTargets(estimate=float(estimates), untyped=0.0)
    problems = []
    for i in range(count):
        family = families[i % len(families)]
        workload = family[i // len(families) % len(family)]
        random = np.random.default_rng((HELD_OUT_SEED, devices, i))
        while True:
            task = random_task(workload, random, targets, devices)
            try:
                Constraints.of(task.true)
            except PlacementError:
                continue  # units whose groups have no device in common
            break
        problems.append(Problem(f"{workload.name} on machine {i}", workload.family, task.true, task.shown))
    return problems


def real_models(
    full: bool = True, weights: Literal["random", "untouched"] = "random"
) -> Iterator[tuple[str, str, ov.Model]]:
    """Name, family and model of the zoo's held-out networks, small and full."""
    for family in zoo.HELD_OUT_FAMILIES:
        name = _NAMES[family]
        yield f"{name} (small)", family, zoo.build(name, "small", weights=weights)
        if full:
            yield name, family, zoo.build(name, "full", weights=weights)


def _scaled_models() -> Iterator[tuple[str, str, ov.Model]]:
    """Further held-out networks, with random sizes."""
    for family in zoo.HELD_OUT_FAMILIES:
        for num_ops in _SCALED_OPS:
            model = zoo.build_scaled(family, num_ops, HELD_OUT_SEED)
            yield f"{family} ({num_ops} ops)", family, model


def catalogue_problems(devices: int, scaled: bool = True) -> list[Problem]:
    """Held-out networks on the machines of the catalogue, whose figures are taken as the truth.

    The tables are those of ``annotate``, with the wiring of their ops. What a policy is shown says so: it is
    marked as an estimate, as it would be for a user.
    """
    problems = []
    for title, family, model in (*real_models(weights="untouched"), *(_scaled_models() if scaled else ())):
        fold_static_shapes(model)
        coarse = coarsen(extract(model))
        for target, names in PAIRS[devices]:
            shown = analytic_table(coarse, load_target(target), names)
            # The policy hedges against errors of an estimate, and here there are none.
            true = replace(shown, source="profiled")
            problems.append(Problem(f"{title} on {'+'.join(names)} of {target}", family, true, shown))
    return problems


def solve_all(
    problems: Sequence[Problem],
    seconds: float,
    workers: int,
    cache: Path | None = None,
) -> list[Solved]:
    """Problems with the best placements that solvers find for their true tables.

    Args:
        problems: The problems.
        seconds: Limit of each of three further searches where the default answer is not proven; 0 = none.
        workers: Processes.
        cache: JSON file that keeps what was found, so that other policies are judged at once.
    """
    known: dict[str, list[float]] = {}
    if cache is not None and cache.exists():
        known = json.loads(cache.read_text(encoding="utf-8"))
    keys = [f"{_digest(problem.true)} {seconds:g}" for problem in problems]
    missing = [i for i, key in enumerate(keys) if key not in known]
    search: Callable[[CostTable], list[float]] = partial(_search, seconds=seconds)
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        found = pool.map(search, [problems[i].true for i in missing])
        for i, best in zip(missing, track(found, "solving", len(missing), disable=not missing), strict=True):
            known[keys[i]] = best
            if cache is not None:
                cache.parent.mkdir(parents=True, exist_ok=True)
                write_text_atomically(cache, json.dumps(known))
    return [Solved(p, BestKnown(*known[key])) for p, key in zip(problems, keys, strict=True)]


def _search(table: CostTable, seconds: float) -> list[float]:
    """Fields of :class:`BestKnown`."""
    usual = solve(table)
    assert usual.latency_seconds is not None
    assert usual.lower_bound_seconds is not None
    best, bound = usual.latency_seconds, usual.lower_bound_seconds
    for seed in _SEEDS if seconds else ():
        if best <= bound * (1 + _PROVEN):
            break
        longer = solve(table, time_limit=seconds, seed=seed).latency_seconds
        assert longer is not None
        best = min(best, longer)
    return [best, bound, usual.latency_seconds]


def _digest(table: CostTable) -> str:
    """Of everything that decides what a placement costs."""
    digest = hashlib.sha256()
    for part in (table, table.wiring):
        for field in fields(part) if part is not None else ():
            value = getattr(part, field.name)
            if isinstance(value, np.ndarray):
                digest.update(np.ascontiguousarray(value).tobytes())
    return digest.hexdigest()[:24]
