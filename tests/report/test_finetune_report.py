"""``ov-autoplace finetune --report`` after a real run: the page shows what the folder holds."""

from __future__ import annotations

import json
import re
from html import unescape
from pathlib import Path
from typing import Any, NamedTuple

import openvino as ov
import pytest

from browser import OpenedPage
from command_line import EXTRA_DEVICES, two_layers
from ov_autoplace.cli import main
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target

pytestmark = [pytest.mark.torch, pytest.mark.bokeh]

# The run ends when the policy proposes nothing new; the budget is there for machines that are very slow.
# Whatever is proposed is measured, and an untrained network that groups nothing proposes mixes.
OPTIONS = (
    *("--budget", "10m", "--patience", "1"),
    *("--inferences", "6", "--simulated-updates", "0", "--hopeless", "1e9"),
    *("--hottest", "1", "--network", "gdp"),
)


class TunedRun(NamedTuple):
    """What one run left."""

    page: Path
    lines: list[dict[str, Any]]

    @property
    def measured(self) -> list[dict[str, Any]]:
        """The lines of placements that were run for the first time."""
        return [line for line in self.lines if line["kind"] == "measured"]


@pytest.fixture(scope="module")
def tuned(tmp_path_factory: pytest.TempPathFactory) -> TunedRun:
    folder = tmp_path_factory.mktemp("tuned")
    ov.save_model(two_layers([1, 3, 64, 64]), folder / "net.xml", compress_to_fp16=False)
    arguments = ["finetune", folder / "net.xml", "-d", "XCPU,CPU", *OPTIONS]
    arguments += ["-o", folder / "out", "--report", folder / "page.html", "--target", folder / "target.json"]
    core = ov.Core()
    core.register_plugin(str(Path(ov.__file__).parent / "libs" / "libopenvino_intel_cpu_plugin.so"), "XCPU")
    # With a target, transfers are not measured, which would take longer than all else.
    save_target(generic_target(core, ("XCPU", "CPU")), folder / "target.json")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("AUTOPLACE_EXTRA_DEVICES", EXTRA_DEVICES)
        assert main([str(argument) for argument in arguments]) == 0
    log = (folder / "out" / "measurements.jsonl").read_text().splitlines()
    return TunedRun(folder / "page.html", [json.loads(line) for line in log])


def rows_of(page: str, heading: str) -> list[list[str]]:
    """Texts of the cells of the first table under a heading."""
    table = page.split(f"<h2>{heading}</h2>")[1].split("</table>")[0]
    rows = re.findall(r"<tr.*?</tr>", table)
    return [[unescape(cell) for cell in re.findall(r"<t[hd].*?>(.*?)</t[hd]>", row)] for row in rows]


def test_the_candidates_have_the_intervals_of_their_races(tuned: TunedRun) -> None:
    heads, *rows = rows_of(tuned.page.read_text(encoding="utf-8"), "Candidates")
    found = {row[0]: dict(zip(heads, row, strict=True)) for row in rows}

    assert list(found) == ["XCPU", "CPU", "policy before", "policy after", "best found"]
    for row in found.values():
        median, half = map(float, row["measured ms"].split(" ± "))
        assert median > 0 <= half
        assert int(row["samples"]) > 1  # how many, is up to how fast the machine is
    # Two devices may take as long as each other but for what the table rounds.
    best = min(
        ("XCPU", "CPU"),
        key=lambda device: (float(found[device]["measured ms"].split()[0]), found[device]["note"]),
    )
    assert found[best]["note"] == "1.000 of the best single device"


def test_the_summary_counts_the_measured_placements_and_the_schedule_is_there(tuned: TunedRun) -> None:
    text = tuned.page.read_text(encoding="utf-8")

    assert len(tuned.measured) > 2  # more than the devices
    assert f"<dt>measured placements</dt><dd>{len(tuned.measured)}</dd>" in text
    assert "<h1>fine-tuning on net</h1>" in text
    assert "<h2>Schedule</h2>" in text
    assert "<h2>Learning curve</h2>" in text


@pytest.mark.browser
def test_the_page_opens_and_draws_every_measured_placement(chromium: Any, tuned: TunedRun) -> None:
    opened = OpenedPage(chromium, tuned.page)

    assert opened.state == "ready"
    assert opened.complaints == []
    assert opened.requests == [tuned.page.as_uri()]
    drawn = opened.page.evaluate(_CURVE)
    values = [line["relative"] for line in tuned.measured]
    assert drawn["x"] == list(range(1, len(values) + 1))
    assert drawn["y"] == pytest.approx([min(value, 3.0) if value else 3.0 for value in values])
    # The line never promises more than what is proven, and ends where the answer is.
    assert drawn["best"][0] == 1.0
    answers = [line["best"] for line in tuned.lines]
    assert set(drawn["best"]) <= set(answers)
    assert drawn["best"][-1] == answers[-1]


_CURVE = """() => {
  const chart = Bokeh.documents.map((d) => d.get_model_by_name("curve")).find((m) => m !== null);
  const {x, y, best} = chart.renderers[0].data_source.data;
  return {x: [...x], y: [...y], best: [...best]};
}"""
