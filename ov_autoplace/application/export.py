"""A plan of several models in the words of other programs: OpenVINO GenAI's Python, Model Server's file.

Neither knows the device AUTOPLACE. They take names of devices and properties, and not for every model apart:
what a pipeline cannot tell apart has to run alike in the plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

from ov_autoplace._base.json_fields import Record
from ov_autoplace._base.text import printable, unknown_name
from ov_autoplace.application.answer import ApplicationPlan
from ov_autoplace.errors import ModelError, OptionError, PlacementError

__all__ = ["GENAI", "genai_code", "model_server_config"]

_Value: TypeAlias = "str | int | bool"

_VLM_ROLES = (
    "language_model",
    "vision_embeddings",
    "vision_embeddings_merger",
    "vision_embeddings_pos",
    "vision_projection",
    "multi_modal_projector",
    "resampler",
    "text_embeddings",
    "text_embeddings_per_layer",
    "audio_encoder",
)
"""What GenAI takes in ``MODEL_PROPERTIES``."""

_IMAGE_MODELS = {
    "text_encoder": "CLIPTextModel",
    "text_encoder_2": "CLIPTextModelWithProjection",
    "unet": "UNet2DConditionModel",
}
_IMAGE_PIPELINES = {
    "StableDiffusionPipeline": ("stable_diffusion", ("text_encoder", "unet")),
    "LatentConsistencyModelPipeline": ("latent_consistency_model", ("text_encoder", "unet")),
    "StableDiffusionXLPipeline": ("stable_diffusion_xl", ("text_encoder", "text_encoder_2", "unet")),
}
"""By what ``model_index.json`` calls them: GenAI's function, and its models in the order of its arguments."""


@dataclass(frozen=True)
class _Model:
    """One model of a plan, as a pipeline gets it."""

    name: str
    role: str
    device: str
    properties: Mapping[str, _Value]
    folder: Path


class _Models:
    """The models of a plan by their roles in a pipeline.

    Args:
        plan: The plan.
        names: What a role is called in the plan where it has another name.
        roles: All roles of the pipeline.
    """

    def __init__(self, plan: ApplicationPlan, names: Mapping[str, str], roles: Sequence[str]) -> None:
        self._plan, self._names = plan, names
        for role, name in names.items():
            if role not in roles:
                raise OptionError(unknown_name("role", role, roles))
            plan.plan.part(name)

    def of(self, role: str) -> _Model:
        """The model of a role; there has to be one."""
        name = self._names.get(role, role)
        parts = [part.name for part in self._plan.plan.parts]
        if name not in parts:
            raise PlacementError(
                f"no model of the plan is called {role!r}; there are {', '.join(parts)}: say which with "
                f"--role {role}=NAME"
            )
        device, properties = _settings(self._plan, name)
        if ":" in device:
            raise PlacementError(f"{name!r} runs on {device}; a pipeline needs it on one device")
        path = _path(self._plan, name)
        if path.name not in _files_of(role):
            raise PlacementError(
                f"{name!r} is {path}; for {role!r} GenAI reads {' or '.join(_files_of(role))} of a folder"
            )
        return _Model(name, role, device, properties, path.parent)

    def given(self, roles: Sequence[str]) -> list[_Model]:
        """The models of those roles that the plan has."""
        known = {part.name for part in self._plan.plan.parts}
        return [self.of(role) for role in roles if self._names.get(role, role) in known]


def genai_code(plan: ApplicationPlan, pipeline: str, names: Mapping[str, str] | None = None) -> str:
    """A Python program that makes a pipeline of OpenVINO GenAI whose models run as the plan says.

    Args:
        plan: Names its models as the pipeline's roles, ``language_model`` for example.
        pipeline: ``llm``, ``vlm``, ``whisper`` or ``image``.
        names: What a role is called in the plan where it has another name.

    Raises:
        AutoplaceError: The plan lacks a model of the pipeline, or runs models differently that the pipeline
            cannot tell apart.
    """
    if pipeline not in GENAI:
        raise OptionError(unknown_name("pipeline", pipeline, GENAI))
    roles, code = GENAI[pipeline]
    return f"import openvino_genai\n\n{code(_Models(plan, names or {}, roles))}\n"


def _language(models: _Models) -> str:
    main = models.of("language_model")
    drafts = [
        f"draft_model={_call('openvino_genai.draft_model', *_placed(draft))}"
        for draft in models.given(["draft_model"])
    ]
    return f"pipeline = {_call('openvino_genai.LLMPipeline', *_placed(main), *drafts)}"


def _vision_language(models: _Models) -> str:
    main = models.of("language_model")
    members = models.given(_VLM_ROLES)
    folder = _common_folder(members)
    devices = dict.fromkeys(member.device for member in members)
    own = {member.role: dict(member.properties) for member in members}
    if len(devices) > 1:
        # AUTO is what takes a device for each model: whose list it has in its properties. Its own name
        # carries none.
        for member in members:
            own[member.role] = {"MULTI_DEVICE_PRIORITIES": member.device, **own[member.role]}
    device = "AUTO" if len(devices) > 1 else main.device
    properties = {role: settings for role, settings in own.items() if settings}
    arguments = [_literal(str(folder)), _literal(device)]
    if properties:
        arguments.append(f"MODEL_PROPERTIES={_literal(properties)}")
    return f"pipeline = {_call('openvino_genai.VLMPipeline', *arguments)}"


def _whisper(models: _Models) -> str:
    members = [models.of(role) for role in ("encoder", "decoder")]
    _common_folder(members)
    alike = _alike("WhisperPipeline", members)
    return f"pipeline = {_call('openvino_genai.WhisperPipeline', *_placed(alike))}"


def _image(models: _Models) -> str:
    folder = models.of("unet").folder.parent
    index = folder / "model_index.json"
    kind = Record.load(index, ModelError, "an image pipeline").text("_class_name")
    if kind not in _IMAGE_PIPELINES:
        raise ModelError(f"{index}: {unknown_name('pipeline', kind, _IMAGE_PIPELINES)}")
    function, roles = _IMAGE_PIPELINES[kind]
    scheduler = _literal(str(folder / "scheduler" / "scheduler_config.json"))
    parts = [
        _call("openvino_genai.Scheduler.from_config", scheduler),
        *(
            _call(f"openvino_genai.{_IMAGE_MODELS[role]}", *_placed(models.of(role), is_apart=True))
            for role in roles
        ),
    ]
    decoder = models.of("vae_decoder")
    encoders = models.given(["vae_encoder"])
    _alike("AutoencoderKL", [decoder, *encoders])
    coders = [_literal(str(encoder.folder)) for encoder in encoders]
    parts.append(_call("openvino_genai.AutoencoderKL", *coders, *_placed(decoder, is_apart=True)))
    return f"pipeline = {_call(f'openvino_genai.Text2ImagePipeline.{function}', *parts)}"


GENAI: dict[str, tuple[tuple[str, ...], Callable[[_Models], str]]] = {
    "llm": (("language_model", "draft_model"), _language),
    "vlm": (_VLM_ROLES, _vision_language),
    "whisper": (("encoder", "decoder"), _whisper),
    "image": ((*_IMAGE_MODELS, "vae_decoder", "vae_encoder"), _image),
}
"""The pipelines: the roles of their models, and what writes the program."""


def model_server_config(plan: ApplicationPlan) -> dict[str, Any]:
    """What OpenVINO Model Server reads as ``--config_path``: every model of the plan with its device.

    Raises:
        PlacementError: A model runs in a way that the server has no words for, or came from no file.
    """
    if plan.plan.in_turn:
        raise PlacementError(
            f"the plan {plan.plan.name} runs all models in one thread, one after the other; "
            "Model Server does not"
        )
    entries = []
    for part in plan.plan.parts:
        device, properties = _settings(plan, part.name)
        entry = {
            "name": part.name,
            "base_path": str(_base_path(_path(plan, part.name))),
            "target_device": device,
            "nireq": part.callers,
            "plugin_config": dict(properties),
        }
        entries.append({"config": entry})
    return {"model_config_list": entries}


def _base_path(path: Path) -> Path:
    """The folder of a model's versions; the file itself where it is in no version's folder."""
    version = path.parent.name
    return path.parent.parent if version.isdecimal() and int(version) > 0 else path


def _settings(plan: ApplicationPlan, name: str) -> tuple[str, dict[str, _Value]]:
    device, properties = plan.properties(name)
    return device, {key: _typed(text) for key, text in properties.items()}


def _path(plan: ApplicationPlan, name: str) -> Path:
    source = plan.plan.part(name).source
    if not source:
        raise PlacementError(f"the plan does not say where {name!r} is; decide on files")
    return Path(source)


def _files_of(role: str) -> tuple[str, ...]:
    """What a model is called in the folder of a pipeline, or in its own."""
    stem = f"openvino_{role}"
    return "openvino_model.xml", f"{stem}.xml" if role == "language_model" else f"{stem}_model.xml"


def _typed(text: str) -> _Value:
    """A property's text as the number or truth value that it says."""
    if text in ("YES", "NO"):
        return text == "YES"
    return int(text) if text.isascii() and text.isdecimal() else text


def _alike(what: str, members: Sequence[_Model]) -> _Model:
    """One of several models that a class compiles alike, so that the plan has to run them alike."""
    first = members[0]
    for other in members[1:]:
        if (other.device, other.properties) != (first.device, first.properties):
            raise PlacementError(
                f"the plan runs {first.name!r} and {other.name!r} differently, which {what} compiles alike"
            )
    return first


def _common_folder(members: Sequence[_Model]) -> Path:
    first = members[0]
    for other in members[1:]:
        if other.folder != first.folder:
            raise PlacementError(
                f"{first.name!r} is in {first.folder}, {other.name!r} in {other.folder}; "
                "the models of a pipeline are in one folder"
            )
    return first.folder


def _placed(model: _Model, *, is_apart: bool = False) -> list[str]:
    """A model's folder, device and properties as arguments.

    Args:
        model: The model.
        is_apart: They reach nothing else; where they do not, tokenizers would get them too.
    """
    arguments = [_literal(str(model.folder)), _literal(model.device)]
    if model.properties:
        own = dict(model.properties)
        arguments.append(f"**{_literal(own if is_apart else {'DEVICE_PROPERTIES': {model.device: own}})}")
    return arguments


def _call(function: str, *arguments: str) -> str:
    """A call with a line for each argument, where one does not hold all."""
    line = f"{function}({', '.join(arguments)})"
    if len(line) < 90 and "\n" not in line:
        return line
    indented = "".join(f"    {line}\n" for text in arguments for line in f"{text},".split("\n"))
    return f"{function}(\n{indented})"


def _literal(value: Mapping[str, Any] | _Value) -> str:
    """A value in Python."""
    if isinstance(value, Mapping):
        entries = [f"{_literal(key)}: {_literal(entry)}" for key, entry in value.items()]
        line = "{" + ", ".join(entries) + "}"
        if len(line) < 90 and "\n" not in line:
            return line
        indented = "".join(f"    {line}\n" for text in entries for line in f"{text},".split("\n"))
        return "{\n" + indented + "}"
    return printable(json.dumps(value, ensure_ascii=False)) if isinstance(value, str) else repr(value)
