"""The best placements that are known of a table, and what is proven about them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from rich.progress import track

from ov_autoplace._base.files import write_text_atomically
from ov_autoplace.cost.table import CostTable
from ov_autoplace.solvers import solve

__all__ = ["BestKnown", "best_known"]

_SEEDS = (0, 1, 2)  # of the longer searches
_PROVEN = 1e-9


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


def best_known(
    tables: Sequence[CostTable], seconds: float, workers: int = 1, cache: str = ""
) -> list[BestKnown]:
    """Ask the default solver, and search longer where it proves nothing.

    Args:
        tables: Of true costs.
        seconds: Limit of each of three further searches where the default answer is not proven; 0 = none.
        workers: Processes.
        cache: JSON file that keeps what was found, so that other policies are judged at once.
    """
    file = Path(cache) if cache else None
    known: dict[str, list[float]] = {}
    if file is not None and file.exists():
        known = json.loads(file.read_text(encoding="utf-8"))
    keys = [f"{_digest(table)} {seconds:g}" for table in tables]
    missing = [i for i, key in enumerate(keys) if key not in known]
    with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
        found = pool.map(partial(_search, seconds=seconds), [tables[i] for i in missing])
        for i, best in zip(missing, track(found, "solving", len(missing), disable=not missing), strict=True):
            known[keys[i]] = best
            if file is not None:
                file.parent.mkdir(parents=True, exist_ok=True)
                write_text_atomically(file, json.dumps(known))
    return [BestKnown(*known[key]) for key in keys]


def _search(table: CostTable, seconds: float) -> list[float]:
    """Fields of :class:`BestKnown`."""
    usual = solve(table)
    best, bound = usual.latency_seconds, usual.lower_bound_seconds or 0.0
    for seed in _SEEDS if seconds else ():
        if best <= bound * (1 + _PROVEN):
            break
        best = min(best, solve(table, time_limit=seconds, seed=seed).latency_seconds)
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
