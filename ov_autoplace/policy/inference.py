"""An exported network on OpenVINO: from the content of its files to scores."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino as ov
from numpy.typing import NDArray

from ov_autoplace.devices.names import core_with
from ov_autoplace.errors import CheckpointError
from ov_autoplace.policy.features import PolicyGraph
from ov_autoplace.policy.inputs import INPUT_NAMES, network_inputs

__all__ = ["CompiledNetwork", "compile_network", "compute_scores"]

_MOST_THREADS = 4


@dataclass(frozen=True, eq=False)
class CompiledNetwork:
    """An exported network, compiled.

    Attributes:
        model: Compiled.
        inputs: Name and type of each input, in order.
    """

    model: ov.CompiledModel
    inputs: Mapping[str, ov.Type]


def compile_network(graph: bytes, constants: bytes, name: str = "the policy") -> CompiledNetwork:
    """Compile an exported network for the CPU, on a Core that is kept.

    Args:
        graph: Content of the ``.xml``.
        constants: Content of the ``.bin``.
        name: For the error's sentence.

    Raises:
        CheckpointError: OpenVINO cannot read or compile it.
    """
    threads = min(_MOST_THREADS, len(os.sched_getaffinity(0)))
    # A request has hundreds of small steps, which more threads would only wait for.
    config = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads, "NUM_STREAMS": 1}
    if threads == 1:
        # OpenVINO crashes on one thread while it tokenises some small graphs.
        config["SNIPPETS_MODE"] = "DISABLE"
    core = core_with()
    try:
        model = core.read_model(graph, constants)
        inputs = {port.get_any_name(): port.get_element_type() for port in model.inputs}
        if [port.get_any_name() for port in model.outputs] != ["scores"]:
            raise CheckpointError(f"the network of {name} is not a policy: it has other outputs")
        if inputs.keys() - set(INPUT_NAMES):
            raise CheckpointError(f"the network of {name} is not a policy: it has other inputs")
        return CompiledNetwork(core.compile_model(model, "CPU", config), inputs)
    except RuntimeError as cause:
        raise CheckpointError(f"the network of {name} cannot be compiled: {_reason(cause)}") from cause


def compute_scores(
    network: CompiledNetwork, graph: PolicyGraph, name: str = "the policy"
) -> NDArray[np.float32]:
    """Scores of a graph's N units, ``float32[N, D]``; ``-inf`` where a device is forbidden.

    Raises:
        CheckpointError: OpenVINO cannot run the network on this graph.
    """
    arrays = network_inputs(graph, list(network.inputs))
    request = network.model.create_infer_request()
    try:
        for index, (port, element_type) in enumerate(network.inputs.items()):
            request.set_input_tensor(index, _tensor(arrays[port], element_type))
        request.infer()
    except RuntimeError as cause:
        raise CheckpointError(f"the network of {name} cannot be run: {_reason(cause)}") from cause
    scores = np.array(request.get_output_tensor().data, dtype=np.float32)
    if scores.shape != graph.allowed.shape:
        shapes = list(scores.shape), list(graph.allowed.shape)
        raise CheckpointError(f"the network of {name} answers with {shapes[0]} scores for {shapes[1]}")
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
