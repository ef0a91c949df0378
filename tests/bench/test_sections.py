"""The suite as it is run: two whole sections, and that all others can be called."""

from __future__ import annotations

import inspect
import json
import re
import shlex
from xml.etree import ElementTree

import pytest

import gate
import suite
from harness.picture import draw
from harness.result import Point, exact_ratio
from sections import ACCEPTED, SECTIONS, options_of


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_can_be_called_with_extent_and_seed_and_its_options_have_defaults(name):
    section = SECTIONS[name]
    inspect.signature(section.run).bind(quick=True, seed=0, **section.fixed)


def test_what_is_published_are_sections_of_a_whole_run():
    published = json.loads((suite.ROOT / "benchmarks.json").read_text())["sections"]
    assert list(published) == [name for name in ACCEPTED if name in published]


def test_documents_and_the_gate_name_sections_and_options_that_there_are():
    places = [*suite.ROOT.glob("*.md"), suite.ROOT / "Makefile", *(suite.ROOT / "docs").rglob("*.md")]
    named = set()
    for place in places:
        text = re.sub(r"\s+", " ", place.read_text(encoding="utf-8"))
        for found in re.finditer(r"--sections ([a-z,-]+)([^`]*)", text):
            sections = found[1].strip(",").split(",")
            assert {*sections} <= {*SECTIONS}, place.name
            named |= {*sections}
            options = re.search(r'--with((?: (?:"[^"]*"|\w+=\S+))+)', found[2])
            if options:
                options_of(sections[0], shlex.split(options[1]))
    assert {"placement", "rivals"} <= named


def test_sections_that_are_run_are_written_beside_each_other_and_pass_the_gate_against_themselves(tmp_path):
    asked = ["--quick", "--seed", "3", "--output", str(tmp_path)]
    suite.main([*asked, "--sections", "overhead"])
    suite.main([*asked, "--sections", "power"])
    document = json.loads((tmp_path / "benchmarks.json").read_text())
    assert set(document["sections"]) == {"overhead", "power"}
    for section in document["sections"].values():
        assert section["extent"] == "quick, seed 3"
        tables = section["result"]["tables"]
        assert all(len(row) == len(table["columns"]) for table in tables for row in table["rows"])
        assert any(table["rows"] for table in tables)
        assert "data" not in section["result"]
    page = (tmp_path / "measured.md").read_text()
    assert page.count("\n## ") == 2
    assert "Losing cases" in page
    assert all(
        claim["what"] in page for s in document["sections"].values() for claim in s["result"]["claims"]
    )
    verdicts, _ = gate.compare(document, document)
    assert verdicts
    assert {verdict.word for verdict in verdicts} == {"same"}


def test_a_section_that_is_not_there_is_refused_with_those_that_are(capsys):
    with pytest.raises(SystemExit):
        suite.main(["--sections", "powr"])
    assert "there is no section powr; there are width" in capsys.readouterr().err


def test_the_picture_is_the_same_file_for_the_same_results(tmp_path):
    points = [Point("a", 1e-4, 0.6), Point("b", 2e-3, 1.0), Point("c", 1e-2, 1.05)]
    draw(tmp_path / "gains.svg", points, [exact_ratio("two models: default's rates over ours", 0.5, 9)])
    first = (tmp_path / "gains.svg").read_bytes()
    assert ElementTree.fromstring(first).tag.endswith("svg")
    draw(tmp_path / "gains.svg", points, [exact_ratio("two models: default's rates over ours", 0.5, 9)])
    assert (tmp_path / "gains.svg").read_bytes() == first
