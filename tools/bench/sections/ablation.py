"""What each part of autoplace-base is worth: left out once, with equal steps, seeds and data.

Every variant is trained with each seed by ``ov_autoplace.training.pretrain`` and judged on problems that it
was not trained on, which ``tools/examples.py`` writes: by its own answers, and by where the short search ends
that goes on from them, which is what the solver ``policy`` answers with. Each run is a process of its own
and a piece for ``--resume``.

The last variants are the papers' parts on our features: HSDAG's encoder (``gcn``) and GDP's (``sage``), each
with both placers. These decide between exactly two devices, and so they are trained and judged on two alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from harness import ROOT
from harness.process import Pieces
from harness.result import Result, Table
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.training.settings import PretrainSettings

if TYPE_CHECKING:
    from ov_autoplace.policy.networks.interface import PlacementNetwork
    from ov_autoplace.training.examples import Example

__all__ = ["KINDS", "Variant", "run", "train", "variants"]

KINDS = ("hetero", "hetero, limited", "overlap", "rate")
"""Of problems: the objective, and whether memory limits bind under ``hetero``."""

_BASE = "autoplace-base"
_EXAMPLES = ROOT / "build" / "examples"


@dataclass(frozen=True)
class Variant:
    """A network and how it is trained."""

    config: NetworkConfig
    settings: PretrainSettings


def run(
    quick: bool,
    seed: int,
    data: str = str(_EXAMPLES / "training"),
    judged: str = str(_EXAMPLES / "validation"),
    steps: int = 200,
    seeds: int = 3,
    problems: int = 256,
    named: tuple[str, ...] = (),
    workers: int = 1,
) -> Result:
    """Train and judge all variants.

    Args:
        quick: One seed, few steps and problems.
        seed: The first of the seeds.
        data: Folder of examples to train on.
        judged: Folder of examples to judge by.
        steps: Gradient steps of each run.
        seeds: How many.
        problems: At most so many of the latter.
        named: Parts of names of variants; all when empty.
        workers: Runs at a time, of one thread each.
    """
    if quick:
        steps, seeds, problems = min(steps, 20), 1, 15
    names = [name for name in variants(steps) if not named or any(word in name for word in named)]
    what = {"data": data, "judged": judged, "steps": steps, "problems": problems}
    pieces = Pieces()

    def trained(one: tuple[int, str]) -> Any:
        number, name = one
        return pieces(f"{name}, seed {number}", train, name=name, seed=number, **what)

    every = list(product(range(seed, seed + seeds), names))
    with ThreadPoolExecutor(workers) as pool:
        runs = [found for found in pool.map(trained, every) if found is not None]
    rows = []
    for name in names:
        own = [found for found in runs if found["name"] == name]
        if own:
            cells = [_spread(own, answer, kind) for answer in ("own", "searched") for kind in KINDS]
            took = np.mean([found["seconds"] for found in own])
            rows.append((name, len(own), *cells, f"{own[0]['parameters']:,}", f"{took:.0f}"))
    columns = (*(f"{kind} %" for kind in KINDS), *(f"{kind}, searched %" for kind in KINDS))
    title = f"{steps} steps; geometric gaps on problems not trained on, mean over seeds (least-greatest)"
    return Result(
        "What each part of the policy is worth",
        (Table(title, ("variant", "seeds", *columns, "parameters", "s per run"), rows),),
        remarks=tuple(pieces.remarks),
        data={"runs": runs},
    )


def variants(steps: int) -> dict[str, Variant]:
    """Every variant by name, autoplace-base first."""
    base = CONFIGS[_BASE]
    settings = replace(
        PretrainSettings(),
        steps=steps,
        warm_up_steps=min(PretrainSettings.warm_up_steps, steps // 10),
        evaluate_every=steps + 1,
        validation_problems=1,
        threads=1,
    )
    networks = {
        _BASE: base,
        "without superposition": replace(base, superposition=False),
        "with one layer less": replace(base, layers=base.layers - 1),
    }
    found = {name: Variant(config, settings) for name, config in networks.items()}
    found["without expected cost in the loss"] = Variant(base, replace(settings, expected_cost=0.0))
    for encoder, paper in (("gcn", "hsdag"), ("sage", "gdp")):
        for placer in ("mlp", "attention"):
            config = replace(CONFIGS[paper], name=f"{encoder}-{placer}", placer=placer, grouper="none")
            found[f"{encoder} encoder, {placer} placer"] = Variant(
                replace(config, reads_costs=True), settings
            )
    return found


def train(name: str, seed: int, data: str, judged: str, steps: int, problems: int) -> dict[str, Any]:
    """Train a variant and judge it: geometric gaps by kind of problem, before and after the search."""
    import torch

    from ov_autoplace.training.pretrain import pretrain
    from ov_autoplace.training.stored import StoredExamples

    torch.set_num_threads(1)
    variant = variants(steps)[name]
    settings = replace(variant.settings, seed=seed)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        # One step short of the end: a finished run exports its network, which takes longer than judging.
        longer = replace(settings, steps=settings.steps + 1)
        network = pretrain(
            Path(data),
            Path(out),
            longer,
            validation=Path(judged),
            config=variant.config,
            stop_after=settings.steps,
        ).network
    took = time.perf_counter() - start
    exactly = variant.config.num_devices
    examples = [
        example
        for example in StoredExamples.load(judged)[:problems]
        if exactly in (None, example.graph.num_devices)
    ]
    return {
        "name": name,
        "seconds": round(took, 1),
        "parameters": sum(p.numel() for p in network.parameters()),
        **_judged(network, examples),
    }


def _judged(network: PlacementNetwork, examples: Sequence[Example]) -> dict[str, dict[str, float]]:
    """Geometric gaps by kind, of the network's own answers and of those that the search ends with."""
    from ov_autoplace.solvers.policy import policy_assignment, refined_assignment
    from ov_autoplace.training.evaluation import scores_of

    logs: dict[str, dict[str, list[float]]] = {"own": {}, "searched": {}}
    for example in examples:
        scores = scores_of(network, example.graph)
        is_limited = example.problem.units.has_memory_limits
        kind = f"{example.objective}{', limited' * is_limited}"
        for answer, place in (("own", policy_assignment), ("searched", refined_assignment)):
            seconds = example.true_problem.evaluator.latencies([place(scores, example.graph)])[0]
            logs[answer].setdefault(kind, []).append(float(np.log(seconds / example.best_seconds)))
    return {
        answer: {kind: float(np.expm1(np.mean(values))) for kind, values in by_kind.items()}
        for answer, by_kind in logs.items()
    }


def _spread(runs: Sequence[dict[str, Any]], answer: str, kind: str) -> str:
    """Mean, least and greatest over seeds, in percent."""
    values = [100 * run[answer][kind] for run in runs if kind in run[answer]]
    return f"{np.mean(values):.2f} ({min(values):.2f}-{max(values):.2f})" if values else "-"
