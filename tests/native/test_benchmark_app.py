"""OpenVINO's own benchmark_app, as the wheel installs it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from annotated_models import Annotated
from ov_autoplace._base import releases
from processes import run

# As the command of that name begins.
PROGRAM = (sys.executable, "-c", "from openvino.tools.benchmark.main import main; main()")


def benchmark(model: Path, extension: str, *options: object) -> dict[str, str]:
    """Run it for a few inferences; the properties and counts that it prints."""
    command = [*PROGRAM, "-m", model, "-extensions", extension, "-d", "HETERO:XCPU,CPU", "-niter", 4]
    printed = run(*command, *options).stdout
    # Properties of the whole model come first, those of each device follow.
    found: dict[str, str] = {}
    for name, value in re.findall(r"^\[ INFO \] +(\w+): +(.+)$", printed, flags=re.MULTILINE):
        found.setdefault(name, value.strip())
    return found


@pytest.mark.parametrize(
    "options",
    [
        ("-api", "sync"),
        ("-api", "async", "-nireq", 2),
        ("-hint", "latency"),
        ("-hint", "throughput"),
        ("-hint", "none", "-nstreams", 2),
        ("-ip", "u8"),
        ("-ip", "u8", "-iop", "means:f16"),
        ("-shape", "image[2,3,24,24]"),
        ("-data_shape", "image[1,3,16,16]", "-shape", "image[?,3,16,16]"),
        ("-infer_precision", "f32", "-pc"),
        ("-inference_only", "false"),
        ("-lfile",),
    ],
    ids=lambda options: " ".join(map(str, options)),
)
def test_it_runs_the_annotated_model_on_its_devices(
    annotated: Annotated, extension: str, options: tuple[object, ...]
) -> None:
    printed = benchmark(annotated.model, extension, *options)

    assert printed["HETERO_NUMBER_OF_SUBMODELS"] == str(annotated.submodels)
    assert set(re.findall(r"\w+", printed["EXECUTION_DEVICES"])) == {"CPU", "XCPU"}
    assert re.fullmatch(r"\d+ iterations", printed["Count"])


@pytest.mark.smoke
def test_its_cache_keeps_the_devices(annotated: Annotated, extension: str, tmp_path: Path) -> None:
    cache = ("-cdir", tmp_path / "cache")
    first, second = (benchmark(annotated.model, extension, *cache) for _ in range(2))

    assert (first["LOADED_FROM_CACHE"], second["LOADED_FROM_CACHE"]) == (
        "False",
        str(releases.facts().imports_mixes),
    )
    assert second["HETERO_NUMBER_OF_SUBMODELS"] == str(annotated.submodels)
