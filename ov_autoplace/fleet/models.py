"""A model on its way to the machines: once into the cluster, once from there to each node, which keeps it."""

from __future__ import annotations

import atexit
import hashlib
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from functools import cache
from pathlib import Path
from shutil import rmtree
from typing import Any, NamedTuple

import numpy as np
import openvino as ov

from ov_autoplace._base.files import make_folder, temporary_folder, write_atomically
from ov_autoplace._base.user_cache import user_cache_folder
from ov_autoplace.fleet.connection import require_ray
from ov_autoplace.measure.model_file import save_ir

__all__ = ["SharedModel", "local_model", "model_digest", "share_model"]

_FOLDER = "fleet-models"
_KEPT_SECONDS = 7 * 24 * 3600.0


class SharedModel(NamedTuple):
    """A model in the cluster's memory.

    Attributes:
        digest: Hash of its files.
        data: References of its XML and its weights.
    """

    digest: str
    data: tuple[Any, ...]


def share_model(model: ov.Model) -> SharedModel:
    """Put a model into the cluster's memory as an IR, under the names that its ops have."""
    ray, files = require_ray(), _files(model)
    # Arrays are read from shared memory, without a copy for each process.
    data = tuple(ray.put(np.frombuffer(content, dtype=np.uint8)) for content in files)
    return SharedModel(_digest(files), data)


def model_digest(model: ov.Model) -> str:
    """The digest that the model would be shared under."""
    return _digest(_files(model))


def _files(model: ov.Model) -> list[bytes]:
    with temporary_folder() as folder:
        xml = save_ir(model, folder)
        return [xml.read_bytes(), xml.with_suffix(".bin").read_bytes()]


def _digest(files: Sequence[bytes]) -> str:
    digest = hashlib.sha256()
    for content in files:
        digest.update(hashlib.sha256(content).digest())
    return digest.hexdigest()


def local_model(digest: str, data: Sequence[Any]) -> Path:
    """The model as a file of this machine, written when it was not here yet.

    Args:
        digest: See :class:`SharedModel`.
        data: The same.
    """
    folder = _kept_folder() / digest
    xml = folder / "model.xml"
    if not xml.exists():
        ray = require_ray()
        make_folder(folder)
        for path, ref in reversed(list(zip((xml, xml.with_suffix(".bin")), data, strict=True))):
            write_atomically(path, ray.get(ref).tobytes())  # the XML last: where it is, the model is whole
    with suppress(OSError):
        os.utime(folder)
    return xml


def _kept_folder() -> Path:
    """Where models are kept; those that were not used for a week are removed."""
    users = user_cache_folder()
    folder = None if users is None else users / _FOLDER
    try:
        if folder is None:
            raise OSError
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if old.stat().st_mtime < time.time() - _KEPT_SECONDS:
                rmtree(old, ignore_errors=True)
    except OSError:  # nowhere to keep it beyond this process
        return _own_folder()
    return folder


@cache
def _own_folder() -> Path:
    """A folder of this process; it is made once, so that a model is written once."""
    own = ExitStack()
    atexit.register(own.close)
    return own.enter_context(temporary_folder())
