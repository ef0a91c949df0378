"""Fine-tuning on really measured latency: how soon it is within 1 % of the best placement known.

    python tools/bench/finetune.py --results finetune.jsonl [--families bert vit resnet unet] [--seeds 3]
    python tools/bench/finetune.py --results finetune.jsonl --searches-only    # not timed, at any time
    python tools/bench/finetune.py --results finetune.jsonl --table            # prints what there is

For each model and seed: the pretrained policy; `hsdag` from random weights in the same machinery, simulator
and all; and `hsdag` that learns from its own measured samples alone, as published. Beside them, on the
simulator of the model's profiled costs, the published budget of 2,000 evaluations for both. Every run is a
process of its own, whose time counts from its start, loading included, and needs the machine to itself; the
table says what others took of it.

The best placement known of a model is found in a last race in turns: of the best placements of all runs, the
exact solver's and mode TUNE's answers and the single devices; the fastest of these are compiled twice more
and raced again, and only that counts, so that nobody wins by the luck of one race. Whatever a run claims to
have been within 1 % is raced too before it counts. Only what the policy itself proposed is an evaluation of
it.

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
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import finetune_worker
import numpy as np
import openvino as ov
from common import ROOT, machine_line, unequal_pair
from finetune_results import WITHIN, Outcome, Results, improvements, print_results

import zoo
from ov_autoplace.cost.profiling import ProfilingSession
from ov_autoplace.cost.table import CostTable
from ov_autoplace.devices import device_properties
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.placement.annotation import completed
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placer import place
from ov_autoplace.policy.checkpoint import load_card
from ov_autoplace.solvers import solve
from ov_autoplace.statistics import paired_ratio
from ov_autoplace.training.finetuning.task import AFTER

DEVICES = ("XCPU", "CPU")
_FINALISTS = 3  # of each run, into the last race
_FASTEST = 6  # of the last race, to be compiled again
_COMPILATIONS = 2
_CHECKS = 4  # races of claims
_ROUNDS = 400
_LOG, _TABLE = "measurements.jsonl", "table.json"

DeviceOf = dict[str, str]


@dataclass
class Run:
    """A fine-tuning that ended.

    Attributes:
        line: The line of the results file.
        lines: The measurement log.
        table: Its costs, which name what the placements of the log place.
    """

    seed: int
    kind: str
    line: dict[str, Any]
    lines: list[dict[str, Any]]
    table: CostTable

    def devices(self, line: dict[str, Any]) -> DeviceOf:
        """Device of each op in a line of the log."""
        assignment = np.array([ord(c) - ord("0") for c in line["placement"]], dtype=np.int32)
        return Placement.of_groups(self.table, assignment).to_dict()

    def finalists(self) -> list[DeviceOf]:
        """The best placements that it measured."""
        measured = [line for line in self.lines if line["kind"] == "measured" and line["relative"]]
        measured.sort(key=lambda line: line["relative"])
        return [self.devices(line) for line in measured[:_FINALISTS]]


def text_of(device_of: DeviceOf) -> str:
    """The same for the same placement, whatever groups it was made of."""
    return " ".join(device_of[name] for name in sorted(device_of))


def run_worker(task: str, model: Path, out: Path, arguments: argparse.Namespace, seed: int) -> dict[str, Any]:
    """One run in a process of its own, whatever it printed last as JSON."""
    command = [sys.executable, finetune_worker.__file__, task, str(model), str(out)]
    command += ["--checkpoint", arguments.checkpoint, "--budget", str(arguments.budget), "--seed", str(seed)]
    command += ["--evaluations", str(arguments.evaluations)]
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


def model_file(results: Results, family: str, ops: int) -> Path:
    """The model, built when it is needed for the first time."""
    path = results.folder / f"{family}.xml"
    if not path.exists():
        model = zoo.build_scaled(family, ops, seed=0, weights="random")
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


class LastRace:
    """Races of placements of one model, relative to the second device alone.

    Attributes:
        placements: Device of each op, by text.
        ratios: Latency over that device's, by text: of the last races that each was in.
    """

    def __init__(self, model: ov.Model, placements: list[DeviceOf], seconds: float) -> None:
        core = unequal_pair()
        self._session = ProfilingSession(core, model, DEVICES, device_properties(core, DEVICES, {}))
        self._seconds = seconds
        names = list(placements[0])
        alone = {device: dict.fromkeys(names, device) for device in DEVICES}
        self.singles = {device: text_of(device_of) for device, device_of in alone.items()}
        self.placements = {text_of(device_of): device_of for device_of in [*alone.values(), *placements]}
        self.ratios: dict[str, float] = {}
        self._race(list(self.placements), 1)
        fastest = sorted(self.ratios, key=self.ratios.__getitem__)[:_FASTEST]
        self._final = dict.fromkeys([*self.singles.values(), *fastest])
        self._race(list(self._final), _COMPILATIONS)

    @property
    def best(self) -> str:
        """The fastest placement of those that were compiled again."""
        return min(self._final, key=self.ratios.__getitem__)

    def check(self, placements: dict[str, DeviceOf]) -> None:
        """Race more placements beside the best one."""
        self.placements |= placements
        self._race([*self.singles.values(), self.best, *placements], _COMPILATIONS, set(placements))

    def close(self) -> None:
        """Let go of the devices."""
        self._session.close()

    def _race(self, texts: list[str], compilations: int, about: set[str] | None = None) -> None:
        """Compile and race placements; note the ratios of some of them, which are all if not said."""
        logs: dict[str, list[float]] = {}
        for _ in range(compilations):
            self._session.forget()
            executables = {}
            for text in dict.fromkeys(texts):
                try:
                    device_of = completed(self._session.model, self.placements[text])
                    executables[text] = self._session.compile_placement(device_of)
                except ProfilingError as cause:
                    print(f"left out of the last race: {cause}", file=sys.stderr)
            result = self._session.race(
                list(executables.values()), self._seconds, max_rounds=_ROUNDS, confidence=0.9999
            )
            samples = {text: e.samples for text, e in zip(executables, result.entries, strict=True)}
            reference = samples[self.singles[DEVICES[1]]]
            for text, own in samples.items():
                if len(own):
                    logs.setdefault(text, []).append(float(np.log(paired_ratio(own, reference).median)))
        for text, values in logs.items():
            if about is None or text in about:
                self.ratios[text] = float(np.exp(np.mean(values)))


def measured_outcome(name: str, run: Run, race: LastRace, claims: dict[str, DeviceOf]) -> Outcome:
    """When a run's policy proposed something within 1 % of the best, and how good its best proposal was.

    Claims that were not raced yet do not count; they are added to ``claims``.
    """
    best = race.ratios[race.best]
    reference = race.ratios[race.singles[run.line["result"]["best_single"]]]
    found: list[float] = []
    hit: dict[str, Any] = {"evaluations": None}
    measured = 0
    for line in run.lines:
        measured += line["kind"] == "measured"
        kinds = ("proposed",) if line["source"] in DEVICES else ("proposed", "measured")
        if line["kind"] not in kinds or line["note"] == AFTER:  # that one was counted before
            continue
        if line["relative"] is None:
            found.append(np.inf)
            continue
        device_of = run.devices(line)
        text = text_of(device_of)
        ratio = race.ratios.get(text, line["relative"] * reference) / best
        if ratio <= WITHIN and text not in race.ratios:
            claims[text] = device_of
            ratio = np.inf
        found.append(ratio)
        if hit["evaluations"] is None and ratio <= WITHIN:
            hit = {"evaluations": len(found), "seconds": line["at_seconds"], "measured": measured}
    return Outcome(
        model=name,
        seed=run.seed,
        kind=run.kind,
        of=len(found),
        ratio=min(found, default=np.inf),
        curve=improvements(found),
        measurements=measured,
        wall=run.line["wall"],
        others=run.line["others"],
        **hit,
    )


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
        runs.append(Run(seed, kind, line, log, CostTable.load(kept / _TABLE)))
    model = ov.Core().read_model(path)
    table = runs[0].table
    rivals = {"the solver's": Placement.of_groups(table, solve(table).assignment).to_dict()}
    tuned = place(
        model, DEVICES, "TUNE", unequal_pair(), time_budget_ms=1e3 * arguments.budget, policy="none"
    )
    ops = rivals["the solver's"]
    rivals["TUNE's"] = {op: tuned.to_dict()[op] for op in ops}
    race = LastRace(
        model, [*rivals.values(), *(d for run in runs for d in run.finalists())], arguments.final_seconds
    )
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
        best_single=min(race.ratios[text] for text in race.singles.values()) / race.ratios[race.best],
        outcomes=[asdict(outcome) for outcome in outcomes],
    )
    print(f"{name}: last race", file=sys.stderr, flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, required=True, help="finished pieces, as JSON lines")
    parser.add_argument("--checkpoint", default="base")
    parser.add_argument("--families", nargs="*", default=["bert", "vit", "resnet", "unet"])
    parser.add_argument("--ops", type=int, default=300, help="size of each model")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--budget", type=float, default=60.0, help="seconds per run")
    parser.add_argument("--evaluations", type=int, default=2000, help="of a search on the simulator")
    parser.add_argument("--final-seconds", type=float, default=20.0, help="for each race of the last ones")
    part = parser.add_mutually_exclusive_group()
    part.add_argument("--runs-only", action="store_true", help="what is timed, and the last races")
    part.add_argument("--searches-only", action="store_true", help="on the simulator, after the runs")
    part.add_argument("--table", action="store_true", help="print what there is")
    parser.add_argument("--json", type=Path, help="where to write the table's numbers")
    arguments = parser.parse_args()
    results = Results(arguments.results)
    if not arguments.table:
        results.check_settings(
            checkpoint=load_card(arguments.checkpoint).digest,
            **{name: getattr(arguments, name) for name in ("ops", "budget", "evaluations")},
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


def bench_family(results: Results, family: str, arguments: argparse.Namespace) -> None:
    """All runs of one model, the race that says what they were worth, and the searches."""
    path = model_file(results, family, arguments.ops)
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
