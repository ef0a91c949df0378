"""optimum-intel with an annotated language model."""

from __future__ import annotations

import pytest

from language_model import LanguageModel
from processes import run_python

HETERO = "HETERO:CPU,XCPU"


@pytest.mark.smoke
def test_a_model_on_two_devices_gives_the_tokens_of_one_device(
    language_model: LanguageModel, extension: str
) -> None:
    without = run_python("run_optimum.py", language_model.plain, HETERO)

    report = run_python("run_optimum.py", language_model.annotated, HETERO, extension)

    assert report["modules"] == []
    assert without["submodels"] == 1
    assert report["submodels"] == language_model.submodels > 1
    assert report["tokens"] == without["tokens"]
    assert len(report["tokens"][0]) == 4 + 10
