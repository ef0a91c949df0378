"""Races of fine-tuning on machines of a fleet: what a machine answers, and what the driver makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import openvino as ov
import pytest

from ov_autoplace.errors import ProfilingError
from random_tables import make_table

pytestmark = pytest.mark.torch

DEVICES = ["XCPU", "CPU"]


@pytest.fixture
def request_of(small_ir: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Asks this machine for a race of the small model."""
    monkeypatch.setenv("AUTOPLACE_EXTRA_DEVICES", "XCPU=CPU,INFERENCE_NUM_THREADS=1")
    monkeypatch.setattr("ov_autoplace.fleet.on_machine.local_model", lambda *_: small_ir)
    names = [op.get_friendly_name() for op in ov.Core().read_model(small_ir).get_ordered_ops()]

    def make(*placements: dict[str, str], anew: bool = False) -> dict[str, Any]:
        return {
            "model": str(small_ir),
            "devices": DEVICES,
            "options": {},
            "placements": [{name: p.get(name, p[""]) for name in names} for p in placements],
            "seconds": 0.2,
            "rounds": 20,
            "seed": 0,
            "anew": anew,
        }

    return make


def test_a_machine_runs_placements_in_turns_and_answers_in_json(request_of: Any) -> None:
    from ov_autoplace.fleet.racing import race

    answer = race(request_of({"": "CPU"}, {"": "CPU", "first": "XCPU"}, {"": "XCPU"}), ())
    entries = json.loads(json.dumps(answer))["entries"]

    assert entries[0]["subgraphs"] == entries[2]["subgraphs"] == 1 < entries[1]["subgraphs"]
    assert all(len(entry["samples"]) >= 1 and min(entry["samples"]) > 0 for entry in entries)
    assert answer["compile_seconds"] > 0
    again = race(request_of({"": "CPU"}, {"": "XCPU"}), ())
    assert again["compile_seconds"] == 0.0  # both were compiled for the race before
    anew = race(request_of({"": "CPU"}, {"": "XCPU"}, anew=True), ())
    assert anew["compile_seconds"] > 0


class Machines:
    """Stands for the workers: machine ``i`` takes ``seconds[i]`` times as long as the first, or is gone."""

    def __init__(self, slower: list[float | None]) -> None:
        self.slower = slower
        self.asked: list[list[Any]] = []

    def run(self, units: Any, progress: Any = None) -> dict[str, Any]:
        self.asked.append([unit.request for unit in units])
        outcomes = {}
        for unit, factor in zip(units, self.slower, strict=False):
            if factor is None:
                outcomes[unit.name] = SimpleNamespace(failure="its node or process ended", faults=())
                continue
            took = [1.0 if set(p.values()) == {"CPU"} else 0.5 for p in unit.request["placements"]]
            entries = [{"samples": [seconds * factor] * 8, "subgraphs": 1, "dropped": ""} for seconds in took]
            answer = {"entries": entries, "compile_seconds": 0.1}
            outcomes[unit.name] = SimpleNamespace(failure="", faults=(), answer=answer)
        return outcomes


def races_on(machines: Machines) -> tuple[Any, Any, list[Any]]:
    """Races of a table of four groups: the reference, which is CPU alone, and four mixes."""
    from ov_autoplace.fleet.finetune import FleetRaces
    from ov_autoplace.fleet.kinds import Kind
    from ov_autoplace.fleet.models import SharedModel
    from ov_autoplace.fleet.run import Group
    from ov_autoplace.training.finetuning.budget import TuningBudget
    from ov_autoplace.training.finetuning.trials import Trial

    table = make_table(np.full((5, 2), 0.2), devices=("XCPU", "CPU"))
    group = Group(Kind("k", ("XCPU", "CPU"), ()), tuple(f"m{i}" for i in range(len(machines.slower))))
    races = FleetRaces(
        machines,
        group,
        SharedModel("d", ()),
        {},
        table,
        TuningBudget(600.0),
        8,
        0,
        0.1,  # type: ignore[arg-type]
    )
    reference = Trial("CPU", 1.0, 1, assignment=np.ones(len(table), dtype=np.int32))
    mixes = []
    for i in range(4):
        assignment = np.ones(len(table), dtype=np.int32)
        assignment[i] = 0
        mixes.append(Trial(f"mix {i}", 1.0, 2, assignment=assignment))
    return races, reference, mixes


def test_placements_are_divided_and_each_is_compared_on_its_own_machine() -> None:
    machines = Machines([1.0, 3.0])
    races, reference, mixes = races_on(machines)

    assert races.race(reference, mixes) == [mixes[0], mixes[2], mixes[1], mixes[3]]
    asked = machines.asked[0]
    assert [len(request["placements"]) for request in asked] == [3, 3]
    assert all(set(request["placements"][0].values()) == {"CPU"} for request in asked)
    # The slow machine's placements do not look slower for it.
    assert [trial.ratio.median for trial in mixes] == [0.5] * 4
    assert mixes[1].seconds == pytest.approx(1.5)


def test_what_a_machine_took_away_with_it_was_not_measured() -> None:
    races, reference, mixes = races_on(Machines([1.0, None]))

    assert races.race(reference, mixes) == [mixes[0], mixes[2]]
    assert len(mixes[1].samples) == 0
    assert not mixes[1].dropped


def test_a_race_that_no_machine_runs_fails_with_a_sentence() -> None:
    races, reference, mixes = races_on(Machines([None, None]))

    with pytest.raises(ProfilingError, match="no machine of the kind k"):
        races.race(reference, mixes)


def test_a_confirmation_compiles_everything_again() -> None:
    machines = Machines([1.0])
    races, reference, mixes = races_on(machines)
    races.race(reference, mixes[:1])

    verdict = races.confirm(mixes[0], reference, reference)
    assert [requests[0]["anew"] for requests in machines.asked] == [False, True]
    assert verdict.winner.key == mixes[0].key
