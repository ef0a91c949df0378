"""Whether models cut for lanes answer as on one device: random plans, several shapes, states over steps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import openvino as ov

from model_checks import TOLERANCE, inputs_in_range, relative_error
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.generic_target import generic_target
from ov_autoplace.cost.lanes import with_lanes
from ov_autoplace.errors import AutoplaceError, PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.passes import FOLDED, formed
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.plan.cutting import cut
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.planning import lane_plan
from ov_autoplace.plan.schedulable import Role, ops_of
from ov_autoplace.plan.scheduled import scheduled_model
from ov_autoplace.plugin.scheduled import compile_scheduled

FAULTS = frozenset({"different", "fails"})
"""Outcomes of :func:`check` that must not be."""

_F32 = {"INFERENCE_PRECISION_HINT": "f32"}
Shapes = Mapping[str, Sequence[int]]


def narrow_lanes(count: int) -> tuple[Lane, ...]:
    """Lanes of one thread that keep exceptions, copies of each other."""
    return (Lane.of("CPU", {"INFERENCE_NUM_THREADS": 1, "NUM_STREAMS": 0}),) * count


def plan_of_ops(model: ov.Model, lanes: int, submodels: int, seed: int) -> LanePlan:
    """A random plan that knows nothing of groups: a random topological order, cut into pieces.

    Args:
        model: The model; its ops are named as in ``FOLDED``.
        lanes: How many lanes of one thread.
        submodels: How many pieces, at most.
        seed: Of the order, the cuts, the lanes and the ranks.
    """
    random = np.random.default_rng(seed)
    ops = ops_of(formed(model, FOLDED))
    order = [op for op in _random_order(ops.sources, random) if ops.roles[op] is Role.RUNS]
    cuts = np.sort(random.integers(0, len(order) + 1, size=submodels - 1))
    piece = np.searchsorted(cuts, np.arange(len(order)), side="right")
    return LanePlan(
        lanes=narrow_lanes(lanes),
        submodel_of={ops.names[op]: int(p) for op, p in zip(order, piece, strict=True)},
        lane_of=tuple(random.integers(0, lanes, size=submodels).tolist()),
        rank=tuple(random.permutation(submodels).tolist()),
    )


def plan_of_table(core: ov.Core, model: ov.Model, lanes: int, seed: int, shapes: Shapes) -> LanePlan:
    """The plan behind a random placement of the model's groups, as decisions make it."""
    random = np.random.default_rng(seed)
    coarse = coarsen(prepare(model, shapes).graph)
    table = with_lanes(analytic_table(coarse, generic_target(core, ["CPU"]), ["CPU"]), "CPU", lanes)
    changes = random.random(len(table)) < random.choice([0.03, 0.1, 0.4])
    lane = random.integers(lanes, size=len(table) + 1)[np.cumsum(changes)]
    return lane_plan(table, lane, narrow_lanes(lanes))


def _random_order(sources: Sequence[Sequence[tuple[int, int]]], random: np.random.Generator) -> list[int]:
    """A random topological order."""
    readers: list[list[int]] = [[] for _ in sources]
    for reader, read in enumerate(sources):
        for producer in {producer for producer, _ in read}:
            readers[producer].append(reader)
    missing = [len({producer for producer, _ in read}) for read in sources]
    ready = [op for op, count in enumerate(missing) if count == 0]
    order = []
    while ready:
        # Mostly the last one, so that paths stay together.
        op = ready.pop(-1 if random.random() < 0.8 else int(random.integers(len(ready))))
        order.append(op)
        for reader in readers[op]:
            missing[reader] -= 1
            if missing[reader] == 0:
                ready.append(reader)
    return order


def check(
    core: ov.Core,
    model: ov.Model,
    plan: LanePlan,
    inputs: Sequence[Mapping[str | int, np.ndarray]],
    tolerance: float = TOLERANCE,
) -> str:
    """One plan of a model against the model on one device.

    Args:
        core: Compiles.
        model: The model.
        plan: Of it.
        inputs: Data of each step; a request of each compiled model runs all of them, so that states go on.
        tolerance: Largest relative error of answers that are the same.

    Returns:
        ``same``, ``refused: why``, ``not compiled: why``, ``different: how``, ``fails: why``, and where
        nothing is said by it ``not run by the CPU``, ``not finite`` or ``random by itself``.
    """
    try:
        plain = core.compile_model(model, "CPU", _F32)
        expected = _answers(plain, inputs)
    except RuntimeError:
        return "not run by the CPU"
    if any(not np.isfinite(answer.astype(np.float64)).all() for step in expected for answer in step):
        return "not finite"
    try:
        scheduled = scheduled_model(model, plan)
    except AutoplaceError as cause:
        return f"refused: {cause}"
    try:
        compiled = compile_scheduled(core, scheduled, _F32)
    except RuntimeError as cause:
        return f"not compiled: {cause}"
    try:
        actual = _answers(compiled, inputs)
    except RuntimeError as cause:
        return f"fails: {cause}"
    error = max(relative_error(a, e) for a, e in zip(actual, expected, strict=True))
    if not error <= tolerance:
        return "random by itself" if _is_unsteady(core, model, plan, inputs[0]) else f"different: by {error}"
    if _signature(model, compiled) != _signature(model, plain):
        return "different: names or types"
    return "same"


def _answers(
    compiled: ov.CompiledModel, inputs: Sequence[Mapping[str | int, np.ndarray]]
) -> list[list[np.ndarray]]:
    request = compiled.create_infer_request()
    steps = []
    for data in inputs:
        answer = request.infer(data)
        steps.append([answer[output].copy() for output in compiled.outputs])
    return steps


def _signature(model: ov.Model, compiled: ov.CompiledModel) -> list[tuple[str, ...]]:
    """What a program can see of the inputs and outputs: names, types, and the sizes that the model tells."""
    shown = zip([*compiled.inputs, *compiled.outputs], [*model.inputs, *model.outputs], strict=True)
    return [
        (
            port.node.get_friendly_name(),
            str(sorted(port.names & given.names)),
            port.element_type.to_string(),
            *(
                str(d)
                for d, own in zip(port.partial_shape, given.partial_shape, strict=True)
                if own.is_static
            ),
        )
        for port, given in shown
    ]


def _is_unsteady(
    core: ov.Core, model: ov.Model, plan: LanePlan, data: Mapping[str | int, np.ndarray]
) -> bool:
    """Whether the CPU answers differently each time when it runs a submodel as any other model."""
    folded = formed(model, FOLDED)
    ops = ops_of(folded)
    parts = cut(folded, ops, plan)
    names = [ops.names[tensor.op] for tensor in parts.data]
    given = dict(zip((p.get_friendly_name() for p in model.get_parameters()), data.values(), strict=True))
    for _ in range(3):
        values: dict[tuple[int, int], np.ndarray] = {}
        for place, submodel in enumerate(parts.submodels):
            if any(source == -1 and names[port] not in given for source, port in submodel.inputs):
                return False  # a variable's value, which is not followed here
            inputs = [
                given[names[port]] if source == -1 else values[source, port]
                for source, port in submodel.inputs
            ]
            request = core.compile_model(submodel.model, "CPU", _F32).create_infer_request()
            first, *others = (
                [request.infer(inputs)[port].copy() for port in range(len(submodel.model.outputs))]
                for _ in range(4)
            )
            if any(not relative_error(other, first) <= TOLERANCE for other in others):
                return True
            values.update({(place, port): value for port, value in enumerate(others[-1])})
    return False


def check_model(
    core: ov.Core, model: ov.Model, shapes: Shapes, plans: int, seed: int
) -> Iterator[tuple[int, str]]:
    """The outcome of so many plans of a model on 2 to 4 lanes, with the seed of each."""
    dynamic = any(port.get_partial_shape().is_dynamic for port in model.inputs)
    steps = [inputs_in_range(model, shapes, seed + step) for step in range(3)]
    if dynamic:
        steps.insert(1, inputs_in_range(model, _other(model, shapes), seed))
    for number in range(seed, seed + plans):
        random = np.random.default_rng((number, 77))
        lanes = int(random.integers(2, 5))
        if random.random() < 0.5:
            plan = plan_of_ops(model, lanes, int(random.integers(2, 9)), number)
        else:
            try:
                plan = plan_of_table(core, model, lanes, number, shapes)
            except PlacementError as cause:
                yield number, f"no plan: {cause}"
                continue
        yield number, check(core, model, plan, steps)


def _other(model: ov.Model, shapes: Shapes) -> dict[str, list[int]]:
    """Other shapes of dynamic inputs: the smallest that are allowed, but not below 2."""
    return {
        port.get_node().get_friendly_name(): [
            d.get_length() if d.is_static else min(max(2, d.get_min_length()), d.get_max_length() % 2**31)
            for d in port.get_partial_shape()
        ]
        for port in model.inputs
    }
