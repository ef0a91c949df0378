"""Does HETERO run what the simulator calls finite, and refuse what it calls infinite? Random placements tell.

For each model, random placements of its co-location groups are annotated, compiled and run twice, and every
one falls into one class of :data:`CLASSES`. Plugins may crash, so a child process does the work; a placement
during which it died or gave no answer is one that fails.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from concurrent import futures
from concurrent.futures.process import BrokenProcessPool
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from model_checks import (
    DEVICES,
    TOLERANCE,
    equal_devices,
    group_placements,
    inputs_in_range,
    last_line,
    relative_error,
)
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.passes import NAMED, run_passes
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.plan.annotation import annotate, set_affinities
from ov_autoplace.plan.fitting import count_subgraphs
from ov_autoplace.plan.legality import BrokenBond, broken_bonds

NO_GROUPS, NOT_RUN = "no groups", "not run by the CPU"
CLASSES = (
    *("runs", "refused", "refused but runs", "refused late", "other count", "fails", "wrong"),
    *(NO_GROUPS, NOT_RUN),
)
"""``runs``: predicted and right. ``refused``: predicted to fail, and fails. The last two are models that say
nothing: all in one group, or refused by the CPU alone. The others are :data:`FAULTS`."""

FAULTS = CLASSES[2:7]
"""``refused late``: the simulator calls it finite and ``annotate`` refuses it. ``other count``:
``count_subgraphs`` is not HETERO's own number of submodels. ``wrong``: another output than the CPU's."""

_SECONDS = 900.0  # that a placement may take: half a minute of work, beside whatever else the machine does

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


class Verdict(NamedTuple):
    """What became of one placement: one of :data:`CLASSES`, and what HETERO or the simulator says."""

    outcome: str
    reason: str


def check(
    model: Path, shapes: Mapping[str, Sequence[int]], placements: int, seed: int, seconds: float = _SECONDS
) -> list[Verdict]:
    """One verdict per placement, or a single one about the model.

    Args:
        model: An IR.
        shapes: Of the inputs that the model leaves open.
        placements: How many.
        seed: Of the placements and the input data.
        seconds: That one may take.
    """
    case = (str(model), tuple((name, tuple(shape)) for name, shape in shapes.items()), seed)
    found: list[Verdict] = []
    while len(found) < placements and not (found and found[-1].outcome in (NO_GROUPS, NOT_RUN)):
        with futures.ProcessPoolExecutor(1, get_context("spawn")) as pool:
            try:
                while len(found) < placements:
                    found.append(pool.submit(_verdict, *case, len(found)).result(seconds))
                    if found[-1].outcome in (NO_GROUPS, NOT_RUN):
                        break
            except (BrokenProcessPool, futures.TimeoutError) as cause:
                for process in list(pool._processes.values()):
                    process.kill()
                was_refused = bool(_placed(*case).placement(len(found))[1])
                found.append(Verdict("refused" if was_refused else "fails", type(cause).__name__))
    return found


class _Placed:
    """A model whose groups are placed at random."""

    def __init__(self, path: str, shapes: Shapes, seed: int) -> None:
        self.model = ov.Core().read_model(path)
        run_passes(self.model, NAMED)
        prepared = prepare(self.model, dict(shapes))
        self.folded, self.graph = prepared.model, prepared.graph
        self._choices = [coarsen(self.graph), coarsen(self.graph, light_ops=False)]
        self._seed = seed

    @property
    def has_groups(self) -> bool:
        return max(map(len, self._choices)) > 1

    def placement(self, number: int) -> tuple[dict[str, str], tuple[BrokenBond, ...]]:
        """Device of each op, and why the simulator says that HETERO cannot run it."""
        chosen = self._choices[number % 2]
        stream = group_placements(len(chosen), self._seed)
        on = next(itertools.islice(stream, number // 2, None))[chosen.group_of]
        device_of = {name: DEVICES[d] for name, d in zip(self.graph.names, on.tolist(), strict=True)}
        return device_of, tuple(broken_bonds(self.graph, on))


@lru_cache(maxsize=1)
def _placed(path: str, shapes: Shapes, seed: int) -> _Placed:
    return _Placed(path, shapes, seed)


@lru_cache(maxsize=1)
def _reference(path: str, shapes: Shapes, seed: int) -> tuple[ov.Core, list[Any], list[Any]]:
    """A Core, inputs, and what the CPU alone makes of them."""
    core, model = equal_devices(), _placed(path, shapes, seed).model
    inputs = list(inputs_in_range(model, dict(shapes), seed).values())
    return core, inputs, _two_runs(core.compile_model(model, "CPU"), inputs)


def _verdict(path: str, shapes: Shapes, seed: int, number: int) -> Verdict:
    """The child's work."""
    try:
        reference = _reference(path, shapes, seed)
    except RuntimeError as cause:
        return Verdict(NOT_RUN, last_line(cause))
    placed = _placed(path, shapes, seed)
    if not placed.has_groups:
        return Verdict(NO_GROUPS, f"{len(placed.graph)} ops, one group")
    device_of, bonds = placed.placement(number)
    clone = placed.folded.clone()
    if bonds:
        try:
            set_affinities(clone, device_of)
        except PlacementError:
            return Verdict("refused", bonds[0].reason)
        runs = _run(clone, reference)[0] in ("runs", "wrong")
        return Verdict("refused but runs" if runs else "refused", bonds[0].reason)
    try:
        count = count_subgraphs(placed.folded, device_of)
        annotate(clone, device_of)
    except PlacementError as cause:
        return Verdict("refused late", str(cause))
    return _run(clone, reference, count)


def _run(
    model: ov.Model, reference: tuple[ov.Core, list[Any], list[Any]], count: int | None = None
) -> Verdict:
    """``runs``, ``fails``, ``wrong`` or ``other count``, and why."""
    core, inputs, expected = reference
    try:
        compiled = core.compile_model(model, "HETERO:" + ",".join(DEVICES))
        found = _two_runs(compiled, inputs)
    except RuntimeError as cause:
        return Verdict("fails", last_line(cause))
    error = relative_error(*([np.nan_to_num(x) for x in y] for y in (found, expected)))
    if error > TOLERANCE:
        return Verdict("wrong", f"error {error:.1e}")
    submodels = compiled.get_property("HETERO_NUMBER_OF_SUBMODELS")
    is_mixed = len(set(compiled.get_property("EXECUTION_DEVICES"))) > 1
    if count is not None and is_mixed and submodels != count:
        return Verdict("other count", f"{submodels} submodels, predicted {count}")
    return Verdict("runs", "")


def _two_runs(compiled: ov.CompiledModel, inputs: list[NDArray[Any]]) -> list[NDArray[Any]]:
    """Two runs of one request, so that state counts."""
    request = compiled.create_infer_request()
    return [request.infer(inputs)[port].copy() for _ in range(2) for port in compiled.outputs]
