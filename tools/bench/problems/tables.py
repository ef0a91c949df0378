"""Placement problems: networks on machines of the catalogue and on random ones, and published cost graphs.

The policy was trained on none of them: held-out networks are of families of their own
(``zoo.HELD_OUT_FAMILIES``), random machines come from seeds of their own, and training has never seen those
of the catalogue.
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
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.solvers import Problem
from ov_autoplace.training.targets import RandomTargets, Task, random_task
from ov_autoplace.training.workload import Workload

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
_TRIES = 100
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
            # The policy hedges against errors of an estimate, and here there are none.
            instances.append(Instance(title, network.family, replace(estimate, source="profiled")))
    return instances


def on_random_machines(chosen: Sequence[Network], machines: int, seed: int) -> list[Instance]:
    """Every network on machines of two devices whose strengths are drawn, and which some ops do not suit."""
    instances = []
    targets = RandomTargets(estimate=0.0, untyped=0.0)
    for i, network in enumerate(chosen):
        workload = Workload.of(network.graph, network.title, network.family)
        for machine in range(machines):
            random = np.random.default_rng((_MACHINES_SEED, seed, i, machine))
            true = _legal_task(workload, random, targets, 2).true
            title = f"{network.title} on random machine {machine}"
            instances.append(Instance(title, network.family, true))
    return instances


def _legal_task(
    workload: Workload, random: np.random.Generator, targets: RandomTargets, devices: int
) -> Task:
    """The first machine that has a placement at all: ops that stay together may have no device in common."""
    for _ in range(_TRIES):
        task = random_task(workload, random, targets, devices)
        try:
            Problem.of(task.true)
        except PlacementError:
            continue
        return task
    raise PlacementError(f"none of {_TRIES} random machines can run {workload.name!r}")


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
