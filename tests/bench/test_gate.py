"""The regression gate on made-up numbers."""

from __future__ import annotations

import json

import pytest
from bench_results import document_of, record_of, result_of

import gate
from harness.result import FLOORS, Claim, Ratio, exact_ratio


def judge(old: Ratio, new: Ratio) -> str:
    verdicts, _ = gate.compare(
        document_of(power=record_of(result_of(old))), document_of(power=record_of(result_of(new)))
    )
    assert [verdict.name for verdict in verdicts] == [f"power: {old.name}"]
    return verdicts[0].word


def measured(value: float, width: float) -> Ratio:
    return Ratio("ratio", value, value - width, value + width, 30, "measured")


def test_a_ratio_that_did_not_change_passes():
    assert judge(exact_ratio("ratio", 0.9, 5), exact_ratio("ratio", 0.9, 5)) == "same"


def test_an_exact_ratio_may_grow_by_its_floor_and_no_more():
    floor = FLOORS["exact"]
    assert judge(exact_ratio("ratio", 1.0, 5), exact_ratio("ratio", 1 + 0.9 * floor, 5)) == "same"
    assert judge(exact_ratio("ratio", 1.0, 5), exact_ratio("ratio", 1 + 1.1 * floor, 5)) == "worse"


def test_a_smaller_ratio_is_better_and_never_fails():
    assert judge(exact_ratio("ratio", 1.0, 5), exact_ratio("ratio", 0.8, 5)) == "better"


@pytest.mark.parametrize(("width", "word"), [(0.02, "worse"), (0.06, "same")])
def test_measured_ratios_are_worse_only_where_intervals_exclude_each_other(width: float, word: str):
    # 1.0 + width against 1.1 - width: apart for 0.02, overlapping for 0.06.
    assert judge(measured(1.0, width), measured(1.1, width)) == word


def test_narrow_intervals_do_not_make_less_than_the_floor_a_failure():
    assert judge(measured(1.0, 1e-6), measured(1.0 + 0.9 * FLOORS["measured"], 1e-6)) == "same"


@pytest.mark.parametrize(
    ("old", "new", "word"), [(0.23, 0.54, "same"), (0.23, 2.0, "worse"), (1.1, 2.0, "worse")]
)
def test_an_exponent_shifts_with_the_load_of_a_machine_and_may_not_become_quadratic(old, new, word):
    def grown(value: float) -> Ratio:
        return Ratio("ratio", value, value - 0.05, value + 0.05, 3, "growth")

    assert judge(grown(old), grown(new)) == word


def test_a_missing_ratio_fails_and_a_new_one_is_told():
    old = document_of(power=record_of(result_of(exact_ratio("gone", 1.0, 1))))
    new = document_of(power=record_of(result_of(exact_ratio("fresh", 1.0, 1))))
    verdicts, _ = gate.compare(old, new)
    assert [(v.name, v.word, v.fails) for v in verdicts] == [
        ("power: gone", "missing", True),
        ("power: fresh", "new", False),
    ]


def test_a_section_that_did_not_end_is_missing_with_all_its_ratios():
    old = document_of(power=record_of(result_of(exact_ratio("a", 1.0, 1), exact_ratio("b", 1.0, 1))))
    verdicts, remarks = gate.compare(old, document_of(power=record_of(None, failure="died by SIGSEGV")))
    assert [v.word for v in verdicts] == ["missing", "missing"]
    assert remarks == ["power: did not end: died by SIGSEGV"]


def test_runs_of_different_extent_are_not_compared():
    old = document_of(power=record_of(result_of(exact_ratio("a", 1.0, 1)), extent="whole, seed 0"))
    new = document_of(power=record_of(result_of(exact_ratio("a", 9.0, 1))))
    verdicts, remarks = gate.compare(old, new)
    assert verdicts == []
    assert "not comparable" in remarks[0]


def test_the_section_of_the_gate_is_the_same_in_quick_and_whole_runs():
    old = document_of(gate=record_of(result_of(exact_ratio("a", 1.0, 1)), extent="whole, seed 0"))
    same = document_of(gate=record_of(result_of(exact_ratio("a", 1.0, 1)), extent="quick, seed 0"))
    other = document_of(gate=record_of(result_of(exact_ratio("a", 1.0, 1)), extent="quick, seed 1"))
    assert [v.word for v in gate.compare(old, same)[0]] == ["same"]
    assert gate.compare(old, other)[0] == []


def test_sections_that_were_not_run_are_named_and_do_not_fail():
    section = record_of(result_of(exact_ratio("a", 1.0, 1)))
    verdicts, remarks = gate.compare(
        document_of(gate=section, mixes=section, power=section), document_of(gate=section)
    )
    assert [v.word for v in verdicts] == ["same"]
    assert remarks == ["not run this time: mixes, power"]


@pytest.mark.parametrize(("value", "status"), [(1.0, 0), (1.5, 1)])
def test_the_exit_status_says_whether_anything_got_worse(tmp_path, monkeypatch, capsys, value, status):
    for name, number in (("old", 1.0), ("new", value)):
        document = document_of(gate=record_of(result_of(exact_ratio("the ratio", number, 1))))
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    monkeypatch.setattr("sys.argv", ["gate.py", str(tmp_path / "old.json"), str(tmp_path / "new.json")])
    with pytest.raises(SystemExit) as end:
        gate.main()
    assert end.value.code == status
    assert ("the ratio" in capsys.readouterr().out) == bool(status)


def test_a_claim_falls_where_the_new_run_misses_what_the_accepted_one_reached():
    def document(reached: float):
        return document_of(gate=record_of(result_of(claims=(Claim("a share", 0.5, reached),))))

    assert gate.fallen(document(0.4), document(0.5)) == []
    assert len(gate.fallen(document(0.4), document(0.6))) == 1
    assert gate.fallen(document(0.6), document(0.6)) == []  # which the page says already
    assert len(gate.fallen(document_of(), document(0.6))) == 1


def test_nothing_to_compare_is_neither_good_nor_bad(tmp_path, monkeypatch):
    (tmp_path / "a.json").write_text(json.dumps(document_of()))
    monkeypatch.setattr("sys.argv", ["gate.py", str(tmp_path / "a.json"), str(tmp_path / "a.json")])
    with pytest.raises(SystemExit) as end:
        gate.main()
    assert end.value.code == 2
