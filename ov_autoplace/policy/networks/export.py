"""From a torch network to OpenVINO IR that serves any graph: traced once, compared on other sizes."""

from __future__ import annotations

import warnings
from functools import cached_property
from typing import TypeGuard, cast

import numpy as np
import openvino as ov
import torch
from openvino.utils import replace_node
from torch import Tensor, nn

from ov_autoplace._base.arrays import csr_from_lists
from ov_autoplace._base.files import temporary_folder
from ov_autoplace.cost.table import CostTable
from ov_autoplace.errors import CheckpointError
from ov_autoplace.policy.features import policy_graph
from ov_autoplace.policy.inference import compile_network, compute_scores
from ov_autoplace.policy.inputs import (
    INPUT_NAMES,
    NODE_FIELDS,
    network_inputs,
    stage_inputs,
    stage_outputs,
)
from ov_autoplace.policy.networks.batch import GraphBatch, NodeBatch, collate
from ov_autoplace.policy.networks.interface import PlacementNetwork
from ov_autoplace.policy.networks.messages import Topology
from ov_autoplace.policy.networks.multilevel import MultilevelNetwork
from ov_autoplace.policy.probes import LOOK_FEATURES
from ov_autoplace.problem.problem import Problem

__all__ = ["TOLERANCE", "can_be_exported", "export_network"]

TOLERANCE = 1e-4
"""Scores of the exported network differ from the torch network's by at most this, relative to 1 + |score|."""

_TRACED = (40, 3)  # groups and devices
_CHECKED = ((1, 2), (7, 3), (150, 2), (60, 4))


def can_be_exported(network: PlacementNetwork) -> TypeGuard[MultilevelNetwork]:
    """Whether a network's steps do not depend on the graph, so that one trace serves all graphs.

    Those of ``autoplace-base`` do not. The papers' groupers form as many groups as the graph asks for, and
    segment-recurrent attention takes one step per segment; such networks run with torch only.
    """
    return isinstance(network, MultilevelNetwork)


def export_network(network: MultilevelNetwork) -> tuple[bytes, bytes]:
    """A network as IR: content of the ``.xml`` and of the ``.bin``.

    The inputs are those arrays of :func:`~ov_autoplace.policy.inputs.network_inputs` that the network reads,
    under their own names. Numbers of nodes, edges and devices are dynamic. The output is ``scores``,
    ``float32[N, D]``. A network that looks at its answers is several functions in one file, which share
    weights: each stage between two looks has inputs (:func:`~ov_autoplace.policy.inputs.stage_inputs`) and
    outputs of its own.

    Raises:
        CheckpointError: The exported network answers otherwise than the given one on a graph of another size.
    """
    # A copy, since the given one may be in training or on another device.
    copy = MultilevelNetwork(network.config)
    copy.load_state_dict(network.state_dict())
    copy.eval()
    model = _converted(copy)
    with temporary_folder() as folder:
        path = folder / "policy.xml"
        ov.save_model(model, path, compress_to_fp16=False)
        graph, constants = path.read_bytes(), path.with_suffix(".bin").read_bytes()
    _compare(copy, graph, constants)
    return graph, constants


def _converted(network: MultilevelNetwork) -> ov.Model:
    """All stages as functions of one model, each traced by itself: a conversion may join what looks alike."""
    stages = [_converted_stage(network, stage) for stage in range(len(network.multilevel.stages))]
    inputs: dict[str, ov.Node] = {}
    for model in stages:
        for parameter in model.get_parameters():
            first = inputs.setdefault(parameter.get_friendly_name(), parameter)
            if first is not parameter:
                replace_node(parameter, first)
    results = [result for model in stages for result in model.get_results()]
    return ov.Model(results, list(inputs.values()), network.config.name)


def _converted_stage(network: MultilevelNetwork, stage: int) -> ov.Model:
    nodes, devices = _TRACED
    graph = policy_graph(Problem.of(_table(nodes, devices)))
    arrays = {name: torch.from_numpy(array) for name, array in network_inputs(graph).items()}
    if stage:
        shapes = (network.config.hidden,), (), (len(LOOK_FEATURES),)
        rows = len(graph.nodes.cost), len(graph), len(graph)
        for name, count, shape in zip(stage_inputs(stage), rows, shapes, strict=True):
            arrays[name] = torch.zeros(count, graph.num_devices, *shape)
    example = tuple(arrays.values())
    with torch.no_grad(), warnings.catch_warnings():
        # Every size that tracing might fix draws a warning; _compare tells whether one was fixed.
        warnings.simplefilter("ignore")
        traced = torch.jit.trace(  # type: ignore[no-untyped-call]
            _OnArrays(network, stage, tuple(arrays)), example, check_trace=False
        )
    model = ov.convert_model(traced, example_input=example)
    for parameter, name in zip(model.get_parameters(), arrays, strict=True):
        parameter.set_friendly_name(name)
        parameter.output(0).set_names({name})
        if not parameter.output(0).get_target_inputs():
            model.remove_parameter(parameter)
    outputs = stage_outputs(stage, len(network.multilevel.stages))
    for output, name in zip(model.outputs, outputs, strict=True):
        output.set_names({name})
    return model


class _OnArrays(nn.Module):
    """One stage of a network as a function of named arrays.

    Args:
        network: The network.
        stage: Number of the stage.
        names: Of the arrays: the graph's, and the stage's own inputs after them.
    """

    def __init__(self, network: MultilevelNetwork, stage: int, names: tuple[str, ...]) -> None:
        super().__init__()
        self.multilevel = network.multilevel
        self.stage = stage
        self.names = names

    def forward(self, *arrays: Tensor) -> tuple[Tensor, ...] | Tensor:
        """States and scores after the stage, but the scores alone after the last."""
        by_name = dict(zip(self.names, arrays, strict=True))
        batch = cast(GraphBatch, _TracedBatch({name: by_name[name] for name in INPUT_NAMES}))
        before = [by_name[name] for name in stage_inputs(self.stage)] if self.stage else []
        state, scores = self.multilevel.stage(batch, self.stage, *before)[-1]
        return scores if self.stage == len(self.multilevel.stages) - 1 else (state, scores)


class _TracedBatch:
    """A :class:`GraphBatch` of one graph whose sizes are traced, not fixed."""

    num_graphs = 1

    def __init__(self, arrays: dict[str, Tensor]) -> None:
        self._arrays = arrays

    def __getattr__(self, name: str) -> Tensor:
        try:
            return self._arrays[name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def num_nodes(self) -> int:
        return self.node_cost.shape[0]

    @property
    def num_devices(self) -> int:
        return self.allowed.shape[1]

    @cached_property
    def topology(self) -> Topology:
        return Topology(
            self.edge_source,
            self.edge_target,
            self.num_nodes,
            offsets=self.edge_offsets,
            reversed_order=self.reversed_order,
            reversed_offsets=self.reversed_offsets,
            implementation="bag",
        )

    @cached_property
    def windows(self) -> Topology:
        ordered = self.window_of[self.window_children]
        windows = self.window_offsets.shape[0] - 1
        return Topology(ordered, ordered, windows, offsets=self.window_offsets, implementation="bag")

    @cached_property
    def nodes(self) -> NodeBatch:
        arrays = {field: self._arrays[f"nodes.{field}"] for field in NODE_FIELDS}
        count = arrays["cost"].shape[0]
        # With offsets given, nobody asks where an arc goes to.
        arcs, members = (
            Topology(source, source, count, offsets=offsets, implementation="bag")
            for source, offsets in (
                (arrays.pop("arc_source"), self.arc_offsets),
                (arrays.pop("member_source"), self.member_offsets),
            )
        )
        return NodeBatch(arcs=arcs, members=members, **arrays)


def _compare(network: MultilevelNetwork, graph: bytes, constants: bytes) -> None:
    """Refuse an exported network that does not answer like the torch network on graphs of several sizes."""
    stages = compile_network(graph, constants, network.config.name)
    for nodes, devices in _CHECKED:
        example = policy_graph(Problem.of(_table(nodes, devices)))
        with torch.no_grad():
            expected = network(collate([example])).logits.cpu().numpy()[example.allowed]
        scores = compute_scores(stages, example, network.config.name)[example.allowed]
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
