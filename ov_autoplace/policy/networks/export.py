"""From a torch network to OpenVINO IR that serves any graph: traced once, compared on other sizes."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import TypeGuard, cast

import numpy as np
import openvino as ov
import torch
from torch import Tensor, nn

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace._base.files import temporary_folder
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CheckpointError
from ov_autoplace.measure.model_file import save_ir
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.inference import compile_network, compute_scores
from ov_autoplace.policy.inputs import INPUT_NAMES, network_inputs
from ov_autoplace.policy.networks.batch import GraphBatch, collate
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.messages import Topology
from ov_autoplace.policy.networks.pairwise import PairwiseNetwork
from ov_autoplace.problem.problem import Problem

__all__ = ["TOLERANCE", "can_be_exported", "export_network"]

TOLERANCE = 1e-4
"""Scores of the exported network differ from the torch network's by at most this, relative to 1 + |score|."""

_TRACED = (40, 3)  # groups and devices
_CHECKED = ((1, 2), (7, 3), (150, 2), (60, 4))


def can_be_exported(network: PlacementNetwork) -> TypeGuard[PairwiseNetwork]:
    """Whether a network's steps do not depend on the graph, so that one trace serves all graphs.

    Those of ``autoplace-base`` do not. The papers' groupers form as many groups as the graph asks for, and
    segment-recurrent attention takes one step per segment; such networks run with torch only.
    """
    return isinstance(network, PairwiseNetwork)


def export_network(network: PairwiseNetwork) -> tuple[bytes, bytes]:
    """A network as IR: content of the ``.xml`` and of the ``.bin``.

    The inputs are those arrays of :func:`~ov_autoplace.policy.inputs.network_inputs` that the network reads,
    under their own names. Numbers of nodes, edges and devices are dynamic. The output is ``scores``,
    ``float32[N, D]``.

    Raises:
        OutputError: The folder of temporary files cannot be written, or is full.
        CheckpointError: The exported network answers otherwise than the given one on a graph of another size.
    """
    # A copy, since the given one may be in training or on another device.
    copy = PairwiseNetwork(network.config)
    copy.load_state_dict(network.state_dict())
    copy.eval()
    model = _converted(copy)
    with temporary_folder() as folder:
        path = save_ir(model, folder)
        graph, constants = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    _compare(copy, graph, constants)
    return graph, constants


def _converted(network: PairwiseNetwork) -> ov.Model:
    nodes, devices = _TRACED
    arrays = {
        name: torch.from_numpy(array)
        for name, array in network_inputs(policy_graph(Problem.of(_table(nodes, devices)))).items()
    }
    example = tuple(arrays.values())
    with torch.no_grad(), warnings.catch_warnings():
        # Every size that tracing might fix draws a warning; _compare tells whether one was fixed.
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(_OnArrays(network), example, check_trace=False)
    model = ov.convert_model(traced, example_input=example)
    for parameter, name in zip(model.get_parameters(), arrays, strict=True):
        parameter.set_friendly_name(name)
        parameter.output(0).set_names({name})
        if not parameter.output(0).get_target_inputs():
            model.remove_parameter(parameter)
    model.output(0).set_names({"scores"})
    model.set_friendly_name(network.config.name)
    return model


class _OnArrays(nn.Module):
    """A network's scores as a function of the arrays of one graph, in the order of ``INPUT_NAMES``."""

    def __init__(self, network: PairwiseNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, *arrays: Tensor) -> Tensor:
        """Scores, ``[N, D]``."""
        batch = _TracedBatch(dict(zip(INPUT_NAMES, arrays, strict=True)))
        return self.network.scores(cast(GraphBatch, batch))


class _TracedBatch:
    """A :class:`GraphBatch` of one graph whose sizes are traced, not fixed."""

    def __init__(self, arrays: dict[str, Tensor]) -> None:
        self._arrays = arrays

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def num_devices(self) -> int:
        return self.pair_features.shape[1]

    @cached_property
    def arcs(self) -> Topology:
        source, units = self.arc_source, self.pair_features.shape[0]
        # With offsets given, nobody asks where an arc goes to.
        return Topology(source, source, units, offsets=self.arc_offsets, implementation="bag")


def _compare(network: PairwiseNetwork, graph: bytes, constants: bytes) -> None:
    """Refuse an exported network that does not answer like the torch network on graphs of several sizes."""
    compiled = compile_network(graph, constants, network.config.name)
    for nodes, devices in _CHECKED:
        example = policy_graph(Problem.of(_table(nodes, devices)))
        with torch.no_grad():
            expected = network(collate([example])).logits.cpu().numpy()[example.allowed]
        scores = compute_scores(compiled, example, network.config.name)[example.allowed]
        worst = np.max(np.abs(scores - expected) / (1 + np.abs(expected)))
        if not worst <= TOLERANCE:
            raise CheckpointError(
                f"the exported network {network.config.name} differs from the torch network by {worst:.1e} "
                f"on a graph of {len(example)} units; its steps must not depend on the graph that was traced"
            )


def _table(nodes: int, devices: int) -> CostTable:
    """A random cost table in which some groups send nothing and some cannot run on the last device."""
    random = np.random.default_rng([nodes, devices])
    seconds = random.lognormal(size=(nodes, devices))
    seconds[random.random(nodes) < 0.1, -1] = np.inf
    producers = [g for g in range(nodes - 1) if random.random() < 0.9]
    readers = [np.unique(random.integers(g + 1, nodes, 3)).tolist() for g in producers]
    offsets, consumers = csr_from_lists(readers)
    tensors = len(producers)
    return CostTable(
        devices=tuple(f"D{d}" for d in range(devices)),
        names=tuple(f"group{g}" for g in range(nodes)),
        op_seconds=seconds,
        tensor_producer=np.array(producers, dtype=np.int32),
        tensor_bytes=random.lognormal(size=tensors),
        tensor_offsets=offsets,
        tensor_consumers=consumers,
        tensor_is_constant=np.zeros(tensors, dtype=np.bool_),
        tensor_uncuttable=np.zeros(tensors, dtype=np.bool_),
        transfer_latency=random.lognormal(-2, 1, (devices, devices)),
        transfer_seconds_per_byte=random.lognormal(-2, 1, (devices, devices)),
        launch_seconds=random.lognormal(-2, 1, devices),
        memory_bytes=np.ones(nodes),
        memory_capacity=np.full(devices, np.inf),
    )
