"""An exported network on OpenVINO: from the content of its files to scores."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ov_autoplace._base.arrays import IntArray
from ov_autoplace.devices.names import core_with
from ov_autoplace.errors import CheckpointError
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.inputs import INPUT_NAMES, network_inputs, stage_inputs, stage_outputs
from ov_autoplace.policy.probes import look_features
from ov_autoplace.policy.readout import fastest, likeliest

__all__ = ["Stage", "compile_network", "compute_scores"]

_MOST_THREADS = 4


@dataclass(frozen=True, eq=False)
class Stage:
    """What an exported network computes between two looks.

    Attributes:
        model: Compiled.
        inputs: Name and type of each input, in order.
    """

    model: ov.CompiledModel
    inputs: Mapping[str, ov.Type]


def compile_network(graph: bytes, constants: bytes, name: str = "the policy") -> tuple[Stage, ...]:
    """Compile an exported network for the CPU, on a Core that is kept; stages between looks by themselves.

    Args:
        graph: Content of the ``.xml``.
        constants: Content of the ``.bin``.
        name: For the error's sentence.

    Raises:
        CheckpointError: OpenVINO cannot read or compile it.
    """
    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    # A request has about a thousand small steps, which more threads would only wait for.
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    if threads == 1:
        # OpenVINO 2026.4.1 crashes on one thread while it tokenises some small graphs.
        config["SNIPPETS_MODE"] = "DISABLE"
    core = core_with()
    try:
        models = _stages(core.read_model(graph, constants), name)
        compiled = [core.compile_model(model, "CPU", config) for model in models]
    except RuntimeError as cause:
        raise CheckpointError(f"the network of {name} cannot be compiled: {_reason(cause)}") from cause
    return tuple(
        Stage(model, {port.get_any_name(): port.get_element_type() for port in model.inputs})
        for model in compiled
    )


def _stages(model: ov.Model, name: str) -> list[ov.Model]:
    """The functions that an exported network holds, the one that starts first."""
    results = {result.output(0).get_any_name(): result for result in model.get_results()}
    count = 1 + len(results) // 2
    if list(results) != [output for stage in range(count) for output in stage_outputs(stage, count)]:
        raise CheckpointError(f"the network of {name} is not a policy: it has other outputs")
    models = []
    for stage in range(count):
        ends = [results[output] for output in stage_outputs(stage, count)]
        read = _read_by(ends)
        inputs = [parameter for parameter in model.get_parameters() if parameter.get_name() in read]
        known = {*INPUT_NAMES, *(stage_inputs(stage) if stage else ())}
        if {parameter.output(0).get_any_name() for parameter in inputs} - known:
            raise CheckpointError(f"the network of {name} is not a policy: it has other inputs")
        models.append(ov.Model(ends, inputs))
    return models


def _read_by(ends: Sequence[ov.Node]) -> set[str]:
    """Unique names of everything that some nodes are computed from."""
    seen: set[str] = set()
    waiting = list(ends)
    while waiting:
        node = waiting.pop()
        if node.get_name() not in seen:
            seen.add(node.get_name())
            waiting += [port.get_source_output().get_node() for port in node.inputs()]
    return seen


def compute_scores(
    stages: Sequence[Stage], graph: PolicyGraph, name: str = "the policy"
) -> NDArray[np.float32]:
    """Scores of a graph's N units, ``float32[N, D]``; ``-inf`` where a device is forbidden.

    A network of several stages answers after each. It looks at its answers, as far as memory limits let
    them be, so the fastest one counts.

    Raises:
        CheckpointError: OpenVINO cannot run the network on this graph.
    """
    answers: list[NDArray[np.float32]] = []
    before: list[ov.Tensor] = []
    placed: list[IntArray] = []
    tensors: dict[str, ov.Tensor] = {}
    for number, stage in enumerate(stages):
        # The graph's arrays are the same for all stages.
        wanted = [port for port in stage.inputs if port in INPUT_NAMES and port not in tensors]
        for port, array in network_inputs(graph, wanted).items():
            tensors[port] = _tensor(array, stage.inputs[port])
        if number:
            look = _tensor(look_features(graph, placed[-1]), ov.Type.f32)
            tensors |= dict(zip(stage_inputs(number), (*before, look), strict=True))
        request = stage.model.create_infer_request()
        try:
            for index, port in enumerate(stage.inputs):
                request.set_input_tensor(index, tensors[port])
            request.infer()
        except RuntimeError as cause:
            raise CheckpointError(f"the network of {name} cannot be run: {_reason(cause)}") from cause
        before = [request.get_tensor(output) for output in stage_outputs(number, len(stages))]
        answers.append(np.array(before[-1].data, dtype=np.float32))
        if answers[-1].shape != graph.allowed.shape:
            shapes = list(answers[-1].shape), list(graph.allowed.shape)
            raise CheckpointError(f"the network of {name} answers with {shapes[0]} scores for {shapes[1]}")
        if len(stages) > 1:
            placed.append(likeliest(answers[-1], graph))
    scores = answers[-1] if len(answers) == 1 else answers[fastest(graph, placed)]
    scores[~graph.allowed] = -np.inf
    return scores


def _tensor(array: NDArray[Any], element_type: ov.Type) -> ov.Tensor:
    """A tensor on an array's own memory, which it keeps alive, where that has the type that is read."""
    array = np.ascontiguousarray(array, dtype=element_type.to_dtype())
    # OpenVINO takes no memory that may not be written to, though nothing writes to inputs.
    return ov.Tensor(array if array.flags.writeable else array.copy(), shared_memory=True)


def _reason(cause: RuntimeError) -> str:
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    return lines[-1] if lines else "no reason given"
