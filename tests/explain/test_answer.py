"""The tables about a placement of either kind: whole, and with the numbers of its timeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from placed_tables import KINDS

from candidates import FOUND, on_groups
from ov_autoplace.explain.answer import Answer
from ov_autoplace.explain.explanation import Explanation
from ov_autoplace.explain.op_costs import op_costs
from ov_autoplace.explain.summary import placement_facts
from ov_autoplace.explain.what_if import WhatIf
from ov_autoplace.plan.decision import Decision

MOST = 4


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.seeds(6)
def test_every_table_is_whole_and_has_the_numbers_of_the_timeline(
    kind: Callable[[int], Explanation], seed: int
) -> None:
    explanation = kind(seed)
    timeline, latency = explanation.predicted, explanation.schedule.latency_seconds
    candidates = tuple(on_groups(name, [0], latency, np.full(9, latency)) for name in ("A", "B"))
    decision = Decision("B", FOUND, "PROFILE", candidates, {})
    changed = WhatIf("costs as they are", latency, latency / 2, "all on X", 3, 0.5, False)
    answer = Answer("net", decision, explanation, [changed])
    types = {name: "MatMul" for ops in explanation.members() for name in ops}

    tables = [*answer.tables(MOST), *answer.op_tables(op_costs(explanation, types), "*")]

    for table in tables:
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
        assert set(table.strong) <= set(range(len(table.rows))), table.title
    shown = {table.title: table for table in tables}
    assert [shown["Candidates"].rows[i][0] for i in shown["Candidates"].strong] == ["B"]
    devices = shown[f"{explanation.place.capitalize()}s"]
    busy, idle = (devices.columns.index(f">{what} ms") for what in ("busy", "idle"))
    for row in devices.rows:
        assert float(row[busy]) + float(row[idle]) == pytest.approx(timeline.seconds * 1e3, abs=2e-3)
    (parts,) = (table for table in tables if "order in which they run" in table.title)
    longest = sorted(timeline.stages, key=lambda stage: -stage.seconds)[:MOST]
    assert {int(row[0]) for row in parts.rows} == {stage.subgraph for stage in longest}
    assert bool(shown["Critical path"].rows) == timeline.has_slack
    assert dict(answer.facts())[f"{explanation.part}s"] == str(explanation.schedule.subgraphs)
    assert dict(answer.facts())["costs"] == explanation.table.source
    doubted = type(explanation)(replace(explanation.table, doubt=1.25), explanation.assignment)
    costs = dict(placement_facts(doubted))["costs"]
    assert costs == f"{explanation.table.source}, typically within a factor of 1.2"
