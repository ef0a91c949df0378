"""Cutting a model into the submodels of a plan for lanes.

Inputs, outputs, constants and state stay outside, in the model that is around the submodels:

* A constant, and what is computed from constants alone, is part of every submodel that reads it.
* Variables are read and written outside; submodels get their values as inputs and give them as outputs.
* An input between submodels has the type and the shape of what makes it there, which may be known less well
  than in the whole model. Dimensions that are not known may be 0, because a tensor begins with 0 for them.
"""

from __future__ import annotations

import heapq
from dataclasses import dataclass

import openvino as ov
from openvino import opset13 as opset

from ov_autoplace.errors import PlacementError
from ov_autoplace.placement.lane_plan import LanePlan
from ov_autoplace.placement.schedulable import ModelOps, Role, Tensor, carried_type

__all__ = ["CutModel", "Submodel", "cut"]

_NOWHERE = -1


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
        self._members: dict[int, list[int]] = {number: [] for number in self._order}
        for reader, number in enumerate(self._where):
            if number == _NOWHERE:
                continue
            self._members[number].append(reader)
            for tensor in ops.sources[reader]:
                producer = self._where[tensor.op]
                if producer not in (_NOWHERE, number):
                    self._read_elsewhere[producer][tensor] = None
        self._made: dict[Tensor, tuple[int, int]] = {}
        self._shape: dict[Tensor, ov.PartialShape] = {}
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
            parameter = opset.parameter(self._shape[tensor], element, name=name)
            return parameter, parameter.output(0)
        parameter = opset.parameter(output.get_partial_shape(), carried_type(element), name=name)
        return parameter, _converted(parameter.output(0), element, f"{name}/converted")

    def _closed(self, place: int, number: int, parameters: list[ov.Node]) -> ov.Model:
        """The model of a submodel whose inputs are open, with an output for what is read elsewhere."""
        made = list(self._read_elsewhere[number])
        wanted = [tensor for tensor in self._results if self._where[tensor.op] == number]
        results = [opset.result(self._ops.output(tensor), name=f"output{i}") for i, tensor in enumerate(made)]
        ports = {tensor: port for port, tensor in enumerate(made)}
        for tensor in wanted:
            output = self._ops.output(tensor)
            carried = carried_type(output.get_element_type())
            port = ports.get(tensor) if carried == output.get_element_type() else None
            if port is None:
                port = len(results)
                name = f"output{port}"
                results.append(opset.result(_converted(output, carried, f"{name}/converted"), name=name))
            self._result_source[tensor] = place, port
        model = ov.Model(results, parameters, f"{self._name}/{place}")
        model.validate_nodes_and_infer_types()
        for tensor, port in ports.items():
            self._made[tensor] = place, port
            self._shape[tensor] = self._passed_shape(tensor, results[port].get_output_partial_shape(0))
        return model

    def _passed_shape(self, tensor: Tensor, shape: ov.PartialShape) -> ov.PartialShape:
        if shape.rank.is_dynamic:
            raise PlacementError(
                f"{self._ops.described(tensor)} is passed between submodels, but its rank is not known "
                "there; keep what decides its shape in one submodel"
            )
        return ov.PartialShape([_may_be_empty(dimension) for dimension in shape])


def _may_be_empty(dimension: ov.Dimension) -> ov.Dimension:
    if dimension.is_static:
        return dimension
    # Without an upper bound its length is reported as -1, which is also how one says so.
    return ov.Dimension(0, dimension.get_max_length())


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
            f"{len(unknown)} ops of the plan are not in the model, the first is {unknown[0]!r}; "
            "was the plan made for another model?"
        )
    runs = [role is Role.RUNS for role in ops.roles]
    known = plan.submodel_of
    left_out = [name for name, run in zip(ops.names, runs, strict=True) if run and name not in known]
    if left_out:
        raise PlacementError(
            f"{len(left_out)} of the {sum(runs)} ops that run have no submodel, the first is "
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
    readers: dict[int, list[int]] = {number: [] for number in needs}
    for number, producers in needs.items():
        for producer in producers:
            readers[producer].append(number)
    missing = {number: len(producers) for number, producers in needs.items()}
    ready = [(plan.rank[number], number) for number, count in missing.items() if count == 0]
    heapq.heapify(ready)
    order: list[int] = []
    while ready:
        _, number = heapq.heappop(ready)
        order.append(number)
        for reader in readers[number]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, (plan.rank[reader], reader))
    if len(order) < len(needs):
        stuck = sorted(number for number, count in missing.items() if count > 0)
        first = [ops.names[where.index(number)] for number in stuck[:2]]
        raise PlacementError(
            f"{len(stuck)} submodels of the plan wait for each other, "
            f"those of {' and '.join(map(repr, first))} among them; "
            "a submodel must hold all that lies between its ops"
        )
    return order
