"""``ov-autoplace explain --ops``: every op, before anything is run."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import openvino as ov
import pytest
from refusals import FAST

from command_line import Command


def test_explain_lists_every_op_before_anything_is_run(cli: Command, small_ir: Path) -> None:
    report = cli("explain", small_ir, *FAST, "--ops", "--json").json()

    ops = ov.Core().read_model(small_ir).get_ops()
    expected = Counter(op.get_type_name() for op in ops if op.get_type_name() != "Constant")
    assert Counter(op["type"] for op in report["ops"]) == expected
    assert sum(op["share"] or 0 for op in report["ops"]) == pytest.approx(1)
    assert all(set(op["seconds"]) == {"XCPU", "CPU"} for op in report["ops"] if op["name"] == op["group"])
    assert not any(candidate["measured"] for candidate in report["candidates"])
    assert report["predicted_ms"] > 0


@pytest.mark.parametrize("width", ["120", "80", "60"])
def test_the_table_of_ops_has_a_row_for_each(
    cli: Command, small_ir: Path, monkeypatch: pytest.MonkeyPatch, width: str
) -> None:
    monkeypatch.setenv("COLUMNS", width)
    lines = cli("explain", small_ir, *FAST, "--ops").out.splitlines()

    cells = [[cell.strip() for cell in line.split("│")[1:-1]] for line in lines if line.startswith("│")]
    assert {row[0].removeprefix("+ ") for row in cells} == {"image", "first", "relu", "second", "answer"}
    assert sum(row[0] in ("first", "second") and "%" in "".join(row) for row in cells) == 2
    assert any(line.startswith("predicted") for line in lines)
