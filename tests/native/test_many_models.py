"""Mixes of the zoo's networks and of networks of ``transformers``, and many models that are none of ours."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest

import extension_checks
import foreign_checks
import transformers_kinds
import zoo

BUILDERS = [(zoo.build, name) for name in zoo.NAMES]
# ViLT draws random numbers.
BUILDERS += [(transformers_kinds.build, name) for name in transformers_kinds.NAMES if name != "vilt"][:24]


@pytest.fixture(scope="module")
def both() -> tuple[ov.Core, ov.Core]:
    return extension_checks.cores()


@pytest.mark.parametrize(("build", "name"), [pytest.param(*case, id=case[1]) for case in BUILDERS])
def test_a_mix_makes_the_intended_submodels_and_answers_as_one_device(
    both, build, name, tmp_path: Path
) -> None:
    outcomes = extension_checks.check_mix(both, build(name), {}, 0, 52_011, tmp_path)

    assert set(outcomes) <= {"as intended", "refused"}
    if not outcomes["as intended"]:
        # The first placement was none that HETERO can run.
        outcomes = extension_checks.check_mix(both, build(name), {}, 1, 52_011, tmp_path)
        assert outcomes["as intended"]


def test_models_without_annotation_are_read_and_run_alike(both, tmp_path: Path) -> None:
    faults = {
        name: foreign_checks.check_foreign(both, path, 52_012)
        for name, path in foreign_checks.foreign_models(60, 52_012, tmp_path)
    }
    assert not {name: fault for name, fault in faults.items() if fault}
