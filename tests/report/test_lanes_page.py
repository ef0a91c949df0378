"""Pages of schedules on lanes: as a text, and in a real browser at three widths."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from report_pages import lanes_page

from browser import OpenedPage, reads_well
from ov_autoplace.explain.measured import measured_timeline
from ov_autoplace.explain.tables import _in_order
from ov_autoplace.report import write_report
from ov_autoplace.report.contents import Contents
from report_tables import HOSTILE


@pytest.fixture(scope="module")
def contents() -> Contents:
    """What is shown."""
    return lanes_page()


@pytest.fixture(scope="module")
def path(contents: Contents, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page."""
    file = tmp_path_factory.mktemp("lanes") / "lanes.html"
    write_report(contents, file)
    return file


def bars(path: Path, column: str) -> list[dict[str, Any]]:
    """The data of everything in the schedule that has such a column, as the page holds it."""
    text = path.read_text(encoding="utf-8")
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    (chart,) = (entry["item"] for entry in data["charts"] if entry["target"] == "schedule")
    found: list[dict[str, Any]] = []

    def walk(value: Any) -> None:
        if isinstance(value, dict):
            if value.get("type") == "map" and column in dict(value["entries"]):
                found.append(dict(value["entries"]))
            for item in value.values():
                walk(item)
        elif isinstance(value, list):
            for item in value:
                walk(item)

    walk(chart)
    return found


@pytest.mark.bokeh
def test_each_lane_is_filled_by_its_submodels_and_idle_times(path: Path, contents: Contents) -> None:
    assert contents.explanation is not None
    assert contents.measured is not None
    predicted = contents.explanation.predicted
    measured = measured_timeline(contents.explanation, contents.measured)
    shown: dict[str, float] = {}
    for columns in bars(path, "alpha"):
        for title, left, right in zip(columns["title"], columns["left"], columns["right"], strict=True):
            shown[title] = shown.get(title, 0.0) + right - left
    for timeline, ending in ((predicted, ", predicted"), (measured, ", measured")):
        for lane in timeline.lanes:
            own = [f"submodel {s.subgraph} on {s.device}{ending}" for s in timeline.stages]
            busy = sum(shown[title] for title in own if f" on {lane.name}" in title)
            idle = shown.get(f"{lane.name} is idle{ending}", 0.0)
            assert busy == pytest.approx(lane.busy_seconds * 1e3)
            assert busy + idle == pytest.approx(timeline.seconds * 1e3)


@pytest.mark.bokeh
def test_the_page_says_what_is_idle_what_is_critical_and_what_is_proven(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    for words in (
        "predicted idle, all lanes",
        "<h2>Critical path</h2>",
        "no placement predicted below",
        "measured after 3 ms idle",
        "waits for ",
        "one lane of CPU more",
    ):
        assert words in text, words
    for lane in ("GPU", "CPU#0", "CPU#1"):
        # Measured directly above predicted.
        rows = rf"{lane}, measured\\nidle [\d.]+\u00a0ms, \d+\u00a0%.{{0,40}}?{lane}, predicted\\nidle "
        assert re.search(rows, text), lane
    assert "<img" not in text


def test_parts_of_two_critical_paths_are_in_the_order_of_both() -> None:
    measured = ["submodel 1", "between 1 and 0", "submodel 0", "submodel 2", "outside"]
    predicted = ["before", "submodel 1", "transfer", "submodel 2"]

    assert _in_order([measured, predicted]) == [
        *("before", "submodel 1", "between 1 and 0", "submodel 0", "transfer", "submodel 2", "outside")
    ]
    assert _in_order([["a"], ["b", "c"]]) == ["a", "b", "c"]


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 800, 400])
def test_a_page_of_lanes_opens_at_every_width(chromium: Any, path: Path, width: int) -> None:
    opened = OpenedPage(chromium, path, width=width)
    reads_well(opened)

    assert opened.state == "ready"
    assert opened.complaints == []
    labels = """() => {
      const found = Bokeh.documents.map((d) => d.get_model_by_name("labels")).find((m) => m);
      const {label, left, right} = found.data_source.data;
      return [...label].map((text, i) => [text, right[i] - left[i]]).filter(([text]) => text !== "");
    }"""
    inner = "() => Bokeh.documents.map((d) => d.get_model_by_name('schedule')).find((m) => m).inner_width"
    view = """() => {
      const range = Bokeh.documents.map((d) => d.get_model_by_name("schedule")).find((m) => m).x_range;
      return range.end - range.start;
    }"""
    pixels = opened.page.evaluate(inner) / opened.page.evaluate(view)
    for text, length in opened.page.evaluate(labels):
        assert length * pixels >= 6 * len(text)  # it has room in its bar


@pytest.mark.browser
def test_hovering_over_a_gap_tells_what_is_waited_for(chromium: Any, path: Path, contents: Contents) -> None:
    opened = OpenedPage(chromium, path)
    assert contents.explanation is not None
    lane = next(lane for lane in contents.explanation.predicted.lanes if lane.idle)

    text = opened.hover("schedule", f"{lane.name} is idle, predicted")

    assert lane.idle[0].reason in text
    critical = opened.page.evaluate(
        "() => Bokeh.documents.map((d) => d.get_model_by_name('critical')).find((m) => m).glyph.line_color"
    )
    assert str(critical) not in ("", "None")
    assert opened.search(HOSTILE[0][:12])
    assert opened.complaints == []
