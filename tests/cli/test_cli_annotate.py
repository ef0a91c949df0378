"""``ov-autoplace annotate``: what it writes and what it says."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

from command_line import Command, candidates_of, proposers_of

DEVICES = ("-d", "XCPU,CPU")
QUICK = (*DEVICES, "--time-budget-ms", "50")
ZERO_SHOT = (*DEVICES, "--mode", "zero-shot")
KEYS = {
    "model",
    "devices",
    "mode",
    "candidates",
    "chosen",
    "decision",
    "subgraphs",
    "ops_per_device",
    "affinity_file",
    "annotated_model",
    "seconds",
}


def test_the_report_describes_the_files_beside_each_other(cli: Command, small_ir: Path) -> None:
    # Time to measure in, so that the answer is a measured one.
    report = cli("annotate", small_ir, *DEVICES, "--time-budget-ms", "2000", "--json").json()

    assert set(report) >= KEYS
    assert report["devices"] == ["XCPU", "CPU"]
    assert report["mode"] == "PROFILE"
    assert {p.name for p in small_ir.parent.iterdir()} == {
        "net.xml",
        "net.bin",
        "net.autoplace.xml",
        "net.autoplace.bin",
        "net.affinity.json",
    }
    affinities = json.loads(Path(report["affinity_file"]).read_text())
    assert set(affinities) == {op.get_friendly_name() for op in ov.Core().read_model(small_ir).get_ops()}
    assert sum(report["ops_per_device"].values()) == len(affinities)
    found = candidates_of(report)
    assert all(found[device]["predicted_ms"] > 0 for device in ("XCPU", "CPU"))
    assert found[report["chosen"]]["measured"]["steady"]["median_ms"] > 0
    assert all(seconds >= 0 for seconds in report["seconds"].values())


def test_a_name_that_ends_in_xml_is_the_annotated_models(cli: Command, small_ir: Path) -> None:
    folder = small_ir.parent / "new" / "newer"
    report = cli("annotate", small_ir, *ZERO_SHOT, "-o", folder / "out.v2.xml", "--json").json()

    assert report["annotated_model"] == str(folder / "out.v2.xml")
    assert report["affinity_file"] == str(folder / "out.v2.affinity.json")
    assert {p.name for p in folder.iterdir()} == {"out.v2.xml", "out.v2.bin", "out.v2.affinity.json"}
    annotated, given = ov.Core().read_model(folder / "out.v2.xml"), ov.Core().read_model(small_ir)
    assert len(annotated.get_ops()) == len(given.get_ops())
    assert json.loads((folder / "out.v2.affinity.json").read_text()).keys() == {
        op.get_friendly_name() for op in given.get_ops()
    }


def test_a_second_annotation_of_the_same_name_takes_the_place_of_the_first(
    cli: Command, small_ir: Path
) -> None:
    out = small_ir.parent / "out.xml"
    for device in ("XCPU", "CPU"):
        assert cli("annotate", small_ir, "-d", device, "--mode", "zero-shot", "-o", out).code == 0
        assert set(json.loads(out.with_suffix(".affinity.json").read_text()).values()) == {device}
    assert len(list(small_ir.parent.iterdir())) == 5


@pytest.mark.parametrize("name", ["out", "out.v2", ".hidden"])
def test_any_other_name_is_a_folder(cli: Command, small_ir: Path, name: str) -> None:
    report = cli("annotate", small_ir, *ZERO_SHOT, "-o", small_ir.parent / name, "--json").json()
    assert report["annotated_model"] == str(small_ir.parent / name / "net.autoplace.xml")


def test_zero_shot_measures_nothing(cli: Command, small_ir: Path) -> None:
    report = cli("annotate", small_ir, *DEVICES, "--mode", "zero-shot", "--json").json()

    assert report["mode"] == "ZERO_SHOT"
    found = candidates_of(report)
    assert not any(candidate["measured"] for candidate in found.values())
    assert all(found[device]["predicted_ms"] > 0 for device in ("XCPU", "CPU"))


def test_a_pin_is_honoured_in_the_files_and_in_what_runs(cli: Command, small_ir: Path) -> None:
    report = cli("annotate", small_ir, *QUICK, "--pin", "first=XCPU", "--pin", "second=CPU", "--json").json()

    affinities = json.loads(Path(report["affinity_file"]).read_text())
    assert affinities["first"] == "XCPU"
    assert affinities["second"] == "CPU"

    compiled = ov.Core().compile_model(report["annotated_model"], "AUTOPLACE:XCPU,CPU")
    assert int(compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")) == report["subgraphs"] == 2


def test_the_annotated_model_answers_as_the_original(cli: Command, small_ir: Path) -> None:
    report = cli("annotate", small_ir, *QUICK, "--pin", "first=XCPU", "--pin", "second=CPU", "--json").json()
    core = ov.Core()
    exact = {"INFERENCE_PRECISION_HINT": "f32"}
    image = np.random.default_rng(11).standard_normal((1, 3, 16, 16), dtype=np.float32)

    expected = core.compile_model(small_ir, "CPU", exact)([image])[0]
    answer = core.compile_model(report["annotated_model"], "AUTOPLACE:XCPU,CPU", exact)([image])[0]

    np.testing.assert_allclose(answer, expected, rtol=1e-4, atol=1e-4)


def test_a_given_affinity_file_is_applied_as_it_is(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    given = {op.get_friendly_name(): "CPU" for op in ov.Core().read_model(small_ir).get_ops()}
    given |= dict.fromkeys(("image", "first", "relu", "weights3"), "XCPU")
    (tmp_path / "given.json").write_text(json.dumps(given))
    out = tmp_path / "out"

    report = cli(
        "annotate", small_ir, *DEVICES, "--affinity", tmp_path / "given.json", "-o", out, "--json"
    ).json()

    assert json.loads((out / "net.affinity.json").read_text()) == given
    assert {(c["predicted_ms"], *c["measured"]) for c in report["candidates"]} == {(None,)}
    assert report["subgraphs"] == 2
    assert "given.json" in report["decision"]


def test_annotating_twice_replaces_the_files(cli: Command, small_ir: Path) -> None:
    first = cli("annotate", small_ir, *DEVICES, "--mode", "zero-shot", "--json").json()
    again = cli("annotate", first["annotated_model"], *DEVICES, "--mode", "zero-shot", "--json").json()

    assert again["annotated_model"] == first["annotated_model"]
    assert again["affinity_file"] == first["affinity_file"]


def test_the_table_marks_the_winner_and_says_why(cli: Command, small_ir: Path) -> None:
    # Nothing is measured, so that no other work on this machine is a reason for a warning.
    outcome = cli("annotate", small_ir, *DEVICES, "--mode", "zero-shot")

    assert outcome.code == 0, outcome.err
    assert outcome.out.count("*") == 2
    assert "net.autoplace.xml" in outcome.out
    assert outcome.err == ""


def test_folders_that_are_missing_are_made(cli: Command, small_ir: Path, tmp_path: Path) -> None:
    out, trace = tmp_path / "a" / "b", tmp_path / "c" / "d" / "trace.json"

    outcome = cli("annotate", small_ir, *DEVICES, "--mode", "zero-shot", "-o", out, "--trace", trace)

    assert outcome.code == 0, outcome.err
    assert {path.name for path in out.iterdir()} == {
        "net.autoplace.xml",
        "net.autoplace.bin",
        "net.affinity.json",
    }
    assert [path.name for path in trace.parent.iterdir()] == ["trace.json"]


def proposers(report: dict[str, Any]) -> set[str]:
    """Without the widths of a CPU, which differ from machine to machine."""
    return {name for name in proposers_of(report) if "thread" not in name}


def test_the_solvers_that_are_named_are_asked(cli: Command, small_ir: Path) -> None:
    quick = (*DEVICES, "--mode", "zero-shot", "--json")

    assert proposers(cli("annotate", small_ir, *quick).json()) == {
        "XCPU",
        "CPU",
        "HETERO",
        "portfolio",
        "greedy",
    }
    named = cli("annotate", small_ir, *quick, "--solvers", "local,portfolio").json()
    assert proposers(named) == {"XCPU", "CPU", "HETERO", "local", "portfolio"}
    nobody = cli("annotate", small_ir, *quick, "--solvers", "none").json()
    assert proposers(nobody) == {"XCPU", "CPU", "HETERO"}


def test_of_two_pins_the_last_one_counts_where_both_match(cli: Command, small_ir: Path) -> None:
    pins = ("--pin", "first=CPU", "--pin", "*=CPU", "--pin", "first=XCPU")
    report = cli("annotate", small_ir, *DEVICES, *pins, "--mode", "zero-shot", "--json").json()

    affinities = json.loads(Path(report["affinity_file"]).read_text())
    assert (affinities["first"], affinities["relu"], affinities["second"]) == ("XCPU", "CPU", "CPU")


@pytest.mark.parametrize("option", ["--pin", "--shape"])
def test_names_may_hold_equals_signs(cli: Command, tmp_path: Path, option: str) -> None:
    x = ops.parameter(ov.PartialShape([-1, 4]), name="a=b")
    path = tmp_path / "net.xml"
    ov.save_model(ov.Model([ops.result(ops.relu(x), name="r")], [x], "net"), path)
    value = {"--pin": "a=b=CPU", "--shape": "a=b=[2,4]"}[option]

    outcome = cli("annotate", path, *DEVICES, "--mode", "zero-shot", option, value)

    assert outcome.code == 0, outcome.err
