"""The sections of several models: bars from figures that are made up, and pieces that run."""

from __future__ import annotations

import numpy as np
import pytest

from harness.applications import DEFAULT
from ov_autoplace.devices.widths import Cores
from sections import application_predictions, application_processes


def test_rates_of_two_processes_count_relative_to_the_default_alone() -> None:
    rates = {
        # Alone, the second model is a hundred times faster.
        "alone": [[10.0] * 6, [1000.0] * 6],
        "plan": [[9.0] * 6, [900.0] * 6],
        DEFAULT: [[4.0] * 6, [500.0] * 6],
        "one thread each": [[9.0] * 6, [1100.0] * 6],
    }
    found = {"a pair": {"chosen": "a plan", "decision_seconds": 2.0, "rates": rates}}
    result = application_processes.result_of(found, ["another: it failed"])
    (row,) = result.tables[0].rows
    assert row[2:6] == ("2.00 [2.00, 2.00]", "2.25, 1.80", "0.90 [0.90, 0.90]", "1.00, 0.82")
    assert row[6] == "1.80, 0.90, 2.00"
    assert {case.rival: case.ratio for case in result.winning} == {DEFAULT: 0.5}
    assert [case.rival for case in result.losing] == ["one thread each"]
    failed, wanted = result.remarks
    assert failed == "another: it failed"
    assert wanted.endswith("0.5, wanted at most 0.666667")


@pytest.mark.alone
@pytest.mark.skipif(Cores.of_this_process().usable < 2, reason="two models need a core each")
def test_a_pair_is_decided_and_its_programs_run_on_cores_of_their_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name, value in {"_ROUNDS": 2, "_SECONDS": 0.02, "_REQUESTS": 1}.items():
        monkeypatch.setattr(application_processes, name, value)
    found = application_processes.decide_and_run("two of 0.1 ms", seed=0, starts=1)
    assert found["rates"].keys() == {"plan", DEFAULT, "one thread each", "alone"}
    assert np.shape(list(found["rates"].values())) == (4, 2, 2)
    assert np.min(list(found["rates"].values())) > 0


def test_random_plans_are_predicted_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(application_predictions, "_ROUNDS", 1)
    found = application_predictions.predict_and_run("two of 0.1 ms", seed=0, count=2)
    assert len(set(found["plans"])) == 2
    for what in ("predicted", "measured"):
        # Of two models with equal weight, the mean of the seconds is the geometric one.
        rates = found["rates" if what == "predicted" else "measured rates"]
        np.testing.assert_allclose(found[what], 1 / np.sqrt(np.prod(rates, axis=1)))
