"""OpenVINO's blobs in ``CACHE_DIR``: one process at a time writes them, and none is taken for another one."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import openvino as ov

from ov_autoplace._base import releases
from ov_autoplace._base.locks import locked
from ov_autoplace.devices.names import CACHE_PROPERTIES, device_settings, property_text, single_device_config
from ov_autoplace.graph.model_hash import constants_hash
from ov_autoplace.plugin.decision_cache import cache_folder

__all__ = ["cache_lock", "tell_blobs_apart", "tell_constants_apart", "writing_blobs"]

_log = logging.getLogger("ov_autoplace")

# In ``CACHE_DIR``: the lock of whoever compiles there, and how long to wait for it and for a decision.
_BLOB_LOCK, _PATIENCE = "autoplace.lock", 300.0
_PRECISION = ("INFERENCE_PRECISION_HINT", "EXECUTION_MODE_HINT")


@contextmanager
def writing_blobs(core: ov.Core, config: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Lets one process at a time compile with a ``CACHE_DIR``; yields the configuration to compile with.

    Processes that write and read the same blob at once can die of it, as OpenVINO maps it into memory.
    """
    folder = cache_folder(core, config)
    if not folder:
        yield config
        return
    with cache_lock(Path(folder) / _BLOB_LOCK) as is_locked:
        if not is_locked:
            _log.debug("compiled without the cache in %s, because other processes are using it", folder)
        yield config if is_locked else {**config, "CACHE_DIR": ""}


def tell_blobs_apart(
    core: ov.Core,
    model: ov.Model,
    devices: Sequence[str],
    config: Mapping[str, Any],
    more: Mapping[str, str] | None = None,
) -> None:
    """Write the devices' properties into a model for HETERO, which is part of the key of OpenVINO's cache.

    HETERO's key holds no property of its devices, and a GPU's blob holds kernels of one precision: what was
    compiled for f16 would be taken for f32.

    Args:
        core: Compiles it; a ``CACHE_DIR`` is set there, or in ``config``, or nothing is done.
        model: Has affinities.
        devices: Of them.
        config: What it is compiled with, as ``compile_model`` takes it.
        more: And besides.
    """
    if not cache_folder(core, dict(config)):
        return
    own = {device: single_device_config(device, config) for device in devices}
    settings = device_settings(core, devices, own)
    for device, properties in settings.items():
        for key in _PRECISION:
            with suppress(RuntimeError):  # this plugin does not know it
                properties.setdefault(key, property_text(core.get_property(device, key)))
        for key in CACHE_PROPERTIES:
            properties.pop(key, None)
    text = json.dumps([settings, dict(more or {})], sort_keys=True)
    model.set_rt_info(hashlib.sha256(text.encode()).hexdigest(), ["ov_autoplace", "device_properties"])


def tell_constants_apart(
    core: ov.Core, model: ov.Model, devices: Sequence[str], config: Mapping[str, Any]
) -> None:
    """Write what its constants are into a model, where OpenVINO's cache does not look at them.

    Args:
        core: Compiles it; a ``CACHE_DIR`` is set there, on a device or in ``config``, or nothing is done.
        model: Is changed.
        devices: Those that run it whole.
        config: What it is compiled with.
    """
    if releases.facts().tells_blobs_apart:
        return
    settings = device_settings(core, devices).values()
    if any(cache_folder(core, {**own, **config}) for own in settings):
        model.set_rt_info(constants_hash(model), ["ov_autoplace", "constants"])


@contextmanager
def cache_lock(path: Path) -> Iterator[bool]:
    """A lock in ``CACHE_DIR``, which is made where it is missing; yields whether it was got in time."""
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
    with locked(path, _PATIENCE) as is_locked:
        yield is_locked
