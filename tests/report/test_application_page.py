"""The page of several models at once: its names are texts, and every inference that was kept is drawn."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from browser import OpenedPage, reads_well
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.candidates import Joint
from ov_autoplace.application.race import Result
from ov_autoplace.application.workload import Application
from ov_autoplace.measure.workload import Outcome, Span
from ov_autoplace.plan.decision import Decision, Load
from ov_autoplace.plan.findings import Finding, Kind
from ov_autoplace.plan.joint import JointPlan, Part
from ov_autoplace.plan.plan import WholePlan
from ov_autoplace.report import write_report
from ov_autoplace.report.contents import application_contents
from report_tables import HOSTILE

pytestmark = pytest.mark.bokeh


@pytest.fixture(scope="module")
def answer() -> ApplicationPlan:
    names = [HOSTILE[0], "classifier"]
    application = Application(dict.fromkeys(names, "model.xml"))
    plan = JointPlan(HOSTILE[1], tuple(Part(name, WholePlan("CPU")) for name in names))
    spans = tuple(Span(i % 2, i % 2, 0.001 * i, 0.001 * i + 0.0008, i % 4) for i in range(12))
    outcome = Outcome(
        np.array([100.0, 250.0]), (np.full(9, 0.01), np.full(9, 0.004)), np.ones(2), np.ones(2), 1.5
    )
    joint = Joint(plan.title, plan, times={Load.APPLICATION: np.full(6, 0.005)})
    decision = Decision(
        plan.title, (Finding.of(Kind.JOINT_KEPT, plan.title),), "PROFILE", (joint,), {}, rate_bound=210.0
    )
    return ApplicationPlan(plan, {}, application, decision, {plan.title: Result([outcome], spans=spans)})


@pytest.fixture(scope="module")
def path(answer: ApplicationPlan, tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("application") / "page.html"
    write_report(application_contents("cameras", answer), file)
    return file


def test_names_are_texts_and_every_inference_has_a_bar(path: Path, answer: ApplicationPlan) -> None:
    text = path.read_text(encoding="utf-8")
    assert "<script>alert" not in text
    assert "<img" not in text
    data = json.loads(re.search(r'id="data">(.*?)</script>', text, re.DOTALL)[1])
    (chart,) = data["charts"]
    (result,) = answer.results.values()
    assert json.dumps(chart).count("core ") >= len(result.spans)


@pytest.mark.browser
@pytest.mark.parametrize("width", [1400, 400])
def test_the_page_opens_at_every_width(chromium: Any, path: Path, width: int) -> None:
    opened = OpenedPage(chromium, path, width=width)
    reads_well(opened)
    assert opened.state == "ready"
    assert opened.complaints == []
