"""A compiled model whose properties are what AUTOPLACE was asked for.

OpenVINO's compiled model of a mix of devices knows few properties. And what has the highest rate of requests
may have been compiled for latency, which it would tell whoever asked for throughput.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from typing import Any

import openvino as ov

from ov_autoplace._base import releases
from ov_autoplace.devices.models import openvino_reason
from ov_autoplace.errors import ModelError, OptionError

__all__ = ["GROUPS", "SUPPORTED", "PlacedModel", "agreed_value", "check_mixes_are_imported", "placed_model"]

SUPPORTED, GROUPS = "SUPPORTED_PROPERTIES", "DEVICE_PROPERTIES"


class PlacedModel(ov.CompiledModel):  # type: ignore[misc]  # the bindings' base class is untyped
    """A compiled model with properties of its own.

    Those of a mix of devices about which all of them say the same are its properties, too.

    Args:
        compiled: The compiled model.
        told: Values by name, or what finds them; they win over what the compiled model says.
    """

    def __init__(self, compiled: ov.CompiledModel, told: Mapping[str, Any] | None = None) -> None:
        super().__init__(compiled)
        self.told = dict(told or {})

    def get_property(self, property: Any) -> Any:  # noqa: A002 - the name that OpenVINO gave it
        """See ``openvino.CompiledModel.get_property``.

        Raises:
            OptionError: Its devices have different values.
            RuntimeError: It has no such property.
        """
        name = property() if callable(property) else property
        if name in self.told:
            value = self.told[name]
            return value() if callable(value) else value
        own = super().get_property(SUPPORTED)
        if name == SUPPORTED:
            agreed = [key for key, values in self._by_device(own).items() if _are_equal(values)]
            return {**dict.fromkeys((*agreed, *self.told), "RO"), **own}
        if name in own or name not in (per_device := self._by_device(own)):
            return super().get_property(property)
        return agreed_value(name, per_device[name], "devices")

    def export_model(self, model_stream: io.BytesIO | None = None) -> io.BytesIO | None:
        """See ``openvino.CompiledModel.export_model``.

        Raises:
            ModelError: OpenVINO cannot export what runs on several devices side by side, or cannot import it.
        """
        if "HETERO_NUMBER_OF_SUBMODELS" in super().get_property(SUPPORTED):
            check_mixes_are_imported()
        stream = io.BytesIO() if model_stream is None else model_stream
        try:
            super().export_model(stream)
        except RuntimeError as cause:
            raise ModelError(
                f"OpenVINO cannot export this model, as devices run it together ({openvino_reason(cause)}); "
                "compile it for one of them, or with PERFORMANCE_HINT LATENCY"
            ) from cause
        if model_stream is not None:
            return None
        stream.seek(0)
        return stream

    def _by_device(self, own: Mapping[str, str]) -> dict[str, dict[str, Any]]:
        """Values by property and device, of what every device of a mix tells."""
        if GROUPS not in own:
            return {}
        groups: Mapping[str, Mapping[str, Any]] = super().get_property(GROUPS)
        common = set.intersection(*(set(group) for group in groups.values())) if groups else set()
        common -= {*own, "EXECUTION_DEVICES"}
        return {key: {device: group[key] for device, group in groups.items()} for key in sorted(common)}


def check_mixes_are_imported() -> None:
    """Refuse to export or import a mix of devices where OpenVINO cannot read what it exports of one.

    Raises:
        ModelError: It is such a release.
    """
    if not releases.facts().imports_mixes:
        here, first = releases.installed(), releases.first_with("imports_mixes")
        raise ModelError(
            f"OpenVINO {here} cannot import a compiled mix of devices, which takes {first} or later; compile "
            "it for one of them, or write the decision into the model (annotate)"
        )


def placed_model(compiled: ov.CompiledModel, asked: Mapping[str, Any]) -> ov.CompiledModel:
    """A compiled model that tells what was asked for, the same one where it does so by itself.

    Args:
        compiled: The compiled model.
        asked: Properties as text, as far as it shall tell them.
    """
    told = {}
    supported = compiled.get_property(SUPPORTED)
    for key, value in asked.items():
        said = compiled.get_property(key) if key in supported else None
        if str(getattr(said, "name", said)) != str(value):
            told[key] = value
    if isinstance(compiled, PlacedModel):
        compiled.told.update(told)
        return compiled
    return PlacedModel(compiled, told) if told or GROUPS in supported else compiled


def agreed_value(name: str, values: Mapping[str, Any], parts: str) -> Any:
    """What all parts of a compiled model say of a property.

    Args:
        name: The property.
        values: What each part says, at least one, by its name.
        parts: What they are.

    Raises:
        OptionError: They differ.
    """
    if not _are_equal(values):
        said = ", ".join(f"{part} {value}" for part, value in values.items())
        raise OptionError(f"the {parts} of this model differ in {name} ({said}); ask for {GROUPS}")
    return next(iter(values.values()))


def _are_equal(values: Mapping[str, Any]) -> bool:
    first, *others = values.values()
    return all(value == first for value in others)
