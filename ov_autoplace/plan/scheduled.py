"""A model with a plan for lanes as a model that any program can run: one op, ``autoplace::Schedule``, in it.

The op holds the submodels as Constants and the plan as attributes; docs/lanes.md lists them. Around it are
the model's own inputs, outputs and state, so that from outside nothing but the speed differs.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote, unquote

import openvino as ov
from openvino import opset13 as opset
from openvino.utils.node_factory import NodeFactory

from ov_autoplace._base.json_fields import parse_json
from ov_autoplace.devices.extension import SCHEDULE, extension_path, is_scheduled
from ov_autoplace.devices.widths import Cores
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.passes import FOLDED, MEND, formed
from ov_autoplace.plan.cutting import CutModel, cut
from ov_autoplace.plan.lane import Lane
from ov_autoplace.plan.plan import LanePlan, read_plan
from ov_autoplace.plan.schedulable import ModelOps, Role, carried_type, ops_of, refusal
from ov_autoplace.plan.stored_submodels import WeightsFile, store

__all__ = [
    "OP_NAME",
    "SCHEDULE_DEVICE",
    "SCHEDULE_PROPERTIES",
    "lanes_of",
    "plan_of",
    "scheduled_model",
    "with_properties",
]

SCHEDULE_DEVICE = "CPU"
"""The device that the surrounding model is compiled for."""

SCHEDULE_PROPERTIES: Mapping[str, str] = {
    # On one thread of one stream, OpenVINO loses exceptions of synchronous inferences. The op itself
    # takes one thread; where there is only one core, requests run in the calling thread.
    **(
        {"INFERENCE_NUM_THREADS": "2", "NUM_STREAMS": "1", "ENABLE_CPU_PINNING": "NO"}
        if Cores.of_this_process().all > 1
        else {"INFERENCE_NUM_THREADS": "1", "NUM_STREAMS": "0"}
    ),
    "INFERENCE_PRECISION_HINT": "f32",
}
"""How: nothing but the op and conversions run in it, and the op takes and gives f32."""

_FORMAT = 1
# Where the model says which of its former ops is in which submodel.
_PLAN_KEY = ["autoplace", "schedule"]
OP_NAME = "autoplace/schedule"
"""Of the op; where it is compiled, something unique follows."""


def scheduled_model(model: ov.Model, plan: LanePlan, weights: WeightsFile | None = None) -> ov.Model:
    """A model that runs as a plan says.

    Args:
        model: Any model; it is not modified.
        plan: Names a submodel for every op that runs of the model with unique names and folded shapes
            (:data:`~ov_autoplace.graph.passes.FOLDED`).
        weights: Where the weights are to be; the model that is returned has something that stands for them,
            the last input of its op.

    Returns:
        A model with the same inputs, outputs and variables. It needs the package's native library
        (:func:`ov_autoplace.extension_path`) wherever it is read and run; nothing in it refers to ``model``.
        Where nothing runs at all, a copy of the model.

    Raises:
        PlacementError: The model cannot run on lanes, the plan is not one of it, or submodels wait for each
            other.
        OutputError: There is no memory left for the submodels.
    """
    inner, outer = formed(model, (*FOLDED, MEND)), formed(model, FOLDED)
    ops, around = ops_of(inner), ops_of(outer)
    reason = refusal(ops)
    if reason is not None:
        raise PlacementError(f"the model cannot run on lanes: {reason}")
    gone = set(around.names).difference(ops.names)
    plan = replace(plan, submodel_of={op: s for op, s in plan.submodel_of.items() if op not in gone})
    parts = cut(inner, ops, plan)
    if parts.submodels:
        _put_in_place(around, parts, plan, weights)
    outer.validate_nodes_and_infer_types()
    for own, given in (
        (outer.get_parameters(), model.get_parameters()),
        (outer.get_results(), model.get_results()),
    ):
        for op, original in zip(own, given, strict=True):
            op.set_friendly_name(original.get_friendly_name())
    outer.set_rt_info(json.dumps(_as_cut(plan, parts).to_json(), ensure_ascii=False), _PLAN_KEY)
    return outer


def plan_of(model: ov.Model) -> LanePlan | None:
    """The plan of a scheduled model, also of one that was read from a file; ``None`` for any other model.

    Raises:
        PlacementError: What the model says of its plan is damaged.
    """
    if not is_scheduled(model) or not model.has_rt_info(_PLAN_KEY):
        return None
    noted = model.get_rt_info(_PLAN_KEY)
    text = str(getattr(noted, "value", noted))
    try:
        data = parse_json(text)
    except (ValueError, RecursionError) as cause:
        raise PlacementError(f"the model's plan for lanes is damaged: {cause}") from cause
    plan = read_plan(data, "the model's plan for lanes")
    if not isinstance(plan, LanePlan):
        raise PlacementError(f"the model's plan for lanes is damaged: it is of the kind {plan.kind}")
    return plan


def with_properties(op: ov.Node, settings: Mapping[str, Mapping[str, str]]) -> ov.Node:
    """Replace an op that holds submodels by one whose lanes have more properties; what they have stays.

    Args:
        op: The op, whose readers read the new one from then on.
        settings: Properties by device, as text.

    Returns:
        The new op.
    """
    lanes = [
        Lane.of(lane.device, {**settings.get(lane.device, {}), **dict(lane.properties)})
        for lane in lanes_of(op)
    ]
    twin: ov.Node = _factory().create(
        SCHEDULE[0], op.input_values(), {**op.get_attributes(), **_lane_attributes(lanes)}
    )
    twin.set_friendly_name(op.get_friendly_name())
    for old, new in zip(op.outputs(), twin.outputs(), strict=True):
        names = old.get_names()
        for reader in old.get_target_inputs():
            reader.replace_source_output(new)
        old.set_names(set())
        new.set_names(names)
    return twin


def lanes_of(op: ov.Node) -> list[Lane]:
    """The lanes of an op that holds submodels."""
    attributes = op.get_attributes()
    return [
        Lane.of(unquote(device), _properties(text))
        for device, text in zip(attributes["lanes"], attributes["lane_properties"], strict=True)
    ]


def _properties(text: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in text.split(";") if pair)
    return {unquote(key): unquote(value) for key, _, value in pairs}


def _put_in_place(around: ModelOps, parts: CutModel, plan: LanePlan, weights: WeightsFile | None) -> None:
    """Make the op the producer of all that the submodels make, in the surrounding model."""
    data = [_converted(around.output(tensor)) for tensor in parts.data]
    results = [around.output(tensor) for tensor in parts.results]
    op = _schedule_op(data, results, parts, plan, weights)
    made = {tensor: op.output(port) for port, tensor in enumerate(parts.results)}
    for tensor, old in zip(parts.results, results, strict=True):
        if made[tensor].get_element_type() != old.get_element_type():
            made[tensor] = opset.convert(made[tensor], old.get_element_type().to_string()).output(0)
    for node, sources, role in zip(around.nodes, around.sources, around.roles, strict=True):
        if role is Role.END:
            for port, tensor in enumerate(sources):
                if tensor in made:
                    node.input(port).replace_source_output(made[tensor])
    for tensor, old in zip(parts.results, results, strict=True):
        names = old.get_names()
        old.set_names(set())
        made[tensor].set_names(names)


def _converted(output: ov.Output) -> ov.Output:
    carried = carried_type(output.get_element_type())
    if carried is None or carried == output.get_element_type():
        return output
    return opset.convert(output, carried.to_string()).output(0)


def _schedule_op(
    data: Sequence[ov.Output],
    results: Sequence[ov.Output],
    parts: CutModel,
    plan: LanePlan,
    common: WeightsFile | None,
) -> ov.Node:
    texts, weights = store([submodel.model for submodel in parts.submodels], common)
    stored = [constant.output(0) for text in texts for constant in (text, weights)]
    attributes: dict[str, Any] = {
        "format": _FORMAT,
        "data_inputs": len(data),
        **_lane_attributes(plan.lanes),
        "submodels": [_quoted(_described(submodel.ops)) for submodel in parts.submodels],
        "lane_of": [plan.lane_of[submodel.number] for submodel in parts.submodels],
        "rank": [plan.rank[submodel.number] for submodel in parts.submodels],
        "sources": [
            number
            for submodel in parts.submodels
            for number in (len(submodel.inputs), *(n for source in submodel.inputs for n in source))
        ],
        "results": [number for source in parts.result_sources for number in source],
        "output_types": [_carried_name(output.get_element_type()) for output in results],
        "input_shapes": _flat_shapes(data),
        "output_shapes": _flat_shapes(results),
    }
    op: ov.Node = _factory().create(SCHEDULE[0], [*data, *stored], attributes)
    op.set_friendly_name(OP_NAME)
    return op


def _lane_attributes(lanes: Iterable[Lane]) -> dict[str, list[str]]:
    lanes = list(lanes)
    return {
        "lanes": [_quoted(lane.device) for lane in lanes],
        "lane_properties": [
            # An empty text does not survive in a file.
            ";".join(f"{_quoted(key)}={_quoted(value)}" for key, value in lane.properties) or ";"
            for lane in lanes
        ],
    }


def _quoted(text: str) -> str:
    """Text without what separates values in an attribute."""
    return quote(text, safe="")


def _described(ops: Sequence[str]) -> str:
    return ops[0] if len(ops) == 1 else f"{ops[0]} .. {ops[-1]}"


def _carried_name(element: ov.Type) -> str:
    carried = carried_type(element)
    return "" if carried is None else str(carried.to_string())


def _flat_shapes(outputs: Iterable[ov.Output]) -> list[int]:
    """Rank and dimensions of each shape, -1 for what is not known."""
    flat: list[int] = []
    for output in outputs:
        shape = output.get_partial_shape()
        if shape.rank.is_dynamic:
            flat.append(-1)
            continue
        dimensions = [shape.get_dimension(i) for i in range(shape.rank.get_length())]
        flat += [len(dimensions), *(d.get_length() if d.is_static else -1 for d in dimensions)]
    return flat


def _as_cut(plan: LanePlan, parts: CutModel) -> LanePlan:
    """The plan in the order of the submodels, of the ops that they run."""
    kept = parts.submodels
    return LanePlan(
        lanes=plan.lanes,
        submodel_of={op: position for position, submodel in enumerate(kept) for op in submodel.ops},
        lane_of=tuple(plan.lane_of[submodel.number] for submodel in kept),
        rank=tuple(plan.rank[submodel.number] for submodel in kept),
        forms=plan.forms,
    )


@cache
def _factory() -> NodeFactory:
    """What makes the op; it holds the library as long as the process lives."""
    factory = NodeFactory("opset13")
    factory.add_extension(extension_path())
    return factory
