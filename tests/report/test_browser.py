"""Reports in a real browser: no complaints, no requests, and search, tooltips and details that work."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from report_pages import every_part, placement_page

from browser import OpenedPage, reads_well
from ov_autoplace.report import write_report
from report_tables import HOSTILE

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pages") / "everything.html"
    write_report(every_part(), path)
    return path


@pytest.fixture
def opened(chromium: Any, everything: Path) -> OpenedPage:
    return OpenedPage(chromium, everything)


def colours_of(opened: OpenedPage, chart: str, folder: Path) -> set[tuple[int, int, int]]:
    """The colours in a screenshot of a drawing."""
    from PIL import Image

    path = folder / f"{chart}.png"
    opened.page.locator(f"#{chart}").screenshot(path=path)
    return set(map(tuple, np.asarray(Image.open(path).convert("RGB")).reshape(-1, 3).tolist()))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_page_opens_without_complaints_and_draws_everything(
    chromium: Any,
    everything: Path,
    tmp_path: Path,
    scheme: str,
) -> None:
    opened = OpenedPage(chromium, everything, scheme)

    assert opened.state == "ready"
    assert opened.complaints == []
    assert opened.requests == [everything.as_uri()]
    blue, orange = (0x00, 0x72, 0xB2), (0xE6, 0x9F, 0x00)
    paper = {"light": (0xFF, 0xFF, 0xFF), "dark": (0x14, 0x17, 0x1C)}[scheme]
    for chart, colours in (
        ("latency", {blue}),
        ("schedule", {blue, orange}),
        ("graph", {blue, orange}),
        ("curve", {blue}),
    ):
        assert colours | {paper} <= colours_of(opened, chart, tmp_path), chart


def test_the_page_may_not_reach_the_network(opened: OpenedPage) -> None:
    forbidden = opened.page.evaluate(
        """async () => {
          const seen = [];
          document.addEventListener("securitypolicyviolation", (e) => seen.push(e.effectiveDirective));
          await fetch("http://127.0.0.1:9/").catch(() => null);
          const script = document.createElement("script");
          script.textContent = "window.ran = true";
          document.body.append(script);
          await new Promise((resolve) => setTimeout(resolve, 200));
          return [seen, window.ran === undefined];
        }"""
    )

    assert "connect-src" in forbidden[0]
    assert forbidden[1]


def test_search_lists_marks_and_shows_what_it_finds(opened: OpenedPage) -> None:
    assert opened.search("layer2/op4") == [f"layer2/op4{i}{m}" for i in range(10) for m in ("", ".member1")]
    assert opened.page.inner_text("#found") == "20 of 160 ops"
    marked = (
        "() => Bokeh.documents.map((d) => d.get_model_by_name('matches')).find((m) => m).data_source.data.x"
    )
    assert len(opened.page.evaluate(marked)) == 10

    opened.page.locator("#results button").nth(2).click()

    details = opened.page.inner_text("#details")
    assert details.startswith("layer2/op41\n")
    assert "CPU" in details
    assert "GPU" in details
    assert "layer2/op41.member1" in details
    assert opened.complaints == []


def test_the_keyboard_alone_finds_opens_and_follows_ops(opened: OpenedPage) -> None:
    opened.page.focus("#search")
    opened.page.keyboard.type("layer0/op7")
    opened.page.wait_for_selector("#results button")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_selector("#details h4")
    assert opened.page.locator("#details h3").text_content() == "layer0/op7"

    opened.page.focus("#details .op")
    opened.page.keyboard.press("Enter")
    opened.page.wait_for_timeout(300)

    assert opened.page.locator("#details h3").text_content() == "layer0/op6"
    outline = "getComputedStyle(document.activeElement).outlineStyle"
    opened.page.keyboard.press("Tab")
    assert opened.page.evaluate(outline) == "solid"  # one sees where the focus is


def test_search_takes_patterns_and_says_when_nothing_matches(opened: OpenedPage) -> None:
    assert opened.search("LAYER?/op4*.member1") == [
        *[f"layer2/op4{i}.member1" for i in range(10)],
    ]
    assert opened.search("(.+") == []
    assert opened.page.inner_text("#found") == "0 of 160 ops"
    assert opened.search("") == []


def test_hovering_over_a_node_tells_costs_and_reason(opened: OpenedPage) -> None:
    text = opened.hover("graph", "layer2/op41")

    assert "layer2/op41" in text
    assert "predicted: GPU 0." in text
    assert "CPU 0." in text
    assert "the model takes" in text


def test_hovering_over_the_schedule_tells_subgraph_group_and_transfer(opened: OpenedPage) -> None:
    assert "groups" in opened.hover("schedule", "subgraph 1 on CPU, predicted")
    assert "MatMul" in opened.hover("schedule", "layer2/op41")


def test_clicking_a_node_shows_its_details(opened: OpenedPage) -> None:
    opened.click("graph", "layer3/op70")

    assert opened.page.inner_text("#details").startswith("layer3/op70\n")


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_are_shown_as_text_and_run_nothing(opened: OpenedPage, name: str) -> None:
    assert name in opened.search(name[:20])

    opened.page.locator("#results button").first.click()
    opened.page.wait_for_timeout(200)

    assert opened.page.locator("#details h3").text_content() == name
    tooltip = opened.hover("graph", name)
    assert " ".join(name.split()[0:1]) in tooltip
    made = "img, iframe, [onerror], [onload], svg:not(.swatch), td b, li b, h3 b, p b"
    assert opened.page.locator(made).count() == 0
    assert opened.complaints == []
    assert len(opened.requests) == 1


def test_the_panel_shows_attributes_inputs_outputs_and_weights_of_an_op(opened: OpenedPage) -> None:
    opened.search(HOSTILE[2])
    opened.page.locator("#results button").first.click()
    opened.page.wait_for_selector("#details h4")

    details = opened.page.inner_text("#details")
    assert "MatMul (opset1) on " in details
    assert "transpose_b\nfalse" in details
    assert f"0\n{HOSTILE[0]}Parameter\nf32 [2,3]" in details.replace("\xa0", " ")
    assert f"1\n{HOSTILE[1]}Constant\nf32 [3,4]\nsize 48 bytes, values 0, 1, 2, 3" in details
    assert "Outputs\n0\nf32 [2,4]" in details
    assert "Cost of its group of 2 ops, predicted" in details


def test_ops_in_the_panel_lead_to_each_other(opened: OpenedPage) -> None:
    opened.search("layer0/op7")
    opened.page.locator("#results button").first.click()
    opened.page.get_by_role("button", name="layer0/op6 Constant").click()
    opened.page.wait_for_timeout(200)

    details = opened.page.inner_text("#details")
    assert details.startswith("layer0/op6\n\nConstant (opset1)")
    assert "size\n11.7 KiB\nmin\n-1\nmax\n2" in details
    opened.page.keyboard.press("Tab")
    focused = opened.page.evaluate("document.activeElement.closest('#details') !== null")
    assert focused  # the keyboard goes on where the pointer was


def test_hostile_attributes_and_tensors_are_shown_as_text(opened: OpenedPage) -> None:
    opened.search(HOSTILE[3])
    opened.page.locator("#results button").first.click()
    opened.page.wait_for_selector("#details h4")

    pairs = opened.page.locator("#details dl").first.evaluate(
        "list => [...list.children].map((c) => c.textContent)"
    )
    assert dict(zip(pairs[::2], pairs[1::2], strict=True))["variable_id"] == HOSTILE[4]
    opened.page.locator("#details .op").first.click()  # the product that it keeps
    opened.page.wait_for_timeout(200)
    opened.page.locator("#details .op").first.click()  # its input
    opened.page.wait_for_timeout(200)
    assert HOSTILE[5] in opened.page.locator("#details").text_content()
    assert opened.page.locator("#details b b, #details img, #details svg, #details script").count() == 0
    assert opened.complaints == []
    assert len(opened.requests) == 1


def test_buttons_of_a_drawing_stay_when_the_panel_makes_it_narrower(opened: OpenedPage) -> None:
    buttons = """() => {
      const chart = Bokeh.documents.map((d) => d.get_model_by_name("graph")).find((m) => m !== null);
      const bar = Bokeh.index.find_one(chart.toolbar);
      return bar.shadow_el.querySelectorAll("[class*=Button]").length;
    }"""
    before = opened.page.evaluate(buttons)

    opened.search("layer0/op7")
    opened.page.locator("#results button").first.click()
    opened.page.wait_for_timeout(800)

    assert opened.page.evaluate(buttons) == before > 3


@pytest.mark.parametrize("width", [1400, 800, 400])
def test_the_page_reads_well_at_every_width(chromium: Any, everything: Path, width: int) -> None:
    opened = OpenedPage(chromium, everything, width=width)
    reads_well(opened)

    opened.search("layer0/op7")
    opened.page.locator("#results button").first.click()
    opened.page.wait_for_timeout(500)

    reads_well(opened)
    assert opened.complaints == []


@pytest.mark.parametrize(("groups", "subgraphs"), [(5_000, 41), (50_000, 1), (50_000, 61)])
def test_large_graphs_open_and_are_no_elements_of_the_page(
    chromium: Any,
    tmp_path: Path,
    groups: int,
    subgraphs: int,
) -> None:
    path = tmp_path / "large.html"
    write_report(placement_page(groups, subgraphs), path)

    opened = OpenedPage(chromium, path)

    assert opened.state == "ready"
    assert opened.page.evaluate("document.querySelectorAll('*').length") < 1500
    assert len(opened.search(f"op{groups - 1}")) == 2
    opened.page.locator("#results button").first.click()
    opened.look_at("graph")
    opened.page.mouse.move(700, 450)
    for _ in range(5):
        opened.page.mouse.wheel(0, -200)
    opened.page.wait_for_timeout(300)
    assert f"op{groups - 1}" in opened.page.inner_text("#details")
    assert opened.complaints == []


@pytest.mark.parametrize("width", [1400, 400])
def test_names_of_rows_that_are_broken_into_lines_have_room(
    chromium: Any, tmp_path: Path, width: int
) -> None:
    page = placement_page(8, 2)
    longer = tuple(
        replace(row, name=f"XCPU + CPU ({i} lanes of 1 thread)") for i, row in enumerate(page.candidates)
    )
    write_report(replace(page, candidates=longer), tmp_path / "long.html")
    opened = OpenedPage(chromium, tmp_path / "long.html", width=width)
    row, lines = opened.page.evaluate("""() => {
      const chart = Bokeh.documents.map((d) => d.get_model_by_name("latency")).find((m) => m !== null);
      const names = [...chart.left[0].major_label_overrides.values()];
      return [chart.inner_height / names.length, Math.max(...names.map((name) => name.split("\\n").length))];
    }""")

    assert lines == (3 if width == 400 else 1)
    assert row > 11 * 1.2 * lines  # names are 11 pixels high
