"""Random networks, cut into submodels at random, with random lanes: as one model, and as a schedule."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import openvino as ov
from openvino import opset13 as ops

from schedule_ops import CPU_LANES, DATA, Part, schedule

__all__ = ["RandomSchedule", "random_schedule"]

_ROWS, _WIDTH = 3, 8
Values = list[ov.Output]


class RandomSchedule(NamedTuple):
    """The same computation twice, and its inputs."""

    whole: ov.Model
    scheduled: ov.Model
    inputs: list[np.ndarray]


def _dense(random: np.random.Generator) -> Callable[[Values], Values]:
    weights = (random.normal(size=(_WIDTH, _WIDTH)) / 3).astype(np.float32)
    return lambda values: [ops.tanh(ops.matmul(values[0], ops.constant(weights), False, False)).output(0)]


def _add_mean(random: np.random.Generator) -> Callable[[Values], Values]:
    """Of two tensors that may differ in their number of rows."""
    factor = np.float32(random.uniform(0.5, 1.5))

    def total(values: Values) -> Values:
        mean = ops.reduce_mean(values[1], ops.constant(np.array([0])), True)
        return [ops.add(ops.multiply(values[0], factor), mean).output(0)]

    return total


def _two_outputs(random: np.random.Generator) -> Callable[[Values], Values]:
    del random
    return lambda values: [ops.relu(values[0]).output(0), ops.sigmoid(values[0]).output(0)]


def _other_types(random: np.random.Generator) -> Callable[[Values], Values]:
    """Between submodels any type may travel."""
    del random

    def signs(values: Values) -> Values:
        positive = ops.greater(values[0], np.float32(0))
        return [positive.output(0), ops.convert(positive, np.int64).output(0)]

    return signs


def _more_rows(random: np.random.Generator) -> Callable[[Values], Values]:
    """One row more for each positive number in the first column: a size that data decide."""
    del random

    def longer(values: Values) -> Values:
        column = ops.gather(values[0], ops.constant(np.array(0)), ops.constant(np.array(1)))
        found = ops.squeeze(ops.non_zero(ops.relu(column), "i64"), ops.constant(np.array([0])))
        picked = ops.gather(values[0], found, ops.constant(np.array(0)))
        return [ops.concat([values[0], picked], 0).output(0)]

    return longer


# Each with what it reads and the types of its outputs.
_KINDS = (
    (_dense, 1, "f"),
    (_dense, 1, "f"),
    (_add_mean, 2, "f"),
    (_add_mean, 2, "f"),
    (_two_outputs, 1, "ff"),
    (_other_types, 1, "bi"),
    (_more_rows, 1, "f"),
)


class _Step(NamedTuple):
    make: Callable[[Values], Values]
    reads: list[tuple[int, int]]  # of other steps, or DATA
    types: str
    part: int

    def outputs(self, values: Values) -> Values:
        plain = [
            value if value.get_element_type() == ov.Type.f32 else ops.convert(value, np.float32).output(0)
            for value in values
        ]
        return self.make(plain)


def random_schedule(seed: int, steps: int = 14, name: str = "") -> RandomSchedule:
    """The schedule has up to 7 submodels on up to 3 lanes that are copies, and one that is not."""
    random = np.random.default_rng(seed)
    known = [(DATA, 0), (DATA, 1)]
    network: list[_Step] = []
    parts = int(random.integers(1, 8))
    for number in range(steps):
        kind, count, types = _KINDS[random.integers(len(_KINDS))]
        reads = [known[int(i)] for i in random.integers(len(known), size=count)]
        # No part reads a later one, so that no two of them wait for each other.
        first = max((network[step].part for step, _ in reads if step != DATA), default=0)
        network.append(_Step(kind(random), reads, types, int(random.integers(first, parts, size=2).min())))
        known += [(number, port) for port in range(len(types))]
    places = {part: place for place, part in enumerate(sorted({step.part for step in network}))}
    network = [step._replace(part=places[step.part]) for step in network]
    numbers = [value for value in known[2:] if network[value[0]].types[value[1]] == "f"] or known[:1]
    results = sorted({numbers[-1], *(numbers[int(i)] for i in random.integers(len(numbers), size=2))})
    shape = [_ROWS, _WIDTH]
    whole = _whole(network, results, shape)
    made, where = _parts(network, results, random)
    lanes = [CPU_LANES[0]] * int(random.integers(1, 4)) + [("CPU", {**CPU_LANES[0][1], "PERF_COUNT": "YES"})]
    made = [part._replace(lane=int(random.integers(len(lanes)))) for part in made]
    inputs = [(shape, np.float32)] * 2
    scheduled = schedule(inputs, made, [where[result] for result in results], lanes, name)
    return RandomSchedule(whole, scheduled, [random.normal(size=shape).astype(np.float32) for _ in inputs])


def _whole(network: list[_Step], results: list[tuple[int, int]], shape: list[int]) -> ov.Model:
    parameters = [ops.parameter(shape, np.float32) for _ in range(2)]
    values = {(DATA, i): parameter.output(0) for i, parameter in enumerate(parameters)}
    for number, step in enumerate(network):
        made = step.outputs([values[read] for read in step.reads])
        values |= {(number, port): output for port, output in enumerate(made)}
    return ov.Model([ops.result(values[result]) for result in results], parameters, "whole")


def _parts(
    network: list[_Step], results: list[tuple[int, int]], random: np.random.Generator
) -> tuple[list[Part], dict[tuple[int, int], tuple[int, int]]]:
    """Submodels, and for each value that leaves one, which output of which submodel it is."""
    where: dict[tuple[int, int], tuple[int, int]] = {(DATA, 0): (DATA, 0), (DATA, 1): (DATA, 1)}
    kinds = {value: (ov.PartialShape([_ROWS, _WIDTH]), ov.Type.f32) for value in where}
    made = []
    for part in range(max(step.part for step in network) + 1):
        inside = [number for number, step in enumerate(network) if step.part == part]
        read = {value for number in inside for value in network[number].reads}
        arrives = sorted(value for value in read if value[0] not in inside)
        parameters = [ops.parameter(*kinds[value]) for value in arrives]
        values = {value: parameter.output(0) for value, parameter in zip(arrives, parameters, strict=True)}
        for number in inside:
            outputs = network[number].outputs([values[value] for value in network[number].reads])
            values |= {(number, port): output for port, output in enumerate(outputs)}
        later = {value for step in network if step.part > part for value in step.reads}
        leaves = sorted(value for value in values if value[0] in inside and value in later | set(results))
        if not leaves:  # Nobody reads it: one output keeps it a model.
            leaves = [(inside[-1], 0)]
        model = ov.Model([ops.result(values[value]) for value in leaves], parameters, f"part {part}, of ;,=%")
        where |= {value: (part, port) for port, value in enumerate(leaves)}
        kinds |= {
            value: (values[value].get_partial_shape(), values[value].get_element_type()) for value in leaves
        }
        made.append(Part(model, [where[value] for value in arrives], rank=int(random.integers(5))))
    return made, where
