"""``ov-autoplace cache``."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from ov_autoplace.cli import main
from ov_autoplace.cli.cache import _verified
from ov_autoplace.cost.transfers import TransferSample
from ov_autoplace.devices.extra_devices import EXTRA_DEVICES_VARIABLE
from ov_autoplace.devices.names import device_properties
from ov_autoplace.measure.transfer_store import StoredTransfers, TransferStore
from ov_autoplace.plan.hetero_rules import CANARIES, StoredCounts, canary_counts
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.decision_cache import DecisionCache

PAIR = ("XCPU", "CPU")


def sample(devices: tuple[str, ...], seconds: float) -> TransferSample:
    return TransferSample(devices, 1024, np.full(3, seconds))


@pytest.fixture
def entry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One entry, as a decision on this machine would leave it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv(EXTRA_DEVICES_VARIABLE, "XCPU=CPU")
    core = ov.Core()
    store = TransferStore(core, PAIR, device_properties(core, PAIR), memory={})
    store.add([sample(("XCPU", "CPU", "CPU"), 1e-5)])
    (path,) = (tmp_path / "ov-autoplace").iterdir()
    return path


def listed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, str]]]:
    code = main(["cache", *arguments, "--json"])
    return code, json.loads(capsys.readouterr().out)["entries"]


def test_ls_shows_what_an_entry_holds_for(entry, capsys):
    code, (row,) = listed(capsys, "ls")
    assert code == 0
    assert row["entry"] == entry.name
    assert row["devices"] == "XCPU, CPU"
    assert row["sizes"] == "1 of 6"
    assert "processors" in row["holds for"]
    assert main(["cache", "ls"]) == 0
    table = capsys.readouterr().out
    assert entry.name[:20] in table
    assert "processors" not in table  # half a screen for each entry


def test_decisions_are_listed_verified_and_removed_beside_transfers(entry, capsys):
    kept = DecisionCache(entry.parent / "decisions" / "autoplace-0.json", ("CPU",))
    kept.store(Placement.from_dict({"op": "CPU"}))
    kept.lock.touch()
    code, rows = listed(capsys, "ls")
    assert (code, [row["entry"] for row in rows]) == (0, [entry.name, kept.path.name])
    assert rows[1]["devices"] == "CPU"
    assert listed(capsys, "verify", kept.path.name) == (
        0,
        [{"entry": kept.path.name, "state": "can be read", "remark": ""}],
    )
    kept.path.write_text("{")
    assert listed(capsys, "verify", kept.path.name)[0] == 1
    assert main(["cache", "rm", kept.path.stem]) == 0
    assert not [*kept.path.parent.iterdir()]
    assert entry.exists()


def test_what_hetero_made_of_small_models_is_listed_verified_and_removed(entry, capsys):
    path = entry.with_name("hetero-0.json")
    counted = StoredCounts(ov.get_version(), tuple(CANARIES), canary_counts())
    counted.save(path)
    rows = listed(capsys, "ls", path.stem)[1]
    assert rows[0]["decision"] == str(counted)
    assert ov.get_version() in rows[0]["holds for"]
    states = []
    for changed in ({}, {"counts": counted.counts[::-1]}, {"openvino": "2099.1.0"}):
        replace(counted, **changed).save(path)
        code, rows = listed(capsys, "verify", path.name)
        states.append((code, rows[0]["state"]))
    assert states == [(0, "holds"), (1, "differs"), (0, "other machine")]
    assert listed(capsys, "rm", path.name)[0] == 0
    assert not path.exists()
    assert entry.exists()


def test_ls_tells_entries_apart_by_the_properties_that_were_set(entry, monkeypatch, capsys):
    monkeypatch.setenv(EXTRA_DEVICES_VARIABLE, "XCPU=CPU,INFERENCE_NUM_THREADS=1")
    core = ov.Core()
    properties = device_properties(core, PAIR, {"DEVICE_PROPERTIES": {"CPU": {"NUM_STREAMS": 2}}})
    TransferStore(core, PAIR, properties, memory={}).add([sample(("XCPU", "CPU", "CPU"), 1e-5)])
    _, rows = listed(capsys, "ls")
    assert {row["set"] for row in rows} == {"", "XCPU INFERENCE_NUM_THREADS=1; CPU NUM_STREAMS=2"}


def test_rm_removes_what_it_is_told_and_everything_else_stays(entry, capsys):
    other = entry.with_name("transfers-other.json")
    other.write_text(entry.read_text())
    foreign = entry.with_name("notes.txt")
    foreign.write_text("mine")
    assert main(["cache", "rm", other.name]) == 0
    assert entry.exists()
    assert not other.exists()
    assert main(["cache", "rm", "nothing"]) == 2
    assert "there is no entry 'nothing'" in capsys.readouterr().err
    assert main(["cache", "rm"]) == 0
    assert not entry.exists()
    assert foreign.exists()
    assert main(["cache", "ls"]) == 0
    assert "holds no measurements" in capsys.readouterr().out.replace("\n", " ")


@pytest.mark.parametrize(("seconds", "state"), [(1.1e-5, "holds"), (5e-5, "differs")])
def test_verifying_compares_what_is_stored_with_what_is_measured(entry, seconds, state):
    row = _verified(entry, lambda _: [sample(("XCPU", "CPU", "CPU"), seconds)])
    assert row["state"] == state
    assert f"{seconds / 1e-5:.2f} times" in row["remark"]


def test_verify_measures_again(entry, capsys):
    stored = StoredTransfers.load(entry)
    never = [sample(s.devices, 1e-12) for s in stored.samples]
    replace(stored, samples=tuple(never)).save()
    code, (row,) = listed(capsys, "verify")
    assert (row["state"], code) == ("differs", 1)


def test_verify_tells_damaged_entries_and_those_of_other_machines(entry, capsys, monkeypatch):
    data = json.loads(entry.read_text())
    data["conditions"][0] = "ov-autoplace 0.0"
    entry.write_text(json.dumps(data))
    code, (row,) = listed(capsys, "verify")
    assert (code, row["state"]) == (0, "other machine")
    assert "ov-autoplace 0.0" in row["remark"]
    monkeypatch.delenv(EXTRA_DEVICES_VARIABLE)
    code, (row,) = listed(capsys, "verify")
    assert "no device 'XCPU'" in row["remark"]
    entry.write_text("{")
    code, (row,) = listed(capsys, "verify")
    assert (code, row["state"]) == (1, "damaged")
