"""The commands on a model that shall run on one of its CPU's threads."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import openvino as ov
import pytest

import ov_autoplace
import zoo
from command_line import Command, candidates_of
from ov_autoplace.decide.placer import Placer
from ov_autoplace.devices.quota import Quota
from ov_autoplace.devices.widths import Cores, Width
from ov_autoplace.plan.annotation import annotated_placement
from ov_autoplace.plan.fitting import FittedPlacement
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plan.plan import WholePlan

pytestmark = pytest.mark.alone

CPU = ("-d", "CPU")


@pytest.fixture(autouse=True)
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on two cores, whatever machine this is."""
    monkeypatch.setattr(Cores, "all", 2)
    monkeypatch.setattr(Cores, "of_kind", {})
    monkeypatch.setattr(Cores, "usable", 2)


NARROW = WholePlan("CPU", Width(1))


@pytest.fixture
def narrow_ir(tmp_path: Path) -> Path:
    """A network that is annotated to run on one thread."""
    model = zoo.build("mobilenet_v2", "small")
    placed = Placement.from_dict({op.get_friendly_name(): "CPU" for op in model.get_ordered_ops()})
    ov_autoplace.annotate(model, replace(placed, plan=NARROW))
    ov.save_model(model, tmp_path / "narrow.xml")
    return tmp_path / "narrow.xml"


def test_devices_lists_the_widths_that_may_be_chosen(cli: Command) -> None:
    widths = {row["name"]: row["widths"] for row in cli("devices", "--json").json()["devices"]}
    assert widths == {"CPU": ["1", "2"], "XCPU": ["1"]}  # XCPU's user has set its threads


def test_what_is_decided_under_a_quota_says_so(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Cores, "quota", Quota(1.5, 0.1))
    ov.save_model(zoo.build("lstm_lm", "small"), tmp_path / "model.xml")
    for command in ("annotate", "explain"):
        outcome = cli(command, tmp_path / "model.xml", *CPU, "--json").json()
        assert outcome["quota"] == {"cores": 1.5, "period_ms": 100.0}
        tails = {name for name, found in candidates_of(outcome).items() if found["p99_ms"]}
        assert tails == {"CPU", "CPU (1 thread)"}
        assert "a quota of 1.5 cores holds" in outcome["decision"]


def test_explain_says_on_how_many_threads_an_annotated_model_runs(cli: Command, narrow_ir: Path) -> None:
    assert cli("explain", narrow_ir, *CPU, "--json").json()["width"] == "1"
    assert "runs on: 1 thread; times of groups are those of all threads" in " ".join(
        cli("explain", narrow_ir, *CPU).out.split()
    )


@pytest.mark.bokeh
def test_bench_runs_an_annotated_model_on_its_threads(cli: Command, narrow_ir: Path, tmp_path: Path) -> None:
    page, trace = tmp_path / "page.html", tmp_path / "trace.json"
    outcome = cli("bench", narrow_ir, *CPU, "--seconds", "0.3", "--json", "--report", page, "--trace", trace)
    rows = {row["name"]: row for row in outcome.json()["rows"]}
    assert list(rows) == ["CPU", "CPU (1 thread)", "AUTO", "HETERO", "AUTOPLACE"]
    assert all(row["measured"]["steady"]["samples"] for row in rows.values())
    assert all(set(row["answer_over"]) == {"steady", "paused"} for row in rows.values())
    assert rows["AUTOPLACE"]["answer_over"]["steady"]["median"] == 1.0
    text = page.read_text(encoding="utf-8")
    assert "1 thread; times of groups are those of all threads" in text
    assert "no placement predicted below" not in text  # which is known of all threads alone
    assert json.loads(trace.read_text(encoding="utf-8"))


def test_annotate_writes_the_width_that_was_decided(
    cli: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    search = Placer.place_fitted

    def narrow(placer: Placer, model: ov.Model) -> tuple[Placement, FittedPlacement | None]:
        placement, fitted = search(placer, model)
        placement.decision.winner.plan = NARROW
        placement = replace(placement, plan=NARROW)
        return placement, fitted and replace(fitted, placement=placement)

    monkeypatch.setattr(Placer, "place_fitted", narrow)
    ov.save_model(zoo.build("lstm_lm", "small"), tmp_path / "net.xml")
    report = cli("annotate", tmp_path / "net.xml", *CPU, "--mode", "zero-shot", "--json").json()
    assert report["width"] == "1"
    assert annotated_placement(ov.Core().read_model(report["annotated_model"])).plan.width == Width(1)
    affinities = json.loads(Path(report["affinity_file"]).read_text(encoding="utf-8"))
    assert set(affinities.values()) == {"CPU"}  # which has no place for a width
