"""A headless Chromium that listens to all that a page does; a plugin of the browser tests."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

__all__ = ["OpenedPage", "find_chromium", "reads_well"]

_PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str | None:
    """The browser that AUTOPLACE_CHROMIUM names, or the first that is installed."""
    return os.environ.get("AUTOPLACE_CHROMIUM") or next(filter(None, map(shutil.which, _PROGRAMS)), None)


class OpenedPage:
    """A report in the browser.

    Attributes:
        page: Playwright's page.
        complaints: Errors and warnings on its console, exceptions, and dialogs.
        requests: Addresses that it asked for.
    """

    def __init__(self, browser: Any, path: Path, scheme: str = "light", width: int = 1400) -> None:
        self.page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", self._dismiss)
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(path.as_uri())
        self.page.wait_for_function("document.documentElement.dataset.state", timeout=60_000)
        self.state = self.page.evaluate("document.documentElement.dataset.state")
        self.page.wait_for_timeout(300)  # drawings are painted in the next frames

    def _listen(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.complaints.append(message.text)

    def _dismiss(self, dialog: Any) -> None:
        self.complaints.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def look_at(self, chart: str) -> None:
        """Bring a drawing into view."""
        self.page.evaluate("name => document.getElementById(name).scrollIntoView({block: 'center'})", chart)
        self.page.wait_for_timeout(100)

    def hover(self, chart: str, title: str) -> str:
        """Move the pointer onto what has this title, and return the text of the tooltip."""
        self.look_at(chart)
        place = self.page.evaluate(_PLACE_OF, [chart, title])
        self.page.mouse.move(place["x"] - 40, place["y"] - 1)
        self.page.mouse.move(place["x"], place["y"], steps=3)
        self.page.wait_for_timeout(300)
        return str(self.page.evaluate(_TOOLTIPS))

    def click(self, chart: str, title: str) -> None:
        """Click on what has this title."""
        self.look_at(chart)
        place = self.page.evaluate(_PLACE_OF, [chart, title])
        self.page.mouse.click(place["x"], place["y"])
        self.page.wait_for_timeout(300)

    def search(self, text: str) -> list[str]:
        """Type into the search field and return the names that are listed."""
        self.page.fill("#search", text)
        self.page.wait_for_timeout(400)
        return list(self.page.locator("#results button div").all_text_contents())


def reads_well(opened: OpenedPage) -> None:
    """Assert that nothing is cut off or wider than the page, and that no word of a table is broken."""
    assert opened.page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert opened.page.evaluate(_BROKEN_WORDS) == []
    assert opened.page.evaluate(_TOO_WIDE) == []


# Words that stand on more than one line, of those that are short enough for the narrowest column.
_BROKEN_WORDS = """() => {
  const broken = [], range = document.createRange();
  for (const cell of document.querySelectorAll("td, th, dt, dd")) {
    for (const node of cell.childNodes) {
      if (node.nodeType !== Node.TEXT_NODE || cell.offsetParent === null) continue;
      for (const found of node.data.matchAll(/[^\\s\\u200b]{2,18}(?=\\s|$)/g)) {
        range.setStart(node, found.index);
        range.setEnd(node, found.index + found[0].length);
        const isWord = found.index === 0 || /\\s/.test(node.data[found.index - 1]);
        if (isWord && new Set([...range.getClientRects()].map((r) => r.top)).size > 1) broken.push(found[0]);
      }
    }
  }
  return broken;
}"""

# What reaches over the edge of the page or of its frame; drawings see to themselves.
_TOO_WIDE = """() => [...document.querySelectorAll("main *")].filter((element) => {
  const frame = element.closest(".wide");
  const edge = frame === null ? innerWidth : frame.getBoundingClientRect().right;
  return element.getBoundingClientRect().right > edge + 1 && element.closest(".chart") === null;
}).map((element) => element.outerHTML.slice(0, 80))"""

# Bars have sides, nodes have places.
_PLACE_OF = """([name, title]) => {
  const chart = Bokeh.documents.map((d) => d.get_model_by_name(name)).find((m) => m !== null);
  const view = Bokeh.index.find_one(chart);
  const box = view.canvas_view.el.getBoundingClientRect();
  for (const {data_source: {data}} of chart.renderers) {
    const i = data.title === undefined ? -1 : [...data.title].indexOf(title);
    if (i < 0 || data.x0 !== undefined) continue;
    const x = data.x === undefined ? (data.left[i] + data.right[i]) / 2 : data.x[i];
    const y = data.y === undefined ? (data.top[i] + data.bottom[i]) / 2 : data.y[i];
    return {x: box.left + view.frame.x_scale.compute(x), y: box.top + view.frame.y_scale.compute(y)};
  }
  throw new Error(`nothing is called ${title}`);
}"""

# Tooltips live in shadow trees.
_TOOLTIPS = """() => {
  const texts = [];
  const walk = (root) => {
    for (const element of root.querySelectorAll("*")) {
      if (element.shadowRoot === null) continue;
      if (element.classList.contains("bk-Tooltip") && getComputedStyle(element).display !== "none") {
        const shown = [...element.shadowRoot.children].filter((child) => child.tagName !== "STYLE");
        texts.push(shown.map((child) => child.innerText).join("\\n"));
      }
      walk(element.shadowRoot);
    }
  };
  walk(document);
  return texts.join("\\n");
}"""


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """One browser for all tests."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        # Containers run tests as root, where Chromium's sandbox cannot start.
        browser = driver.chromium.launch(executable_path=find_chromium(), args=["--no-sandbox"])
        yield browser
        browser.close()
