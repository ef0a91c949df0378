"""The tables on which placements are compared: networks on machines, and published cost graphs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from common import ROOT
from policy_problems import PAIRS, Problem
from rich.progress import track

import zoo
from ov_autoplace.cost.analytic import analytic_table
from ov_autoplace.cost.dnn_partitioning import load_dnn_partitioning
from ov_autoplace.cost.table import CostTable
from ov_autoplace.cost.target_json import load_target
from ov_autoplace.errors import PlacementError
from ov_autoplace.graph.coarsen import coarsen
from ov_autoplace.graph.computation_graph import CoarseGraph
from ov_autoplace.graph.extract import extract
from ov_autoplace.graph.folding import fold_static_shapes
from ov_autoplace.solvers import Constraints
from ov_autoplace.training.targets import RandomTargets, random_task
from ov_autoplace.training.workload import Workload

__all__ = ["problem_sets"]

_GRAPHS = ROOT / "tests" / "data" / "dnn-partitioning"
_NAME_OF = {
    "bert": "bert_base",
    "densenet": "densenet121",
    "efficientnet": "efficientnet_b0",
    "mobilenet": "mobilenet_v2",
    "resnet": "resnet50",
    "vgg": "vgg16",
    "vit": "vit_base",
}
_SPLITS = {"held-out": zoo.HELD_OUT_FAMILIES, "training": zoo.TRAINING_FAMILIES}
_MACHINES_SEED = 3_000_017  # neither of training nor of the policy's own benchmark
_TRIES = 100
_MOST_GROUPS_QUICK = 250
_MOST_PAIRS_QUICK = 700  # groups times devices; with memory limits, more take the solvers long


@dataclass(frozen=True, eq=False)
class _Network:
    """A network of the zoo, coarsened as for a placement."""

    title: str
    family: str
    graph: CoarseGraph


def problem_sets(quick: bool, seed: int) -> dict[str, list[Problem]]:
    """All problems by set.

    Args:
        quick: Fewer problems, and none that are large.
        seed: Of the random machines.
    """
    sets: dict[str, list[Problem]] = {}
    for split, families in _SPLITS.items():
        networks = list(track(_networks(families, quick), f"{split} networks"))
        for devices in PAIRS:
            sets[f"{split} zoo on catalogue machines, {devices} devices"] = _on_catalogue(
                networks, devices, quick
            )
        sets[f"{split} zoo on random machines, 2 devices"] = _on_random(networks, 1 if quick else 3, seed)
    sets["dnn-partitioning graphs, CPU and 1 accelerator"] = _published(quick, 1)
    sets["dnn-partitioning graphs, all accelerators, memory limits"] = _published(quick, None)
    return sets


def _networks(families: tuple[str, ...], quick: bool) -> Iterator[_Network]:
    """Each network with its published dimensions and small; if quick, one of the two: none is large then."""
    for family in families:
        name = _NAME_OF.get(family, family)
        full = _network(name, family, "full")
        is_moderate = len(full.graph) <= _MOST_GROUPS_QUICK
        if not quick or is_moderate:
            yield full
        if not quick or not is_moderate:
            yield _network(name, family, "small")


def _network(name: str, family: str, size: Literal["small", "full"]) -> _Network:
    model = zoo.build(name, size, weights="untouched")
    fold_static_shapes(model)
    title = f"{name} (small)" if size == "small" else name
    return _Network(title, family, coarsen(extract(model)))


def _on_catalogue(networks: list[_Network], devices: int, quick: bool) -> list[Problem]:
    """Every network on every machine of the catalogue, whose figures are taken as the truth.

    If quick, machines take turns instead.
    """
    problems = []
    machines = PAIRS[devices]
    for i, network in enumerate(networks):
        for target, names in (machines[i % len(machines)],) if quick else machines:
            table = analytic_table(network.graph, load_target(target), names)
            # The policy hedges against errors of an estimate, and here there are none.
            table = replace(table, source="profiled")
            title = f"{network.title} on {'+'.join(names)} of {target}"
            problems.append(Problem(title, network.family, table, table))
    return problems


def _on_random(networks: list[_Network], machines: int, seed: int) -> list[Problem]:
    """Every network on machines of two devices whose strengths are drawn, and which some ops do not suit."""
    problems = []
    targets = RandomTargets(estimate=0.0, untyped=0.0)
    for i, network in enumerate(networks):
        workload = Workload.of(network.graph, network.title, network.family)
        for machine in range(machines):
            random = np.random.default_rng((_MACHINES_SEED, seed, i, machine))
            table = _random_table(workload, random, targets)
            title = f"{network.title} on random machine {machine}"
            problems.append(Problem(title, network.family, table, table))
    return problems


def _random_table(workload: Workload, random: np.random.Generator, targets: RandomTargets) -> CostTable:
    """The first table that has a placement at all: ops that stay together may have no device in common."""
    for _ in range(_TRIES):
        table = random_task(workload, random, targets, 2).true
        try:
            Constraints.of(table)
        except PlacementError:
            continue
        return table
    raise PlacementError(f"none of {_TRIES} random machines can run {workload.name!r}")


def _published(quick: bool, accelerators: int | None) -> list[Problem]:
    """The graphs of Tarnawski et al., NeurIPS 2020; memory limits hold where all accelerators are kept."""
    problems = []
    for path in sorted(_GRAPHS.glob("*_inference.json")):
        table = load_dnn_partitioning(path, accelerators, memory=accelerators is None)
        if quick and len(table) * table.num_devices > _MOST_PAIRS_QUICK:
            continue
        devices = "+".join(table.devices) if table.num_devices == 2 else f"{table.num_devices} devices"
        name = path.stem.removesuffix("_inference")
        problems.append(Problem(f"{name} on {devices}", name, table, table))
    return problems
