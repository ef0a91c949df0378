"""A model that a device compiles and then fails to run: one sentence, and the device is left out."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import openvino as ov
import openvino.opset13 as ops
import pytest

from command_line import Command
from measuring_faults import Inject
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.target_json import save_target
from ov_autoplace.decide.place import place
from ov_autoplace.errors import ProfilingError
from ov_autoplace.measure import profiled
from ov_autoplace.measure.node_counts import count_nodes
from ov_autoplace.measure.session import ProfilingSession

QUICK = {"time_budget_ms": 50}


def failing_model() -> ov.Model:
    """Reshapes to what its input says, which no random input says right."""
    x = ops.parameter([7, 11], np.float32, name="x")
    pattern = ops.parameter([2], np.int64, name="pattern")
    wanted = ops.add(pattern, np.int64([100, 100]))
    y = ops.reshape(ops.relu(x), wanted, False, name="reshaped")
    return ov.Model([ops.result(ops.exp(y), name="y")], [x, pattern], "failing")


def running_model() -> ov.Model:
    x = ops.parameter([8, 64], np.float32, name="x")
    weights = ops.constant(np.eye(64, dtype=np.float32))
    return ov.Model([ops.result(ops.relu(ops.matmul(x, weights, False, False)), name="y")], [x], "running")


@pytest.mark.parametrize("first_failing", [1, 2])
def test_a_device_that_fails_at_an_inference_is_left_out_with_a_warning(
    unequal_pair, inject: Inject, caplog, first_failing: int
) -> None:
    inject(f"run:XCPU*:error@{first_failing}+")
    with caplog.at_level(logging.WARNING, "ov_autoplace"):
        placement = place(running_model(), ["XCPU", "CPU"], core=unequal_pair, **QUICK)
    assert set(placement.to_dict().values()) == {"CPU"}
    left_out = [r.message for r in caplog.records if "XCPU is left out" in r.message]
    assert [message for message in left_out if "out of resources" in message]


def test_where_no_device_can_run_the_model_the_answer_is_one_that_compiles_it(unequal_pair) -> None:
    """The inputs are made up: the caller's own may run."""
    placement = place(failing_model(), ["XCPU", "CPU"], core=unequal_pair, **QUICK)
    assert len(set(placement.to_dict().values())) == 1
    reason = str(placement.decision)
    assert "compiles the model; nothing else could be measured" in reason
    assert "fails when it is run: " in reason
    assert "\n" not in reason


def test_counting_nodes_of_what_fails_is_one_sentence(unequal_pair) -> None:
    with (
        ProfilingSession(unequal_pair, failing_model(), ["CPU"]) as session,
        pytest.raises(ProfilingError, match="fails when it is run"),
    ):
        count_nodes(session.compile_device("CPU", count_nodes=True), 0.01, 2, 3)


@pytest.mark.parametrize(
    ("command", "code"), [(("annotate",), 0), (("explain",), 1), (("bench", "--seconds", 0.5), 0)]
)
def test_commands_say_it_in_a_sentence(
    unequal_pair, cli: Command, monkeypatch, tmp_path: Path, command: tuple[object, ...], code: int
) -> None:
    monkeypatch.setattr(profiled, "measure_transfers", pytest.fail)  # the target tells what they cost
    ov.save_model(failing_model(), tmp_path / "m.xml", compress_to_fp16=False)
    save_target(generic_target(unequal_pair, ("XCPU", "CPU")), tmp_path / "pair.json")
    given = "-d", "XCPU,CPU", "--time-budget-ms", 500, "--target", tmp_path / "pair.json"
    outcome = cli(*command, tmp_path / "m.xml", *given)
    assert outcome.code == code
    assert "fails when it is run" in " ".join(outcome.err.split())
    assert "ProfilerError" not in outcome.err
