"""A placement run on the devices with their own profiling on: where the time of one request really went."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ov_autoplace.measure.model_file import reported_failure
from ov_autoplace.measure.node_counts import count_nodes

if TYPE_CHECKING:
    from ov_autoplace.measure.isolation.interface import Executable
    from ov_autoplace.measure.session import ProfilingSession
    from ov_autoplace.plan.plan import LanePlan, ModelPlan, SplitPlan, WholePlan

__all__ = ["MeasuredNode", "MeasuredRun", "MeasuredStage", "measure_run"]

_FEWEST, _MOST, _SECONDS = 3, 200, 1.0
_WARMUP = 3


@dataclass(frozen=True, slots=True)
class MeasuredNode:
    """One node of a compiled submodel.

    Attributes:
        name, kind: As the plugin names it and its type.
        kernel: Kernel and precision, in the plugin's words.
        ops: The model's ops that it computes.
        seconds: Mean time of one run.
    """

    name: str
    kind: str
    kernel: str
    ops: tuple[str, ...]
    seconds: float


@dataclass(frozen=True, slots=True)
class MeasuredStage:
    """One submodel and its nodes, those left out that took no time.

    Attributes:
        subgraph: Its number.
        device: Where it ran: a device, or a lane.
        nodes: In the order in which they run, as far as the device tells.
        start, finish: When it ran, in seconds from the start of the first one; ``None`` where the device
            says how long nodes took, but not when.
    """

    subgraph: int
    device: str
    nodes: tuple[MeasuredNode, ...]
    start: float | None = None
    finish: float | None = None

    @property
    def seconds(self) -> float:
        """How long it ran, or the time of all its nodes where that is all that is known."""
        if self.start is None or self.finish is None:
            return sum(node.seconds for node in self.nodes)
        return self.finish - self.start


@dataclass(frozen=True, slots=True)
class MeasuredRun:
    """Where the time of a request went.

    Attributes:
        stages: The submodels in the order in which HETERO runs them, or by start.
        seconds: Median latency of the same runs, transfers and dispatch included.
        runs: Number of runs.
    """

    stages: tuple[MeasuredStage, ...]
    seconds: float
    runs: int


def measure_run(session: ProfilingSession, plan: ModelPlan, lanes: Sequence[str] = ()) -> MeasuredRun:
    """Run a plan with profiling on, which slows every node a little.

    Args:
        session: The model on its devices.
        plan: What runs where.
        lanes: What the plan's lanes are called, where it has some.

    Returns:
        On lanes, it is the run that took the median time: subgraphs have the plan's numbers, and the lane
        that ran them, which is another one of equal ones where that was free first. The executor's times
        begin with the first submodel.

    Raises:
        PlacementError: The executor cannot run the model so.
        ProfilingError: The model cannot be run so.
    """
    return plan.compile(_Runner(session, lanes))


class _Runner:
    """Runs what it compiles."""

    def __init__(self, session: ProfilingSession, lanes: Sequence[str]) -> None:
        self._session, self._lanes = session, lanes

    def compile_whole(self, plan: WholePlan) -> MeasuredRun:
        executable = self._session.counting.compile_whole(plan)
        return _in_turns(executable, lambda _: plan.device)

    def compile_split(self, plan: SplitPlan) -> MeasuredRun:
        device_of = plan.device_of

        def device(nodes: Sequence[MeasuredNode]) -> str:
            """Of a submodel, told by the ops that its nodes list."""
            known = (device_of[op] for node in nodes for op in node.ops if op in device_of)
            return next(known, plan.devices[0])

        return _in_turns(self._session.counting.compile_split(plan), device)

    def compile_lanes(self, plan: LanePlan) -> MeasuredRun:
        executable, numbers = self._session.compile_counted_lanes(plan)
        with reported_failure("the model fails when it is run"):
            once = float(executable.run(_WARMUP).min())
            count = int(np.clip(_SECONDS / once, _FEWEST, _MOST))
            runs = [(float(executable.run(1, warmup=0)[0]), executable.lane_profile()) for _ in range(count)]
        seconds, profile = sorted(runs)[len(runs) // 2]
        stages = [
            _stage(entry, number, self._lanes)
            for entry, number in zip(json.loads(profile)["submodels"], numbers, strict=True)
        ]
        return MeasuredRun(tuple(sorted(stages, key=lambda s: (s.start, s.finish))), seconds, len(runs))


def _in_turns(executable: Executable, device: Callable[[Sequence[MeasuredNode]], str]) -> MeasuredRun:
    """A run whose submodels work one after another; ``device`` tells theirs by their nodes."""
    count = count_nodes(executable, _SECONDS, _FEWEST, _MOST)
    found: dict[int, list[MeasuredNode]] = {}
    for node, spent in zip(count.nodes, count.seconds.tolist(), strict=True):
        if spent > 0:
            found.setdefault(node.subgraph, []).append(
                MeasuredNode(node.name, node.type, node.exec_type, tuple(node.original_names), spent)
            )
    stages = tuple(
        MeasuredStage(subgraph, device(found[subgraph]), tuple(found[subgraph])) for subgraph in sorted(found)
    )
    return MeasuredRun(stages, float(np.median(count.latencies)), len(count.latencies))


def _stage(entry: Mapping[str, Any], number: int, names: Sequence[str]) -> MeasuredStage:
    nodes = tuple(
        MeasuredNode(node["name"], node["type"], node["exec_type"], (), node["real_us"] * 1e-6)
        for node in entry["nodes"]
        if node["real_us"] > 0
    )
    start, finish = entry["start_us"] * 1e-6, entry["finish_us"] * 1e-6
    return MeasuredStage(number, names[entry["lane"]], nodes, start, finish)
