"""The child process of ``legality.py``: predicts, annotates, compiles and runs placements, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tests")]

from model_checks import TOLERANCE, inputs_in_range, relative_error  # noqa: E402
from ov_autoplace.errors import PlacementError  # noqa: E402
from ov_autoplace.graph import coarsen  # noqa: E402
from ov_autoplace.graph.passes import NAMED, run_passes  # noqa: E402
from ov_autoplace.graph.prepare import prepare  # noqa: E402
from ov_autoplace.placement.annotation import annotate, set_affinities  # noqa: E402
from ov_autoplace.placement.fitting import count_subgraphs  # noqa: E402
from ov_autoplace.placement.legality import broken_bonds  # noqa: E402

__all__ = ["DEVICES", "NOT_RUN", "NO_GROUPS", "equal_devices", "group_placements", "last_line"]

NO_GROUPS, NOT_RUN = "no groups", "not run by the CPU"
"""Verdicts on models that say nothing."""

DEVICES = ("XCPU", "CPU")


def group_placements(groups: int, seed: int) -> Iterator[NDArray[np.int32]]:
    """Device of each group, ``int32[G]``: by turns runs of groups, single groups moved, and pure chance."""
    random = np.random.default_rng(seed)
    while True:
        cuts = np.sort(random.integers(0, groups, int(random.integers(1, 8))))
        yield (np.searchsorted(cuts, np.arange(groups), side="right") % 2).astype(np.int32)
        moved = random.random(groups) < 3 / groups
        yield moved.astype(np.int32)
        yield random.integers(0, 2, groups).astype(np.int32)


def _work(path: str, shapes: dict[str, list[int]], seed: int, first: int, last: int) -> None:
    """The child: one line with the prediction and one with the verdict per placement."""
    core = equal_devices()
    model = core.read_model(path)
    run_passes(model, NAMED)
    try:
        inputs = list(inputs_in_range(model, shapes, seed).values())
        expected = _two_runs(core.compile_model(model, "CPU"), inputs)
    except RuntimeError as cause:
        return _say(outcome=NOT_RUN, reason=last_line(cause))
    prepared = prepare(model, shapes)
    placed, graph = prepared.model, prepared.graph
    choices = [coarsen(graph), coarsen(graph, light_ops=False)]
    if max(map(len, choices)) < 2:
        return _say(outcome=NO_GROUPS, reason=f"{len(graph)} ops, one group")
    streams = [group_placements(len(coarse), seed) for coarse in choices]
    for number in range(last):
        kind = number % 2
        on = next(streams[kind])[choices[kind].group_of]
        if number < first:
            continue
        bonds = broken_bonds(graph, on)
        _say(predicted="refused" if bonds else "runs")
        device_of = {name: DEVICES[d] for name, d in zip(graph.names, on.tolist(), strict=True)}
        if bonds:
            runs = _run(core, _forced(placed, device_of), inputs, expected)[0] in ("runs", "wrong")
            _say(outcome="refused but runs" if runs else "refused", reason=bonds[0].reason)
            continue
        try:
            count = count_subgraphs(placed, device_of)
            annotated = placed.clone()
            annotate(annotated, device_of)
        except PlacementError as cause:
            _say(outcome="refused late", reason=str(cause))
            continue
        outcome, reason = _run(core, annotated, inputs, expected, count)
        _say(outcome=outcome, reason=reason)
    return None


def _forced(model: ov.Model, device_of: dict[str, str]) -> ov.Model | None:
    """A clone with affinities that ``annotate`` refuses; ``None`` where even that cannot be done."""
    clone = model.clone()
    try:
        set_affinities(clone, device_of)
    except PlacementError:
        return None
    return clone


def _run(
    core: ov.Core,
    model: ov.Model | None,
    inputs: list[Any],
    expected: list[Any],
    count: int | None = None,
) -> tuple[str, str]:
    """``runs``, ``fails``, ``wrong`` or ``other count``, and why."""
    if model is None:
        return "fails", ""
    try:
        compiled = core.compile_model(model, "HETERO:" + ",".join(DEVICES))
        found = _two_runs(compiled, inputs)
    except RuntimeError as cause:
        return "fails", last_line(cause)
    error = relative_error(*([np.nan_to_num(x) for x in y] for y in (found, expected)))
    if error > TOLERANCE:
        return "wrong", f"error {error:.1e}"
    if count is not None and len(set(compiled.get_property("EXECUTION_DEVICES"))) > 1:
        submodels = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
        if submodels != count:
            return "other count", f"{submodels} submodels, predicted {count}"
    return "runs", ""


def equal_devices() -> ov.Core:
    """Two equal devices that compute in f32, so that only a broken cut can change an output.

    On compressed weights the plugin would otherwise round activations to eight bits, not alike in every cut.
    """
    core = ov.Core()
    if DEVICES[0] not in core.available_devices:
        core.register_plugin(f"{ov.__path__[0]}/libs/libopenvino_intel_cpu_plugin.so", DEVICES[0])
    for device in DEVICES:
        core.set_property(device, {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": 0})
    return core


def _two_runs(compiled: ov.CompiledModel, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Two runs of one request, so that state counts."""
    request = compiled.create_infer_request()
    return [request.infer(inputs)[port].copy() for _ in range(2) for port in compiled.outputs]


def last_line(cause: BaseException) -> str:
    """The last line of an error that says something, or the error's type."""
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return (lines[-1] if lines else type(cause).__name__)[:300]


def _say(**fields: str) -> None:
    print(json.dumps(fields), flush=True)


if __name__ == "__main__":
    for request in sys.stdin:
        _work(*json.loads(request))
        print("done", flush=True)
