"""A language model that both OpenVINO GenAI and optimum-intel load."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import NamedTuple

import openvino as ov

import ov_autoplace
from annotated_models import submodels_of
from ov_autoplace.plugin.annotated_files import save_annotated
from processes import run_python

__all__ = ["LanguageModel", "make_language_model"]


class LanguageModel(NamedTuple):
    """Folders with a stateful model and its tokenizer: as exported, and annotated."""

    plain: Path
    annotated: Path
    submodels: int


def make_language_model(plain: Path, annotated: Path) -> LanguageModel:
    """Three decoder layers, the second one on XCPU, in two empty folders."""
    run_python("make_language_model.py", plain)
    shutil.copytree(plain, annotated, dirs_exist_ok=True)
    model = ov.Core().read_model(plain / "openvino_model.xml")
    placement = ov_autoplace.place(
        model,
        ["CPU", "XCPU"],
        mode="ZERO_SHOT",
        pins={"*": "CPU", "*layers.1*": "XCPU"},
        shapes={"input_ids": [1, 8], "attention_mask": [1, 8], "position_ids": [1, 8], "beam_idx": [1]},
    )
    files = save_annotated(model, placement, annotated, "openvino_model")
    # These programs look for a file of this name.
    for suffix in (".xml", ".bin"):
        files.model.with_suffix(suffix).replace(annotated / f"openvino_model{suffix}")
    return LanguageModel(plain, annotated, submodels_of(annotated / "openvino_model.xml"))
