"""Ops of a large model that devices support alike, and a small model with a few of each kind.

A plugin's answer to ``query_model`` takes a time that grows with the square of the model: 1 s for 3,000 ops,
6.6 s for 10,000 and 100 s for 30,000 on OpenVINO 2026.4.1's CPU. It rests on what an op is and reads,
hardly on where it stands.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.arrays import BoolArray, IntArray, frozen_array
from ov_autoplace._base.collector import collection_paused
from ov_autoplace.graph.records import ModelReader, OpRecord, ReadShape, bodies_of

__all__ = ["OpKinds", "excerpts", "op_kinds"]

# Devices may look at what is around an op: the more of a kind are there, the more surroundings.
_OF_EACH = 3
_VARIABLE = "variable_id"
_STATE = ("ReadValue", "Assign")
_MADE_ANEW = ("RandomUniform", "Multinomial")
_FOLLOWS = ("Constant", "Parameter", "Result")
_INTEGERS = ("i32", "i64")


@dataclass(frozen=True, eq=False)
class OpKinds:
    """K kinds of the N ops of a large model.

    Attributes:
        model: Holds a few ops of each kind, under their names.
        names: Friendly name of every op of the large model, length N.
        kind_of: Kind of every op, ``int32[N]``; -1 for Constants, Parameters and Results.
        samples: Names of the ops of each kind that ``model`` holds, length K.
    """

    model: ov.Model
    names: Sequence[str]
    kind_of: IntArray
    samples: Sequence[Sequence[str]]

    def supported(self, answer: Mapping[str, str]) -> BoolArray:
        """Which ops of the large model a device supports, ``bool[N]``; what has no kind counts as supported.

        Args:
            answer: Of ``query_model`` for :attr:`model`; a kind is supported when all its samples are.
        """
        able = [all(name in answer for name in names) for names in self.samples]
        return np.array([*able, True])[self.kind_of]


@collection_paused()
def op_kinds(model: ov.Model, records: Sequence[OpRecord] | None = None) -> OpKinds:
    """Tell the kinds of ops of a large model apart.

    Two ops are of a kind when they have the same type and attributes (floating point numbers aside), the
    element types and ranks of what they read and write are equal, and the same of their inputs are computed
    from Constants only.

    Args:
        model: Its friendly names are unique. Its edges are changed and put back, because a clone of a
            million ops would take gigabytes.
        records: What :class:`~ov_autoplace.graph.records.ModelReader` reads of its ops, where that is known.
    """
    records = ModelReader().read(model.get_ordered_ops()) if records is None else records
    reader = _Reader(records)
    kind_of, chosen = _told_apart(reader, _OF_EACH)
    return OpKinds(
        model=_model_of(records, [i for ops in chosen for i in ops], reader.fixed),
        names=[record.name for record in records],
        kind_of=frozen_array(kind_of, np.int32),
        samples=[[records[i].name for i in ops] for ops in chosen],
    )


def excerpts(model: ov.Model) -> Iterator[tuple[OpRecord, ov.Model]]:
    """The first op of each kind, in models of little else: first by itself, then with who reads it.

    Args:
        model: As for :func:`op_kinds`.
    """
    records = ModelReader().read(model.get_ordered_ops())
    reader = _Reader(records)
    _, chosen = _told_apart(reader, 1)
    readers: dict[int, list[int]] = {i: [] for i in range(len(records))}
    for i, record in enumerate(records):
        for source, _ in record.sources:
            readers[source].append(i)
    for (i,) in chosen:
        yield records[i], _model_of(records, [i], reader.fixed)
    for (i,) in chosen:
        read_by = [j for j in readers[i] if records[j].op_type not in _FOLLOWS]
        if read_by:
            yield records[i], _model_of(records, [i, *read_by], reader.fixed)


def _told_apart(reader: _Reader, of_each: int) -> tuple[list[int], list[list[int]]]:
    """The kind of each op, -1 where it has none, and the first few ops of each kind."""
    kinds: dict[Hashable, int] = {}
    kind_of: list[int] = []
    chosen: list[list[int]] = []
    for i in range(len(reader.records)):
        description = reader.describe(i)
        if description is None:
            kind_of.append(-1)
            continue
        kind = kinds.setdefault(description, len(kinds))
        kind_of.append(kind)
        if kind == len(chosen):
            chosen.append([])
        if len(chosen[kind]) < of_each:
            chosen[kind].append(i)
    return kind_of, chosen


class _Reader:
    """Describes the ops of a model in topological order.

    Attributes:
        records: The ops.
        fixed: Whether the values of each op that was looked at do not depend on the model's inputs.
    """

    def __init__(self, records: Sequence[OpRecord]) -> None:
        self.fixed: list[bool] = []
        self.records = records
        # A shape that several outputs share is one object: the number of its form is found by that.
        self._number_of: dict[tuple[int, str], int] = {}
        self._forms: dict[Hashable, int] = {}
        self._made: list[tuple[int, ...]] = []  # the form of each output

    def describe(self, i: int) -> Hashable | None:
        """What decides whether a device supports an op; ``None`` where it follows its neighbours."""
        record = self.records[i]
        op_type = record.op_type
        made = tuple([self._form(*output) for output in zip(record.shapes, record.types, strict=True)])
        self._made.append(made)
        self.fixed.append(op_type == "Constant")
        if op_type in _FOLLOWS:
            return None
        are_fixed = tuple([self.fixed[source] for source, _ in record.sources])
        if are_fixed and all(are_fixed) and op_type not in (*_STATE, *_MADE_ANEW):
            self.fixed[i] = True
        attributes = record.node.get_attributes()
        return (
            op_type,
            record.node.get_type_info().version_id,
            tuple([(key, _settled(value)) for key, value in attributes.items() if key != _VARIABLE]),
            are_fixed,
            tuple([self._made[source][port] for source, port in record.sources]),
            made,
            tuple(
                tuple(o.get_type_name() for o in body.get_ordered_ops()) for body in bodies_of(record.node)
            ),
        )

    def _form(self, shape: ReadShape, element: str) -> int:
        """A number for what a device may look at in a tensor: its type, and which dimensions are known."""
        key = (id(shape), element)
        number = self._number_of.get(key)
        if number is None:
            known = tuple(size >= 0 for size in shape.known) if shape.ranked else None
            number = self._number_of[key] = self._forms.setdefault((known, element), len(self._forms))
        return number


def _settled(value: Any) -> Hashable:
    """An attribute without what differs from op to op and decides nothing: numbers that are no integers."""
    if isinstance(value, (str, int)):  # most of them
        return value
    if isinstance(value, float):
        return None
    if isinstance(value, (list, tuple)):
        return tuple(map(_settled, value))
    return value if isinstance(value, Hashable) else repr(value)


def _model_of(records: Sequence[OpRecord], wanted: Sequence[int], fixed: Sequence[bool]) -> ov.Model:
    """A model of copies of some ops, with Parameters for what they read of others."""
    kept = _with_what_they_need(records, wanted, fixed)
    parameters: dict[tuple[int, int], ov.Node] = {}
    cut: list[tuple[ov.Input, ov.Output]] = []
    try:
        for i in kept:
            for reads, key in zip(records[i].node.inputs(), records[i].sources, strict=True):
                if key[0] in kept or fixed[key[0]]:
                    continue
                source = reads.get_source_output()
                if key not in parameters:
                    parameters[key] = opset.parameter(source.get_partial_shape(), source.get_element_type())
                cut.append((reads, source))
                reads.replace_source_output(parameters[key].output(0))
        # What another of these ops reads is in the model through that.
        read = {source for i in kept for source in records[i].sources}
        results = [
            opset.result(out)
            for i in kept
            for port, out in enumerate(records[i].node.outputs())
            if records[i].op_type != "Assign" and (i, port) not in read
        ]
        sinks = [records[i].node for i in kept if records[i].op_type == "Assign"]
        return ov.Model(results, sinks, list(parameters.values()), "kinds of ops").clone()
    finally:
        for reads, source in cut:
            reads.replace_source_output(source)


def _with_what_they_need(
    records: Sequence[OpRecord], wanted: Sequence[int], fixed: Sequence[bool]
) -> dict[int, None]:
    """Some ops, as keys in the order in which they are found, with those that they are not whole without.

    Whoever reads a variable needs who writes it, and lengths, axes and the like may have to be known, so that
    vectors of integers come with what they are computed from, back to the tensor whose shape they are.
    """
    partners: dict[str, list[int]] = {}
    for i, record in enumerate(records):
        if record.op_type in _STATE:
            partners.setdefault(_variable(record.node), []).append(i)
    kept: dict[int, None] = {}
    pending = list(reversed(wanted))
    while pending:
        i = pending.pop()
        if i in kept:
            continue
        kept[i] = None
        if records[i].op_type in _STATE:
            pending += partners[_variable(records[i].node)]
        if records[i].op_type == "ShapeOf":
            continue
        for source, port in records[i].sources:
            maker = records[source]
            shape = maker.shapes[port]
            is_vector = shape.ranked and len(shape.known) < 2
            is_computed = not fixed[source] and maker.op_type != "Parameter"
            if is_computed and is_vector and maker.types[port] in _INTEGERS:
                pending.append(source)
    return kept


def _variable(op: ov.Node) -> str:
    return str(op.get_attributes()[_VARIABLE])
