"""The placement as an OpenVINO pass, for pipelines that are made of passes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import openvino as ov
from openvino.passes import ModelPass

from ov_autoplace.decide.place import place
from ov_autoplace.plan.annotation import annotate

__all__ = ["AutoplacePass"]


class AutoplacePass(ModelPass):  # type: ignore[misc]  # the bindings' base class is untyped
    """Place a model and write the affinities into it.

    >>> manager = openvino.passes.Manager()
    >>> manager.register_pass(AutoplacePass(devices=["GPU", "CPU"]))
    >>> manager.run_passes(model)
    """

    def __init__(
        self, devices: str | Sequence[str] | None = None, core: ov.Core | None = None, **options: Any
    ) -> None:
        """Take the arguments of :func:`ov_autoplace.place`."""
        super().__init__()
        self._devices = devices
        self._core = core
        self._options = options

    def run_on_model(self, model: ov.Model) -> bool:
        """Annotate ``model``; true, because it changed."""
        annotate(model, place(model, self._devices, core=self._core, **self._options))
        return True
