"""Reading models so that every failure is one sentence, and what is written so that it is read as it was."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._base import releases
from ov_autoplace.errors import ModelError

__all__ = [
    "check_model_file",
    "lacks_library",
    "make_readable",
    "openvino_reason",
    "read_model",
    "readable_text",
]

_SAVED_MODEL = "saved_model.pb"
_INFINITE = re.compile(rb'<data [^>]*="-?inf"[^>]*>')
_LARGEST = b'3.4028234663852886e+38"'  # of f32


def read_model(core: ov.Core, model: Any, weights: bytes | None = None) -> ov.Model:
    """Read an IR, ONNX or any other file that OpenVINO reads, or an IR in memory.

    Args:
        core: Reads it; the Core's extensions apply. For a scheduled model, the package's library becomes one.
        model: A path, or the bytes of an IR's XML or of an ONNX model.
        weights: Bytes of the IR's weights, when ``model`` is not a path.

    Raises:
        ModelError: The file is missing, or is not a model.
    """
    if isinstance(model, (str, Path)) and weights is None:
        check_model_file(Path(model))
        what = str(model)
    elif isinstance(model, (str, Path, bytes)) or hasattr(model, "read"):
        what = "the model in memory"
        model = model.encode() if isinstance(model, str) else model
    else:
        raise ModelError(f"a model is an openvino.Model, a path or bytes, not a {type(model).__name__}")
    try:
        return _read(core, model, weights)
    except (RuntimeError, TypeError, UnicodeError) as cause:
        raise ModelError(f"OpenVINO cannot read {what}: {openvino_reason(cause)}") from cause


def check_model_file(path: Path) -> None:
    """Refuse a file that is not there, before others are worked on for minutes.

    Raises:
        ModelError: It is missing, or a folder that holds no model.
    """
    if not path.exists():
        raise ModelError(f"there is no model file {path}")
    if path.is_file() and path.stat().st_size == 0:
        raise ModelError(f"{path} is empty, so it is no model")
    if path.is_dir() and not (path / _SAVED_MODEL).exists():
        raise ModelError(
            f"{path} is a folder, not a model file; of folders, only a TensorFlow SavedModel is read, which "
            f"holds {_SAVED_MODEL}"
        )


def _read(core: ov.Core, model: Any, weights: bytes | None) -> ov.Model:
    read = core.read_model
    try:
        return read(model, weights) if weights is not None else read(model)
    except RuntimeError as cause:
        if not lacks_library(cause):
            raise
        from ov_autoplace.devices.extension import add_extension

        add_extension(core)
        return read(model, weights) if weights is not None else read(model)


def readable_text(text: bytes) -> bytes:
    """The text of an IR as OpenVINO wrote it; the largest numbers for infinite ones that it reads as 0."""
    if releases.facts().reads_infinite_numbers:
        return text
    return _INFINITE.sub(
        lambda data: data[0].replace(b'="inf"', b'="' + _LARGEST).replace(b'="-inf"', b'="-' + _LARGEST), text
    )


def make_readable(path: Path) -> None:
    """Do what :func:`readable_text` does to a file."""
    if not releases.facts().reads_infinite_numbers:
        text = path.read_bytes()
        readable = readable_text(text)
        if readable != text:
            path.write_bytes(readable)


def lacks_library(cause: RuntimeError) -> bool:
    """Whether OpenVINO refused a scheduled model because the package's library was not loaded."""
    return "from unsupported opset: autoplace" in str(cause)


def openvino_reason(cause: BaseException) -> str:
    """The informative part of an OpenVINO exception: its last line that is not a source location."""
    lines = [line.strip() for line in str(cause).splitlines()]
    lines = [line for line in lines if line and not line.startswith(("Exception from", "[ NETWORK"))]
    return (lines[-1] if lines else type(cause).__name__)[:300]
