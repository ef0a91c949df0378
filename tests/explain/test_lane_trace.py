"""Traces and measured runs of lanes: the format, what they say, and that both runs are read alike."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Callable

import numpy as np
import openvino as ov
import pytest
from placed_tables import KINDS, on_lanes
from test_timeline import check
from test_trace import check_format

from networks.builder import NetworkBuilder
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.lanes import LaneExplanation
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.trace import trace_events
from ov_autoplace.measure.measured_run import MeasuredNode, MeasuredRun, MeasuredStage, measure_run
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan
from random_tables import make_table


def run_of(explanation: Explanation, seed: int) -> MeasuredRun:
    """A run in which every submodel starts a little late and takes a little longer or shorter."""
    random = np.random.default_rng((seed, 4713))
    sources = defaultdict(list)
    for source, target, _ in explanation.waits():
        sources[target].append(source)
    free: dict[str, float] = {}
    ended: dict[int, float] = {}
    stages = []
    for stage in explanation.predicted.stages:
        ready = [free.get(stage.device, 0.0), *(ended[s] for s in sources[stage.subgraph])]
        start = max(ready) + float(random.uniform(0, 0.2))
        finish = start + stage.seconds * float(random.uniform(0.8, 1.2))
        node = MeasuredNode(f"node {stage.subgraph}", "MatMul", "jit", (), (finish - start) * 0.7)
        stages.append(MeasuredStage(stage.subgraph, stage.device, (node, node), start, finish))
        free[stage.device] = ended[stage.subgraph] = finish
    seconds = max(ended.values(), default=0.0) + 0.1
    return MeasuredRun(tuple(sorted(stages, key=lambda s: (s.start, s.finish))), seconds, 9)


@pytest.mark.seeds(40)
def test_a_measured_run_adds_up_like_a_predicted_one(seed: int) -> None:
    explanation = on_lanes(seed + 2000)
    run = run_of(explanation, seed)

    timeline = measured_timeline(explanation, run)

    check(timeline)
    assert timeline.seconds == run.seconds
    assert [lane.name for lane in timeline.lanes] == list(explanation.table.devices)
    ended = {stage.subgraph: stage.end for stage in timeline.stages}
    lane_before: dict[str, int] = {}
    for stage in timeline.stages:
        could = [s for s, target, _ in explanation.waits() if target == stage.subgraph]
        could += [lane_before[stage.device]] if stage.device in lane_before else []
        if could:
            assert ended[stage.after] == max(ended[s] for s in could)
        else:
            assert stage.after == -1
        lane_before[stage.device] = stage.subgraph


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.seeds(40)
def test_a_trace_keeps_to_the_format_and_fills_every_lane(
    kind: Callable[[int], Explanation], seed: int
) -> None:
    explanation = kind(seed + 3000)
    run = run_of(explanation, seed)

    events = trace_events(explanation, run)

    check_format(events)
    names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["name"] == "thread_name"}
    timelines = {1: explanation.predicted, 2: measured_timeline(explanation, run)}
    for (process, thread), name in names.items():
        whole = timelines[process].seconds * 1e6
        own = [e for e in events if e["ph"] == "X" and (e["pid"], e["tid"]) == (process, thread)]
        wanted = {"critical"} if name == "critical path" else {"subgraph", "idle"}
        parts = sorted((e["ts"], e["ts"] + e["dur"]) for e in own if e["cat"] in wanted)
        assert sum(end - start for start, end in parts) == pytest.approx(whole, abs=1e-3)
        for (_, end), (start, _) in itertools.pairwise(parts):
            assert start == pytest.approx(end, abs=1e-3)
    for process, timeline in timelines.items():
        assert names[process, len(timeline.lanes) + 1] == "critical path"
        flows = [e for e in events if e["pid"] == process and e["ph"] == "s"]
        # Nobody took over anything here.
        sent = [cut for cut in explanation.cuts() if process == 1 or cut.source_device != cut.target_device]
        assert len(flows) == len(sent)


def test_what_a_lane_took_over_is_shown_where_it_ran() -> None:
    # Two chains; the second was to run on lane 1, which was late.
    table = with_lanes(make_table([[3.0], [5.0], [1.0]], [(0, 8.0, [2]), (1, 8.0, [2])]), "DEV0", 2)
    explanation = LaneExplanation(table, np.array([0, 1, 0], dtype=np.int32))
    stages = [MeasuredStage(0, "DEV0#0", (), 0.0, 3.0), MeasuredStage(1, "DEV0#0", (), 3.1, 8.0)]
    run = MeasuredRun((*stages, MeasuredStage(2, "DEV0#0", (), 8.0, 9.0)), 9.0, 5)

    timeline = measured_timeline(explanation, run)

    first, second = timeline.lanes
    assert (first.subgraphs, second.subgraphs) == (3, 0)
    assert second.reasons == {"nothing to run": 9.0}
    assert first.reasons == pytest.approx({"between its submodels": 0.1})
    assert not [e for e in trace_events(explanation, run) if e["pid"] == 2 and e["ph"] == "s"]


def towers() -> ov.Model:
    """Two chains of dense layers of unequal length, and their sum.

    OpenVINO counts whole microseconds, so that on a fast processor nodes of smaller layers take no time.
    """
    b = NetworkBuilder(0, np.float32)
    ends = []
    for side, layers in (("left", 4), ("right", 2)):
        x = b.input(side, [32, 384])
        for layer in range(layers):
            x = b.relu(b.dense(x, 384, name=f"{side}{layer}"), f"{side}{layer}.relu")
        ends.append(x)
    return b.model("towers", {"sum": b.add(*ends, "joint")})


@pytest.mark.parametrize("isolation", [True, False])
def test_a_real_run_of_a_plan_tells_when_each_submodel_ran_and_its_nodes(isolation: bool) -> None:
    model = towers()
    names = [op.get_friendly_name() for op in model.get_ordered_ops()]
    # Numbered against the order in which they run, to see that numbers are the plan's.
    number = {name: 2 if name.startswith("left") else 1 if name.startswith("right") else 0 for name in names}
    lane = Lane.of("CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 1})
    plan = LanePlan((lane, lane), number, (0, 1, 0), (2, 1, 0))

    with ProfilingSession(ov.Core(), model, ("CPU",), isolation=isolation) as session:
        run = measure_run(session, plan, ("CPU#0", "CPU#1"))

    stages = {stage.subgraph: stage for stage in run.stages}
    assert set(stages) == {0, 1, 2}
    assert {stage.device for stage in run.stages} <= {"CPU#0", "CPU#1"}
    joint = stages[0]
    assert joint.start is not None
    for stage in (stages[1], stages[2]):
        assert stage.finish is not None
        assert stage.finish <= joint.start
        assert stage.nodes
    assert min(stage.start for stage in run.stages if stage.start is not None) >= 0
    assert max(stage.finish for stage in run.stages if stage.finish is not None) <= run.seconds
    # No lane ran two at once.
    for name in ("CPU#0", "CPU#1"):
        own = sorted((s.start, s.finish) for s in run.stages if s.device == name)
        for (_, finish), (start, _) in itertools.pairwise(own):
            assert start >= finish
    kinds = {node.kind for node in stages[2].nodes}
    assert kinds & {"FullyConnected", "MatMul", "Subgraph"}
