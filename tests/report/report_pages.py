"""Contents of reports that tests write, of any size."""

from __future__ import annotations

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from candidates import FOUND, on_groups
from ov_autoplace._base.arrays import IntArray
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.cost.table import CostTable
from ov_autoplace.explain.answer import Answer
from ov_autoplace.explain.candidates import CandidateRow
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.lanes import LaneExplanation
from ov_autoplace.explain.what_if import what_ifs
from ov_autoplace.measure.measured_run import MeasuredNode, MeasuredRun, MeasuredStage
from ov_autoplace.plan.decision import Decision, Load
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.report.contents import Contents, Curve, placement_contents
from ov_autoplace.report.ops import op_columns
from report_tables import HOSTILE, layered_table, pieces

__all__ = ["every_part", "hostile_model", "lanes_page", "placement_page"]


def hostile_model() -> ov.Model:
    """A model whose names, attributes and tensors are hostile: it keeps a sum in a variable."""
    x = ops.parameter([2, 3], name=HOSTILE[0])
    x.output(0).set_names({HOSTILE[5]})
    weights = ops.constant(np.arange(12, dtype=np.float32).reshape(3, 4), name=HOSTILE[1])
    kept = ops.read_value(ops.matmul(x, weights, False, False, name=HOSTILE[2]), HOSTILE[4], name=HOSTILE[3])
    large = ops.constant(np.linspace(-1, 2, 3000, dtype=np.float32), name="layer0/op6")
    total = ops.add(ops.reduce_sum(large, [0], name="layer0/op7"), kept, name="layer0/op8")
    assign = ops.assign(total, HOSTILE[4], name="layer0/op9")
    return ov.Model([ops.result(total, name="layer0/op10")], [assign], [x], HOSTILE[0])


def placement_page(groups: int, subgraphs: int) -> Contents:
    """A placement in so many stretches, beside the single devices; the first ops have hostile names."""
    table = layered_table(groups, seed=1, names=HOSTILE, members=2)
    return _contents_of(table, pieces(groups, subgraphs))


def _contents_of(table: CostTable, assignment: IntArray) -> Contents:
    """A page whose candidates are the single devices and the placement."""
    rng = np.random.default_rng(5)
    explanation = HeteroExplanation(table, assignment)
    latency = explanation.schedule.latency_seconds
    candidates = tuple(
        on_groups(name, [0], factor * latency, factor * latency * rng.lognormal(0, 0.02, 40))
        for name, factor in ((table.devices[0], 1.1), (table.devices[1], 1.4), ("portfolio", 1.0))
    )
    findings = (Finding.of(Kind.PREDICTED, "portfolio"), Finding.of(Kind.LEFT_OUT, "NPU", detail=HOSTILE[1]))
    decision = Decision("portfolio", findings, "PROFILE", candidates, {}, table)
    changes = what_ifs(explanation) if len(table) < 1000 else []
    return placement_contents(Answer(HOSTILE[0], decision, explanation, changes))


def every_part() -> Contents:
    """A page that has everything a page can have, each name hostile."""
    page = placement_page(80, 5)
    explanation = page.explanation
    assert explanation is not None
    devices = explanation.table.devices
    node = MeasuredNode(HOSTILE[0], HOSTILE[1], HOSTILE[2], (HOSTILE[0],), 1e-3)
    return Contents(
        title=page.title,
        answer=page.answer,
        facts=((HOSTILE[3], HOSTILE[4]), *page.facts),
        candidates=(*page.candidates, CandidateRow(HOSTILE[5], note=HOSTILE[0])),
        explanation=explanation,
        changes=page.changes,
        measured=MeasuredRun(
            (MeasuredStage(0, devices[0], (node, node)), MeasuredStage(1, devices[1], (node,))), 4e-3, 10
        ),
        ops=op_columns(hostile_model()),
        curves=(_curve(),),
    )


def _curve() -> Curve:
    values = np.array([1.3, 1.0, np.inf, 1.1, 0.95, 1.2, 0.9, 0.97])
    return Curve(HOSTILE[0], np.arange(1.0, 9.0), values, np.array([1.3, 1, 1, 1, 1, 0.95, 0.95, 0.95]))


def lanes_page(groups: int = 60) -> Contents:
    """A schedule on a device and two lanes beside a run that was measured; names are hostile."""
    table = with_lanes(layered_table(groups, seed=3, names=HOSTILE, members=2), "CPU", 2)
    assignment = (np.arange(groups) * 20 // groups % 3).astype(np.int32)
    explanation = LaneExplanation(table, assignment)
    node = MeasuredNode(HOSTILE[0], HOSTILE[1], HOSTILE[2], (), 1e-6)
    predicted = explanation.predicted
    stages = tuple(
        MeasuredStage(s.subgraph, s.device, (node,), 1.1 * s.start, 1.1 * s.end) for s in predicted.stages
    )
    latency = predicted.seconds
    candidates = tuple(
        on_groups(name, [0], factor * latency, np.full(9, factor * latency))
        for name, factor in (("GPU", 1.5), ("CPU (2 lanes of 1 thread) + GPU", 1.1))
    )
    for candidate in candidates:
        candidate.times[Load.PAUSED] = np.full(9, latency)
    decision = Decision(candidates[1].name, FOUND, "PROFILE", candidates, {}, table)
    answer = Answer("lanes", decision, explanation, what_ifs(explanation))
    return placement_contents(answer, MeasuredRun(stages, 1.2 * latency, 9))
