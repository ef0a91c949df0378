"""Options that the placer acts on: who is asked for placements, in which order, and within which limits."""

from __future__ import annotations

import logging
import time
from pathlib import Path

import numpy as np
import openvino as ov
import pytest
from openvino import opset13 as ops

import ov_autoplace
from ov_autoplace.decide.options import PlacerOptions
from ov_autoplace.decide.proposals import ProposalSource, propose
from ov_autoplace.errors import OptionError, PlacementError, ProfilingError
from ov_autoplace.measure.session import ProfilingSession
from ov_autoplace.plan.placement import Placement
from ov_autoplace.plugin.decision_cache import DecisionCache
from ov_autoplace.problem.problem import Problem
from ov_autoplace.solvers import SOLVERS
from random_tables import random_table

TARGET = {"mode": "ZERO_SHOT", "target": "core-ultra-7-155h"}


def matmuls(count: int = 3) -> ov.Model:
    """A chain of matrix products."""
    random = np.random.default_rng(0)
    x = y = ops.parameter([16, 64], np.float32, name="x")
    for i in range(count):
        weights = ops.constant(random.normal(size=(64, 64)).astype(np.float32), name=f"weights{i}")
        y = ops.tanh(ops.matmul(y, weights, False, False, name=f"matmul{i}"), name=f"tanh{i}")
    return ov.Model([ops.result(y, name="answer")], [x], "matmuls")


def proposers(placement: ov_autoplace.Placement) -> list[str]:
    return [name for c in placement.decision.candidates for name in (c.name, *c.also)]


@pytest.fixture
def alternating(monkeypatch: pytest.MonkeyPatch) -> str:
    """A registered solver whose answer nobody else would think of."""

    def solve_alternating(problem, options):
        table = problem.table
        return Placement.of_groups(table, np.arange(len(table), dtype=np.int32) % table.num_devices)

    monkeypatch.setitem(SOLVERS, "alternating", solve_alternating)
    return "alternating"


def test_the_phases_of_a_decision_take_no_longer_than_all_of_it() -> None:
    start = time.perf_counter()
    decision = ov_autoplace.place(matmuls(), "GPU,CPU", **TARGET).decision
    assert decision.seconds.keys() == {"extract", "estimate", "solve"}
    assert 0 < sum(decision.seconds.values()) <= time.perf_counter() - start


def test_a_registered_solver_proposes_like_the_others(alternating: str) -> None:
    placement = ov_autoplace.place(matmuls(), "GPU,CPU", solvers=["portfolio", alternating], **TARGET)
    assert alternating in proposers(placement)
    assert "portfolio" in proposers(placement)
    assert "greedy" not in proposers(placement)


def test_a_solver_that_is_not_registered_any_more_is_unknown(
    alternating: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    PlacerOptions(solvers=[alternating])
    monkeypatch.delitem(SOLVERS, alternating)
    with pytest.raises(OptionError, match="names 'alternating'; all: single"):
        PlacerOptions(solvers=[alternating])


def test_a_named_solver_that_finds_nothing_says_so_and_a_usual_one_does_not(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def helpless(*_: object) -> Placement:
        raise PlacementError("I see no way")

    for name in ("greedy", "local"):
        monkeypatch.setitem(SOLVERS, name, helpless)
    table = random_table(4, groups=14, devices=2, constrained=False)
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        assert propose(Problem.of(table), ProposalSource())
        assert not caplog.records
        assert propose(Problem.of(table), ProposalSource(solvers=("portfolio", "local")))
    assert "the solver local proposes nothing: I see no way" in caplog.text


def test_limits_that_cannot_be_met_are_told_with_the_numbers() -> None:
    limits = {"GPU": 100, "CPU": "100B"}
    with pytest.raises(
        PlacementError,
        match=r"loosen .* \(.* does not fit into 100 bytes on GPU.* it needs at least 65536 bytes",
    ):
        ov_autoplace.place(matmuls(), "GPU,CPU", memory_limits=limits, **TARGET)


def test_the_limit_of_a_device_that_is_left_out_is_left_out_too(
    unequal_pair: ov.Core, monkeypatch: pytest.MonkeyPatch
) -> None:
    compile_device = ProfilingSession.compile_device

    def broken(session: ProfilingSession, device: str, **options: bool) -> object:
        if device == "XCPU":
            raise ProfilingError("it is broken")
        return compile_device(session, device, **options)

    monkeypatch.setattr(ProfilingSession, "compile_device", broken)
    limits = {"XCPU": "1MB", "CPU": "1GB"}
    placement = ov_autoplace.place(matmuls(1), ["XCPU", "CPU"], core=unequal_pair, memory_limits=limits)
    assert placement.devices == ("CPU",)


def test_tuning_asks_the_first_solver_again_and_nobody_where_there_is_none(
    unequal_pair: ov.Core, alternating: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        "ov_autoplace.decide.stages.splits.unbeatable_device", lambda *_: None
    )  # else nothing is tuned

    def tuned(solvers: list[str]) -> list[str]:
        placement = ov_autoplace.place(
            matmuls(2),
            ["XCPU", "CPU"],
            "TUNE",
            unequal_pair,
            time_budget_ms=1000,
            solvers=solvers,
        )
        return proposers(placement)

    assert not [name for name in tuned([]) if "tuned" in name]
    assert alternating in tuned([alternating])


def test_a_decision_of_other_solvers_is_not_taken(tmp_path: Path, unequal_pair: ov.Core) -> None:
    model = matmuls(1)

    def key(**options: object) -> Path:
        asked = PlacerOptions(properties={"CACHE_DIR": str(tmp_path)}, **options)
        return DecisionCache.of(unequal_pair, model, ["XCPU", "CPU"], asked).path

    assert key() == key(solvers="portfolio,greedy") == key(solvers=["portfolio", "greedy"])
    assert len({key(), key(solvers="portfolio"), key(solvers="greedy,portfolio"), key(solvers="")}) == 4
