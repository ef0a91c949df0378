"""A Ray cluster of several nodes on this computer, whose devices differ; a plugin of tests/conftest.py."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import pytest

FUNCTIONS = Path(__file__).resolve().parent / "fleet"
PAIR = "XCPU=CPU,INFERENCE_NUM_THREADS=1"


class LocalCluster(NamedTuple):
    """A cluster with a head that measures nothing, and three nodes of two kinds."""

    address: str
    add: Callable[..., Any]
    remove: Callable[..., None]


@pytest.fixture(scope="session")
def _environment_of_nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What the processes of nodes inherit: these modules, and no cache of the user's."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("nodes")))
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv(
            "PYTHONPATH", os.pathsep.join([str(FUNCTIONS), *filter(None, [os.environ.get("PYTHONPATH")])])
        )
        patch.delenv("AUTOPLACE_EXTRA_DEVICES", raising=False)
        yield


@pytest.fixture(scope="session")
def cluster(_environment_of_nodes: None) -> Iterator[LocalCluster]:
    """``alpha`` and ``beta`` have CPU and XCPU, ``gamma`` has a CPU alone; all on this computer."""
    from ray.cluster_utils import Cluster

    ray_cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False})

    def add(name: str, extra: str = "", environment: Mapping[str, str] | None = None, **given: Any) -> Any:
        devices = ["CPU", *(entry.split("=")[0] for entry in extra.split(";") if entry)]
        options = {"num_cpus": 1, "resources": {f"ov_device:{device}": 1 for device in devices}}
        variables = {"AUTOPLACE_EXTRA_DEVICES": extra} if extra else {}
        variables |= environment or {}
        return ray_cluster.add_node(node_name=name, env_vars=variables, **{**options, **given})

    try:
        for name, extra in (("alpha", PAIR), ("beta", PAIR), ("gamma", "")):
            add(name, extra)
        yield LocalCluster(ray_cluster.address, add, ray_cluster.remove_node)
    finally:
        ray_cluster.shutdown()


@pytest.fixture(scope="module")
def joined(cluster: LocalCluster) -> Iterator[LocalCluster]:
    """The cluster, with this process as a driver of it."""
    from ov_autoplace.fleet.connection import connected

    with connected(cluster.address):
        yield cluster


@pytest.fixture(scope="module")
def machines(joined: LocalCluster) -> Any:
    """The cluster's machines, which have said what they are."""
    from ov_autoplace.fleet.members import Fleet

    fleet = Fleet()
    fleet.members()
    return fleet


@pytest.fixture
def extra_node(cluster: LocalCluster) -> Iterator[Callable[..., Any]]:
    """Adds nodes that are gone after the test."""
    added = []

    def add(*arguments: Any, **given: Any) -> Any:
        added.append(cluster.add(*arguments, **given))
        return added[-1]

    yield add
    for node in added:
        with suppress(KeyError, ValueError, AssertionError, RuntimeError):  # the test removed it
            cluster.remove(node)
