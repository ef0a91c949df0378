"""Cutting a model into the submodels of a plan for lanes.

Inputs, outputs, constants and state stay outside, in the model that is around the submodels:

* A constant, and what is computed from constants alone, is part of every submodel that reads it.
* Variables are read and written outside; submodels get their values as inputs and give them as outputs.
* An input between submodels has the type and the shape that the whole model knows. What makes it may know its
  shape less well, because it is cut off from what decides it.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter

import numpy as np
import openvino as ov
from openvino import opset13 as opset

from ov_autoplace._base.text import counted
from ov_autoplace.errors import PlacementError
from ov_autoplace.plan.lane import Form
from ov_autoplace.plan.plan import LanePlan
from ov_autoplace.plan.schedulable import ModelOps, Role, Tensor, carried_type

__all__ = ["CutModel", "Submodel", "cut"]

_NOWHERE = -1
# Ops that read channels where they are, and of which a Transpose in front costs nothing.
_OF_ANY_LAYOUT = frozenset({"Convolution", "GroupConvolution", "MaxPool", "AvgPool"})


@dataclass(frozen=True, eq=False)
class Submodel:
    """A part of a model.

    Attributes:
        model: What it runs. Constants are shared with other submodels.
        number: Its number in the plan.
        ops: Friendly names of the ops that it runs, in topological order.
        inputs: What its inputs read: output ``port`` of the submodel at a position, or of the data at
            position ``port`` where the first number is -1.
    """

    model: ov.Model
    number: int
    ops: tuple[str, ...]
    inputs: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class CutModel:
    """S submodels in topological order, and what they exchange with the surrounding model.

    Attributes:
        submodels: Those of the plan in which anything runs, S.
        data: What they read from the surrounding model.
        results: What they make for it.
        result_sources: Which output of which submodel each result is.
    """

    submodels: tuple[Submodel, ...]
    data: tuple[Tensor, ...]
    results: tuple[Tensor, ...]
    result_sources: tuple[tuple[int, int], ...]


def cut(model: ov.Model, ops: ModelOps, plan: LanePlan) -> CutModel:
    """Cut a model by a plan.

    Args:
        model: A normalized model that can run on lanes. It is taken apart, and of no use afterwards.
        ops: Its ops.
        plan: Names a submodel for every op that runs.

    Raises:
        PlacementError: An op has no submodel, submodels wait for each other, or what one of them reads has
            no known rank.
    """
    return _Cutter(model.get_friendly_name(), ops, plan).cut()


class _Cutter:
    """What is known while a model is cut."""

    def __init__(self, name: str, ops: ModelOps, plan: LanePlan) -> None:
        self._name, self._ops = name, ops
        self._where = _submodels(ops, plan)
        self._order = _in_order(ops, self._where, plan)
        self._data = tuple(ops.data())
        self._data_place = {tensor: i for i, tensor in enumerate(self._data)}
        self._results = tuple(ops.results())
        # Of each submodel: the tensors that others read, and its ops.
        self._read_elsewhere: dict[int, dict[Tensor, None]] = {number: {} for number in self._order}
        self._elsewhere: dict[Tensor, set[str]] = {}  # types of the ops that read it there
        self._members: dict[int, list[int]] = {number: [] for number in self._order}
        for reader, number in enumerate(self._where):
            if number == _NOWHERE:
                continue
            self._members[number].append(reader)
            for tensor in ops.sources[reader]:
                producer = self._where[tensor.op]
                if producer not in (_NOWHERE, number):
                    self._read_elsewhere[producer][tensor] = None
                    self._elsewhere.setdefault(tensor, set()).add(ops.nodes[reader].get_type_name())
        self._forms = plan.forms
        self._made: dict[Tensor, tuple[int, int]] = {}
        # As the whole model knows them: they are inferred anew as it is taken apart.
        crossing = (tensor for tensors in self._read_elsewhere.values() for tensor in tensors)
        self._shape = {tensor: ops.output(tensor).get_partial_shape() for tensor in crossing}
        self._result_source: dict[Tensor, tuple[int, int]] = {}

    def cut(self) -> CutModel:
        submodels = tuple(self._submodel(place, number) for place, number in enumerate(self._order))
        sources = tuple(self._result_source[tensor] for tensor in self._results)
        return CutModel(submodels, self._data, self._results, sources)

    def _submodel(self, place: int, number: int) -> Submodel:
        inputs = self._open_inputs(number)
        model = self._closed(place, number, [parameter for parameter, _ in inputs.values()])
        return Submodel(
            model=model,
            number=number,
            ops=tuple(self._ops.names[op] for op in self._members[number]),
            inputs=tuple(source for _, source in inputs.values()),
        )

    def _open_inputs(self, number: int) -> dict[Tensor, tuple[ov.Node, tuple[int, int]]]:
        """Parameters in place of what a submodel reads from elsewhere, and what each of them stands for."""
        parameters: dict[Tensor, tuple[ov.Node, tuple[int, int]]] = {}
        values: dict[Tensor, ov.Output] = {}
        for op in self._members[number]:
            node = self._ops.nodes[op]
            for port, tensor in enumerate(self._ops.sources[op]):
                is_data = self._ops.roles[tensor.op] is Role.DATA
                if not is_data and self._where[tensor.op] in (_NOWHERE, number):
                    continue
                if tensor not in values:
                    parameter, values[tensor] = self._input(tensor, is_data, f"input{len(values)}")
                    source = (-1, self._data_place[tensor]) if is_data else self._made[tensor]
                    parameters[tensor] = parameter, source
                node.input(port).replace_source_output(values[tensor])
        return parameters

    def _input(self, tensor: Tensor, is_data: bool, name: str) -> tuple[ov.Node, ov.Output]:
        """A Parameter for a tensor, and what has the tensor's own type."""
        output = self._ops.output(tensor)
        element = output.get_element_type()
        if not is_data:
            form = self._form(tensor)
            shape = _permuted(self._shape[tensor]) if form.channels_last else self._shape[tensor]
            parameter = opset.parameter(shape, ov.Type.bf16 if form.bf16 else element, name=name)
            return parameter, _as_it_was(parameter.output(0), element, form, name)
        parameter = opset.parameter(output.get_partial_shape(), carried_type(element), name=name)
        return parameter, _converted(parameter.output(0), element, f"{name}/converted")

    def _closed(self, place: int, number: int, parameters: list[ov.Node]) -> ov.Model:
        """The model of a submodel whose inputs are open, with an output for what is read elsewhere."""
        made = list(self._read_elsewhere[number])
        wanted = [tensor for tensor in self._results if self._where[tensor.op] == number]
        results = [
            opset.result(
                _in_form(self._ops.output(tensor), self._form(tensor), f"output{i}"), name=f"output{i}"
            )
            for i, tensor in enumerate(made)
        ]
        ports = {tensor: port for port, tensor in enumerate(made)}
        for tensor in wanted:
            output = self._ops.output(tensor)
            carried = carried_type(output.get_element_type())
            is_passed_so = tensor in ports and self._form(tensor) == Form()
            port = ports[tensor] if is_passed_so and carried == output.get_element_type() else None
            if port is None:
                port = len(results)
                name = f"output{port}"
                results.append(opset.result(_converted(output, carried, f"{name}/converted"), name=name))
            self._result_source[tensor] = place, port
        model = ov.Model(results, parameters, f"{self._name}/{place}")
        model.validate_nodes_and_infer_types()
        for tensor, port in ports.items():
            self._made[tensor] = place, port
            if results[port].get_output_partial_shape(0).rank.is_dynamic:
                raise PlacementError(
                    f"{self._ops.described(tensor)} is passed between submodels, but its rank is not known "
                    "there; keep what decides its shape in one submodel"
                )
        return model

    def _form(self, tensor: Tensor) -> Form:
        """How a tensor is handed over, as far as its type and rank allow what the plan says."""
        form = self._forms.get(self._ops.names[tensor.op], Form()) if tensor.port == 0 else Form()
        rank = self._shape[tensor].rank
        return Form(
            # Other ops would have what is behind a Transpose rearranged.
            form.channels_last
            and rank.is_static
            and rank.get_length() > 2
            and self._elsewhere[tensor] <= _OF_ANY_LAYOUT,
            form.bf16 and self._ops.output(tensor).get_element_type() == ov.Type.f32,
        )


def _in_form(output: ov.Output, form: Form, name: str) -> ov.Output:
    """A tensor as it is handed over."""
    if form.bf16:
        output = _converted(output, ov.Type.bf16, f"{name}/bf16")
    if not form.channels_last:
        return output
    order = np.array(_channels_last(output.get_partial_shape().rank.get_length()))
    return opset.transpose(output, opset.constant(order), name=f"{name}/channels_last").output(0)


def _channels_last(rank: int) -> list[int]:
    """The order of dimensions in which the second one comes last."""
    return [0, *range(2, rank), 1]


def _permuted(shape: ov.PartialShape) -> ov.PartialShape:
    return ov.PartialShape([shape.get_dimension(i) for i in _channels_last(shape.rank.get_length())])


def _as_it_was(output: ov.Output, element: ov.Type, form: Form, name: str) -> ov.Output:
    """What :func:`_in_form` made, as it was before."""
    if form.channels_last:
        rank = output.get_partial_shape().rank.get_length()
        order = np.array([0, rank - 1, *range(1, rank - 1)])
        output = opset.transpose(output, opset.constant(order), name=f"{name}/channels_second").output(0)
    return _converted(output, element, f"{name}/f32")


def _converted(output: ov.Output, element: ov.Type, name: str) -> ov.Output:
    if output.get_element_type() == element:
        return output
    return opset.convert(output, element.to_string(), name=name).output(0)


def _submodels(ops: ModelOps, plan: LanePlan) -> list[int]:
    """The submodel of each op that runs."""
    names = set(ops.names)
    unknown = [name for name in plan.submodel_of if name not in names]
    if unknown:
        raise PlacementError(
            f"the model lacks {counted(len(unknown), 'op')} of the plan, the first is {unknown[0]!r}; "
            "was the plan made for another model?"
        )
    runs = [role is Role.RUNS for role in ops.roles]
    known = plan.submodel_of
    left_out = [name for name, run in zip(ops.names, runs, strict=True) if run and name not in known]
    if left_out:
        raise PlacementError(
            f"there is no submodel for {len(left_out)} of {counted(sum(runs), 'op')} that run, the first is "
            f"{left_out[0]!r}; a plan names one for each"
        )
    return [known[name] if run else _NOWHERE for name, run in zip(ops.names, runs, strict=True)]


def _in_order(ops: ModelOps, where: list[int], plan: LanePlan) -> list[int]:
    """The submodels in which anything runs, in topological order, by rank where that leaves a choice.

    Raises:
        PlacementError: Some wait for each other.
    """
    needs: dict[int, set[int]] = {number: set() for number in where if number != _NOWHERE}
    for reader, number in enumerate(where):
        if number != _NOWHERE:
            needs[number].update(where[tensor.op] for tensor in ops.sources[reader])
            needs[number] -= {number, _NOWHERE}
    sorter = TopologicalSorter(needs)
    try:
        sorter.prepare()
    except CycleError as cause:
        *stuck, _ = cause.args[1]
        first = [ops.names[where.index(number)] for number in sorted(stuck)[:2]]
        raise PlacementError(
            f"{len(stuck)} submodels of the plan wait for each other, "
            f"those of {' and '.join(map(repr, first))} among them; "
            "a submodel must hold all that lies between its ops"
        ) from cause
    ready: list[tuple[int, int]] = []
    order: list[int] = []
    while sorter:
        for number in sorter.get_ready():
            heapq.heappush(ready, (plan.rank[number], number))
        order.append(heapq.heappop(ready)[1])
        sorter.done(order[-1])
    return order
