"""Memory errors, leaks and races in the library and in what measures; OpenVINO itself is not instrumented."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import openvino as ov
import pytest

from annotated_models import Annotated
from cpp_programs import build_cpp
from processes import PROGRAMS, run
from random_schedules import random_schedule
from schedule_ops import DATA, failing_part, relu_part, schedule

SOURCES = Path(__file__).resolve().parents[3] / "csrc"
SETTINGS = {
    "TBB_ENABLE_SANITIZERS": "1",
    # Vectors that OpenVINO makes and the library reads are not what this check takes them for. Where a
    # thread ends, the sanitizer would unmap the signal stack that the CPU plugin made and will unmap itself.
    "ASAN_OPTIONS": "detect_container_overflow=0:use_sigaltstack=0",
    "TSAN_OPTIONS": "ignore_noninstrumented_modules=1",
}

SEEDS = (20, 13)
"""Seven submodels on three lanes; and sizes that depend on data."""

Program = Callable[..., None]


ADDRESS = "address,undefined"


@pytest.fixture(scope="module", params=[pytest.param(ADDRESS, marks=pytest.mark.smoke), "thread"])
def program(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Program:
    """Runs one of the programs with the library as its second argument, both with a sanitizer."""
    build = tmp_path_factory.mktemp(request.param)
    build_cpp(PROGRAMS, build, f"-DSANITIZE={request.param}", f"-DSOURCES={SOURCES}")

    def run_program(name: str, way: str, *files: Path) -> None:
        done = run(build / name, way, build / "libextension.so", *files, **SETTINGS)
        assert "Sanitizer" not in done.stderr, done.stderr

    return run_program


@pytest.fixture(scope="module")
def schedules(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Path, Path, Path]]:
    """Random schedules, what they compute without the op, and one that can fail."""
    folder = tmp_path_factory.mktemp("schedules")
    parts = [
        relu_part("first", (DATA, 0)),
        failing_part("failing", (0, 0), (DATA, 1), lane=1),
        relu_part("beside", (0, 0)),
    ]
    inputs = [([4, 8], np.float32), ([1, 1], np.int32)]
    files = {"failing": schedule(inputs, parts, [(1, 0), (2, 0)])}
    for seed in SEEDS:
        made = random_schedule(seed, steps=20)
        files |= {f"scheduled_{seed}": made.scheduled, f"whole_{seed}": made.whole}
    for name, model in files.items():
        ov.save_model(model, folder / f"{name}.xml", compress_to_fp16=False)
    return [
        (folder / f"scheduled_{seed}.xml", folder / f"whole_{seed}.xml", folder / "failing.xml")
        for seed in SEEDS
    ]


@pytest.mark.parametrize(
    "way", ["path", "reshape", "clone", "unload", "twice", "one_core", "own_cores", "one_model"]
)
def test_annotated_models(program: Program, annotated: Annotated, way: str) -> None:
    program("lifetimes", way, annotated.model)


@pytest.mark.parametrize(
    "way", ["threads", "compiled", "parked", "failing", "destroyed", "profiled", "at_exit"]
)
def test_schedules(program: Program, schedules: list[tuple[Path, Path, Path]], way: str) -> None:
    for files in schedules:
        program("schedules", way, *files)


@pytest.mark.parametrize("way", ["workload", "shared"])
def test_applications(program: Program, schedules: list[tuple[Path, Path, Path]], way: str) -> None:
    program("workloads", way, *schedules[0])


@pytest.mark.parametrize(
    "program", [ADDRESS], indirect=True
)  # The other one cannot make threads after a fork.
def test_schedules_in_a_forked_process(program: Program, schedules: list[tuple[Path, Path, Path]]) -> None:
    for files in schedules:
        program("schedules", "forked", *files)
