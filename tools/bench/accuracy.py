"""Predicted against measured latency of random placements on two unequal devices.

    python tools/bench/accuracy.py [--models resnet50 unet ...] [--placements 17] [--size full] [--verbose]

Each model is profiled, then placed at random (1 to 12 contiguous runs of groups on alternating devices),
compiled on HETERO and run interleaved by the C++ profiler. The prediction knows nothing of these runs.

A shared machine is faster in one minute than in the next. Each round therefore also runs the whole model on
each device alone, and what is measured in it is scaled by how much these two differ from their profile (the
geometric mean): placements are compared relative to the single devices, not across minutes. The column
"drift" is that factor's spread over rounds; "unscaled" is the median error without it.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
from common import machine_line, print_table, unequal_pair
from numpy.typing import NDArray
from scipy.stats import spearmanr
from suite_process import Failure, in_child
from suite_report import print_result
from suite_result import Result, Table, measured_ratio

import zoo
from ov_autoplace.cost.profiled import profile_session
from ov_autoplace.cost.profiling import ProfilingSession
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.transfers import measure_transfers
from ov_autoplace.devices import device_properties, profiler_for
from ov_autoplace.graph.extract import extract
from ov_autoplace.placement.placement import Placement
from ov_autoplace.simulator import simulate
from ov_autoplace.statistics import median_interval
from ov_autoplace.support import supported_ops

DEVICES = ("XCPU", "CPU")
MODELS = ("inception_v3", "resnet50", "bert_base", "mobilenet_v2", "unet", "wavenet")
MOST_SEGMENTS = 12
# Compiled placements hold their weights: so many live at a time.
BATCH = 6
SECONDS = 0.3  # of running per placement
ROUNDS = 12


@dataclass(frozen=True)
class Trial:
    """One placement: seconds and number of subgraphs, predicted and real, and the machine's drift."""

    predicted: float
    measured: float
    unscaled: float
    drift: float
    predicted_subgraphs: int
    subgraphs: int

    @property
    def error(self) -> float:
        """Relative error of the prediction, with its sign."""
        return self.predicted / self.measured - 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", nargs="+", default=list(MODELS), choices=zoo.NAMES, metavar="MODEL")
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--placements", type=int, default=17, help="of each model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print every placement")
    arguments = parser.parse_args()
    plan = Plan(tuple(arguments.models), arguments.size, arguments.placements)
    result = run(False, arguments.seed, plan)
    print(machine_line())
    if arguments.verbose:
        for name, trials in result.data["trials"].items():
            print_trials(name, [Trial(**trial) for trial in trials])
    print_result(result)


@dataclass(frozen=True)
class Plan:
    """What is measured: models of one size, and how many placements of each."""

    models: tuple[str, ...] = MODELS
    size: Literal["small", "full"] = "full"
    placements: int = 17


QUICK = Plan(("mobilenet_v2", "bert_base"), "small", 6)


def run(quick: bool, seed: int, plan: Plan | None = None) -> Result:
    """Every model in a process of its own.

    Args:
        quick: Few placements of two small models.
        seed: Of the placements.
        plan: Overrides ``quick``.
    """
    plan = plan or (QUICK if quick else Plan())
    found: dict[str, list[Trial]] = {}
    rows, remarks, ratios = [], [], []
    for name in plan.models:
        start = time.perf_counter()
        arguments = {"name": name, "size": plan.size, "placements": plan.placements, "seed": seed}
        outcome = in_child("accuracy:trials_of", arguments)
        if isinstance(outcome, Failure):
            remarks.append(f"{name}: not measured: {outcome.reason}")
            continue
        found[name] = [Trial(**trial) for trial in outcome]
        rows.append(summary(name, found[name], time.perf_counter() - start))
        errors = np.abs([trial.error for trial in found[name]])
        # 1 plus the error, so that the gate's shares are shares of a latency.
        ratios.append(
            measured_ratio(f"{name}, {plan.size}: 1 + median error", median_interval(1 + errors), len(errors))
        )
    everything = [abs(trial.error) for trials in found.values() for trial in trials]
    if everything:
        remarks.insert(
            0, f"all {len(everything)} placements: median absolute error {np.median(everything):.1%}"
        )
    columns = (
        "model",
        "placements",
        "latency ms",
        "median error",
        "p90",
        "bias",
        "unscaled",
        "drift",
        "Spearman",
        "subgraphs right",
        "s",
    )
    selection = f"--models {' '.join(plan.models)} --size {plan.size} --placements {plan.placements}"
    return Result(
        title="Simulator accuracy: predicted against measured latency",
        command=f"python tools/bench/accuracy.py {selection} --seed {seed}",
        tables=(Table(f"Random placements on XCPU and CPU, {plan.size} size", columns, tuple(rows)),),
        ratios=tuple(ratios),
        remarks=tuple(remarks),
        data={"trials": {name: [asdict(trial) for trial in trials] for name, trials in found.items()}},
    )


def trials_of(name: str, size: Literal["small", "full"], placements: int, seed: int) -> list[dict[str, Any]]:
    """Profile one model, place it at random and measure, for JSON."""
    core = unequal_pair()
    properties = device_properties(core, DEVICES)
    transfers = measure_transfers(profiler_for(core, DEVICES, properties), DEVICES)
    with ProfilingSession(core, zoo.build(name, size), DEVICES, properties) as session:
        graph = extract(session.model)
        supported = supported_ops(core, session.model, graph.names, DEVICES, properties)
        table = profile_session(session, graph, supported, transfers=transfers).table
        random = np.random.default_rng(seed)
        assignments = [random_assignment(len(table), random) for _ in range(placements)]
        return [asdict(trial) for trial in measure(session, table, assignments)]


def random_assignment(groups: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Contiguous runs of groups, in topological order, on alternating devices."""
    segments = int(random.integers(1, min(MOST_SEGMENTS, groups) + 1))
    cuts = np.sort(random.choice(np.arange(1, groups), size=segments - 1, replace=False))
    first = int(random.integers(len(DEVICES)))
    runs = np.searchsorted(cuts, np.arange(groups), side="right")
    return ((runs + first) % len(DEVICES)).astype(np.int32)


def measure(
    session: ProfilingSession, table: CostTable, assignments: Sequence[NDArray[np.int32]]
) -> list[Trial]:
    """Compile and run placements in turns, a batch at a time."""
    alone = [session.compile_device(device) for device in DEVICES]
    profiled = np.array(
        [simulate(table, np.full(len(table), d, np.int32)).latency_seconds for d in range(len(DEVICES))]
    )
    trials = []
    for begin in range(0, len(assignments), BATCH):
        batch = assignments[begin : begin + BATCH]
        mixes = [
            session.compile_placement(Placement.of_groups(table, assignment).to_dict())
            for assignment in batch
        ]
        executables = [*alone, *mixes]
        runs = [
            int(np.clip(SECONDS / ROUNDS / executable.run(2, warmup=2).min(), 1, 200))
            for executable in executables
        ]
        seconds = np.array(
            [
                [np.median(e.run(count, warmup=1)) for e, count in zip(executables, runs, strict=True)]
                for _ in range(ROUNDS)
            ]
        )
        drift = np.exp(np.log(seconds[:, : len(alone)] / profiled).mean(axis=1))
        for assignment, executable, found in zip(batch, mixes, seconds[:, len(alone) :].T, strict=True):
            schedule = simulate(table, assignment)
            trials.append(
                Trial(
                    predicted=schedule.latency_seconds,
                    measured=float(np.median(found / drift)),
                    unscaled=float(np.median(found)),
                    drift=float(np.median(drift)),
                    predicted_subgraphs=schedule.subgraphs,
                    subgraphs=executable.subgraphs,
                )
            )
    return trials


def summary(name: str, trials: Sequence[Trial], seconds: float) -> tuple[str, ...]:
    """One row of the table."""
    errors = np.array([trial.error for trial in trials])
    predicted = [trial.predicted for trial in trials]
    measured = [trial.measured for trial in trials]
    right = np.mean([trial.predicted_subgraphs == trial.subgraphs for trial in trials])
    return (
        name,
        str(len(trials)),
        f"{min(measured) * 1e3:.3f} to {max(measured) * 1e3:.3f}",
        f"{np.median(np.abs(errors)):.1%}",
        f"{np.quantile(np.abs(errors), 0.9):.1%}",
        f"{np.median(errors):+.1%}",
        f"{np.median([abs(trial.predicted / trial.unscaled - 1) for trial in trials]):.1%}",
        f"{min(trial.drift for trial in trials):.2f} to {max(trial.drift for trial in trials):.2f}",
        f"{spearmanr(predicted, measured).statistic:.3f}",
        f"{right:.0%}",
        f"{seconds:.0f}",
    )


def print_trials(name: str, trials: Sequence[Trial]) -> None:
    """Every placement, by error."""
    print_table(
        f"{name}: milliseconds",
        ("predicted", "measured", "error", "subgraphs predicted", "real"),
        [
            (
                f"{trial.predicted * 1e3:.3f}",
                f"{trial.measured * 1e3:.3f}",
                f"{trial.error:+.1%}",
                trial.predicted_subgraphs,
                trial.subgraphs,
            )
            for trial in sorted(trials, key=lambda trial: trial.error)
        ],
    )


if __name__ == "__main__":
    main()
