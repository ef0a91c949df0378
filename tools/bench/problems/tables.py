"""Placement problems: networks on machines of the catalogue and on random ones, and published cost graphs.

Held-out networks are of families of their own (``zoo.HELD_OUT_FAMILIES``), which nothing was trained on and
nobody looked at while solvers were written.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import openvino as ov

import zoo
from harness import GRAPHS
from harness.methods import Instance
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.prepare import prepare

MACHINES = {
    2: (
        ("i9-12900k-flex-170", ("GPU", "CPU")),
        ("core-ultra-7-155h", ("GPU", "CPU")),
        ("core-ultra-7-155h", ("NPU", "CPU")),
    ),
    3: (("core-ultra-7-155h", ("GPU", "NPU", "CPU")),),
}
"""Machines of the catalogue by number of devices."""

SPLITS = {"held-out": zoo.HELD_OUT_FAMILIES, "training": zoo.TRAINING_FAMILIES}

_MACHINES_SEED = 3_000_017
_MACHINE = "core-ultra-7-155h"
# Standard deviations of logarithms: of a device's total by the others', of an op type on a device, of an op.
_BALANCE, _BY_TYPE, _BY_OP = 0.35, 0.6, 0.3
_CROSSING = (-1.5, 0.5)  # logarithm (base 10) of a typical transfer by what an op gains on its best device
_MOST_GROUPS_QUICK = 250
_MOST_PAIRS_QUICK = 700  # groups times devices; with memory limits, more take the solvers long


@dataclass(frozen=True, eq=False)
class Network:
    """A network of the zoo, coarsened as for a placement."""

    title: str
    family: str
    graph: CoarseGraph


def coarse_graph(model: ov.Model) -> CoarseGraph:
    """Groups of a model whose static shapes are folded."""
    return prepare(model).groups({})


def networks(families: Sequence[str], quick: bool) -> Iterator[Network]:
    """Each network with its published dimensions and small; if quick, one of the two: none is large then."""
    for family in families:
        full = _network(family, "full")
        is_moderate = len(full.graph) <= _MOST_GROUPS_QUICK
        if not quick or is_moderate:
            yield full
        if not quick or not is_moderate:
            yield _network(family, "small")


def _network(family: str, size: Literal["small", "full"]) -> Network:
    name = zoo.network_of(family)
    model = zoo.build(name, size, weights="untouched")
    return Network(f"{name} (small)" if size == "small" else name, family, coarse_graph(model))


def on_catalogue(chosen: Sequence[Network], devices: int, quick: bool) -> list[Instance]:
    """Every network on every machine of the catalogue, whose figures are taken as the truth.

    If quick, machines take turns instead.
    """
    instances = []
    machines = MACHINES[devices]
    for i, network in enumerate(chosen):
        for target, names in (machines[i % len(machines)],) if quick else machines:
            estimate = analytic_table(network.graph, load_target(target), names)
            title = f"{network.title} on {'+'.join(names)} of {target}"
            instances.append(Instance(title, network.family, replace(estimate, source="profiled")))
    return instances


def on_random_machines(
    chosen: Sequence[Network], machines: int, seed: int, devices: int = 2, objective: str = "hetero"
) -> list[Instance]:
    """Every network on machines whose strengths are drawn."""
    instances = []
    for i, network in enumerate(chosen):
        for machine in range(machines):
            random = np.random.default_rng((_MACHINES_SEED, seed, i, machine))
            table = on_random_machine(network.graph, devices, random)
            title = f"{network.title} on random machine {machine}"
            instances.append(Instance(title, network.family, table, objective))
    return instances


def on_random_machine(graph: CoarseGraph, devices: int, random: np.random.Generator) -> CostTable:
    """A network on devices that each suit other ops, where transfers are cheap enough for placing to matter.

    Args:
        graph: The network.
        devices: How many. Each is a CPU of the catalogue with every op type, and every op, made faster or
            slower.
        random: Source of everything random.
    """
    table, D = analytic_table(graph, load_target(_MACHINE), ["CPU"]), devices
    types, op_type = np.unique(np.array(table.op_types), return_inverse=True)
    seconds = np.repeat(table.op_seconds, D, axis=1)
    seconds = seconds * np.exp(random.normal(0, _BY_TYPE, (len(types), D)))[op_type]
    seconds *= np.exp(random.normal(0, _BY_OP, seconds.shape))
    seconds *= seconds.sum(axis=0).mean() / seconds.sum(axis=0) * np.exp(random.normal(0, _BALANCE, D))
    typical = float((seconds.max(axis=1) - seconds.min(axis=1)).mean()) * 10.0 ** random.uniform(*_CROSSING)
    by_latency = random.uniform(0.1, 1.0)
    moved = table.tensor_bytes[~table.tensor_is_constant]
    pair = np.exp(random.normal(0, 0.4, (2, D, D)))
    return replace(
        table,
        devices=tuple(f"DEVICE{d}" for d in range(D)),
        op_seconds=seconds,
        transfer_latency=typical * by_latency * pair[0],
        transfer_seconds_per_byte=typical * (1 - by_latency) / max(float(moved.mean()), 1.0) * pair[1],
        launch_seconds=typical * random.uniform(0, 0.6) * np.exp(random.normal(0, 0.4, D)),
        memory_capacity=np.full(D, np.inf),
        source="profiled",
    )


def published(quick: bool, accelerators: int | None) -> list[Instance]:
    """The graphs of Tarnawski et al., NeurIPS 2020; memory limits hold where all accelerators are kept."""
    instances = []
    for path in sorted(GRAPHS.glob("*_inference.json")):
        table = load_dnn_partitioning(path, accelerators, memory=accelerators is None)
        if quick and len(table) * table.num_devices > _MOST_PAIRS_QUICK:
            continue
        devices = "+".join(table.devices) if table.num_devices == 2 else f"{table.num_devices} devices"
        name = path.stem.removesuffix("_inference")
        instances.append(Instance(f"{name} on {devices}", name, table))
    return instances
