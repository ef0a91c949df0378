"""The page as a text: what is in it, and what cannot get out of it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest
from report_pages import every_part, placement_page

from candidates import FOUND
from ov_autoplace.errors import OptionError, OutputError
from ov_autoplace.explain.answer import Answer
from ov_autoplace.explain.hetero import HeteroExplanation
from ov_autoplace.explain.tables import Table
from ov_autoplace.explain.what_if import what_ifs
from ov_autoplace.plan.decision import Candidate, Decision
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.report import require_library, write_report
from ov_autoplace.report.contents import placement_contents
from ov_autoplace.report.nodes import drawn_graph
from ov_autoplace.report.tables import table
from report_tables import HOSTILE, diamond, layered_table, pieces


class Elements(HTMLParser):
    """The elements of a page with their attributes, its texts, and its scripts."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[str] = []
        self.scripts: list[tuple[dict[str, str | None], str]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        tag, attributes = self.tags[-1] if self.tags else ("", {})
        if tag == "script" and self.cdata_elem == "script":
            self.scripts.append((attributes, data))
        else:
            self.texts.append(data)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_report(every_part(), path)
    return path.read_text(encoding="utf-8")


@pytest.mark.bokeh
def test_hostile_names_make_no_elements_and_no_attributes(text: str) -> None:
    page = Elements(text)

    assert {tag for tag, _ in page.tags}.isdisjoint({"img", "iframe", "link", "object", "b"})
    assert not [name for _, attributes in page.tags for name in attributes if name.startswith("on")]
    assert sum(tag == "script" for tag, _ in page.tags) == 4  # two that run, two of data
    joined = "".join(page.texts)
    for name in HOSTILE[:4]:
        assert name in joined  # as a text that is read


@pytest.mark.bokeh
def test_only_two_scripts_may_run_and_nothing_may_be_loaded(text: str) -> None:
    page = Elements(text)
    (policy,) = (a["content"] or "" for t, a in page.tags if a.get("http-equiv") == "Content-Security-Policy")
    allowed = dict(part.strip().split(" ", 1) for part in policy.split(";"))

    assert allowed["default-src"] == "'none'"
    assert "connect-src" not in allowed  # it falls back to none
    assert "unsafe" not in allowed["script-src"]
    run = [script for attributes, script in page.scripts if attributes.get("type") != "application/json"]
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in run]
    assert allowed["script-src"].split() == [f"'sha256-{digest}'" for digest in digests]
    assert not [a for _, a in page.tags if "src" in a or "href" in a]


@pytest.mark.bokeh
def test_the_data_is_json_that_cannot_end_its_element(text: str) -> None:
    page = Elements(text)
    data, ops = (text for attributes, text in page.scripts if attributes.get("type") == "application/json")

    assert not set("<>&\u2028\u2029") & set(data + ops)
    placement = json.loads(data)["placement"]
    assert placement["names"][: len(HOSTILE)] == list(HOSTILE)
    assert len(placement["reasons"]) == len(placement["names"]) == 80
    assert isinstance(json.loads(ops), str)


@pytest.mark.bokeh
def test_every_part_is_there(text: str) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", text)

    assert headings == [
        "Summary",
        "Candidates",
        "Schedule",
        "Placement",
        "What would change the prediction",
        "Left on a slower device",
        "Dearest transfers",
        "Subgraphs in the order in which they run",
        "Learning curve",
    ]


@pytest.mark.bokeh
def test_a_page_of_one_device_compares_no_devices(tmp_path: Path) -> None:
    both = layered_table(40)
    table = replace(
        both,
        devices=("CPU",),
        op_seconds=both.op_seconds[:, :1],
        transfer_latency=np.zeros((1, 1)),
        transfer_seconds_per_byte=np.zeros((1, 1)),
        launch_seconds=both.launch_seconds[:1],
        memory_capacity=both.memory_capacity[:1],
    )
    explanation = HeteroExplanation(table, np.zeros(40, dtype=np.int32))
    decision = Decision("CPU", FOUND, "PROFILE", (Candidate("CPU", WholePlan("CPU"), 1e-3),), {}, table)
    answer = Answer("one", decision, explanation, what_ifs(explanation))
    write_report(placement_contents(answer), tmp_path / "page.html")

    text = (tmp_path / "page.html").read_text(encoding="utf-8")

    assert re.findall("<h2>(.*?)</h2>", text) == [
        "Summary",
        "Candidates",
        "Schedule",
        "Placement",
    ]
    assert "One device runs the whole model." in text
    assert "<dt>next</dt>" in text
    assert "transfers" not in "".join(re.findall(r'<p class="note">.*?</p>', text))


@pytest.mark.bokeh
def test_long_names_may_be_broken_and_words_are_not() -> None:
    hashed = "f" * 40
    text = table(Table("", ("group", "note"), [(hashed, "also proposed by portfolio (chosen)")]))

    assert f"{hashed[:18]}<wbr>{hashed[18:36]}<wbr>{hashed[36:]}" in text
    assert "also proposed by portfolio (chosen)" in text


def test_without_the_library_one_sentence_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(sys.modules, "bokeh", None)  # as where it is not installed

    with pytest.raises(OptionError, match=r"pip install 'ov-autoplace\[report\]'"):
        require_library(tmp_path / "report.html")
    with pytest.raises(OptionError, match="bokeh"):
        write_report(placement_page(20, 2), tmp_path / "report.html")
    assert not list(tmp_path.iterdir())


@pytest.mark.bokeh
def test_a_folder_that_is_not_there_is_said(tmp_path: Path) -> None:

    with pytest.raises(OutputError, match="missing"):
        write_report(placement_page(20, 2), tmp_path / "missing" / "report.html")


def test_nothing_is_imported_for_a_report_that_nobody_asked_for() -> None:
    program = (
        "import sys; import ov_autoplace, ov_autoplace.cli.app; "
        "unwanted = {'bokeh', 'ov_autoplace.report', 'ov_autoplace.explain.trace'}; "
        "assert not unwanted & set(sys.modules), 'imported'"
    )

    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)


def test_layers_follow_the_edges_and_sources_stand_before_their_readers() -> None:
    drawn = drawn_graph(HeteroExplanation(diamond(), np.array([0, 1, 0, 0], dtype=np.int32)))

    assert drawn.x.tolist() == [0, 1, 1, 2]
    assert drawn.y[1] != drawn.y[2]
    assert {tuple(edge) for edge in drawn.edges.tolist()} == {(0, 1), (0, 2), (1, 3), (2, 3)}
    cut = {tuple(edge) for edge in drawn.edges[drawn.is_cut].tolist()}
    assert {(0, 1), (1, 3)} <= cut


@pytest.mark.seeds(4)
def test_no_two_nodes_overlap(seed: int) -> None:
    drawn = drawn_graph(HeteroExplanation(layered_table(700, seed=seed), pieces(700, 9)))

    assert not drawn.is_collapsed
    assert drawn.row.max() > 0  # long enough to be broken into rows
    for x in np.unique(drawn.x):
        heights = np.sort(drawn.y[drawn.x == x])
        assert (np.diff(heights) >= 1 - 1e-9).all()


@pytest.mark.parametrize("subgraphs", [1, 40, 9000])
def test_a_graph_of_many_groups_becomes_stretches_of_its_subgraphs(subgraphs: int) -> None:
    table = layered_table(12_000, seed=3)
    explanation = HeteroExplanation(table, pieces(12_000, subgraphs))

    drawn = drawn_graph(explanation)

    assert drawn.is_collapsed
    assert 100 < len(drawn.x) <= 2500
    assert (np.bincount(drawn.node_of) > 0).all()
    devices = explanation.assignment
    for node in range(0, len(drawn.x), 50):
        members = np.flatnonzero(drawn.node_of == node)
        assert set(devices[members].tolist()) == {int(drawn.device[node])}
        own = set(explanation.schedule.subgraph_of[members].tolist())
        assert own == {int(drawn.subgraph[node])} or (drawn.subgraph[node] == -1 and len(own) > 1)
    assert drawn.seconds.sum() == pytest.approx(table.op_seconds[np.arange(12_000), devices].sum())


@pytest.mark.parametrize("disturbed", [False, True])
def test_measurements_that_other_work_disturbed_are_marked(disturbed: bool) -> None:
    explanation = HeteroExplanation(diamond(), np.zeros(len(diamond()), np.int32))
    decision = Decision(
        "CPU", FOUND, "PROFILE", (Candidate("CPU", WholePlan("CPU")),), {}, None, disturbed=disturbed
    )
    facts = dict(Answer("model", decision, explanation).facts())
    assert ("other work" in facts) is disturbed
