"""Leaves out the tests whose packages are not installed, and says in one line which; a plugin of all tests.

A test or a whole module that needs more than the extra ``test`` says so with one of :data:`NEEDS` as its
marker, and may then import what it needs like anything else: a marked module is not even imported where a
package is absent. A test that runs without and checks more with them is marked ``optional``.
"""

from __future__ import annotations

import ast
import functools
import sys
from collections import Counter
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from browser import find_chromium

NEEDS = {
    "torch": ("torch", "safetensors", "matplotlib", "transformers"),
    "dgl": ("dgl",),
    "bokeh": ("bokeh",),
    "browser": ("bokeh", "playwright", "chromium"),
    "metis": ("pymetis",),
    "oracle": ("ortools",),
    "fleet": ("ray",),
}
"""What each marker's tests import, beyond the extra ``test``; `chromium` is a program."""

USES = "optional"
"""The marker of tests that run without such packages and check more with them."""

_left_out = pytest.StashKey[Counter[str]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--require",
        default=[],
        action="append",
        metavar="MARKER",
        help="fail where what this marker needs is not there; may be given several times",
    )
    parser.addoption(
        "--without-optional",
        action="store_true",
        help="as if no package were installed beyond those of an environment for `make test`",
    )
    parser.addoption(
        "--only-optional",
        action="store_true",
        help="only tests that need packages beyond the extra `test`, or check more where they are",
    )


def pytest_configure(config: pytest.Config) -> None:
    for name, packages in NEEDS.items():
        config.addinivalue_line(
            "markers", f"{name}: needs {', '.join(packages)}; left out where one is absent"
        )
    config.addinivalue_line("markers", f"{USES}: checks more where packages beyond the extra `test` are")
    config.stash[_left_out] = Counter()
    if config.getoption("--without-optional"):
        for package in {package for packages in NEEDS.values() for package in packages}:
            sys.modules[package] = None  # type: ignore[assignment] # which makes importing it fail
    required = config.getoption("--require")
    unknown = [name for name in required if name not in NEEDS]
    if unknown:
        raise pytest.UsageError(f"--require {unknown[0]}: there are {', '.join(NEEDS)}")
    absent = {package: name for name in required for package in missing(name)}
    if absent:
        raise pytest.UsageError(
            "not installed: " + ", ".join(f"{package} (--require {name})" for package, name in absent.items())
        )


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    if collection_path.suffix != ".py" or not collection_path.name.startswith("test_"):
        return None
    packages = [package for name in module_markers(collection_path) for package in missing(name)]
    if not packages:
        return None
    config.stash[_left_out][f"module {packages[0]}"] += 1
    return True


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    kept, deselected = [], []
    wanted = {*NEEDS, USES} if config.getoption("--only-optional") else None
    for item in items:
        if wanted and wanted.isdisjoint(marker.name for marker in item.iter_markers()):
            deselected.append(item)
            continue
        packages = [p for name in NEEDS if item.get_closest_marker(name) for p in missing(name)]
        if packages:
            config.stash[_left_out][f"test {packages[0]}"] += 1
        (deselected if packages else kept).append(item)
    if deselected:
        config.hook.pytest_deselected(items=deselected)
        items[:] = kept


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):  # a process of pytest-xdist, which alone knows its tests
        session.config.workeroutput["left_out"] = dict(session.config.stash[_left_out])


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    # Every worker collects all tests, so any of them will do; one that crashed has told nothing.
    told = getattr(node, "workeroutput", {}).get("left_out")
    node.config.stash[_left_out] = Counter(told) if told else node.config.stash[_left_out]


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash[_left_out]
    if left_out:
        parts = []
        for key, count in sorted(left_out.items()):
            kind, package = key.split()
            parts.append(f"{count} {kind}{'s' * (count > 1)} without {package}")
        terminalreporter.write_line(f"left out: {', '.join(parts)}; `make test-all` runs them")


@functools.cache
def missing(marker: str) -> tuple[str, ...]:
    """What a marker's tests need and this environment does not have."""
    return tuple(name for name in NEEDS[marker] if not _is_there(name))


def _is_there(name: str) -> bool:
    if name in sys.modules:
        return sys.modules[name] is not None
    if name == "chromium":
        return find_chromium() is not None
    try:
        return find_spec(name) is not None
    except ImportError:  # a finder that refuses it
        return False


def module_markers(path: Path) -> list[str]:
    """Markers among :data:`NEEDS` that a module's ``pytestmark`` names, without importing the module."""
    for statement in ast.parse(path.read_bytes()).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "pytestmark":
            names = {node.attr for node in ast.walk(statement.value) if isinstance(node, ast.Attribute)}
            return [name for name in NEEDS if name in names]
    return []
