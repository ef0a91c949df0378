"""What each part of autoplace-base is worth: each is left out once, with equal steps, seeds and data.

Every variant is trained with each seed by ``ov_autoplace.training.pretrain`` and its greedy answers are
judged on held-out families and machines. All variants of one seed are trained in one process, on the same
problems, and are one piece for ``--resume``. The workloads to train on are written by ``tools/workloads.py``.

The last variants are the papers' parts on our features: HSDAG's encoder (``gcn``) and GDP's (``sage``), each
with both placers. These decide between exactly two devices, and so they spend all steps on two, where the
others spend some on three and four.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from harness import ROOT
from harness.process import Pieces
from harness.result import Result, Table
from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.solvers import Problem
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.targets import RandomTargets
from problems.best_known import best_known
from problems.tables import Instance, random_instances

__all__ = ["Variant", "run", "train", "variants"]

_BASE = "autoplace-base"
_POLICY_SHARE = 0.1  # of the steps, where there is a policy gradient
_DEVICES = (2, 3)
_WORKLOADS = ROOT / "build" / "workloads" / "training"


@dataclass(frozen=True)
class Variant:
    """A network and how it is trained."""

    config: NetworkConfig
    settings: PretrainSettings


def run(
    quick: bool,
    seed: int,
    data: str = str(_WORKLOADS),
    steps: int = 200,
    seeds: int = 3,
    problems: int = 105,
    seconds: float = 5.0,
    named: tuple[str, ...] = (),
    workers: int = 1,
    cache: str = "",
) -> Result:
    """Train and judge all variants.

    Args:
        quick: One seed, few steps and problems, short searches.
        seed: The first of the seeds.
        data: Folder of workloads to train on.
        steps: Gradient steps of each run.
        seeds: How many.
        problems: Held-out ones by number of devices.
        seconds: Limit of each longer search for their best placements.
        named: Parts of names of variants; all when empty.
        workers: Seeds that are trained at a time.
        cache: As of the section ``policy``.
    """
    if quick:
        steps, seeds, problems, seconds = min(steps, 20), 1, 14, 0.0
    what = {
        "data": data,
        "steps": steps,
        "named": named,
        "problems": problems,
        "seconds": seconds,
        "cache": cache,
    }
    pieces = Pieces()
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda i: pieces(f"seed {seed + i}", train, seed=seed + i, **what), range(seeds))
    runs = [of_seed for of_seed in found if of_seed is not None]
    rows = []
    for name in runs[0] if runs else ():
        own = [of_seed[name] for of_seed in runs]
        cells = [_spread(own, devices, key) for devices in _DEVICES for key in ("mean", "p95")]
        took = np.mean([one["seconds"] for one in own])
        rows.append((name, len(own), *cells, f"{own[0]['parameters']:,}", f"{took:.0f}"))
    columns = ("variant", "seeds", "2 devices: mean gap %", "p95 %", "3 devices: mean gap %", "p95 %")
    title = f"{steps} steps; greedy answers on held-out problems, mean over seeds (least-greatest)"
    return Result(
        "What each part of the policy is worth",
        (Table(title, (*columns, "parameters", "s per run"), rows),),
        remarks=tuple(pieces.remarks),
        data={"runs": runs},
    )


def variants(steps: int) -> dict[str, Variant]:
    """Every variant by name, autoplace-base first."""
    base = CONFIGS[_BASE]
    usual = PretrainSettings()
    has_policy_gradient = usual.policy_steps > 0
    with_gradient = round(_POLICY_SHARE * steps)
    policy_steps = with_gradient if has_policy_gradient else 0
    settings = replace(
        usual,
        imitation_steps=steps - policy_steps,
        policy_steps=policy_steps,
        warm_up_steps=min(usual.warm_up_steps, steps // 10),
        evaluate_every=steps,
        validation_problems=1,
        workers=1,
        threads=1,
    )
    networks = {
        _BASE: base,
        "without coarser groupings": replace(base, coarse=False),
        "without cost feedback between rounds": replace(base, feedback=False),
        "without messages across devices": replace(base, cross_device=False),
        "without superposition": replace(base, superposition=False),
        "without op types": replace(base, op_types=False),
        "without probes": replace(base, probes=False),
        "without looks": replace(base, looks=0),
    }
    for rounds in range(base.rounds - 1, 0, -1):
        networks[f"rounds: {rounds} instead of {base.rounds}"] = replace(
            base, rounds=rounds, looks=min(base.looks, rounds - 1)
        )
    found = {name: Variant(config, settings) for name, config in networks.items()}
    found["without expected cost in the loss"] = Variant(base, replace(settings, expected_cost=0.0))
    found["without focus on what is answered badly"] = Variant(base, replace(settings, focus=0.0))
    if has_policy_gradient:
        other = replace(settings, imitation_steps=steps, policy_steps=0)
        found["imitation instead of the policy gradient"] = Variant(base, other)
    else:
        other = replace(settings, imitation_steps=steps - with_gradient, policy_steps=with_gradient)
        found["policy gradient instead of more imitation"] = Variant(base, other)
    for encoder, paper in (("gcn", "hsdag"), ("sage", "gdp")):
        for placer in ("mlp", "attention"):
            config = replace(CONFIGS[paper], name=f"{encoder}-{placer}", placer=placer, grouper="none")
            found[f"{encoder} encoder, {placer} placer"] = Variant(
                replace(config, reads_costs=True), settings
            )
    return found


def train(
    seed: int, data: str, steps: int, named: Sequence[str], problems: int, seconds: float, cache: str
) -> dict[str, dict[str, Any]]:
    """Train and judge the variants with one seed, by name."""
    import torch

    from ov_autoplace.training.examples import Example, example_batches
    from ov_autoplace.training.pretrain import pretrain

    torch.set_num_threads(1)
    judged = {devices: random_instances(problems, devices) for devices in _DEVICES}
    best = {
        devices: [known.seconds for known in best_known([i.true for i in instances], seconds, 1, cache)]
        for devices, instances in judged.items()
    }
    made: dict[int | None, list[list[Example]]] = {}  # by the number of devices that a network is for
    found = {}
    for name, variant in variants(steps).items():
        if named and not any(word in name for word in named):
            continue
        exactly = variant.config.num_devices
        settings = replace(variant.settings, seed=seed)
        if exactly not in made:
            targets = RandomTargets() if exactly is None else RandomTargets(devices=((exactly, 1.0),))
            sizes = settings.graphs_per_step, settings.units_per_step
            with closing(example_batches(Path(data), targets, seed, 0, *sizes, settings.workers)) as stream:
                made[exactly] = list(islice(stream, settings.steps))
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as out:
            # One step short of the end: a finished run exports its network, which takes longer than judging.
            longer = replace(settings, policy_steps=settings.policy_steps + 1)
            network = pretrain(
                Path(data),
                Path(out),
                longer,
                config=variant.config,
                stop_after=settings.steps,
                batches=made[exactly],
            ).network
        found[name] = {
            "seconds": round(time.perf_counter() - start, 1),
            "parameters": sum(p.numel() for p in network.parameters()),
            "gaps": {
                str(devices): _gaps(network, judged[devices], best[devices])
                for devices in _DEVICES
                if exactly in (None, devices)
            },
        }
    return found


def _gaps(network: Any, instances: Sequence[Instance], best: Sequence[float]) -> dict[str, float]:
    """Of a network's greedy answers."""
    from ov_autoplace.training.evaluation import greedy

    answer = greedy(network)
    found = []
    for instance, seconds in zip(instances, best, strict=True):
        problem = Problem.of(instance.true)
        placed = problem.units.to_groups(answer(policy_graph(problem)))
        found.append(float(simulate_batch(instance.true, placed[None])[0]) / seconds - 1)
    gaps = np.array(found)
    return {"mean": float(gaps.mean()), "p95": float(np.quantile(gaps, 0.95)), "largest": float(gaps.max())}


def _spread(runs: Sequence[dict[str, Any]], devices: int, key: str) -> str:
    """Mean, least and greatest over seeds, in percent."""
    values = [100 * run["gaps"][str(devices)][key] for run in runs if str(devices) in run["gaps"]]
    return f"{np.mean(values):.2f} ({min(values):.2f}-{max(values):.2f})" if values else "-"
