"""Networks of ``transformers`` cut by random plans answer as on one device."""

from __future__ import annotations

import openvino as ov
import pytest

import lane_checks
import transformers_kinds

pytestmark = pytest.mark.torch

# ViLT draws random numbers, and what the others compute of a random mask is not finite.
NAMES = [name for name in transformers_kinds.NAMES if name not in ("vilt", "llama", "opt", "mixtral")]


@pytest.mark.seeds(NAMES, argument="name", cost=4)
def test_they_answer_as_on_one_device(name: str) -> None:
    outcomes = dict(lane_checks.check_model(ov.Core(), transformers_kinds.build(name), {}, 2, 8_700))
    assert set(outcomes.values()) <= {"same", "not run by the CPU"}
    assert "same" in outcomes.values()
