"""Predicted against measured latency of random placements on two unequal devices.

``models`` takes sets of networks too: ``kinds``, every kind of transformers network, and ``held-out``, those
that nothing was tuned to; these come in the small size alone.

Each model is profiled, then placed at random (1 to 12 contiguous runs of groups on alternating devices),
compiled on HETERO and run interleaved by the C++ profiler. The prediction knows nothing of these runs.

A shared machine has two speeds, one about half the other, between which it goes back and forth in tens of
milliseconds, and one thread loses more by the slower one than two. So everything is run in short turns, and
each round of turns includes the whole model on each device alone: those rounds count in which these two
(their geometric mean) are within 10 % of the profile, which is of the undisturbed machine, or the nearest
ones where too few are found in the time. What is left of the difference is scaled away: placements are
compared relative to the single devices, not across minutes.

Each placement is measured in a process of its own: submodels that were compiled before make later ones
slower, even when they are gone (a Mamba of 27 submodels took 1.8 times a single device's time at first, and
2.9 times beside and after 381 others). It is measured twice, compiled anew in another process, and the
geometric mean counts. The column "ceiling" is the rank correlation between the two: what is asked of the
prediction cannot be had where the machine itself does not give it. A placement that HETERO refuses to run is
left out and counted; nothing else is.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import openvino as ov
from scipy.stats import spearmanr

import transformers_kinds
import zoo
from harness.environment import PAIRS, core_of
from harness.process import Pieces
from harness.result import Claim, Result, Table, measured_ratio
from ov_autoplace._base.arrays import FloatArray, IntArray
from ov_autoplace._base.statistics import median_interval
from ov_autoplace.cost.table import CostTable
from ov_autoplace.devices.names import device_properties
from ov_autoplace.errors import ProfilingError
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.isolation.interface import profiler_for
from ov_autoplace.measure.isolation.profiler import IsolatedProfiler
from ov_autoplace.measure.opening import open_session
from ov_autoplace.measure.profiled import profile_session
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.measure.transfers import measure_transfers
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.simulator import simulate

if TYPE_CHECKING:
    from ov_autoplace._core import Executable

DEVICES = PAIRS["alias"]
MODELS = ("inception_v3", "resnet50", "bert_base", "mobilenet_v2", "unet", "wavenet")
# Whole sets of transformers networks by name; they come in the small size alone.
SETS = {"kinds": transformers_kinds.NAMES, "held-out": transformers_kinds.HELD_OUT}
KINDS = tuple(name for names in SETS.values() for name in names)
QUICK_MODELS = ("mobilenet_v2", "bert_base")
MOST_SEGMENTS = 12
FEWEST = 3  # placements to judge a model by
_ERROR = 0.05  # of the median prediction, at most, as the documents say
SECONDS = 0.004  # of each turn; a turn has one inference at least, after one that does not count
# So many rounds in which the machine is as fast as in the profile are enough; so many at most are run to find
# them; and so many count at least.
ROUNDS, MOST_ROUNDS, FEWEST_ROUNDS = 24, 60, 10
MOST_SECONDS = 8.0  # for the rounds of models that are slow
SAME_SPEED = 0.1
COPIES = 2  # measurements of each placement, in processes of their own
TOGETHER = 6  # placements that are run in turns, each of which holds the model in memory


@dataclass(frozen=True)
class Trial:
    """One placement: seconds and number of subgraphs, predicted and real, and the machine's drift.

    Attributes:
        predicted: By the profile.
        copies: As measured in each process, at the speed of the profile.
        predicted_subgraphs: By the simulator.
        subgraphs: That HETERO made.
    """

    predicted: float
    copies: tuple[float, ...]
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


def run(
    quick: bool, seed: int, models: tuple[str, ...] = (), size: str = "full", placements: int = 8
) -> Result:
    """Every model in a process of its own.

    Args:
        quick: Few placements of two small models.
        seed: Of the placements.
        models: Names of the zoo and of transformers networks, or of :data:`SETS`; some of the zoo when empty.
        size: ``small`` or ``full``; transformers networks come in the small size alone.
        placements: Of each model.
    """
    chosen = tuple(name for word in models for name in SETS.get(word, (word,))) or MODELS
    if quick:
        chosen, size, placements = QUICK_MODELS, "small", 6
    found: dict[str, list[Trial]] = {}
    rows, remarks, ratios = [], [], []
    pieces = Pieces()
    for name in chosen:
        start = time.perf_counter()
        outcome = pieces(name, trials_of, name=name, size=size, placements=placements, seed=seed)
        if outcome is None:
            continue
        trials = [Trial(**trial) for trial in outcome["trials"]]
        if outcome["refused"]:
            remarks.append(f"{name}: {outcome['refused']} of {placements} placements do not run")
        finite = [trial for trial in trials if np.isfinite(trial.predicted)]
        if len(finite) < len(trials):
            remarks.append(f"{name}: {len(trials) - len(finite)} placements run that are predicted not to")
        trials = finite
        if len(trials) < FEWEST:
            remarks.append(f"{name}: only {len(trials)} placements can be compared; not judged")
            continue
        found[name] = trials
        rows.append(summary(name, trials, time.perf_counter() - start))
        # 1 plus the error, so that the gate's shares are shares of a latency.
        errors = median_interval(1 + np.abs([trial.error for trial in trials]))
        ratios.append(measured_ratio(f"{name}, {size}: 1 + median error", errors, len(trials)))
    everything = [abs(trial.error) for trials in found.values() for trial in trials]
    claims = []
    if everything:
        what = f"share by which predictions of {len(everything)} placements are off, median"
        claims.append(Claim(what, _ERROR, float(np.median(everything))))
        remarks = [models_remark(found), *remarks]
    columns = ("model", "placements", "latency ms", "median error", "p90", "bias")
    columns += ("Spearman", "ceiling", "subgraphs right", "s")
    return Result(
        title="Simulator accuracy: predicted against measured latency",
        tables=(Table(f"Random placements on XCPU and CPU, {size} size", columns, rows),),
        ratios=tuple(ratios),
        remarks=(*remarks, *pieces.remarks),
        data={"trials": {name: [asdict(trial) for trial in trials] for name, trials in found.items()}},
        claims=tuple(claims),
    )


def build(name: str, size: Literal["small", "full"]) -> ov.Model:
    """A network of the zoo or of transformers.

    Raises:
        ValueError: A transformers network has no full size.
    """
    if name in KINDS and size != "small":
        raise ValueError(f"{name} comes in the small size alone: add size=small")
    return transformers_kinds.build(name) if name in KINDS else zoo.build(name, size)


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
    predicted, measured = zip(*((trial.predicted, trial.measured) for trial in trials), strict=True)
    return float(spearmanr(predicted, measured).statistic)


def ceiling(trials: Sequence[Trial]) -> float:
    """Spearman's, of the latencies of the same placements measured in other processes."""
    return float(spearmanr(*zip(*(trial.copies for trial in trials), strict=True)).statistic)


def trials_of(name: str, size: Literal["small", "full"], placements: int, seed: int) -> dict[str, Any]:
    """Profile one model, place it at random and measure, for JSON: the trials, and how many do not run."""
    core = core_of("alias")
    properties = device_properties(core, DEVICES)
    transfers = measure_transfers(profiler_for(core, DEVICES, properties), DEVICES)
    with open_session(core, prepare(build(name, size)), DEVICES) as session:
        table = profile_session(session, transfers=transfers).table
        random = np.random.default_rng(seed)
        assignments = [random_assignment(len(table), random) for _ in range(placements)]
        if isinstance(session.profiler, IsolatedProfiler):
            session.profiler.restart()  # what the profile compiled is in nobody's way
        trials = measure(session, table, assignments)
        return {"trials": [asdict(trial) for trial in trials], "refused": placements - len(trials)}


def random_assignment(groups: int, random: np.random.Generator) -> IntArray:
    """Contiguous runs of groups, in topological order, on alternating devices."""
    segments = int(random.integers(1, min(MOST_SEGMENTS, groups) + 1))
    cuts = np.sort(random.choice(np.arange(1, groups), size=segments - 1, replace=False))
    first = int(random.integers(len(DEVICES)))
    runs = np.searchsorted(cuts, np.arange(groups), side="right")
    return ((runs + first) % len(DEVICES)).astype(np.int32)


def measure(session: ProfilingSession, table: CostTable, assignments: Sequence[IntArray]) -> list[Trial]:
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
                copies.append((executables, in_turns(executables, profiled)))
        for i, assignment in enumerate(batch):
            ran = [copy for copy in copies if copy[0][len(DEVICES) + i] is not None]
            if len(ran) < COPIES:
                continue
            schedule = simulate(table, assignment)
            trials.append(
                Trial(
                    predicted=schedule.latency_seconds,
                    copies=tuple(float(np.median(scaled[:, len(DEVICES) + i])) for _, scaled in ran),
                    predicted_subgraphs=schedule.subgraphs,
                    subgraphs=ran[0][0][len(DEVICES) + i].subgraphs,
                )
            )
    return trials


def compiled(
    processes: ExitStack, session: ProfilingSession, table: CostTable, assignments: Sequence[IntArray]
) -> list[Executable | None]:
    """The single devices in one new process, each placement in another; ``None`` where it does not run."""

    def compile_all(wanted: Sequence[IntArray]) -> list[Executable | None]:
        apart = processes.enter_context(session.apart())
        return [compiled_placement(apart, table, assignment) for assignment in wanted]

    alone = [np.full(len(table), d, np.int32) for d in range(len(DEVICES))]
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        parts = list(pool.map(compile_all, [alone, *([assignment] for assignment in assignments)]))
    return [executable for part in parts for executable in part]


def in_turns(executables: Sequence[Executable | None], profiled: FloatArray) -> FloatArray:
    """Run in turns until the machine was as fast as in the profile for long enough.

    Args:
        executables: E of them, the single devices first; ``None`` has no latency.
        profiled: What the profile says of each single device, in seconds.

    Returns: Median latency of each executable in each round that counts, ``float64[rounds, E]``, over how
        many times slower than in the profile the machine was in it.
    """
    runs = [0 if e is None else int(np.clip(SECONDS / e.run(2, warmup=2).min(), 1, 200)) for e in executables]
    seconds: list[list[float]] = []
    drifts: list[float] = []
    end = time.perf_counter() + MOST_SECONDS
    while len(seconds) < MOST_ROUNDS and sum(abs(drift) < SAME_SPEED for drift in drifts) < ROUNDS:
        if len(seconds) >= FEWEST_ROUNDS and time.perf_counter() > end:
            break
        found = [
            np.nan if e is None else float(np.median(e.run(n, warmup=1)))
            for e, n in zip(executables, runs, strict=True)
        ]
        seconds.append(found)
        drifts.append(float(np.log(found[: len(profiled)] / profiled).mean()))
    distance = np.abs(drifts)
    counts = max(int((distance < SAME_SPEED).sum()), FEWEST_ROUNDS)
    kept = np.argsort(distance, kind="stable")[:counts]
    return np.array(seconds)[kept] / np.exp(np.array(drifts)[kept])[:, None]


def compiled_placement(
    session: ProfilingSession, table: CostTable, assignment: IntArray
) -> Executable | None:
    """The placement, run once; ``None`` when OpenVINO refuses to compile or run it."""
    from ov_autoplace._core import ProfilerError

    try:
        executable = Placement.of_groups(table, assignment).plan.one_model.compile(session)
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
        f"{rank_correlation(trials):.3f}",
        f"{ceiling(trials):.3f}",
        f"{right:.0%}",
        f"{seconds:.0f}",
    )
