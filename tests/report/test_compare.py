"""Two reports side by side: as data, in the terminal, and as a page."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_pages import contents_of, every_part, lanes_page

from browser import OpenedPage, reads_well
from command_line import Command
from ov_autoplace.errors import OptionError
from ov_autoplace.placement.decision import RateRow
from ov_autoplace.report import write_comparison, write_report
from ov_autoplace.report.comparison import compare
from ov_autoplace.report.contents import Contents
from ov_autoplace.report.saved import SavedReport, read_report
from report_tables import HOSTILE, layered_table, pieces

DEVICES = ("-d", "XCPU,CPU", "--policy", "none", "--mode", "zero-shot")


def saved(contents: Contents, path: Path) -> SavedReport:
    write_report(contents, path)
    return read_report(path)


def placed(subgraphs: int, seed: int = 1) -> Contents:
    return contents_of(layered_table(80, seed=seed, names=HOSTILE, members=2), pieces(80, subgraphs))


def test_ops_that_moved_are_those_whose_devices_differ(tmp_path: Path) -> None:
    first, second = saved(placed(1), tmp_path / "a.json"), saved(placed(5), tmp_path / "b.json")
    table = layered_table(80, seed=1, names=HOSTILE, members=2)
    elsewhere = np.flatnonzero(pieces(80, 1) != pieces(80, 5)).tolist()

    comparison = compare(first, second)

    assert table.members is not None
    moved = {op for group in comparison.moved for op in group.ops}
    assert moved == {op for g in elsewhere for op in table.members[g]}
    assert comparison.moves == (("GPU", "CPU", len(moved)),)
    heaviest = [max(group.first_seconds, group.second_seconds or 0) for group in comparison.moved]
    assert heaviest == sorted(heaviest, reverse=True)
    assert comparison.summary == f"ops on another device: {len(moved)} from GPU to CPU"


def test_costs_by_type_are_those_of_the_groups_where_they_run(tmp_path: Path) -> None:
    contents = placed(1), placed(5)
    comparison = compare(*(saved(c, tmp_path / f"{i}.json") for i, c in enumerate(contents)))

    for pair in comparison.kinds:
        for c, seconds, groups in zip(
            contents,
            (pair.first_seconds, pair.second_seconds),
            (pair.first_groups, pair.second_groups),
            strict=True,
        ):
            assert c.explanation is not None
            table, assignment = c.explanation.table, c.explanation.assignment
            assert table.op_types is not None
            own = [g for g, kind in enumerate(table.op_types) if kind == pair.kind]
            assert len(own) == groups
            assert seconds == pytest.approx(sum(table.op_seconds[g, assignment[g]] for g in own), rel=1e-4)


def test_latencies_are_told_apart_where_their_intervals_are(tmp_path: Path) -> None:
    page = placed(3)
    slower = [
        replace(row, median=2 * row.median, low=1.9 * row.low, high=2.1 * row.high) for row in page.latencies
    ]  # type: ignore[operator]
    report = saved(page, tmp_path / "a.json")

    answer, *rest = compare(
        report, saved(replace(page, latencies=tuple(slower)), tmp_path / "b.json")
    ).latencies

    assert answer.measured_change == pytest.approx(1.0, rel=1e-5)
    assert all(pair.is_told_apart for pair in (answer, *rest))
    assert [pair.name for pair in rest] == [row.name for row in page.latencies]
    assert not any(pair.is_told_apart for pair in compare(report, report).latencies)


@pytest.mark.bokeh
def test_a_page_holds_the_same_data_as_the_file(tmp_path: Path) -> None:
    contents = every_part()
    page, data = saved(contents, tmp_path / "a.html"), saved(contents, tmp_path / "b.json")

    assert page.placement == data.placement
    assert page.facts == data.facts
    assert page.title == HOSTILE[0]
    assert [curve.values.tolist() for curve in page.curves] == [
        curve.values.tolist() for curve in data.curves
    ]
    assert compare(page, data).moved == ()


def test_lanes_of_a_device_are_that_device(tmp_path: Path) -> None:
    lanes = saved(lanes_page(), tmp_path / "lanes.json")
    assert lanes.placement is not None
    other = {"CPU#0": "CPU#1", "CPU#1": "CPU#0", "GPU": "GPU"}
    groups = tuple(replace(group, lane=other[group.lane]) for group in lanes.placement.groups)
    swapped = replace(lanes, placement=replace(lanes.placement, groups=groups))

    comparison = compare(lanes, swapped)

    assert comparison.moved == ()
    on_lanes = sum(len(group.ops) for group in lanes.placement.groups if group.lane != "GPU")
    assert comparison.on_another_lane == on_lanes > 0


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("{", "does not parse as JSON"),
        ("[]", "must be a JSON object"),
        ('{"answer": 42}', "is no report; write one with --report FILE.json"),
        ('{"schema": "another"}', "does not hold 'ov-autoplace report'"),
        ('{"schema": "ov-autoplace report", "version": 99}', "version 99"),
        ("<html></html>", "none that --report wrote"),
        ('{"schema": "ov-autoplace report", "version": 1, "title": 7}', "'title' must be a string"),
    ],
)
def test_what_is_no_report_is_refused_in_a_sentence(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)

    with pytest.raises(OptionError, match=complaint) as refused:
        read_report(path)
    assert str(path) in str(refused.value)


def test_the_command_compares_what_the_others_wrote_and_printed(
    cli: Command, small_ir: Path, tmp_path: Path
) -> None:
    first, second, printed = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "printed.json"
    cli("explain", small_ir, *DEVICES, "--pin", "first=XCPU", "--pin", "second=CPU", "--report", first)
    cli("explain", small_ir, *DEVICES, "--pin", "first=CPU", "--pin", "second=CPU", "--report", second)
    printed.write_text(cli("annotate", small_ir, *DEVICES, "--json").out)

    found: dict[str, Any] = cli("compare", first, second, "--json").json()

    assert {op for group in found["moved"] for op in group["ops"]} >= {"first", "weights3"}
    assert all((group["source"], group["target"]) == ("XCPU", "CPU") for group in found["moved"])
    text = cli("compare", first, second).out
    assert "first" in text
    assert "ops on another device: " in text
    explained = tmp_path / "explained.json"
    pins = ("--pin", "first=CPU", "--pin", "second=CPU")
    explained.write_text(cli("explain", small_ir, *DEVICES, *pins, "--json").out)
    again = cli("compare", first, explained, "--json").json()
    assert [group["group"] for group in again["moved"]] == [group["group"] for group in found["moved"]]
    assert again["latencies"][0]["second"]["name"] == found["latencies"][0]["second"]["name"]
    partial = cli("compare", first, printed)
    assert partial.code == 0
    assert f"Ops are not compared: {printed} says nothing of them" in partial.out
    missing = cli("compare", first, tmp_path / "missing.json")
    assert (missing.code, "missing.json" in missing.err) == (2, True)


def rated(name: str, rate: float, is_answer: bool) -> RateRow:
    return RateRow(name, 2, None, rate, 2 * rate, "", is_answer)


@pytest.mark.bokeh
def test_rates_are_compared_by_name(cli: Command, tmp_path: Path) -> None:
    first = replace(placed(1), latencies=(), rates=(rated("GPU", 1000.0, True), rated("CPU", 10.0, False)))
    second = replace(
        placed(1), latencies=(), rates=(rated("GPU", 3000.0, False), rated("2 x CPU", 7.0, True))
    )
    for name, contents in (("a", first), ("b", second)):
        write_report(contents, tmp_path / f"{name}.json")
    paths = (tmp_path / "a.json", tmp_path / "b.json")

    outcome = cli("compare", *paths, "--report", tmp_path / "page.html")

    rows = [
        [cell.strip() for cell in line.split("│")[1:-1]] for line in outcome.out.splitlines() if "│" in line
    ]
    assert ["GPU * in A", "1,000", "3,000", "2,000", "6,000"] in rows
    assert ["CPU", "10", "-", "20", "-"] in rows
    assert ["2 x CPU * in B", "-", "7", "-", "14"] in rows
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "<h2>Requests a second</h2>" in text
    assert "GPU (chosen in A)" in text
    assert "<h2>Latency</h2>" not in text  # of which neither says anything
    found = cli("compare", *paths, "--json").json()["rates"]
    assert [row["name"] for row in found] == ["GPU", "CPU", "2 x CPU"]


@pytest.mark.bokeh
def test_the_command_writes_a_page(cli: Command, tmp_path: Path) -> None:
    for name, subgraphs in (("a", 1), ("b", 5)):
        write_report(placed(subgraphs), tmp_path / f"{name}.json")

    outcome = cli(
        "compare", tmp_path / "a.json", tmp_path / "b.json", "--report", tmp_path / "out" / "page.html"
    )

    assert outcome.code == 0, outcome.err
    text = (tmp_path / "out" / "page.html").read_text(encoding="utf-8")
    for heading in ("Summary", "Latency", "Schedules", "Cost by op type", "Ops that moved"):
        assert f"<h2>{heading}</h2>" in text
    assert "<img" not in text


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 800, 400])
def test_the_page_opens_and_reads_well_at_every_width(chromium: Any, tmp_path: Path, width: int) -> None:
    reports = [
        saved(contents, tmp_path / f"{i}.json") for i, contents in enumerate((every_part(), lanes_page()))
    ]
    path = tmp_path / "page.html"
    write_comparison(compare(reports[0], reports[1]), path)

    opened = OpenedPage(chromium, path, width=width)

    assert opened.state == "ready"
    assert opened.complaints == []
    assert opened.requests == [path.as_uri()]
    reads_well(opened)


def test_the_data_of_a_report_is_json_that_anybody_can_read(tmp_path: Path) -> None:
    write_report(every_part(), tmp_path / "a.json")

    value = json.loads((tmp_path / "a.json").read_text(encoding="utf-8"))

    assert (value["schema"], value["version"]) == ("ov-autoplace report", 1)
    assert value["placement"]["names"][0] == HOSTILE[0]
    assert [run["what"] for run in value["placement"]["runs"]] == ["measured", "predicted"]
