"""The published OpenVINO GenAI, with an annotated language model."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from language_model import LanguageModel
from processes import PROGRAMS, run

HETERO = "HETERO:CPU,XCPU"
# Where models are cut they round elsewhere: in bf16, or with a quantized cache, texts would differ.
EXACT = {"INFERENCE_PRECISION_HINT": "f32", "KV_CACHE_PRECISION": "f32"}
GREEDY = {"do_sample": False}
BEAMS = {"num_beams": 4, "num_return_sequences": 2}
SAMPLED = {"do_sample": True, "rng_seed": 7, "top_k": 5}


class Generated(NamedTuple):
    """What a pipeline wrote, or why it was not made, and the devices of HETERO's submodels."""

    texts: list[str] | None
    error: str
    devices: list[str]


def generate(folder: Path, device: str, generation: dict[str, Any], **pipeline: Any) -> Generated:
    options = [json.dumps(EXACT | pipeline), json.dumps(generation)]
    # With this variable HETERO prints a line for each submodel.
    printed = run(
        sys.executable, PROGRAMS / "run_genai.py", folder, device, *options, OPENVINO_HETERO_PERF="1"
    ).stdout
    report = json.loads(printed.splitlines()[-1])
    assert report["modules"] == []
    return Generated(
        report.get("texts"), report.get("error", ""), re.findall(r"submodel\[\d+\] device=(\w+)", printed)
    )


@pytest.mark.parametrize(
    "generation",
    [
        pytest.param(GREEDY, id="greedy", marks=pytest.mark.smoke),
        pytest.param(BEAMS, id="beams"),
        pytest.param(SAMPLED, id="sampled"),
    ],
)
def test_a_pipeline_on_two_devices_writes_what_one_device_writes(
    language_model: LanguageModel, extension: str, generation: dict[str, Any]
) -> None:
    backend = {"ATTENTION_BACKEND": "SDPA"}
    alone = generate(language_model.plain, "CPU", generation, **backend)

    mixed = generate(language_model.annotated, HETERO, generation, extensions=[extension], **backend)

    assert len(mixed.devices) == language_model.submodels > 1
    assert set(mixed.devices) == {"CPU", "XCPU"}
    assert mixed.texts == alone.texts
    assert all(len(text.split()) > 3 for text in mixed.texts or [""])


def test_without_the_library_the_annotation_is_not_followed(language_model: LanguageModel) -> None:
    assert generate(language_model.annotated, HETERO, GREEDY).devices == ["CPU"]


def test_the_library_changes_nothing_for_a_model_without_annotation(
    language_model: LanguageModel, extension: str
) -> None:
    with_library = generate(language_model.plain, HETERO, GREEDY, extensions=[extension])

    assert with_library == generate(language_model.plain, HETERO, GREEDY)
    assert with_library.devices == ["CPU"]


def test_a_pipeline_with_a_cache_keeps_the_devices(
    language_model: LanguageModel, extension: str, tmp_path: Path
) -> None:
    options = {"extensions": [extension], "CACHE_DIR": str(tmp_path), "ATTENTION_BACKEND": "SDPA"}
    first, second = (generate(language_model.annotated, HETERO, GREEDY, **options) for _ in range(2))

    assert len(first.devices) == language_model.submodels
    assert list(tmp_path.glob("*.blob"))
    assert second.texts == first.texts


def test_continuous_batching_on_one_device_is_not_disturbed(
    language_model: LanguageModel, extension: str
) -> None:
    batching = {"continuous_batching": True}
    alone = generate(language_model.plain, "CPU", GREEDY, **batching)

    annotated = generate(language_model.annotated, "CPU", GREEDY, extensions=[extension], **batching)

    assert annotated.texts == alone.texts
    assert annotated.texts


@pytest.mark.parametrize("pipeline", [{"continuous_batching": True}, {"ATTENTION_BACKEND": "PA"}])
def test_continuous_batching_on_two_devices_is_refused_with_a_sentence(
    language_model: LanguageModel, extension: str, pipeline: dict[str, Any]
) -> None:
    answer = generate(language_model.annotated, HETERO, GREEDY, extensions=[extension], **pipeline)

    assert answer.texts is None
    # OpenVINO GenAI's own words; docs/native.md says what to do.
    assert "Continuous batching: execution device is expected to be single CPU" in answer.error
