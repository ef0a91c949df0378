"""Checks a built site: every link inside it leads somewhere, and nothing is fetched from elsewhere.

    python tools/docs/check_site.py build/docs

Links to other sites are not followed; they have to be https.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

_FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}


@dataclass(slots=True)
class Page:
    """What a page offers and needs.

    Attributes:
        anchors: Its ids.
        links: Where its ``a`` elements lead.
        resources: What a browser fetches to show it.
    """

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.page = Page()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {key: value or "" for key, value in attrs}
        if "id" in values:
            self.page.anchors.add(values["id"])
        if tag == "a" and "href" in values:
            self.page.links.append(values["href"])
        if tag in _FETCHED and _FETCHED[tag] in values:
            self.page.resources.append(values[_FETCHED[tag]])


def read_page(path: Path) -> Page:
    """Parse one page."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    return reader.page


def problems_of(site: Path) -> list[str]:
    """A sentence for each link or resource of the site that is not in order."""
    pages = {path.resolve(): read_page(path) for path in sorted(site.rglob("*.html"))}
    problems = [] if pages else [f"{site} holds no pages"]
    for path, page in pages.items():
        name = path.relative_to(site.resolve())
        for resource in page.resources:
            parts = urlsplit(resource)
            if parts.scheme == "data":
                continue
            if parts.scheme or parts.netloc:
                problems.append(f"{name} fetches {resource}")
            elif not (path.parent / unquote(parts.path)).exists():
                problems.append(f"{name} needs {resource}, which does not exist")
        for link in page.links:
            wrong = _wrong(link, path, pages)
            if wrong:
                problems.append(f"{name} links to {link}, which {wrong}")
    return problems


def _wrong(link: str, path: Path, pages: dict[Path, Page]) -> str:
    """What is wrong with a link on the page ``path``; an empty string when nothing is."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return "" if parts.scheme == "https" and "." in parts.netloc else "is no https address"
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "does not exist"
    if parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
        return "has no such anchor"
    return ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("site", type=Path)
    site = parser.parse_args().site
    problems = problems_of(site)
    print("\n".join(problems) if problems else f"all links of {site} are in order")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
