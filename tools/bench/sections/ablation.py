"""What each part of autoplace-base is worth: left out once, or put in, with equal steps, seeds and data.

Every variant is trained with each seed by ``ov_autoplace.training.pretrain`` and its greedy answers are
judged by objective on problems that it was not trained on. All variants of one seed are trained in one
process, on the same problems, and are one piece for ``--resume``. Problems are written by
``tools/examples.py``.

The last variants are the papers' parts on our features: HSDAG's encoder (``gcn``) and GDP's (``sage``), each
with both placers. These decide between exactly two devices, and so they are trained and judged on two alone.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from harness import ROOT
from harness.process import Pieces
from harness.result import Result, Table
from ov_autoplace.placement.simulator import OBJECTIVES
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.training.settings import PretrainSettings

__all__ = ["Variant", "run", "train", "variants"]

_BASE = "autoplace-base"
_POLICY_SHARE = 0.1  # of the steps, where there is a policy gradient
_SWITCHES = {
    "coarser groupings": "coarse",
    "cost feedback between rounds": "feedback",
    "loads of devices": "loads",
    "messages across devices": "cross_device",
    "superposition": "superposition",
    "op types": "op_types",
    "probes": "probes",
}
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
    problems: int = 200,
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
        workers: Seeds that are trained at a time.
    """
    if quick:
        steps, seeds, problems = min(steps, 20), 1, 14
    what = {"data": data, "judged": judged, "steps": steps, "named": named, "problems": problems}
    pieces = Pieces()
    with ThreadPoolExecutor(workers) as pool:
        found = pool.map(lambda i: pieces(f"seed {seed + i}", train, seed=seed + i, **what), range(seeds))
    runs = [of_seed for of_seed in found if of_seed is not None]
    rows = []
    for name in runs[0] if runs else ():
        own = [of_seed[name] for of_seed in runs]
        cells = [_spread(own, objective, key) for objective in OBJECTIVES for key in ("mean_gap", "p95_gap")]
        took = np.mean([one["seconds"] for one in own])
        rows.append((name, len(own), *cells, f"{own[0]['parameters']:,}", f"{took:.0f}"))
    gaps = [name for objective in OBJECTIVES for name in (f"{objective}: mean gap %", "p95 %")]
    columns = ("variant", "seeds", *gaps)
    title = f"{steps} steps; answers on problems not trained on, mean over seeds (least-greatest)"
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
        threads=1,
    )
    networks = {_BASE: base}
    for title, field in _SWITCHES.items():
        is_on = getattr(base, field)
        networks[f"{'without' if is_on else 'with'} {title}"] = replace(base, **{field: not is_on})
    networks["without looks"] = replace(base, looks=0)
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
    seed: int, data: str, judged: str, steps: int, named: Sequence[str], problems: int
) -> dict[str, dict[str, Any]]:
    """Train and judge the variants with one seed, by name."""
    import torch

    from ov_autoplace.training.evaluation import evaluate, greedy
    from ov_autoplace.training.pretrain import pretrain
    from ov_autoplace.training.stored import StoredExamples

    torch.set_num_threads(1)
    examples = StoredExamples.load(judged)[:problems]
    found = {}
    for name, variant in variants(steps).items():
        if named and not any(word in name for word in named):
            continue
        exactly = variant.config.num_devices
        settings = replace(variant.settings, seed=seed)
        start = time.perf_counter()
        with tempfile.TemporaryDirectory() as out:
            # One step short of the end: a finished run exports its network, which takes longer than judging.
            longer = replace(settings, policy_steps=settings.policy_steps + 1)
            network = pretrain(
                Path(data),
                Path(out),
                longer,
                validation=Path(judged),
                config=variant.config,
                stop_after=settings.steps,
            ).network
        gaps = {}
        for objective in OBJECTIVES:
            own = [e for e in examples if e.objective == objective and exactly in (None, e.graph.num_devices)]
            if own:
                gaps[objective] = evaluate(greedy(network), own).summary()
        found[name] = {
            "seconds": round(time.perf_counter() - start, 1),
            "parameters": sum(p.numel() for p in network.parameters()),
            "gaps": gaps,
        }
    return found


def _spread(runs: Sequence[dict[str, Any]], objective: str, key: str) -> str:
    """Mean, least and greatest over seeds, in percent."""
    values = [100 * run["gaps"][objective][key] for run in runs if objective in run["gaps"]]
    return f"{np.mean(values):.2f} ({min(values):.2f}-{max(values):.2f})" if values else "-"
