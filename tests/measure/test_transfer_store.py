"""Transfers in the user's cache folder: kept between processes, grown size by size, checked when read."""

from __future__ import annotations

import json
import logging
import os
from pathlib import Path

import numpy as np
import pytest

import ov_autoplace
from command_line import two_layers
from ov_autoplace.cost.transfers import TransferSample
from ov_autoplace.devices.names import device_properties
from ov_autoplace.measure.transfer_store import SIZES, TransferStore, _of_this_process, stored_transfers

PAIR = ("XCPU", "CPU")
PROCESSORS = os.sched_getaffinity(0)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "ov-autoplace"


def store_of(core, memory: dict | None = None) -> TransferStore:
    """The store as a process sees it that remembers ``memory``, or nothing."""
    return TransferStore(core, PAIR, device_properties(core, PAIR), {} if memory is None else memory)


def samples(*sizes: int, launch: float = 1e-5) -> list[TransferSample]:
    """Placements of the diamond that cost a launch for each piece and nothing else."""
    placed = [("XCPU",) * 4, ("CPU",) * 4, ("XCPU",) * 3, ("CPU",) * 3]
    placed += [("XCPU", "CPU", "CPU"), ("CPU", "XCPU", "CPU")]
    pieces = [1, 1, 1, 1, 2, 3]
    return [
        TransferSample(devices, size, np.full(5, launch * count))
        for size in sizes
        for devices, count in zip(placed, pieces, strict=True)
    ]


def test_what_one_process_measured_the_next_one_knows(unequal_pair, folder):
    store = store_of(unequal_pair)
    assert store.fit(store.samples()) is None
    assert len(store.missing([])) == len(SIZES)
    store.add(samples(SIZES[0]))
    assert store.fit(store.samples()) is None  # one size does not tell latency from bandwidth
    store = store_of(unequal_pair)
    store.add(samples(SIZES[1]))
    store = store_of(unequal_pair)
    known = store.samples()
    assert {s.tensor_bytes for s in known} == set(SIZES[:2])
    assert store.fit(known).launch_seconds == pytest.approx([1e-5, 1e-5], rel=0.2)
    assert [size for _, size in store.missing(known)] == list(SIZES[2:])
    assert len(list(folder.iterdir())) == 1


def test_other_settings_are_other_entries(unequal_pair):
    store_of(unequal_pair).add(samples(*SIZES[:2]))
    unequal_pair.set_property("CPU", {"INFERENCE_NUM_THREADS": 1})
    assert not store_of(unequal_pair).samples()
    unequal_pair.set_property("CPU", {"INFERENCE_NUM_THREADS": 2})
    assert store_of(unequal_pair).samples()


@pytest.mark.skipif(len(PROCESSORS) < 2, reason="this process may use one processor only")
def test_fewer_processors_are_another_entry(unequal_pair):
    store_of(unequal_pair).add(samples(*SIZES[:2]))
    os.sched_setaffinity(0, {min(PROCESSORS)})
    try:
        assert not store_of(unequal_pair).samples()
    finally:
        os.sched_setaffinity(0, PROCESSORS)
    assert store_of(unequal_pair).samples()


def test_a_damaged_entry_is_measured_anew_without_noise(unequal_pair, caplog):
    store_of(unequal_pair).add(samples(*SIZES[:2]))
    (path,) = stored_transfers()
    path.write_text("{")
    with caplog.at_level(logging.INFO, "ov_autoplace"):
        store = store_of(unequal_pair)
        assert not store.samples()
        store.add(samples(*SIZES[:2]))
    assert not caplog.records
    assert store_of(unequal_pair).samples()


def test_an_entry_with_impossible_times_is_not_used(unequal_pair):
    store_of(unequal_pair).add(samples(*SIZES[:2]))
    (path,) = stored_transfers()
    data = json.loads(path.read_text())
    data["samples"][3]["seconds"][0] = 0.0
    path.write_text(json.dumps(data))
    assert not store_of(unequal_pair).samples()


def test_a_home_that_cannot_be_written_costs_nothing_and_says_nothing(
    unequal_pair, monkeypatch, caplog, tmp_path
):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with caplog.at_level(logging.INFO, "ov_autoplace"):
        memory: dict = {}
        store_of(unequal_pair, memory).add(samples(*SIZES[:2]))
        assert store_of(unequal_pair, memory).samples()
    assert not caplog.records


def test_a_second_process_places_without_measuring_transfers(unequal_pair, monkeypatch):
    measured = []

    def scripted(profiler, pair, *, sizes):
        from types import SimpleNamespace

        measured.extend(sizes)
        return SimpleNamespace(samples=samples(*sizes))

    monkeypatch.setattr("ov_autoplace.decide.costs.measure_transfers", scripted)
    monkeypatch.setattr("ov_autoplace.decide.stages.splits.unbeatable_device", lambda *_: None)
    model = two_layers([1, 3, 16, 16])
    for _ in range(2):
        _of_this_process.clear()
        ov_autoplace.place(model, PAIR, core=unequal_pair, time_budget_ms=6_000)
    assert measured == list(SIZES)
