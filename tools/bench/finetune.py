"""Fine-tuning on really measured latency: how soon it is within 1 % of the best placement known.

    python tools/bench/finetune.py --results finetune.jsonl [--families bert vit resnet unet] [--seeds 3]
    python tools/bench/finetune.py --results gpu.jsonl --pair gpu [--families radiance_field great_circles]
    python tools/bench/finetune.py --results finetune.jsonl --searches-only    # not timed, at any time
    python tools/bench/finetune.py --results finetune.jsonl --table            # prints what there is

For each model and seed: the pretrained policy; `hsdag` from random weights in the same machinery, simulator
and all; and `hsdag` as published, which is episodes of REINFORCE and 2,000 placements, all of them run on the
devices, in a budget of its own. Beside them, on the simulator of the model's profiled costs, as many
evaluations for both. Every run is a process of its own, whose time counts from its start, loading included,
and needs the machine to itself; the table says what others took of it.

The pair ``alias`` is the CPU plugin twice, on one thread and on two; its models are of the zoo. One device
is the best placement of most of them, and networks that learned nothing propose that at once. The pair
``gpu`` is OpenVINO's GPU plugin, which may run on a virtual GPU, beside the CPU's; its models are the
networks of mix_networks.py, where a mix of both devices can be faster than each.

The best placement known of a model is found in a last race in turns: of the best placements of all runs, the
exact solver's and mode TUNE's answers and the single devices; the fastest of these are compiled twice more
and raced again, and only that counts, so that nobody wins by the luck of one race. Whatever a run claims to
have been within 1 % is raced too before it counts. Only what the policy itself proposed is an evaluation of
it; as published, also what it had proposed before.

Finished pieces are lines of the results file, so a bench that is killed, or is given other families later,
goes on where it was.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

import finetune_worker
import openvino as ov
from common import ROOT, machine_line
from device_race import core_of
from finetune_outcome import improvements
from finetune_race import DeviceOf, LastRace, Run, measured_outcome, text_of
from finetune_results import Results, print_results
from mix_networks import NETWORKS
from real_models import PAIRS

import zoo
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.decide.placer import place
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.placement.placement import Placement
from ov_autoplace.policy.card import load_card
from ov_autoplace.solvers import solve

_MODELS = {
    "alias": ("bert", "vit", "resnet", "unet"),
    # Not great_circles: its ops are one group, so there is nothing to place.
    "gpu": ("radiance_field", "blended_radiance_fields", "random_feature_classifier", "fourier_attention"),
}
_OPS = 300
_CHECKS = 4  # races of claims
_LOG, _TABLE = "measurements.jsonl", "table.json"


def run_worker(task: str, model: Path, out: Path, arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One run in a process of its own, whatever it printed last as JSON."""
    command = [sys.executable, finetune_worker.__file__, task, str(model), str(out)]
    command += ["--checkpoint", arguments.checkpoint, "--budget", str(arguments.budget), "--seed", str(seed)]
    command += ["--evaluations", str(arguments.evaluations), "--pair", arguments.pair]
    command += ["--published-budget", str(arguments.published_budget)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def busy_seconds() -> tuple[float, float]:
    """Processor time that the whole machine and that the children of this process have taken."""
    ticks = [int(value) for value in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    idle = ticks[3] + ticks[4]
    own = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (sum(ticks) - idle) / os.sysconf("SC_CLK_TCK"), own.ru_utime + own.ru_stime


def model_file(results: Results, family: str, arguments: argparse.Namespace) -> Path:
    """The model, built when it is needed for the first time."""
    path = results.folder / f"{family}.xml"
    if not path.exists():
        if arguments.pair == "gpu":
            model = NETWORKS[family]()
        else:
            model = zoo.build_scaled(family, arguments.ops, seed=0, weights="random")
        fold_static_shapes(model)
        path.parent.mkdir(parents=True, exist_ok=True)
        ov.save_model(model, path.with_suffix(".new.xml"), compress_to_fp16=False)
        path.with_suffix(".new.bin").replace(path.with_suffix(".bin"))
        path.with_suffix(".new.xml").replace(path)
    return path


def run_folder(results: Results, name: str, seed: int, kind: str) -> Path:
    """Where the log and the table of a run are kept."""
    return results.folder / f"{name}-{seed}-{kind.replace(' ', '-')}"


def tune(results: Results, model: Path, seed: int, kind: str, arguments: argparse.Namespace) -> None:
    """One run on the devices; nothing when there is one already."""
    name = model.stem
    if results.get("run", name, seed, kind):
        return
    kept = run_folder(results, name, seed, kind)
    out = kept.with_name(f"{kept.name}.running")
    for folder in (kept, out):
        shutil.rmtree(folder, ignore_errors=True)
    begin, (busy, own) = time.perf_counter(), busy_seconds()
    result = run_worker(kind, model, out, arguments, seed)
    wall = time.perf_counter() - begin
    busy_after, own_after = busy_seconds()
    others = ((busy_after - busy) - (own_after - own)) / (wall * (os.cpu_count() or 1))
    kept.mkdir(parents=True)
    shutil.copy(out / "measurements.jsonl", kept / _LOG)
    shutil.copy(out / f"{name}.table.json", kept / _TABLE)
    shutil.rmtree(out)  # checkpoints, which are large
    results.add("run", name, seed, kind, result=result, wall=wall, others=max(others, 0.0))
    print(f"{name}, seed {seed}, {kind}: {wall:.1f} s", file=sys.stderr, flush=True)


def search(results: Results, name: str, seed: int, kind: str, arguments: argparse.Namespace) -> None:
    """One search on the simulator of the first run's costs; nothing when there is one already."""
    if results.get("search", name, seed, kind):
        return
    table = run_folder(results, name, 0, finetune_worker.RUNS[0]) / _TABLE
    if not table.exists():
        raise SystemExit(f"searches need the costs of {name}; run the bench without --searches-only first")
    found = run_worker(kind, table, results.folder, arguments, seed)
    curve = improvements(found["history"])
    results.add("search", name, seed, kind, curve=curve, of=len(found["history"]), solved=found["solved"])
    print(f"{name}, seed {seed}, {kind}", file=sys.stderr, flush=True)


def last_race(results: Results, path: Path, arguments: argparse.Namespace) -> None:
    """Find out what the runs of a model were worth; nothing when that was done for the same runs."""
    name = path.stem
    lines = [line for line in results.all("run") if line["key"][1] == name]
    keys = [line["key"] for line in lines]
    known = results.get("race", name)
    if known and known["runs"] == keys:
        return
    runs = []
    for line in lines:
        _, _, seed, kind = line["key"]
        kept = run_folder(results, name, seed, kind)
        log = [json.loads(text) for text in (kept / _LOG).read_text().splitlines()]
        runs.append(Run(seed, kind, line, log, load_table(kept / _TABLE)))
    model = ov.Core().read_model(path)
    table = runs[0].table
    rivals = {"the solver's": Placement.of_groups(table, solve(table).assignment).to_dict()}
    core = core_of(arguments.pair)
    tuned = place(
        model, PAIRS[arguments.pair], "TUNE", core, time_budget_ms=1e3 * arguments.budget, policy="none"
    )
    ops = rivals["the solver's"]
    rivals["TUNE's"] = {op: tuned.to_dict()[op] for op in ops}
    contestants = [*rivals.values(), *(d for run in runs for d in run.finalists())]
    race = LastRace(arguments.pair, model, contestants, arguments.final_seconds)
    try:
        for _ in range(_CHECKS):
            claims: dict[str, DeviceOf] = {}
            outcomes = [measured_outcome(name, run, race, claims) for run in runs]
            if not claims:
                break
            race.check(claims)
        outcomes = [measured_outcome(name, run, race, {}) for run in runs]
    finally:
        race.close()
    names = {text: f"{device} alone" for device, text in race.singles.items()}
    names = {text_of(device_of): f"{who} mix" for who, device_of in rivals.items()} | names
    results.add(
        "race",
        name,
        runs=keys,
        winner=names.get(race.best, "a mix that a policy proposed"),
        best_single=race.best_single / race.ratios[race.best],
        outcomes=[asdict(outcome) for outcome in outcomes],
    )
    print(f"{name}: last race", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="finished pieces, as JSON lines")
    parser.add_argument("--checkpoint", default="base")
    parser.add_argument("--pair", choices=tuple(PAIRS), default="alias", help="of devices")
    parser.add_argument("--families", nargs="*", help="models; default: the pair's")
    parser.add_argument("--ops", type=int, help=f"size of each model of the pair alias; default: {_OPS}")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per run")
    parser.add_argument(
        "--published-budget", type=float, default=300.0, help="seconds per run of hsdag as published"
    )
    parser.add_argument("--evaluations", type=int, default=2000, help="as published")
    parser.add_argument("--final-seconds", type=float, default=20.0, help="for each race of the last ones")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--runs-only", action="store_true", help="what is timed, and the last races")
    part.add_argument("--searches-only", action="store_true", help="on the simulator, after the runs")
    part.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--json", type=Path, help="where to write the table's numbers")
    arguments = parser.parse_args()
    _complete(parser, arguments)
    results = Results(arguments.results)
    if not arguments.table:
        results.check_settings(
            checkpoint=load_card(arguments.checkpoint).digest,
            **{
                name: getattr(arguments, name)
                for name in ("pair", "ops", "budget", "published_budget", "evaluations")
            },
        )
        results.add("machine", line=machine_line())
        for family in arguments.families:
            bench_family(results, family, arguments)
    pretrained, *others = finetune_worker.RUNS
    searched, *searched_others = finetune_worker.SEARCHES
    comparisons = [(pretrained, other) for other in others] + [(searched, other) for other in searched_others]
    ratios = print_results(results, comparisons)
    if arguments.json:
        outcomes = [asdict(outcome) for outcome in results.outcomes()]
        report = {"settings": results.get("settings"), "outcomes": outcomes, "ratios": ratios}
        arguments.json.write_text(json.dumps(report, indent=1) + "\n")


def _complete(parser: argparse.ArgumentParser, arguments: argparse.Namespace) -> None:
    """Fill in what depends on the pair, and refuse what it does not have."""
    if arguments.pair == "gpu":
        if arguments.ops is not None:
            parser.error("--ops sizes the models of the pair alias; those of the pair gpu have one size")
        unknown = [name for name in arguments.families or () if name not in NETWORKS]
        if unknown:
            parser.error(f"there is no network {', '.join(unknown)}; there are {', '.join(NETWORKS)}")
    elif arguments.ops is None:
        arguments.ops = _OPS
    arguments.families = arguments.families or list(_MODELS[arguments.pair])


def bench_family(results: Results, family: str, arguments: argparse.Namespace) -> None:
    """All runs of one model, the race that says what they were worth, and the searches."""
    path = model_file(results, family, arguments)
    if not arguments.searches_only:
        for seed in range(arguments.seeds):
            for kind in finetune_worker.RUNS:
                tune(results, path, seed, kind, arguments)
        last_race(results, path, arguments)
    if not arguments.runs_only:
        for seed in range(arguments.seeds):
            for kind in finetune_worker.SEARCHES:
                search(results, family, seed, kind, arguments)


if __name__ == "__main__":
    assert ROOT
    main()
