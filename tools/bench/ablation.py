"""What each part of autoplace-base is worth: each is left out once, with equal steps, seeds and data.

    python tools/bench/ablation.py --data FOLDER --results FILE.jsonl [--steps 200] [--shard 1/2]

Every run trains one variant with one seed by ``ov_autoplace.training.pretrain`` and judges its greedy answers
on held-out families and machines. Each finished run is one line of FILE, and is not run again; shards are
processes that share the file. A run that was killed is started anew. ``--table`` only prints what FILE holds.

The last variants are the papers' parts on our features: HSDAG's encoder (``gcn``) and GDP's (``sage``), each
with both placers. These decide between exactly two devices, and so they spend all steps on two, where the
others spend some on three and four.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from common import ROOT, machine_line, print_table
from policy_problems import held_out_workloads, random_problems, solve_all

from ov_autoplace.placement.simulator import simulate_batch
from ov_autoplace.policy.config import CONFIGS, NetworkConfig
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.networks.network import PlacementNetwork
from ov_autoplace.training.evaluation import greedy
from ov_autoplace.training.examples import Example, example_batches
from ov_autoplace.training.pretrain import pretrain
from ov_autoplace.training.settings import PretrainSettings
from ov_autoplace.training.targets import RandomTargets

BASE = "autoplace-base"
POLICY_SHARE = 0.1  # of the steps, where there is a policy gradient


@dataclass(frozen=True)
class Variant:
    """A network and how it is trained."""

    config: NetworkConfig
    settings: PretrainSettings


def variants(steps: int) -> dict[str, Variant]:
    """Every variant by name, autoplace-base first."""
    base = CONFIGS[BASE]
    usual = PretrainSettings()
    has_policy_gradient = usual.policy_steps > 0
    with_gradient = round(POLICY_SHARE * steps)
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
        BASE: base,
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
            config = replace(config, reads_costs=True)
            found[f"{encoder} encoder, {placer} placer"] = Variant(config, settings)
    return found


class Batches:
    """The problems of a run: variants with the same seed and numbers of devices train on the same ones."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._made: tuple[tuple[int, int | None, int], list[list[Example]]] | None = None

    def of(self, settings: PretrainSettings, devices: int | None) -> list[list[Example]]:
        """All batches of a run; the last ones that were asked for are kept."""
        key = settings.seed, devices, settings.steps
        if self._made is None or self._made[0] != key:
            targets = RandomTargets() if devices is None else RandomTargets(devices=((devices, 1.0),))
            sizes = settings.graphs_per_step, settings.units_per_step
            stream = example_batches(self.data, targets, settings.seed, 0, *sizes, settings.workers)
            with closing(stream):
                self._made = key, list(islice(stream, settings.steps))
        return self._made[1]


def run(name: str, variant: Variant, seed: int, batches: Batches, judged: HeldOut) -> dict[str, Any]:
    """Train and judge one variant."""
    settings = replace(variant.settings, seed=seed)
    problems = batches.of(settings, variant.config.num_devices)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as out:
        # One step short of the end: a finished run exports its network, which takes longer than judging it.
        longer = replace(settings, policy_steps=settings.policy_steps + 1)
        trained = pretrain(
            batches.data,
            Path(out),
            longer,
            config=variant.config,
            stop_after=settings.steps,
            batches=problems,
        )
    seconds = time.perf_counter() - start
    exactly = variant.config.num_devices
    return {
        "variant": name,
        "seed": seed,
        "steps": settings.steps,
        "seconds": round(seconds, 1),
        "parameters": sum(p.numel() for p in trained.network.parameters()),
        "gaps": {
            str(devices): judged.gaps(trained.network, devices)
            for devices in judged.devices
            if exactly in (None, devices)
        },
        "machine": machine_line(),
    }


class HeldOut:
    """Held-out problems, solved, by number of devices."""

    def __init__(self, folder: Path, count: int, seconds: float, cache: Path | None) -> None:
        workloads = held_out_workloads(folder)
        self.devices = (2, 3)
        self._solved = {
            devices: solve_all(random_problems(workloads, count, devices), seconds, 1, cache)
            for devices in self.devices
        }

    def gaps(self, network: PlacementNetwork, devices: int) -> dict[str, float]:
        """Of the greedy answers."""
        answer = greedy(network)
        found = []
        for solved in self._solved[devices]:
            table = solved.problem.true
            graph = policy_graph(table)
            placed = np.ascontiguousarray(answer(graph)[graph.unit_of], dtype=np.int32)
            found.append(float(simulate_batch(table, placed[None])[0]) / solved.best.seconds - 1)
        gaps = np.array(found)
        return {
            "mean": float(gaps.mean()),
            "median": float(np.median(gaps)),
            "p95": float(np.quantile(gaps, 0.95)),
            "largest": float(gaps.max()),
            "problems": len(gaps),
        }


def show(lines: Iterable[dict[str, Any]], steps: int) -> None:
    """Mean and spread over seeds, in the order of :func:`variants`."""
    by_variant: dict[str, list[dict[str, Any]]] = {}
    for line in lines:
        if line["steps"] == steps:
            by_variant.setdefault(line["variant"], []).append(line)
    rows = []
    for name in variants(steps):
        runs = by_variant.get(name, [])
        if not runs:
            continue
        cells = [_spread(runs, devices, key) for devices in ("2", "3") for key in ("mean", "p95")]
        seconds = np.mean([run["seconds"] for run in runs])
        rows.append((name, len(runs), *cells, f"{runs[0]['parameters']:,}", f"{seconds:.0f}"))
    columns = ("variant", "seeds", "2 devices: mean gap %", "p95 %", "3 devices: mean gap %", "p95 %")
    print_table(
        f"{steps} steps; greedy answers on held-out problems, mean over seeds (least-greatest)",
        (*columns, "parameters", "s per run"),
        rows,
    )


def _spread(runs: Sequence[dict[str, Any]], devices: str, key: str) -> str:
    """Mean, least and greatest over seeds, in percent."""
    values = [100 * run["gaps"][devices][key] for run in runs if devices in run["gaps"]]
    return f"{np.mean(values):.2f} ({min(values):.2f}-{max(values):.2f})" if values else "-"


def finished(path: Path) -> list[dict[str, Any]]:
    """What a results file holds."""
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def main() -> None:
    arguments = _arguments()
    if not arguments.table:
        torch.set_num_threads(1)
        part, parts = arguments.shard
        judged = HeldOut(arguments.held_out, arguments.problems, arguments.seconds, arguments.cache)
        chosen = {
            name: variant
            for name, variant in variants(arguments.steps).items()
            if any(word in name for word in arguments.variants)
        }
        batches = Batches(arguments.data)
        wanted = [(name, seed) for seed in range(arguments.seeds) for name in chosen]
        for name, seed in wanted[part - 1 :: parts]:
            done = {(line["variant"], line["seed"], line["steps"]) for line in finished(arguments.results)}
            if (name, seed, arguments.steps) in done:
                continue
            result = run(name, chosen[name], seed, batches, judged)
            with arguments.results.open("a", encoding="utf-8") as file:
                file.write(json.dumps(result) + "\n")  # one write: other shards append too
    print(machine_line())
    show(finished(arguments.results), arguments.steps)


def _arguments() -> argparse.Namespace:
    build = ROOT / "build"
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, default=build / "workloads" / "training", help="to train on")
    parser.add_argument("--held-out", type=Path, default=build / "workloads" / "held-out", help="to judge on")
    parser.add_argument("--results", type=Path, default=build / "ablation.jsonl", help="one line per run")
    parser.add_argument("--cache", type=Path, help="as of tools/bench/policy.py")
    parser.add_argument("--steps", type=int, default=200, help="gradient steps of each run")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--problems", type=int, default=105, help="held-out problems per number of devices")
    parser.add_argument("--seconds", type=float, default=5.0, help="limit of each longer search")
    parser.add_argument("--variants", nargs="*", default=[""], help="parts of names; all by default")
    parser.add_argument("--shard", type=_shard, default=(1, 1), metavar="K/N", help="every N-th run")
    parser.add_argument("--table", action="store_true", help="print the table, run nothing")
    return parser.parse_args()


def _shard(text: str) -> tuple[int, int]:
    part, _, parts = text.partition("/")
    if not (part.isdigit() and parts.isdigit() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"{text!r} is not a shard; write 1/2 and 2/2")
    return int(part), int(parts)


if __name__ == "__main__":
    main()
