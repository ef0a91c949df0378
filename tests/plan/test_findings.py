"""Findings: every kind has a sentence and survives as JSON, and a decision says the same to programs."""

from __future__ import annotations

import json
from typing import Any

import pytest

from candidates import on_groups
from ov_autoplace._base.json_fields import Record
from ov_autoplace.devices.quota import Quota
from ov_autoplace.errors import FleetError
from ov_autoplace.plan.decision import Decision
from ov_autoplace.plan.findings import Finding, Kind, sentence

NUMBERS = (
    *("gain", "ratio", "low", "high", "least", "behind", "rate", "tail", "before", "waiting", "queued"),
    *("pause", "budget", "rounds", "needed", "difference", "headroom"),
)


def everything(kind: Kind) -> Finding:
    numbers = {name: 1.5 + i for i, name in enumerate(NUMBERS)}
    return Finding.of(kind, "GPU {odd}", "CPU", detail="quoted {as it is}", **numbers)


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_has_a_sentence_of_its_own(kind: Kind) -> None:
    text = str(everything(kind))
    assert text
    assert "\n" not in text
    assert not text.endswith((".", ";", " "))
    assert len({str(everything(other)) for other in Kind}) == len(Kind)


@pytest.mark.parametrize("kind", Kind)
def test_it_survives_as_json(kind: Kind) -> None:
    finding = everything(kind)
    data = json.loads(json.dumps(finding.to_json()))
    assert Finding.read(Record.of(data, "a finding", FleetError)) == finding


@pytest.mark.parametrize(
    "change",
    [
        {"kind": "magic"},
        {"names": []},
        {"names": "CPU"},
        {"numbers": {}},
        {"numbers": {"gain": "much"}},
        {"detail": 1},
    ],
)
def test_what_is_none_is_refused(change: dict[str, Any]) -> None:
    data = Finding.of(Kind.FASTER, "a", "b", gain=3.0, low=0.9, high=1.0).to_json() | change
    with pytest.raises(FleetError, match="a finding"):
        Finding.read(Record.of(data, "a finding", FleetError))


def test_findings_make_one_sentence() -> None:
    faster = Finding.of(Kind.FASTER, "policy", "CPU", gain=12.34, low=0.8, high=0.95)
    few = Finding.of(Kind.AFTER_PAUSES_TOO_FEW, rounds=1, pause=3.0)
    assert sentence((faster, few)) == (
        "policy was measured 12.3 % faster than CPU (95 % interval 0.800 to 0.950 of its time); "
        "the time budget allowed only 1 paired run after idle gaps of 3 ms"
    )


def test_a_decision_says_the_same_to_programs() -> None:
    alone, mix = on_groups("CPU", [1, 1], 2e-3, [2e-3] * 3), on_groups("policy", [0, 1], 1e-3, also=("heft",))
    mix.tail_seconds, mix.output_difference = 4e-3, 0.25
    findings = (Finding.of(Kind.FASTER, "policy", "CPU", gain=50.0, low=0.4, high=0.6),)
    decision = Decision("policy", findings, "PROFILE", (alone, mix), {}, quota=Quota(1.5, 0.1))
    said = json.loads(json.dumps(decision.to_json()))
    assert said == {
        "chosen": "policy",
        "reason": "faster",
        "decision": decision.reason,
        "findings": [findings[0].to_json()],
        "mode": "PROFILE",
        "width": None,
        "lanes": None,
        "candidates": [
            {
                "name": "CPU",
                "requests": 0,
                "predicted_ms": 2.0,
                "measured": {"steady": {"median_ms": 2.0, "ci95_ms": None, "samples": 3}},
                "p99_ms": None,
                "subgraphs": 1,
                "output_difference": None,
                "also_proposed_by": [],
                "note": "",
            },
            {
                "name": "policy",
                "requests": 0,
                "predicted_ms": 1.0,
                "measured": {},
                "p99_ms": 4.0,
                "subgraphs": 1,
                "output_difference": 0.25,
                "also_proposed_by": ["heft"],
                "note": "",
            },
        ],
        "disturbed": False,
        "quota": {"cores": 1.5, "period_ms": 100.0},
        "rate_bound_per_second": None,
    }
