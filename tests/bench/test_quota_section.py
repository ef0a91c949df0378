"""The benchmark under quotas: the table and bars from figures that are made up, and a piece that runs."""

from __future__ import annotations

import os

import pytest

from control_groups import NoGroupError, control_group
from harness.process import Failure, in_child
from sections.quota import OURS, PLAIN, compare, result_of


def outcome(median: float, plain: tuple[float, float], ours: tuple[float, float]) -> dict[str, object]:
    """Rates and 99th percentiles of plain CPU and of ours."""
    return {
        "plan": "CPU (1 thread)",
        "decision_seconds": 2.0,
        "rates": {PLAIN: [plain[0]] * 3, OURS: [ours[0]] * 3},
        "median": {PLAIN: median, OURS: median},
        "tail": {PLAIN: plain[1], OURS: ours[1]},
    }


def test_bars_say_who_missed_them():
    found = {
        1.0: {
            "well": outcome(2e-3, (100.0, 0.050), (121.0, 0.005)),
            "short": outcome(20e-3, (100.0, 0.070), (100.0, 0.035)),
            "small": outcome(1e-4, (100.0, 1e-3), (100.0, 1e-3)),
        },
        1.5: {"worse": outcome(2e-3, (100.0, 0.01), (70.0, 0.02))},
    }
    result = result_of(found, 0, ["x: it failed"])
    (table,) = result.tables
    assert [row[:2] for row in table.rows] == [
        ("well", "1"),
        ("short", "1"),
        ("small", "1"),
        ("worse", "1.5"),
    ]
    assert [row[3].split(" ")[0] for row in table.rows] == ["1.21", "1.00", "1.00", "0.70"]
    assert [row[6] for row in table.rows] == ["10.00", "2.00", "1.00", "0.50"]
    failed, *rest = result.remarks
    assert failed == "x: it failed"
    assert [text.rpartition(": ")[2] for text in rest[:2]] == ["none", "short 2.0"]
    assert rest[2].endswith("worse 2.00")
    (claim,) = result.claims
    assert claim.reached == pytest.approx(1.21 ** (-1 / 3))
    assert claim.holds
    assert {case.what: case.ratio for case in result.losing} == {"worse": 2.0, "small": 1.0}


@pytest.mark.alone  # a quota of one core limits nobody who has no more
def test_a_network_runs_in_a_group() -> None:
    arguments = {"name": "small/lstm_lm", "cores": 1.0, "seed": 0, "times": 1}
    try:
        with control_group(f"ov-autoplace-test-{os.getpid()}") as group:
            group.limit(1.0)
            arguments |= {"folder": str(group.folder), "is_v2": group.is_v2}
            found = in_child(compare, arguments, timeout=90)
    except NoGroupError as cause:
        pytest.skip(str(cause))
    assert not isinstance(found, Failure), found
    assert all(rate > 0 for rates in found["rates"].values() for rate in rates)
    assert all(found["tail"][who] >= found["median"][who] > 0 for who in (PLAIN, OURS))
