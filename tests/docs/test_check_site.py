"""The check of the built site finds what it is there for."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from places import ROOT

sys.path.insert(0, str(ROOT / "tools" / "docs"))

import check_site


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages that link to each other, with a style sheet."""
    (tmp_path / "style.css").write_text("")
    head = '<link rel="stylesheet" href="style.css">'
    (tmp_path / "a.html").write_text(
        f'{head}<h1 id="top">A</h1><a href="b.html#end">b</a><a href="#top">up</a>'
    )
    (tmp_path / "b.html").write_text(f'{head}<p id="end">B</p><a href="https://example.org/x">elsewhere</a>')
    return tmp_path


def test_a_site_in_order_has_no_problems(site: Path) -> None:
    assert check_site.problems_of(site) == []


@pytest.mark.parametrize(
    ("body", "problem"),
    [
        ('<a href="missing.html">c</a>', "bad.html links to missing.html, which does not exist"),
        ('<a href="a.html#bottom">a</a>', "has no such anchor"),
        ('<a href="http://example.org">insecure</a>', "is no https address"),
        ('<script src="https://example.org/x.js"></script>', "fetches https://example.org/x.js"),
        ('<img src="picture.png">', "does not exist"),
    ],
)
def test_what_is_not_in_order_is_named(site: Path, body: str, problem: str) -> None:
    (site / "bad.html").write_text(body)

    problems = check_site.problems_of(site)

    assert len(problems) == 1
    assert problem in problems[0]


def test_a_folder_without_pages_is_a_problem(tmp_path: Path) -> None:
    assert check_site.problems_of(tmp_path)
