"""Ops of a large model that devices support alike, and a small model with a few of each kind.

A plugin's answer to ``query_model`` takes a time that grows with the square of the model: 1 s for 3,000 ops,
6.6 s for 10,000 and 100 s for 30,000 on OpenVINO 2026.4.1's CPU. It rests on what an op is and reads,
hardly on where it stands.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.collector import collection_paused

__all__ = ["OpKinds", "op_kinds"]

# Devices may look at what is around an op: the more of a kind are there, the more surroundings.
_OF_EACH = 3
_VARIABLE = "variable_id"
_STATE = ("ReadValue", "Assign")
_MADE_ANEW = ("RandomUniform", "Multinomial")


@dataclass(frozen=True, eq=False)
class OpKinds:
    """K kinds of ops.

    Attributes:
        model: Holds a few ops of each kind, under their names.
        kind_of: Kind of every op of the large model but Constants, Parameters and Results, by friendly name.
        samples: Names of the ops of each kind that ``model`` holds, length K.
    """

    model: ov.Model
    kind_of: dict[str, int]
    samples: Sequence[Sequence[str]]

    def supported(self, answer: Mapping[str, str]) -> set[str]:
        """The ops of the large model that a device supports.

        Args:
            answer: Of ``query_model`` for :attr:`model`; a kind is supported when all its samples are.
        """
        able = [all(name in answer for name in names) for names in self.samples]
        return {name for name, kind in self.kind_of.items() if able[kind]}


def op_kinds(model: ov.Model) -> OpKinds:
    """Tell the kinds of ops of a large model apart.

    Two ops are of a kind when they have the same type and attributes (floating point numbers aside), the
    element types and ranks of what they read and write are equal, and the same of their inputs are computed
    from Constants only.

    Args:
        model: Its friendly names are unique. Its edges are changed and put back, because a clone of a
            million ops would take gigabytes.
    """
    with collection_paused():
        reader = _Reader()
        kinds: dict[Hashable, int] = {}
        kind_of: dict[str, int] = {}
        chosen: list[list[ov.Node]] = []
        for op in model.get_ordered_ops():
            description = reader.describe(op)
            if description is None:
                continue
            kind = kinds.setdefault(description, len(kinds))
            kind_of[op.get_friendly_name()] = kind
            if kind == len(chosen):
                chosen.append([])
            if len(chosen[kind]) < _OF_EACH:
                chosen[kind].append(op)
        samples = [[op.get_friendly_name() for op in ops] for ops in chosen]
        return OpKinds(_model_of(model, [op for ops in chosen for op in ops], reader), kind_of, samples)


class _Reader:
    """Describes ops in topological order.

    Attributes:
        fixed: Ids of the ops whose values do not depend on the model's inputs.
    """

    def __init__(self) -> None:
        self.fixed: set[int] = set()
        self._forms: dict[tuple[str, str], Hashable] = {}
        self._made: dict[int, tuple[Hashable, ...]] = {}  # by id, the form of each output

    def describe(self, op: ov.Node) -> Hashable | None:
        """What decides whether a device supports ``op``; ``None`` where it follows its neighbours."""
        op_type, identity = op.get_type_name(), op.get_instance_id()
        made = self._made[identity] = tuple(map(self._form, op.outputs()))
        if op_type == "Constant":
            self.fixed.add(identity)
        if op_type in ("Constant", "Parameter", "Result"):
            return None
        sources = [(value.get_node().get_instance_id(), value.get_index()) for value in op.input_values()]
        are_fixed = tuple(source in self.fixed for source, _ in sources)
        if sources and all(are_fixed) and op_type not in (*_STATE, *_MADE_ANEW):
            self.fixed.add(identity)
        return (
            op_type,
            op.get_type_info().version_id,
            tuple(
                (key, _settled(value)) for key, value in op.get_attributes().items() if key != "variable_id"
            ),
            are_fixed,
            tuple(self._made[source][index] for source, index in sources),
            made,
            _bodies(op, op_type),
        )

    def _form(self, value: ov.Output) -> Hashable:
        partial, element = value.get_partial_shape(), value.get_element_type().to_string()
        key = (partial.to_string(), element)
        if key not in self._forms:
            rank = None if partial.rank.is_dynamic else tuple(size.is_static for size in partial)
            self._forms[key] = (rank, element)
        return self._forms[key]


def _settled(value: Any) -> Hashable:
    """An attribute without what differs from op to op and decides nothing: numbers that are no integers."""
    if isinstance(value, float):
        return None
    if isinstance(value, (list, tuple)):
        return tuple(map(_settled, value))
    return value if isinstance(value, Hashable) else repr(value)


def _bodies(op: Any, op_type: str) -> Hashable:
    """The types of the ops in the bodies of an op."""
    if op_type == "If":
        bodies = [op.get_function(i) for i in range(2)]
    elif op_type in ("Loop", "TensorIterator"):
        bodies = [op.get_function()]
    else:
        return None
    return tuple(tuple(inner.get_type_name() for inner in body.get_ordered_ops()) for body in bodies)


def _model_of(model: ov.Model, wanted: Sequence[ov.Node], reader: _Reader) -> ov.Model:
    """A model of copies of some ops, with Parameters for what they read of others."""
    kept = _with_what_they_need(model, wanted, reader)
    parameters: dict[tuple[int, int], ov.Node] = {}
    cut: list[tuple[ov.Input, ov.Output]] = []
    try:
        for op in kept.values():
            for reads in op.inputs():
                source = reads.get_source_output()
                key = (source.get_node().get_instance_id(), source.get_index())
                if key[0] in kept or key[0] in reader.fixed:
                    continue
                if key not in parameters:
                    parameters[key] = opset.parameter(source.get_partial_shape(), source.get_element_type())
                cut.append((reads, source))
                reads.replace_source_output(parameters[key].output(0))
        # What another of these ops reads is in the model through that.
        read = {
            (value.get_node().get_instance_id(), value.get_index())
            for op in kept.values()
            for value in op.input_values()
        }
        sinks = [op for op in kept.values() if op.get_type_name() == "Assign"]
        results = [
            opset.result(out)
            for identity, op in kept.items()
            for out in op.outputs()
            if op.get_type_name() != "Assign" and (identity, out.get_index()) not in read
        ]
        return ov.Model(results, sinks, list(parameters.values()), "kinds of ops").clone()
    finally:
        for reads, source in cut:
            reads.replace_source_output(source)


def _with_what_they_need(model: ov.Model, wanted: Sequence[ov.Node], reader: _Reader) -> dict[int, ov.Node]:
    """By id, some ops with those that they are not whole without.

    Whoever reads a variable needs who writes it, and lengths, axes and the like may have to be known, so that
    vectors of integers come with what they are computed from, back to the tensor whose shape they are.
    """
    partners: dict[str, list[ov.Node]] = {}
    if model.get_sinks():
        for op in model.get_ops():
            if op.get_type_name() in _STATE:
                partners.setdefault(_variable(op), []).append(op)
    kept: dict[int, ov.Node] = {}
    pending = list(reversed(wanted))
    while pending:
        op = pending.pop()
        if op.get_instance_id() in kept:
            continue
        kept[op.get_instance_id()] = op
        if op.get_type_name() in _STATE:
            pending += partners[_variable(op)]
        if op.get_type_name() == "ShapeOf":
            continue
        for value in op.input_values():
            node = value.get_node()
            if node.get_instance_id() not in reader.fixed and node.get_type_name() != "Parameter":
                shape = value.get_partial_shape()
                is_vector = shape.rank.is_static and shape.rank.get_length() < 2
                if is_vector and value.get_element_type() in (ov.Type.i32, ov.Type.i64):
                    pending.append(node)
    return kept


def _variable(op: ov.Node) -> str:
    return str(op.get_attributes()[_VARIABLE])
