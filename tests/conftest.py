"""Fixtures that many tests share."""

from __future__ import annotations

import os
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# One of several processes that share the machine keeps to one core, as their threads would only wait for each
# other; OpenVINO and BLAS count the cores when they are imported. What needs several is marked `alone`.
if worker := os.environ.get("PYTEST_XDIST_WORKER"):
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, {cores[int(worker.removeprefix("gw")) % len(cores)]})

import openvino as ov
import pytest

from places import CPU_PLUGIN, ROOT

# The networks of the tests are so small that threads of torch and BLAS only wait for each other.
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")

# What is tested is the installed package, which the sources would hide.
sys.path[:] = [folder for folder in sys.path if Path(folder or ".").resolve() != ROOT]
for folder in (ROOT / "tools", ROOT / "tests"):
    sys.path.insert(0, str(folder))

pytest_plugins = [
    "browser",
    "command_line",
    "fleet_cluster",
    "measuring_faults",
    "optional_packages",
    "random_cases",
]

# HETERO runs CPU submodels on one shared executor unless told otherwise, and then the thread counts
# below would be reported but not used.
UNEQUAL_PAIR = {
    "XCPU": {
        "INFERENCE_NUM_THREADS": 1,
        "INFERENCE_PRECISION_HINT": "f32",
        "EXCLUSIVE_ASYNC_REQUESTS": False,
        # On one thread, OpenVINO crashes while it tokenises some small graphs.
        "SNIPPETS_MODE": "DISABLE",
    },
    "CPU": {
        "INFERENCE_NUM_THREADS": 2,
        "INFERENCE_PRECISION_HINT": "f32",
        "EXCLUSIVE_ASYNC_REQUESTS": False,
    },
}


@pytest.fixture(autouse=True, scope="session")
def _cores_stay_a_while() -> Iterator[None]:
    """A Core is dropped some Cores later.

    OpenVINO's threads take the GIL once more after the end of an inference with a callback. Dropping the Core
    waits for them with the GIL held, so that it hangs at that moment, see docs/openvino-faults.md.
    """
    recent: deque[ov.Core] = deque(maxlen=8)
    make_core = ov.Core.__init__

    def make_and_keep(core: ov.Core, *arguments: Any, **options: Any) -> None:
        make_core(core, *arguments, **options)
        recent.append(core)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ov.Core, "__init__", make_and_keep)
        yield


@pytest.fixture(autouse=True, scope="session")
def _away_from_the_sources(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Programs that a test starts import the installed package, too, and leave nothing in the checkout."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("here"))
        yield


@pytest.fixture(autouse=True, scope="session")
def _cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test, and no process that one starts, reads or writes the real user's cache folder.

    Nor does a test find what another one decided.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("AUTOPLACE_CACHE", "NO")
        yield


@pytest.fixture(params=["2026.2.1", "2026.3.0"])
def by_either_rules(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of OpenVINO of each set of HETERO's rules, as far as what is predicted depends on it."""
    from ov_autoplace._base import releases

    monkeypatch.setattr(releases, "installed", lambda: request.param)


@pytest.fixture
def unknown_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """A release of OpenVINO that nobody knows, and which cuts models by rules that nobody knows."""
    from ov_autoplace._base import releases
    from ov_autoplace.plan import hetero_rules

    monkeypatch.setattr(releases, "installed", lambda: "2099.1.0")
    monkeypatch.setattr(hetero_rules, "_counts_here", lambda: (1,) * len(hetero_rules.CANARIES))


@pytest.fixture
def unequal_pair() -> ov.Core:
    """A Core with two real devices of unequal speed: XCPU is the CPU plugin on one thread."""
    core = ov.Core()
    core.register_plugin(str(CPU_PLUGIN), "XCPU")
    for device, properties in UNEQUAL_PAIR.items():
        core.set_property(device, properties)
    return core


@pytest.fixture
def two_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process on two cores without a quota, whatever machine this is."""
    from ov_autoplace.devices.widths import Cores

    monkeypatch.setattr(Cores, "all", 2)
    monkeypatch.setattr(Cores, "of_kind", {})
    monkeypatch.setattr(Cores, "usable", 2)
    monkeypatch.setattr(Cores, "quota", None)
