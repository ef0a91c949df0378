"""HSDAG's own protocol on measured latency: what is run, what is counted, and that it stops in time."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import finetune_worker
import numpy as np
import openvino as ov
import pytest
from finetune_published import BudgetEndedError, MeasuredEnvironment

from command_line import two_layers
from ov_autoplace.cost.table_json import load_table
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.training.finetuning.measuring import Record
from ov_autoplace.training.random_graphs import random_workload
from ov_autoplace.training.targets import RandomTargets, random_task

EVALUATIONS = 25


def test_every_sample_is_an_evaluation_and_every_placement_is_run_once(tmp_path: Path) -> None:
    model = tmp_path / "net.xml"
    ov.save_model(two_layers([1, 3, 16, 16]), model, compress_to_fp16=False)
    command = [
        sys.executable,
        finetune_worker.__file__,
        "hsdag as published",
        str(model),
        str(tmp_path / "out"),
    ]
    command += ["--pair", "alias", "--evaluations", str(EVALUATIONS)]

    done = subprocess.run(command, capture_output=True, text=True, check=True)

    result = json.loads(done.stdout.splitlines()[-1])
    lines = [json.loads(text) for text in (tmp_path / "out" / "measurements.jsonl").read_text().splitlines()]
    table = load_table(tmp_path / "out" / "net.table.json")
    assert result["stopped"] == "evaluations"
    assert result["best_single"] in table.devices
    asked = [line for line in lines if line["kind"] == "proposed" or line["source"] not in table.devices]
    # The likeliest placement is looked at besides, before and after.
    assert len(asked) == EVALUATIONS + 2
    run = [line["placement"] for line in lines if line["kind"] == "measured"]
    assert len(run) == len(set(run)) == result["measurements"]
    assert {line["placement"] for line in lines} == set(run)
    assert all(len(line["placement"]) == len(table) for line in lines)
    assert result["best"] == min(line["relative"] for line in lines)


class _Bench:
    """Measures nothing but what it was told."""

    def __init__(self, ratios: dict[bytes, float]) -> None:
        self.ratios = ratios
        self.raced: list[bytes] = []

    def race(self, reference: Record, others: list[Record]) -> None:
        for record in others:
            self.raced.append(record.key)
            if record.key in self.ratios:
                record.add(np.full(6, self.ratios[record.key]), np.ones(6))

    def keep_only(self, records: list[Record]) -> None:
        pass


@pytest.fixture
def measured() -> tuple[MeasuredEnvironment, _Bench, list[dict[str, Any]]]:
    """Two devices; only the placement with unit 1 on the second of them is ever run, at half the time."""
    targets = RandomTargets(estimate=0.0, untyped=0.0, unsupported=0.0)
    table = random_task(
        random_workload("random_tree", 8, 0), np.random.default_rng(0), targets, devices=2
    ).true
    graph = policy_graph(table)
    mix = np.zeros(len(table), dtype=np.int32)
    mix[1] = 1
    bench, lines, records = _Bench({mix.tobytes(): 0.5}), [], {}
    task = SimpleNamespace(
        table=table,
        graph=graph,
        bench=bench,
        reference=None,
        known=lambda assignment: records.get(assignment.tobytes()),
        adopt=lambda record: records.setdefault(record.key, record),
        predicted=lambda assignment: 1.0,
        relative=lambda record: record.ratio.median,
        line=lambda event: {"kind": event.kind, "samples": len(event.samples)},
    )
    folder = SimpleNamespace(write=lambda task, event, at_seconds: lines.append(task.line(event)))
    return MeasuredEnvironment(task, SimpleNamespace(spent=1.0), folder), bench, lines  # type: ignore[arg-type]


def test_a_known_placement_is_answered_without_running_it(
    measured: tuple[MeasuredEnvironment, _Bench, list[dict[str, Any]]],
) -> None:
    environment, bench, lines = measured
    mix = np.zeros((2, len(environment.graphs[0])), dtype=np.int64)
    mix[:, 1] = 1

    seconds = environment.latencies([mix])

    assert seconds == pytest.approx(np.full((1, 2), 0.5 * environment.best_single[0]))
    assert len(bench.raced) == 1
    assert [(line["kind"], line["samples"]) for line in lines] == [("measured", 6), ("proposed", 0)]
    assert environment.rewards(seconds) == pytest.approx(np.full((1, 2), np.log(2)))


def test_a_placement_for_which_there_is_no_time_ends_the_search(
    measured: tuple[MeasuredEnvironment, _Bench, list[dict[str, Any]]],
) -> None:
    environment, _, lines = measured
    with pytest.raises(BudgetEndedError):
        environment.latencies([np.zeros((1, len(environment.graphs[0])), dtype=np.int64)])
    assert lines == []
