"""``ov-autoplace annotate --fit``: what goes where and how much memory it takes, without a file."""

from __future__ import annotations

import json
from pathlib import Path

import openvino as ov
import pytest
from refusals import DEVICES, FAST, assert_refused, files_in

from command_line import Command

SPLIT = (*FAST, "--pin", "first=XCPU", "--pin", "second=CPU")
# Bytes: 4 kernels of 3x3 over 3 and over 4 channels, and 4 channels of 16x16, in f32.
FIRST, SECOND, FEATURES = 4 * 3 * 9 * 4, 4 * 4 * 9 * 4, 4 * 16 * 16 * 4


def test_weights_are_counted_where_their_ops_go_and_nothing_is_written(cli: Command, small_ir: Path) -> None:
    before = files_in(small_ir.parent)
    report = cli("annotate", small_ir, *SPLIT, "--fit", "--memory-limit", "CPU=1MB", "--json").json()

    devices = {row["device"]: row for row in report["fit"]}
    assert {name: row["weight_bytes"] for name, row in devices.items()} == {"XCPU": FIRST, "CPU": SECOND}
    # What is transferred between them is held by both.
    assert all(row["result_bytes"] >= FEATURES for row in devices.values())
    assert all(row["needed_bytes"] == row["weight_bytes"] + row["result_bytes"] for row in devices.values())
    assert devices["CPU"]["memory_bytes"] == 1e6
    assert devices["XCPU"]["memory_bytes"] > 1e8  # the machine's own
    assert sum(row["ops"] for row in report["fit"]) == len(ov.Core().read_model(small_ir).get_ops())
    assert [part["device"] for part in report["parts"]] == ["XCPU", "CPU"]
    assert sum(part["weight_bytes"] for part in report["parts"]) == FIRST + SECOND
    assert files_in(small_ir.parent) == before


def test_a_limit_moves_the_model_elsewhere(cli: Command, small_ir: Path) -> None:
    limits = ("--memory-limit", "XCPU=100", "--memory-limit", "CPU=1MB")
    report = cli("annotate", small_ir, *FAST, *limits, "--fit", "--json").json()

    assert {row["device"]: row["ops"] > 0 for row in report["fit"]} == {"XCPU": False, "CPU": True}


def test_the_text_names_each_device_and_each_part(cli: Command, small_ir: Path) -> None:
    outcome = cli("annotate", small_ir, *SPLIT, "--fit")

    assert outcome.code == 0, outcome.err
    for words in ("weights", "results at once", "may hold", "Parts of the model", "nothing was written"):
        assert words in outcome.out


def test_a_given_placement_that_does_not_fit_is_an_error(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    given = {op.get_friendly_name(): "CPU" for op in ov.Core().read_model(small_ir).get_ops()}
    (tmp_path / "given.json").write_text(json.dumps(given))
    arguments = (*DEVICES, "--mode", "zero-shot", "--affinity", tmp_path / "given.json", "--fit")

    outcome = cli("annotate", small_ir, *arguments, "--memory-limit", "CPU=1KB")

    assert outcome.code == 1
    assert "CPU would need" in outcome.out
    assert cli("annotate", small_ir, *arguments).code == 0


@pytest.mark.parametrize("option", ["--output", "--report", "--trace"])
def test_files_are_no_part_of_it(cli: Command, small_ir: Path, tmp_path: Path, option: str) -> None:
    assert_refused(cli("annotate", small_ir, *FAST, "--fit", option, tmp_path / "x"), "--fit", option)
