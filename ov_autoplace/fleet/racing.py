"""Races of placements on a machine of the fleet, whose process keeps the model open between them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from ov_autoplace.decide.verdict import CONVINCING_ROUNDS
from ov_autoplace.errors import ProfilingError
from ov_autoplace.fleet.on_machine import opened
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.measure.session import ProfilingSession

__all__ = ["race"]


class _Opened:
    """The model of this process, and what was compiled of it."""

    def __init__(self) -> None:
        self.key = ""
        self.session: ProfilingSession | None = None
        self.executables: dict[str, Any] = {}


_opened = _Opened()


def race(request: Mapping[str, Any], data: Sequence[Any]) -> dict[str, Any]:
    """Run placements of a model in turns; the first one is what the others are compared with.

    Args:
        request: ``model``, ``devices``, ``options`` as for :func:`~ov_autoplace.fleet.on_machine.count`;
            ``placements``, device by op for each; ``seconds`` and ``rounds`` at most; ``seed``; ``anew``:
            compile all of them again.
        data: The model.

    Returns:
        ``entries``: for each placement its ``samples``, ``subgraphs``, and why it was ``dropped``;
        ``compile_seconds`` of the longest compilation.

    Raises:
        ProfilingError: The first one cannot be run.
    """
    session = _session(request, data)
    if request["anew"]:
        _opened.executables.clear()
        session.forget()
    keys = [json.dumps(sorted(placement.items())) for placement in request["placements"]]
    # What no race of this request needs is dropped: a device holds only so much.
    kept = {key: executable for key, executable in _opened.executables.items() if key in keys}
    _opened.executables = kept
    entries = [{"samples": [], "subgraphs": 0, "dropped": ""} for _ in keys]
    longest = 0.0
    for entry, key, placement in zip(entries, keys, request["placements"], strict=True):
        try:
            if key not in kept:
                kept[key] = session.compile_placement(placement)
                longest = max(longest, kept[key].compile_seconds)
            entry["subgraphs"] = kept[key].subgraphs
        except ProfilingError as cause:
            entry["dropped"] = f"cannot be run: {cause}"
    if entries[0]["dropped"]:
        raise ProfilingError(f"the placement to compare with {entries[0]['dropped']}")
    running = [i for i, entry in enumerate(entries) if not entry["dropped"]]
    result = session.race(
        [kept[keys[i]] for i in running],
        request["seconds"],
        seed=request["seed"],
        min_rounds=CONVINCING_ROUNDS,
        max_rounds=request["rounds"],
        names=[f"placement {i}" for i in running],
    )
    for i, ran in zip(running, result.entries, strict=True):
        entries[i]["samples"] = ran.samples.tolist()
        if ran.dropped.startswith("failed"):
            entries[i]["dropped"] = ran.dropped
    return {"entries": entries, "compile_seconds": longest}


def _session(request: Mapping[str, Any], data: Sequence[Any]) -> ProfilingSession:
    """The open model of this process."""
    key = json.dumps([request["model"], request["devices"], request["options"]], sort_keys=True)
    if _opened.session is None or _opened.key != key:
        if _opened.session is not None:
            _opened.session.close()
        _opened.executables, _opened.session = {}, None
        machine, model = opened(request, data)
        _opened.session, _opened.key = machine.open(prepare(model, machine.options.shapes)), key
    return _opened.session
