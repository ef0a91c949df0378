"""What the suite writes, and what its results become in JSON."""

from __future__ import annotations

import json

import numpy as np
from bench_results import LOSING, TABLE, WINNING, document_of, record_of, result_of

from harness.report import markdown
from harness.result import Result, exact_ratio, measured_ratio, milliseconds
from ov_autoplace._base.statistics import median_interval


def test_a_result_survives_json():
    interval = median_interval(np.arange(1.0, 31.0))
    result = result_of(
        exact_ratio("exact", 0.5, 3),
        measured_ratio("measured", interval, 30),
        tables=(TABLE,),
        cases=(LOSING, WINNING),
        remarks=("a remark",),
        data={"samples": [1.0, 2.0]},
    )
    assert Result.from_dict(json.loads(json.dumps(result.to_dict()))) == result


def test_losing_cases_stand_beside_winning_ones():
    text = markdown(document_of(power=record_of(result_of(cases=(LOSING, WINNING)))))
    losing, winning = text.index("**Losing cases: 1**"), text.index("**Winning cases: 1**")
    assert losing < text.index("| resnet | CPU | 1.250 |") < winning < text.index("| bert | CPU | 0.500 |")


def test_a_section_without_losing_cases_says_so():
    assert "**Losing cases: none**" in markdown(document_of(power=record_of(result_of())))


def test_command_commit_and_machine_of_every_section_are_written():
    text = markdown(document_of(power=record_of(result_of(remarks=("it is so",)))))
    for part in ("`python tools/bench/it.py`", "0123456789ab", "quick, seed 0", "a machine", "* it is so"):
        assert part in text


def test_names_stay_in_their_cells():
    text = markdown(document_of(power=record_of(result_of(tables=(TABLE,)))))
    assert "| a\\|b &lt;script> | 1.0 |" in text
    assert "<script>" not in text


def test_every_row_of_a_table_has_as_many_cells_as_its_head():
    text = markdown(document_of(power=record_of(result_of(tables=(TABLE,), cases=(LOSING,)))))
    blocks = [block.splitlines() for block in text.split("\n\n") if block.startswith("|")]
    assert len(blocks) == 4  # head, summary, the table, the losing cases
    for block in blocks:
        assert len({line.replace("\\|", "").count("|") for line in block}) == 1


def test_a_failure_is_told_in_its_section_and_in_the_summary():
    text = markdown(document_of(mixes=record_of(None, failure="died by SIGSEGV")))
    assert "**Did not end**: died by SIGSEGV" in text
    assert "| mixes | 12 | did not end |" in text


def test_cells_of_milliseconds_keep_the_digits_that_matter():
    # Thirty equal samples: median and both ends of the interval are that number.
    assert milliseconds([0.0123456] * 30) == "12.35 [12.35, 12.35]"
    assert milliseconds([0.0000123] * 30) == "0.0123 [0.0123, 0.0123]"
    assert milliseconds([0.5] * 30) == "500.0 [500.0, 500.0]"
