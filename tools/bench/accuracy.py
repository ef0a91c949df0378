"""Predicted against measured latency of random placements on two unequal devices.

    python tools/bench/accuracy.py [--models resnet50 unet ...] [--placements 17] [--size full] [--verbose]
    python tools/bench/accuracy.py --models kinds --size small       # every kind of transformers network
    python tools/bench/accuracy.py --models held-out --size small    # those that nothing was tuned to

Each model is profiled, then placed at random (1 to 12 contiguous runs of groups on alternating devices),
compiled on HETERO and run interleaved by the C++ profiler. The prediction knows nothing of these runs.

A shared machine has two speeds, one about half the other, between which it goes back and forth in tens of
milliseconds, and one thread loses more by the slower one than two. So everything is run in short turns, and
each round of turns includes the whole model on each device alone: those rounds count in which these two
(their geometric mean) are within 10 % of the profile, which is of the undisturbed machine, or the nearest
ones where too few are found in the time. What is left of the difference is scaled away: placements are
compared relative to the single devices, not across minutes. The column "drift" is that factor's spread over
placements; "unscaled" is the median error without it.

Each placement is measured in a process of its own: submodels that were compiled before make later ones
slower, even when they are gone (a Mamba of 27 submodels took 1.8 times a single device's time at first, and
2.9 times beside and after 381 others). It is measured twice, compiled anew in another process, and the
geometric mean counts. The column "ceiling" is the rank correlation between the two: what is asked of the
prediction cannot be had where the machine itself does not give it. A placement that HETERO refuses to run is
left out and counted; nothing else is.

With OV_AUTOPLACE_BENCH_CACHE set to a folder, networks that were built or measured are kept there, and a run
that was cut off goes on where it ended.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import openvino as ov
from common import machine_line, print_table, unequal_pair
from numpy.typing import NDArray
from scipy.stats import spearmanr
from suite_process import CACHE_VARIABLE, Failure, in_child
from suite_report import print_result
from suite_result import Result, Table, measured_ratio

import transformers_kinds
import zoo
from ov_autoplace._base.statistics import median_interval
from ov_autoplace.cost.table import CostTable
from ov_autoplace.devices.names import device_properties
from ov_autoplace.devices.support import supported_ops
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.graph.names import make_names_unique
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.profiled import profile_session
from ov_autoplace.measure.session import ProfilingSession, save_ir
from ov_autoplace.measure.transfers import measure_transfers
from ov_autoplace.placement.placement import Placement
from ov_autoplace.placement.simulator import simulate

if TYPE_CHECKING:
    from ov_autoplace._core import Executable

DEVICES = ("XCPU", "CPU")
MODELS = ("inception_v3", "resnet50", "bert_base", "mobilenet_v2", "unet", "wavenet")
# Whole sets of transformers networks by the word that stands for them; they come in the small size alone.
SETS = {"kinds": transformers_kinds.NAMES, "held-out": transformers_kinds.HELD_OUT}
KINDS = tuple(name for names in SETS.values() for name in names)
MOST_SEGMENTS = 12
FEWEST = 3  # placements to judge a model by
SECONDS = 0.004  # of each turn; a turn has one inference at least, after one that does not count
# So many rounds in which the machine is as fast as in the profile are enough; so many at most are run to find
# them; and so many count at least.
ROUNDS, MOST_ROUNDS, FEWEST_ROUNDS = 24, 60, 10
MOST_SECONDS = 8.0  # for the rounds of models that are slow
SAME_MOOD = 0.1
COPIES = 2  # measurements of each placement, in processes of their own
TOGETHER = 6  # placements that are run in turns, each of which holds the model in memory


@dataclass(frozen=True)
class Trial:
    """One placement: seconds and number of subgraphs, predicted and real, and the machine's drift.

    Attributes:
        predicted: By the profile.
        copies: As measured in each process, relative to the profile's mood.
        unscaled: Mean of what was measured, as it was.
        drift: How many times slower than in the profile the machine was.
        predicted_subgraphs: By the simulator.
        subgraphs: That HETERO made.
    """

    predicted: float
    copies: tuple[float, ...]
    unscaled: float
    drift: float
    predicted_subgraphs: int
    subgraphs: int

    @property
    def measured(self) -> float:
        """Geometric mean of the copies."""
        return float(np.exp(np.log(self.copies).mean()))

    @property
    def error(self) -> float:
        """Relative error of the prediction, with its sign."""
        return self.predicted / self.measured - 1


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--models", nargs="+", default=list(MODELS), choices=(*SETS, *KINDS, *zoo.NAMES), metavar="MODEL"
    )
    parser.add_argument("--size", choices=("small", "full"), default="full")
    parser.add_argument("--placements", type=int, default=17, help="of each model")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--verbose", action="store_true", help="print every placement")
    arguments = parser.parse_args()
    models = tuple(name for word in arguments.models for name in SETS.get(word, (word,)))
    if arguments.size == "full" and set(models) & set(KINDS):
        parser.error("the transformers networks come in the small size alone: add --size small")
    plan = Plan(models, arguments.size, arguments.placements)
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
        trials = [Trial(**trial) for trial in outcome["trials"]]
        if outcome["refused"]:
            remarks.append(f"{name}: {outcome['refused']} of {plan.placements} placements do not run")
        wrongly_infinite = sum(not np.isfinite(trial.predicted) for trial in trials)
        if wrongly_infinite:
            remarks.append(f"{name}: {wrongly_infinite} placements run that are predicted not to")
        trials = [trial for trial in trials if np.isfinite(trial.predicted)]
        if len(trials) < FEWEST:
            remarks.append(f"{name}: only {len(trials)} placements can be compared; not judged")
            continue
        found[name] = trials
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
        remarks.insert(1, models_remark(found))
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
        "ceiling",
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


def build(name: str, size: Literal["small", "full"]) -> ov.Model:
    """A network of the zoo or of transformers, as AUTOPLACE prepares it for placing."""
    folder = os.environ.get(CACHE_VARIABLE)
    kept = Path(folder) / f"{name}-{size}" if folder else None
    if kept is not None and kept.exists():
        return ov.Core().read_model(kept / "model.xml")
    model = transformers_kinds.build(name) if name in KINDS else zoo.build(name, size)
    make_names_unique(model)
    fold_static_shapes(model)
    if kept is not None:
        unfinished = Path(tempfile.mkdtemp(dir=kept.parent))
        save_ir(model, unfinished)
        unfinished.rename(kept)
    return model


def models_remark(found: dict[str, list[Trial]]) -> str:
    """What the models' own figures come to."""
    errors = [float(np.median([abs(trial.error) for trial in trials])) for trials in found.values()]
    ranks = np.array([rank_correlation(trials) for trials in found.values()])
    ceilings = np.array([ceiling(trials) for trials in found.values()])
    worst = list(found)[int(np.argmax(errors))]
    return (
        f"{len(found)} models: median of their median errors {np.median(errors):.1%}, "
        f"largest {max(errors):.1%} ({worst}), "
        f"rank correlation at least 0.85 on {np.mean(ranks >= 0.85):.0%}; "
        f"the measurements' own is on {np.mean(ceilings >= 0.85):.0%}"
    )


def rank_correlation(trials: Sequence[Trial]) -> float:
    """Spearman's, of predicted and measured latencies."""
    return float(
        spearmanr([trial.predicted for trial in trials], [trial.measured for trial in trials]).statistic
    )


def ceiling(trials: Sequence[Trial]) -> float:
    """Spearman's, of the latencies of the same placements measured in other processes."""
    return float(spearmanr(*zip(*(trial.copies for trial in trials), strict=True)).statistic)


def trials_of(name: str, size: Literal["small", "full"], placements: int, seed: int) -> dict[str, Any]:
    """Profile one model, place it at random and measure, for JSON: the trials, and how many do not run."""
    core = unequal_pair()
    properties = device_properties(core, DEVICES)
    transfers = measure_transfers(profiler_for(core, DEVICES, properties), DEVICES)
    with ProfilingSession(core, build(name, size), DEVICES, properties) as session:
        graph = extract(session.model)
        supported = supported_ops(core, session.model, graph.names, DEVICES, properties)
        table = profile_session(session, graph, supported, transfers=transfers).table
        random = np.random.default_rng(seed)
        assignments = [random_assignment(len(table), random) for _ in range(placements)]
        if isinstance(session.profiler, IsolatedProfiler):
            session.profiler.restart()  # what the profile compiled is in nobody's way
        trials = measure(session, table, assignments)
        return {"trials": [asdict(trial) for trial in trials], "refused": placements - len(trials)}


def random_assignment(groups: int, random: np.random.Generator) -> NDArray[np.int32]:
    """Contiguous runs of groups, in topological order, on alternating devices."""
    segments = int(random.integers(1, min(MOST_SEGMENTS, groups) + 1))
    cuts = np.sort(random.choice(np.arange(1, groups), size=segments - 1, replace=False))
    first = int(random.integers(len(DEVICES)))
    runs = np.searchsorted(cuts, np.arange(groups), side="right")
    return ((runs + first) % len(DEVICES)).astype(np.int32)


def measure(
    session: ProfilingSession,
    table: CostTable,
    assignments: Sequence[NDArray[np.int32]],
) -> list[Trial]:
    """Compile and run the placements in turns with the single devices, each of them in several processes.

    Args:
        session: The model and its devices.
        table: What predicts.
        assignments: Device of each group, ``int32[G]`` each.
    """
    profiled = np.array(
        [simulate(table, np.full(len(table), d, np.int32)).latency_seconds for d in range(len(DEVICES))]
    )
    trials = []
    for begin in range(0, len(assignments), TOGETHER):
        batch = assignments[begin : begin + TOGETHER]
        copies = []
        for _ in range(COPIES):
            with ExitStack() as processes:
                executables = compiled(processes, session, table, batch)
                copies.append((executables, *in_turns(executables, profiled)))
        for i, assignment in enumerate(batch):
            ran = [copy for copy in copies if copy[0][len(DEVICES) + i] is not None]
            if len(ran) < COPIES:
                continue
            schedule = simulate(table, assignment)
            seconds = [latencies[:, len(DEVICES) + i] for _, latencies, _ in ran]
            drifts = [drift for _, _, drift in ran]
            trials.append(
                Trial(
                    predicted=schedule.latency_seconds,
                    copies=tuple(float(np.median(s / d)) for s, d in zip(seconds, drifts, strict=True)),
                    unscaled=float(np.mean([np.median(s) for s in seconds])),
                    drift=float(np.median(np.concatenate(drifts))),
                    predicted_subgraphs=schedule.subgraphs,
                    subgraphs=ran[0][0][len(DEVICES) + i].subgraphs,
                )
            )
    return trials


def compiled(
    processes: ExitStack,
    session: ProfilingSession,
    table: CostTable,
    assignments: Sequence[NDArray[np.int32]],
) -> list[Executable | None]:
    """The single devices in one new process, each placement in another; ``None`` where it does not run."""

    def compile_all(wanted: Sequence[NDArray[np.int32]]) -> list[Executable | None]:
        apart = processes.enter_context(session.apart())
        return [compiled_placement(apart, table, assignment) for assignment in wanted]

    alone = [np.full(len(table), d, np.int32) for d in range(len(DEVICES))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(compile_all, [alone, *([assignment] for assignment in assignments)]))
    return [executable for part in parts for executable in part]


def in_turns(
    executables: Sequence[Executable | None], profiled: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Run in turns until the machine was in the mood of the profile for long enough.

    Args:
        executables: E of them, the single devices first; ``None`` has no latency.
        profiled: What the profile says of each single device, in seconds.

    Returns:
        Median latency of each executable in each round that counts, ``float64[rounds, E]``, and how many
        times slower the machine was in it than in the profile, ``float64[rounds]``.
    """
    runs = [0 if e is None else int(np.clip(SECONDS / e.run(2, warmup=2).min(), 1, 200)) for e in executables]
    seconds: list[list[float]] = []
    drifts: list[float] = []
    end = time.perf_counter() + MOST_SECONDS
    while len(seconds) < MOST_ROUNDS and sum(abs(drift) < SAME_MOOD for drift in drifts) < ROUNDS:
        if len(seconds) >= FEWEST_ROUNDS and time.perf_counter() > end:
            break
        found = [
            np.nan if e is None else float(np.median(e.run(n, warmup=1)))
            for e, n in zip(executables, runs, strict=True)
        ]
        seconds.append(found)
        drifts.append(float(np.log(found[: len(profiled)] / profiled).mean()))
    distance = np.abs(drifts)
    counts = max(int((distance < SAME_MOOD).sum()), FEWEST_ROUNDS)
    kept = np.argsort(distance, kind="stable")[:counts]
    return np.array(seconds)[kept], np.exp(np.array(drifts)[kept])


def compiled_placement(
    session: ProfilingSession, table: CostTable, assignment: NDArray[np.int32]
) -> Executable | None:
    """The placement, run once; ``None`` when OpenVINO refuses to compile or run it."""
    from ov_autoplace._core import ProfilerError

    try:
        executable = session.compile_placement(Placement.of_groups(table, assignment).to_dict())
        executable.run(1)
    except (ProfilingError, ProfilerError):
        return None
    return executable


def summary(name: str, trials: Sequence[Trial], seconds: float) -> tuple[str, ...]:
    """One row of the table."""
    errors = np.array([trial.error for trial in trials])
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
        f"{rank_correlation(trials):.3f}",
        f"{ceiling(trials):.3f}",
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
