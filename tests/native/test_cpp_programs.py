"""A C++ program built against the wheel's headers, in the ways that applications use a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from annotated_models import Annotated, answer_of
from cpp_programs import build_cpp
from processes import PROGRAMS, run

Lines = list[tuple[int, float]]


@pytest.fixture(scope="module")
def lifetimes(
    annotated: Annotated, extension: str, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Lines]:
    """Runs ``programs/lifetimes.cpp``; submodels and sum of outputs of every model that it compiled."""
    build = tmp_path_factory.mktemp("lifetimes")
    build_cpp(PROGRAMS, build)

    def run_way(way: str) -> Lines:
        lines = run(build / "lifetimes", way, extension, annotated.model).stdout.splitlines()
        return [(int(submodels), float(total)) for submodels, total in map(str.split, lines)]

    return run_way


def sum_on_cpu(plain: Path, pictures: int) -> float:
    """What the program prints for the CPU alone."""
    values = np.arange(pictures * 3 * 16 * 16) % 7
    return float(answer_of(plain, values.reshape(pictures, 3, 16, 16).astype(np.float32)).sum())


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("way", "models", "pictures", "sign"),
    [
        ("path", 1, 1, 1),
        ("reshape", 1, 3, 1),
        ("clone", 2, 1, 1),
        ("unload", 2, 1, 1),
        ("twice", 2, 1, 1),
        ("one_core", 10, 1, 1),
        ("own_cores", 10, 1, 1),
        ("one_model", 10, 1, -1),  # two threads compile it after an op was added
    ],
)
def test_each_model_has_its_submodels_and_the_answers_of_one_device(
    lifetimes: Callable[[str], Lines], annotated: Annotated, way: str, models: int, pictures: int, sign: int
) -> None:
    lines = lifetimes(way)

    assert [submodels for submodels, _ in lines] == [annotated.submodels] * models
    expected = sign * sum_on_cpu(annotated.plain, pictures)
    assert [total for _, total in lines] == pytest.approx([expected] * models, rel=1e-4)
