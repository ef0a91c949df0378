"""What the learned policy is worth under every objective, on shapes and machines that training cannot draw.

``hetero`` with 2, 3, 4 and 8 devices, with and without memory limits, ``overlap`` on 2 to 8 lanes and
devices, ``rate`` on 2 to 4. Gaps are to the best placement known: of the default solver, of searches of
another family with more time (constraint programming up to 60 groups where OR-tools is installed, mixed-
integer programs above), and of everybody here. Placing *matters* where the best single device is more than a
percent off, or none can take everything. Under ``overlap``, each list scheduler with local search has as long
as the policy took (``over lists``). Under ``rate``, the remarks hold the mixture of placements to the bound
of the linear program: a placement that all requests share cannot reach it where there are few groups to
divide between devices.

``split=validation`` has other families, shapes and machines; design choices are made by it alone.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np
from rich.progress import track

from examples import JUDGED
from harness.comparison import bootstrap
from harness.result import Case, Result, Table, bar, percent
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CheckpointError, PlacementError
from ov_autoplace.policy.card import NO_POLICY
from ov_autoplace.solvers import SOLVERS_OF, solve, solve_mixture
from ov_autoplace.training.labelled import Labelled
from problems.judged import Kind, best_seconds, problems_of

__all__ = ["Judged", "judge", "run", "summary"]

_COUNT = {True: 5, False: 24}  # problems of each kind
_SECONDS = {True: 1.0, False: 30.0}
_WORTH = 0.01
_EQUAL = 1e-9
_LARGE = 60  # groups; above, constraint programming is out of reach
_NO_LISTS = ("policy", "single", "exact", "oracle")
_MEAN = {2: 0.004, 3: 0.006, 4: 0.007, 8: 0.015}  # wanted of ``hetero`` by number of devices
_P95, _WORST, _LIMITED, _OVER_LISTS, _OVERLAP, _RATE, _BOTH = 0.02, 0.10, 0.03, 0.97, 0.02, 0.05, 0.5


@dataclass(frozen=True, slots=True)
class Judged:
    """What everybody made of one problem: seconds by its objective; NaN = no answer.

    Attributes:
        name, groups: Of the problem.
        single: The best single device's; ``inf`` = none can take everything.
        policy, portfolio: Of the solvers of these names.
        alone: The latter's where the policy is no start of it.
        best: The best known.
        lists: The best list scheduler's with local search, under ``overlap``.
        mixture, bound: Of many requests, under ``rate``: seconds per request of a mixture of placements, and
            proven below every mixture.
        policy_ms, portfolio_ms: How long each took to answer.
    """

    name: str
    groups: int
    single: float
    policy: float
    portfolio: float
    alone: float
    best: float
    lists: float
    mixture: float
    bound: float
    policy_ms: float
    portfolio_ms: float


def run(
    quick: bool,
    seed: int,
    checkpoint: str = "",
    split: str = "held-out",
    problems: int = 0,
    seconds: float = 0.0,
    workers: int = 1,
    only: tuple[str, ...] = (),
) -> Result:
    """One row per objective, number of devices, and with or without memory limits.

    Args:
        quick: Few problems of each, short searches for the best placements.
        seed: Of graphs and machines.
        checkpoint: Folder of the policy; the one that is shipped when empty.
        split: ``held-out`` or ``validation``.
        problems: Of each row; 0 = 24, or 5 if quick.
        seconds: How long to search for the best placement of each problem; 0 = 30, or 1 if quick.
        workers: Processes that search.
        only: Parts of the names of rows, such as ``limited``; all rows when empty.
    """
    rows: dict[Kind, list[Judged]] = {}
    for kind in JUDGED:
        if only and not any(part in _title(kind) for part in only):
            continue
        labelled = problems_of(split, kind, problems or _COUNT[quick], seed)
        with ProcessPoolExecutor(workers, get_context("spawn")) as pool:
            known = list(pool.map(partial(best_seconds, seconds=seconds or _SECONDS[quick]), labelled))
        judge(labelled[0], known[0], checkpoint)  # loads what it needs
        title = _title(kind)
        rows[kind] = [
            judge(problem, best, checkpoint)
            for problem, best in zip(track(labelled, title), known, strict=True)
        ]
    columns = (
        "problems", "matters", "mean [95 %]", "p95", "worst", "worse than single", "missed", "portfolio mean",
        "min(portfolio alone, policy) / portfolio alone where it matters", "over lists, > 60 groups", "ms",
        "portfolio ms",
    )  # fmt: skip
    return Result(
        f"The policy under every objective, {split}",
        (
            Table(
                "Gaps of the policy, %", ("", *columns), [(_title(k), *_cells(k, r)) for k, r in rows.items()]
            ),
        ),
        cases=tuple(
            Case(f"policy on {r.name} ({_title(kind)})", "best single device", r.policy / r.single)
            for kind, found in rows.items()
            for r in found
            if np.isfinite(r.single) and not np.isnan(r.policy) and abs(r.policy / r.single - 1) > _EQUAL
        ),
        remarks=tuple(_remarks(rows)),
        data={
            "seed": seed,
            "split": split,
            "rows": {_title(k): [asdict(r) for r in v] for k, v in rows.items()},
        },
    )


def judge(problem: Labelled, known: float, checkpoint: str) -> Judged:
    """Everybody's answer to one problem.

    Args:
        problem: With its label.
        known: Seconds of the best placement known.
        checkpoint: Of the policy.
    """
    table, objective = problem.task.true, problem.task.objective
    policy, policy_seconds = _answered(table, objective, "policy", policy=checkpoint or None)
    if objective == "hetero":
        portfolio, portfolio_seconds = _answered(table, objective, "portfolio")
        alone = portfolio
    else:
        portfolio, portfolio_seconds = _answered(table, objective, "portfolio", policy=checkpoint or None)
        alone, _ = _answered(table, objective, "portfolio", policy=NO_POLICY)
    lists = np.nan
    if objective == "overlap" and not np.isnan(policy):
        names = [name for name in SOLVERS_OF[objective] if name not in _NO_LISTS]
        limit = max(policy_seconds, 1e-3)
        lists = float(np.nanmin([_answered(table, objective, n, time_limit=limit)[0] for n in names]))
    mixture = solve_mixture(table) if objective == "rate" else None
    return Judged(
        name=problem.task.name,
        groups=len(table),
        single=problem.single_seconds,
        policy=policy,
        portfolio=portfolio,
        alone=alone,
        best=float(np.fmin.reduce([known, policy, portfolio, alone, lists])),
        lists=lists,
        mixture=1.0 / mixture.rate_per_second if mixture else np.nan,
        bound=1.0 / mixture.bound_per_second if mixture else np.nan,
        policy_ms=1e3 * policy_seconds,
        portfolio_ms=1e3 * portfolio_seconds,
    )


def _answered(
    table: CostTable,
    objective: str,
    solver: str,
    *,
    policy: str | None = None,
    time_limit: float | None = None,
) -> tuple[float, float]:
    """Seconds of a solver's answer (NaN = it found none), and seconds that it took."""
    begin = time.perf_counter()
    try:
        answer = solve(table, solver, objective=objective, policy=policy, time_limit=time_limit)
    except (PlacementError, CheckpointError):  # nothing fits, or it was trained for fewer devices
        return np.nan, time.perf_counter() - begin
    assert answer.latency_seconds is not None
    return answer.latency_seconds, time.perf_counter() - begin


def summary(kind: Kind, rows: Sequence[Judged]) -> dict[str, float]:
    """The figures of one kind of problem, gaps in shares (0.01 is one percent); NaN = not known."""
    values = {field: np.array([getattr(row, field) for row in rows]) for field in Judged.__slots__}
    gaps, portfolio, alone = (values[who] / values["best"] - 1 for who in ("policy", "portfolio", "alone"))
    matters = values["single"] > values["best"] * (1 + _WORTH)
    answered = ~np.isnan(gaps)
    both = np.fmin(gaps, alone)
    large = (values["groups"] > _LARGE) & ~np.isnan(values["policy"] / values["lists"])
    has = answered.any()
    low, high = bootstrap(gaps[answered]) if has else (np.nan, np.nan)
    lost = float(alone[matters].mean()) if matters.any() else 0.0
    return {
        "problems": len(rows),
        "matters": int(matters.sum()),
        "mean": float(gaps[answered].mean()) if has else np.nan,
        "low": low,
        "high": high,
        "p95": float(np.quantile(gaps[answered], 0.95)) if has else np.nan,
        "worst": float(gaps[answered].max()) if has else np.nan,
        "worse_than_single": int((values["policy"] > values["single"] * (1 + _EQUAL)).sum()),
        "missed": int((~answered).sum()),
        "portfolio": float(np.nanmean(portfolio)),
        "both": float(both[matters].mean()) / lost if has and lost > _EQUAL else np.nan,
        "over_lists": float(np.exp(np.log((values["policy"] / values["lists"])[large]).mean()))
        if large.any()
        else np.nan,
        "ms": float(np.median(values["policy_ms"])),
        "portfolio_ms": float(np.median(values["portfolio_ms"])),
    }


def _title(kind: Kind) -> str:
    objective, devices, limited = kind
    return (
        f"{objective}, {devices} {'columns' if objective == 'overlap' else 'devices'}{', limited' * limited}"
    )


def _cells(kind: Kind, rows: Sequence[Judged]) -> list[str]:
    found = summary(kind, rows)
    cells = [str(found["problems"]), str(found["matters"])]
    cells.append(" ".join((percent(found["mean"]), f"[{percent(found['low'])}, {percent(found['high'])}]")))
    cells += [percent(found["p95"]), percent(found["worst"])]
    cells += [str(found["worse_than_single"]), str(found["missed"]), percent(found["portfolio"])]
    return cells + [f"{found[name]:.3g}" for name in ("both", "over_lists", "ms", "portfolio_ms")]


def _remarks(rows: dict[Kind, list[Judged]]) -> list[str]:
    """The figures that are wanted, each beside what was reached."""
    answered = {k: r for k, r in rows.items() if not all(np.isnan(row.policy) for row in r)}
    remarks = [f"{_title(kind)}: the policy does not answer" for kind in rows if kind not in answered]
    for kind, judged in answered.items():
        remarks += _bars(kind, judged)
    found = [summary(kind, judged) for kind, judged in answered.items()]
    if found:
        for name, text in (("worse_than_single", "worse than the best single device"), ("missed", "missed")):
            remarks.append(bar(text, 0, sum(one[name] for one in found)))
    ratios = [one["both"] for one in found if not np.isnan(one["both"])]
    if ratios:
        text = "min(portfolio alone, policy) over portfolio alone where placing matters, mean over the rows"
        remarks.append(bar(text, _BOTH, float(np.mean(ratios))))
    return remarks


def _bars(kind: Kind, rows: Sequence[Judged]) -> list[str]:
    """What is wanted of one kind of problem."""
    objective, devices, limited = kind
    title, found = _title(kind), summary(kind, rows)
    if objective == "overlap":
        bars = []
        small = [row for row in rows if row.groups <= _LARGE]
        if small:
            mean = summary(kind, small)["mean"]
            bars.append(bar(f"{title}, up to 60 groups: mean gap, %", 100 * _OVERLAP, 100 * mean))
        if not np.isnan(found["over_lists"]):
            text = f"{title}, more: over list schedulers with local search at equal time"
            bars.append(bar(text, _OVER_LISTS, found["over_lists"]))
        return bars
    if objective == "rate":
        above = {
            who: float(np.nanmean([getattr(row, who) / row.bound - 1 for row in rows]))
            for who in ("mixture", "policy", "best")
        }
        return [
            bar(f"{title}: the mixture above the bound, %", 100 * _RATE, 100 * above["mixture"]),
            f"{title}: one placement for all requests is {percent(above['policy'])} % above the bound, "
            f"the best known {percent(above['best'])} %",
        ]
    wanted = _LIMITED if limited else _MEAN[devices]
    bars = [bar(f"{title}: mean gap, %", 100 * wanted, 100 * found["mean"])]
    if not limited:
        bars.append(bar(f"{title}: 95th percentile, %", 100 * _P95, 100 * found["p95"]))
        bars.append(bar(f"{title}: worst, %", 100 * _WORST, 100 * found["worst"]))
    return bars
