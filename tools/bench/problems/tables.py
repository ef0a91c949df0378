"""Placement problems: networks on machines of the catalogue and on random ones, and published cost graphs.

The policy was trained on none of them: held-out networks are of families of their own
(``zoo.HELD_OUT_FAMILIES``), random machines come from seeds of their own, and training has never seen those
of the catalogue.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import openvino as ov

import zoo
from harness import GRAPHS, ROOT
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.prepare import prepare
from ov_autoplace.solvers import Problem
from ov_autoplace.training.examples import by_family
from ov_autoplace.training.targets import RandomTargets, Task, random_task
from ov_autoplace.training.workload import Workload, load_folder
from workloads import write_workloads

__all__ = [
    "MACHINES",
    "SPLITS",
    "Instance",
    "Network",
    "coarse_graph",
    "held_out_models",
    "networks",
    "on_catalogue",
    "on_random_machines",
    "published",
    "random_instances",
    "scaled_networks",
]

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

_WORKLOADS = ROOT / "build" / "workloads" / "held-out"
# Training draws from ``(seed, number)`` with small seeds, and validates with 1,000,003.
_HELD_OUT_SEED = 2_000_003
_MACHINES_SEED = 3_000_017
_SCALED_OPS = (300, 1500)  # of further networks of each family, with random sizes
_TRIES = 100
_MOST_GROUPS_QUICK = 250
_MOST_PAIRS_QUICK = 700  # groups times devices; with memory limits, more take the solvers long


@dataclass(frozen=True, eq=False)
class Instance:
    """A network on a machine.

    Attributes:
        name, family: Of the network and the machine.
        true: What placements are scored on.
        shown: What is read to place; the same table unless it is an estimate.
    """

    name: str
    family: str
    true: CostTable
    shown: CostTable


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


def scaled_networks() -> Iterator[Network]:
    """Further held-out networks, with random sizes."""
    for family in zoo.HELD_OUT_FAMILIES:
        for num_ops in _SCALED_OPS:
            model = zoo.build_scaled(family, num_ops, _HELD_OUT_SEED)
            yield Network(f"{family} ({num_ops} ops)", family, coarse_graph(model))


def held_out_models(full: bool) -> Iterator[tuple[str, str, ov.Model]]:
    """Name, family and model of the zoo's held-out networks with random weights, small and full."""
    for family in zoo.HELD_OUT_FAMILIES:
        name = zoo.network_of(family)
        yield f"{name} (small)", family, zoo.build(name, "small")
        if full:
            yield name, family, zoo.build(name, "full")


def on_catalogue(chosen: Sequence[Network], devices: int, quick: bool) -> list[Instance]:
    """Every network on every machine of the catalogue, whose figures are taken as the truth.

    If quick, machines take turns instead. What is shown says that it is an estimate, as it would for a user.
    """
    instances = []
    machines = MACHINES[devices]
    for i, network in enumerate(chosen):
        for target, names in (machines[i % len(machines)],) if quick else machines:
            shown = analytic_table(network.graph, load_target(target), names)
            # The policy hedges against errors of an estimate, and here there are none.
            true = replace(shown, source="profiled")
            title = f"{network.title} on {'+'.join(names)} of {target}"
            instances.append(Instance(title, network.family, true, shown))
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
            instances.append(Instance(title, network.family, true, true))
    return instances


def random_instances(count: int, devices: int, estimates: bool = False) -> list[Instance]:
    """Held-out workloads of all sizes on random machines; families take turns, and so do their networks.

    The workloads are written (as by ``tools/workloads.py``) where that was not done before.

    Args:
        count: How many.
        devices: Of each machine.
        estimates: Whether the table that is shown holds estimates of the true one.
    """
    families = by_family(_held_out_workloads(_WORKLOADS))
    targets = RandomTargets(estimate=float(estimates), untyped=0.0)
    instances = []
    for i in range(count):
        family = families[i % len(families)]
        workload = family[i // len(families) % len(family)]
        task = _legal_task(workload, np.random.default_rng((_HELD_OUT_SEED, devices, i)), targets, devices)
        instances.append(Instance(f"{workload.name} on machine {i}", workload.family, task.true, task.shown))
    return instances


def _held_out_workloads(folder: Path) -> list[Workload]:
    if not folder.exists():
        write_workloads(folder, "held-out", 120, 0, seed=0, smallest=5, largest=800)
    return [w for w in load_folder(folder) if w.family in zoo.HELD_OUT_FAMILIES]


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
        instances.append(Instance(f"{name} on {devices}", name, table, table))
    return instances
