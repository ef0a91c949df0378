"""Fine-tuning on really measured latency: how soon it is within 1 % of the best placement known.

    python tools/bench/finetune.py [--families bert vit resnet unet] [--seeds 3] [--budget 60]

For each model and seed: the pretrained policy; `hsdag` from random weights in the same machinery, simulator
and all; and `hsdag` that learns from measurements alone, as published. Beside them, on the simulator of the
model's profiled costs, the published budget of 2,000 evaluations for both. Every run is a process of its own,
whose time counts from its start, loading included. The best placement known of a model is the fastest, in one
last race with everything in turns, of the best placements of all runs, the exact solver's and mode TUNE's
answers and the single devices. Only what the policy itself proposed counts as an evaluation of it.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import finetune_worker
import numpy as np
import openvino as ov
from common import ROOT, machine_line, print_table, unequal_pair

import zoo
from ov_autoplace.cost.profiling import ProfilingSession
from ov_autoplace.cost.table import CostTable
from ov_autoplace.devices import device_properties
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.placement.annotation import completed
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placer import place
from ov_autoplace.simulator import simulate
from ov_autoplace.solvers import solve
from ov_autoplace.statistics import paired_ratio
from ov_autoplace.training.finetuning.task import AFTER

DEVICES = ("XCPU", "CPU")
WITHIN = 1.01
_FINALISTS = 3  # of each run, into the last race
_ROUNDS = 400


@dataclass
class Outcome:
    """One run, or one search on the simulator.

    Attributes:
        kind: Which policy, and what it learned from.
        evaluations: Placements that it proposed until one was within 1 % of the best known; ``None`` = never.
        of: How many it proposed in all.
        seconds: Wall-clock time until then.
        ratio: Its best placement over the best known.
        wall: Seconds of the whole run, and ``budget`` those that it was given; ``None`` on the simulator.
    """

    model: str
    seed: int
    kind: str
    evaluations: int | None
    of: int
    seconds: float | None
    ratio: float
    wall: float | None = None
    budget: float | None = None


def run_worker(task: str, model: Path, out: Path, arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One run in a process of its own, whatever it printed last as JSON."""
    command = [sys.executable, finetune_worker.__file__, task, str(model), str(out)]
    command += ["--checkpoint", arguments.checkpoint, "--budget", str(arguments.budget), "--seed", str(seed)]
    command += ["--evaluations", str(arguments.evaluations)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


@dataclass
class Run:
    """A fine-tuning that ended.

    Attributes:
        result: What the worker printed.
        lines: The measurement log.
        table: Its costs, which name what the placements of the log place.
        wall: Seconds from the start of the process to its end.
    """

    seed: int
    kind: str
    result: dict[str, Any]
    lines: list[dict[str, Any]]
    table: CostTable
    wall: float

    def devices(self, line: dict[str, Any]) -> dict[str, str]:
        """Device of each op in a line of the log."""
        assignment = np.array([ord(c) - ord("0") for c in line["placement"]], dtype=np.int32)
        return Placement.of_groups(self.table, assignment).to_dict()

    def finalists(self) -> list[dict[str, str]]:
        """The best placements that it measured."""
        measured = [line for line in self.lines if line["kind"] == "measured" and line["relative"]]
        measured.sort(key=lambda line: line["relative"])
        return [self.devices(line) for line in measured[:_FINALISTS]]


def text_of(device_of: dict[str, str]) -> str:
    """The same for the same placement, whatever groups it was made of."""
    return " ".join(device_of[name] for name in sorted(device_of))


def final_race(
    model: ov.Model, runs: list[Run], seconds: float, tune_seconds: float
) -> tuple[dict[str, float], str]:
    """Latency of placements over that of CPU alone, run in turns, and who was fastest."""
    core = unequal_pair()
    names = list(runs[0].devices(runs[0].lines[0]))
    candidates = {device: dict.fromkeys(names, device) for device in DEVICES}
    candidates["solver"] = Placement.of_groups(runs[0].table, solve(runs[0].table).assignment).to_dict()
    tuned = place(model, DEVICES, "TUNE", core, time_budget_ms=1e3 * tune_seconds, policy="none")
    candidates["TUNE"] = tuned.to_dict()
    for run in runs:
        candidates |= {text_of(device_of): device_of for device_of in run.finalists()}
    properties = device_properties(core, DEVICES, {})
    with ProfilingSession(core, model, DEVICES, properties) as session:
        placements = [completed(session.model, device_of) for device_of in candidates.values()]
        executables = [session.compile_placement(device_of) for device_of in placements]
        result = session.race(executables, seconds, max_rounds=_ROUNDS, confidence=0.9999)
        samples = {name: entry.samples for name, entry in zip(candidates, result.entries, strict=True)}
    ratios = {name: paired_ratio(own, samples["CPU"]).median for name, own in samples.items()}
    winner = min(ratios, key=ratios.__getitem__)
    return ratios | {text_of(candidates[name]): ratio for name, ratio in ratios.items()}, winner


def measured_outcome(name: str, run: Run, ratios: dict[str, float], best: float, budget: float) -> Outcome:
    """When a run's policy proposed something within 1 % of the best, and how good its best proposal was."""
    reference = ratios[run.result["best_single"]]
    proposed, reached, when, found = 0, None, None, np.inf
    for line in run.lines:
        kinds = ("proposed",) if line["source"] in DEVICES else ("proposed", "measured")
        if line["kind"] not in kinds or line["note"] == AFTER:  # that one was counted before
            continue
        proposed += 1
        if line["relative"] is None:
            continue
        relative = ratios.get(text_of(run.devices(line)), line["relative"] * reference)
        found = min(found, relative)
        if reached is None and relative <= WITHIN * best:
            reached, when = proposed, line["at_seconds"]
    return Outcome(name, run.seed, run.kind, reached, proposed, when, found / best, run.wall, budget)


def simulated_outcome(name: str, seed: int, kind: str, history: list[float], optimum: float) -> Outcome:
    """When a search on the simulator was within 1 % of the optimum."""
    hits = np.flatnonzero(np.array(history) <= WITHIN * optimum)
    evaluations = int(hits[0]) + 1 if len(hits) else None
    return Outcome(name, seed, kind, evaluations, len(history), None, history[-1] / optimum)


def bench_model(name: str, model: ov.Model, arguments: argparse.Namespace, folder: Path) -> list[Outcome]:
    """All runs of one model, and the race that says what they were worth."""
    fold_static_shapes(model)
    path, table = folder / f"{name}.xml", folder / f"{name}.table.json"
    ov.save_model(model, path, compress_to_fp16=False)
    runs: list[Run] = []
    searches: list[tuple[int, str, list[float]]] = []
    for seed in range(arguments.seeds):
        for kind in finetune_worker.RUNS:
            out = folder / f"{name}-{seed}-{kind.replace(' ', '-')}"
            begin = time.perf_counter()
            result = run_worker(kind, path, out, arguments, seed)
            wall = time.perf_counter() - begin
            lines = [json.loads(line) for line in (out / "measurements.jsonl").read_text().splitlines()]
            runs.append(Run(seed, kind, result, lines, CostTable.load(out / f"{name}.table.json"), wall))
            print(f"{name}, seed {seed}, {kind}: {wall:.1f} s", file=sys.stderr, flush=True)
        runs[0].table.save(table)
        for kind in finetune_worker.SEARCHES:
            searches.append((seed, kind, run_worker(kind, table, folder, arguments, seed)["history"]))
            print(f"{name}, seed {seed}, {kind}", file=sys.stderr, flush=True)
    ratios, winner = final_race(ov.Core().read_model(path), runs, arguments.final_seconds, arguments.budget)
    known = winner if len(winner) < 10 else "a mix that a policy proposed"
    print(f"{name}: best known is {known}, {ratios[winner]:.3f} of CPU", file=sys.stderr, flush=True)
    outcomes = [measured_outcome(name, run, ratios, ratios[winner], arguments.budget) for run in runs]
    solved = simulate(runs[0].table, solve(runs[0].table).assignment).latency_seconds
    optimum = min([solved, *(min(history) for *_, history in searches)])
    return outcomes + [simulated_outcome(name, *search, optimum) for search in searches]


def summary(outcomes: list[Outcome]) -> list[list[str]]:
    """A row per model and kind; runs that did not get there count as worse than any number."""
    rows = []
    for model in dict.fromkeys(o.model for o in outcomes):
        for kind in dict.fromkeys(o.kind for o in outcomes):
            own = [o for o in outcomes if (o.model, o.kind) == (model, kind)]
            there = [o for o in own if o.evaluations is not None]
            counts = sorted(np.inf if o.evaluations is None else o.evaluations for o in own)
            seconds = [o.seconds for o in there if o.seconds is not None]
            walls = [o.wall for o in own if o.wall is not None]
            rows.append(
                [
                    model,
                    kind,
                    f"{len(there)} of {len(own)}",
                    " ".join("-" if np.isinf(count) else str(count) for count in counts),
                    f"{np.median([o.of for o in own]):.0f}",
                    f"{np.median(seconds):.1f}" if seconds else "-",
                    f"{np.median([o.ratio for o in own]):.3f}",
                    f"{max(walls):.1f}" if walls else "-",
                ]
            )
    return rows


def speed_up(outcomes: list[Outcome], kind: str, scratch: str) -> tuple[float, int]:
    """Median over models and seeds of evaluations from scratch over pretrained, and how many are bounds."""
    ratios, bounds = [], 0
    key = {(o.model, o.seed, o.kind): o for o in outcomes}
    for (model, seed, own), ours in key.items():
        if own != kind or ours.evaluations is None:
            continue
        other = key[model, seed, scratch]
        bounds += other.evaluations is None  # it took more than all that it had
        ratios.append((other.evaluations or other.of) / ours.evaluations)
    return (float(np.median(ratios)) if ratios else float("nan")), bounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--checkpoint", default="base")
    parser.add_argument("--families", nargs="*", default=["bert", "vit", "resnet", "unet"])
    parser.add_argument("--ops", type=int, default=300, help="size of each model")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per run")
    parser.add_argument("--evaluations", type=int, default=2000, help="of a search on the simulator")
    parser.add_argument("--final-seconds", type=float, default=20.0, help="for the last race of a model")
    parser.add_argument("--json", type=Path, help="where to write everything")
    arguments = parser.parse_args()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory(prefix="finetune-bench-") as folder:
        for family in arguments.families:
            model = zoo.build_scaled(family, arguments.ops, seed=0, weights="random")
            outcomes += bench_model(family, model, arguments, Path(folder))
    print(machine_line())
    columns = (
        "model",
        "run",
        "reached",
        "evaluations",
        "of",
        "seconds",
        "best / best known",
        "longest run s",
    )
    print_table(
        f"until within {100 * (WITHIN - 1):.0f} % of the best known, budget {arguments.budget:g} s",
        columns,
        summary(outcomes),
    )
    pretrained, *others = finetune_worker.RUNS
    searched, *searched_others = finetune_worker.SEARCHES
    comparisons = [(pretrained, other) for other in others] + [(searched, other) for other in searched_others]
    ratios = {}
    for ours, other in comparisons:
        ratio, bounds = speed_up(outcomes, ours, other)
        ratios[f"{other} / {ours}"] = ratio
        print(f"evaluations, {other} / {ours}: median {ratio:.1f} ({bounds} of them at least that)")
    if arguments.json:
        report = {
            "machine": machine_line(),
            "command": sys.argv,
            "outcomes": [asdict(outcome) for outcome in outcomes],
            "ratios": ratios,
        }
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    assert ROOT
    main()
