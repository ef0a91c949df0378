"""The published OpenVINO GenAI, made by the Python that is printed for a plan of several models.

With ``OPENVINO_LOG_LEVEL`` GenAI prints what each of its models was compiled to.
"""

from __future__ import annotations

import re
import sys
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

import pytest

from joint_plans import IN_CALLER, ONE_THREAD, part
from language_model import LanguageModel
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.application.export import genai_code
from ov_autoplace.plan.joint import JointPlan
from ov_autoplace.plan.plan import Plan, WholePlan
from processes import run, run_python

DEFAULT = WholePlan("CPU")
ONE_ON_XCPU = WholePlan("XCPU", ONE_THREAD.width)
RESERVED = WholePlan(
    "CPU",
    properties={
        "INFERENCE_NUM_THREADS": "1",
        "NUM_STREAMS": "1",
        "ENABLE_CPU_RESERVATION": "YES",
        "ENABLE_CPU_PINNING": "YES",
    },
)
# What GenAI prints of a model that runs so. Without streams there is no number of threads.
SEEN = {
    IN_CALLER: {"EXECUTION_DEVICES: CPU", "NUM_STREAMS: 0"},
    ONE_THREAD: {"EXECUTION_DEVICES: CPU", "INFERENCE_NUM_THREADS: 1", "ENABLE_CPU_PINNING: NO"},
    ONE_ON_XCPU: {"EXECUTION_DEVICES: XCPU", "INFERENCE_NUM_THREADS: 1", "ENABLE_CPU_PINNING: NO"},
    RESERVED: {"INFERENCE_NUM_THREADS: 1", "ENABLE_CPU_RESERVATION: YES"},
    DEFAULT: {"EXECUTION_DEVICES: CPU", "ENABLE_CPU_PINNING: YES", "ENABLE_CPU_RESERVATION: NO"},
}
PROMPT = "pipeline.generate(['the cat sat on'], ignore_eos=True, max_new_tokens=6, num_assistant_tokens=3)"
LOOK = """
import numpy, openvino
blank = openvino.Tensor(numpy.zeros((1, 28, 28, 3), numpy.uint8))
assert pipeline.generate("the cat", images=[blank], max_new_tokens=4, ignore_eos=True).texts[0]
"""
LISTEN = "import numpy\npipeline.generate(numpy.zeros(16000, numpy.float32), max_new_tokens=4)"
PAINT = (
    "assert pipeline.generate('a cat', width=64, height=64, num_inference_steps=2).shape == [1, 64, 64, 3]"
)


def in_f32(plan: WholePlan) -> WholePlan:
    """The same in f32: with AMX, OpenVINO cannot compile language models in bf16 for one thread."""
    return replace(plan, properties={**plan.properties, "INFERENCE_PRECISION_HINT": "f32"})


def models_of(pipeline: str, plans: dict[str, tuple[Plan, Path]], use: str) -> dict[str, list[set[str]]]:
    """What is printed of each model of a pipeline that is made for a plan and then used.

    Args:
        pipeline: As the command calls it.
        plans: How each model runs, and where it is.
        use: Python that uses the variable ``pipeline``.
    """
    parts = [part(name, plan, source) for name, (plan, source) in plans.items()]
    code = genai_code(ApplicationPlan(JointPlan("by hand", tuple(parts))), pipeline)
    printed = run(sys.executable, "-c", f"{code}\n{use}", OPENVINO_LOG_LEVEL="3").stdout
    found = defaultdict(list)
    for model in re.split(r"^Model: ", printed, flags=re.MULTILINE)[1:]:
        title, *lines = model.splitlines()
        found[title].append({line.strip() for line in lines})
    return found


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pipelines")
    run_python("make_pipelines.py", folder, "speech", "vision_language")
    return folder


@pytest.mark.parametrize(
    "main",
    [
        pytest.param(IN_CALLER, id="in the caller", marks=pytest.mark.smoke),
        pytest.param(RESERVED, id="reserved"),
    ],
)
def test_a_language_model_and_its_draft_run_as_the_plan_says(
    main: WholePlan, language_model: LanguageModel
) -> None:
    file = language_model.plain / "openvino_model.xml"
    plans = {"language_model": main, "draft_model": ONE_THREAD}

    found = models_of("llm", {role: (in_f32(plan), file) for role, plan in plans.items()}, PROMPT)

    language = [seen for title, models in found.items() if title.startswith("LLM") for seen in models]
    assert len(language) == 2
    for plan in (main, ONE_THREAD):
        assert [seen for seen in language if SEEN[plan] <= seen], language
    assert all(SEEN[DEFAULT] <= seen for seen in found["OV Tokenizer"])


@pytest.mark.parametrize("vision", [ONE_ON_XCPU, ONE_THREAD], ids=["two devices", "one device"])
def test_each_role_of_a_vision_language_model_runs_as_the_plan_says(vision: Plan, pipelines: Path) -> None:
    folder = pipelines / "vision_language"
    plans = {"language_model": in_f32(IN_CALLER), "vision_embeddings": vision, "text_embeddings": DEFAULT}
    files = {"text_embeddings": "text_embeddings_model", "vision_embeddings": "vision_embeddings_model"}
    sources = {role: folder / f"openvino_{files.get(role, role)}.xml" for role in plans}

    found = models_of("vlm", {role: (plan, sources[role]) for role, plan in plans.items()}, LOOK)

    titles = {"LLM": IN_CALLER, "VLM vision": vision, "text embeddings": DEFAULT}
    for begin, plan in titles.items():
        (seen,) = (seen for title, models in found.items() if title.startswith(begin) for seen in models)
        assert SEEN[plan] <= seen


def test_encoder_and_decoder_of_a_whisper_run_as_the_plan_says(pipelines: Path) -> None:
    folder = pipelines / "speech"
    plans = {name: (ONE_THREAD, folder / f"openvino_{name}_model.xml") for name in ("encoder", "decoder")}

    found = models_of("whisper", plans, LISTEN)

    for name in ("encoder", "decoder"):
        (seen,) = found[f"whisper {name} model"]
        assert SEEN[ONE_THREAD] <= seen


@pytest.mark.smoke
def test_each_model_of_an_image_pipeline_runs_as_the_plan_says(tmp_path: Path) -> None:
    run_python("make_pipelines.py", tmp_path, "image")
    plans = {
        "text_encoder": DEFAULT,
        "unet": IN_CALLER,
        "vae_decoder": ONE_ON_XCPU,
        "vae_encoder": ONE_ON_XCPU,
    }
    sources = {name: tmp_path / "image" / name / "openvino_model.xml" for name in plans}

    found = models_of("image", {name: (plan, sources[name]) for name, plan in plans.items()}, PAINT)

    coders = {f"Auto encoder KL {name}": ONE_ON_XCPU for name in ("decoder", "encoder")}
    titles = {"Clip Text": DEFAULT, "UNet": IN_CALLER, **coders}
    for begin, plan in titles.items():
        (seen,) = (seen for title, models in found.items() if title.startswith(begin) for seen in models)
        assert SEEN[plan] <= seen
